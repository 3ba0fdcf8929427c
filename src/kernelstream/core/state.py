"""The flat state of a kernel expansion that grows and shrinks.

Plain arrays with spare capacity: the compiled loops, the model file, a checkpoint and a
network of agents all hold the same thing.
"""

from typing import Any, NamedTuple

import numpy as np

#: Numbers that a method may use as it likes: zero at the beginning.
OWN = 8

#: One record instead of a dozen loose scalars; every field is 8 bytes.
STATUS = np.dtype(
    (
        np.record,
        [
            ("order", "i8"),  # points in use
            ("steps", "i8"),  # updates made: t of the step size schedule
            ("seen", "i8"),  # samples consumed
            ("scale", "f8"),  # the true weights are scale * weights (not the averaged ones)
            ("cheapest", "f8"),  # least removal cost |w_j|^2 / diagonal_j at scale 1
            ("error_spent", "f8"),  # sum over all steps of |f - f~|_H
            ("taken", "i8"),  # samples whose derivative was not zero
            ("removed", "i8"),  # points removed
            ("forced", "i8"),  # ... of them beyond the error budget, because of the cap
            ("dependent", "i8"),  # samples that lay in the span of the points
            ("changes", "i8"),  # appends (some count for more) and removals since the last probe
            ("residual", "f8"),  # the last probe of max |S S^T K - I|
            ("floor", "f8"),  # the same right after the last factorisation from scratch
            ("rebuilds", "i8"),  # factorisations from scratch
            ("random", "u8"),  # state of the random numbers
            ("cells", "i8"),  # the first points in use: those that are core points of a coverage
            ("square_norm", "f8"),  # |f|_H^2, where a method keeps it
            ("largest", "f8"),  # twice the largest loss of the zero function so far, likewise
            ("summed", "f8"),  # sum of the scales of the iterates being averaged ...
            ("averaged", "i8"),  # ... how many they are ...
            ("before", "i8"),  # ... and how many lie in the block before
            ("tracker", "f8"),  # running mean of any sign: COLK's inner expectation, or by how much
            # the last iterate of AVM errs more than the average
            ("threshold", "f8"),  # quantile of the loss that CVaR learns along
            ("ghosts", "i8"),  # points after those in use: f before the last step still needs them
            ("pending", "i8"),  # the last points in use: those without a row in the factor yet
            ("owed", "f8"),  # squared error that the steps which took them in may make together
            ("oldest", "i8"),  # where points in the order of their arrival begin, as a ring
            ("own", "f8", (OWN,)),  # numbers that only one method knows
        ],
    )
)

#: ``cheapest`` is only a shortcut: 0 makes the next pruning look again.
_KEPT = tuple(name for name in STATUS.names or () if name != "cheapest")
#: What may be negative.
_SIGNED = ("tracker", "own")
#: What files of version 0.1 do not have: zero.
_LATER = ("pending", "owed", "oldest", "own")

SMALLEST_CAPACITY = 16
#: Of a file without points, where no array's bytes bound them.
MOST_FEATURES = 2**24


class State(NamedTuple):
    """f = sum_j weights_j k(d_j, .) together with the factor of its inverse Gram matrix.

    Methods that never project do without the factor: memory then grows with the points, not
    with their square.
    """

    points: np.ndarray  # (p, capacity) float64, feature-major: column j is d_j
    square_norms: np.ndarray  # (capacity,) float64, |d_j|^2
    absolute_norms: np.ndarray  # (capacity,) float64, |d_j|_1
    self_kernels: np.ndarray  # (capacity,) float64, k(d_j, d_j)
    weights: np.ndarray  # (outputs, capacity) float64; more rows for averages and for the past
    factor: np.ndarray  # (capacity, capacity) float64, S with inverse(K) = S S^T; or (0, 0)
    diagonal: np.ndarray  # (capacity,) float64, squared row norms of S: diag of inverse(K), or 0
    status: np.ndarray  # (1,) STATUS

    @property
    def capacity(self) -> int:
        """Points that fit before the arrays must grow."""
        return int(self.diagonal.shape[0])

    @property
    def factored(self) -> bool:
        """Whether there is a factor."""
        return self.factor.shape[0] == self.capacity

    @property
    def order(self) -> int:
        """Points in use."""
        return int(self.status[0]["order"])

    @property
    def factored_order(self) -> int:
        """Points in use that have a row in the factor, where there is one: the first ones."""
        return self.order - int(self.status[0]["pending"])

    @property
    def extent(self) -> int:
        """Points in use and ghosts."""
        return self.order + int(self.status[0]["ghosts"])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self)


def state_bytes(capacity: int, features: int, columns: int, factored: bool = True) -> int:
    """Bytes of a state in closed form: 8 capacity (p + C + 4 + capacity) + the record.

    Without a factor the last term, capacity, falls away.
    """
    row = features + columns + 4 + (capacity if factored else 0)
    return 8 * capacity * row + STATUS.itemsize


def largest_capacity(limit: int, features: int, columns: int, factored: bool = True) -> int:
    """The largest capacity whose state stays within ``limit`` bytes (0 if none does)."""
    width = features + columns + 4
    room = max(0.0, (limit - STATUS.itemsize) / 8.0)
    guess = int((width * width / 4.0 + room) ** 0.5 - width / 2.0 if factored else room / width) + 2
    while guess > 0 and state_bytes(guess, features, columns, factored) > limit:
        guess -= 1
    return guess


def spread(capacity: int, least: int) -> int:
    """At most this capacity, at least the other, and if possible an odd number of cache lines.

    With a power of two the features of a point would all compete for the same cache set.
    """
    lines = capacity // 8
    return max(8 * (lines - 1 + lines % 2), least)


def allocate(features: int, columns: int, capacity: int, seed: int, factored: bool = True) -> State:
    """An empty state."""
    state = _arrays(features, columns, capacity, factored)
    state.status[0]["scale"] = 1.0
    state.status[0]["cheapest"] = np.inf
    state.status[0]["random"] = np.uint64(seed)
    return state


def resize(state: State, capacity: int, columns: int | None = None) -> State:
    """The same state with another capacity, or with another number of weights per point.

    New weights are zero.
    """
    order, n = state.factored_order, state.extent
    if capacity < n:
        raise ValueError(f"{n} points do not fit a capacity of {capacity}")
    features, old_columns = state.points.shape[0], state.weights.shape[0]
    columns = old_columns if columns is None else columns
    new = _arrays(features, columns, capacity, state.factored)
    new.points[:, :n] = state.points[:, :n]
    new.square_norms[:n] = state.square_norms[:n]
    new.absolute_norms[:n] = state.absolute_norms[:n]
    new.self_kernels[:n] = state.self_kernels[:n]
    kept = min(columns, old_columns)
    new.weights[:kept, :n] = state.weights[:kept, :n]
    if state.factored:
        new.factor[:order, :order] = state.factor[:order, :order]
    new.diagonal[:order] = state.diagonal[:order]
    new.status[:] = state.status
    return new


def pack(state: State) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The live part of a state as arrays and plain numbers, for files and hashes."""
    order, n = state.factored_order, state.extent
    arrays = {
        "points": np.ascontiguousarray(state.points[:, :n]),
        "weights": np.ascontiguousarray(state.weights[:, :n].T),
        "factor": np.ascontiguousarray(state.factor[:order, :order]),
        "square_norms": state.square_norms[:n].copy(),
        "absolute_norms": state.absolute_norms[:n].copy(),
        "self_kernels": state.self_kernels[:n].copy(),
        "diagonal": state.diagonal[:order].copy(),
    }
    return arrays, {name: state.status[0][name].tolist() for name in _KEPT}


def unpack(arrays: dict[str, np.ndarray], status: dict[str, Any], factored: bool = True) -> State:
    """The state behind :func:`pack`; ``ValueError`` if the parts do not belong together."""
    points, weights = arrays["points"], arrays["weights"]
    known = set(status) <= set(_KEPT)
    if not known or not set(_KEPT) - set(status) <= set(_LATER):
        raise ValueError("it was written by another version of kernelstream: learn again")
    status = {**{name: [0.0] * OWN if name == "own" else 0 for name in _LATER}, **status}
    if points.ndim != 2 or weights.ndim != 2:
        raise ValueError("the state's arrays are not those of a kernel expansion")
    for name in _KEPT:
        kind, values = STATUS[name].base.kind, status[name]
        if name == "own" and not (type(values) is list and len(values) == OWN):
            raise ValueError("a state's own numbers are not those of a method")
        for value in values if name == "own" else [values]:
            number = type(value) is int or (type(value) is float and kind == "f")
            size = abs(value) if number and name in _SIGNED else value
            if not number or not 0 <= size < {"u": 2**64, "i": 2**62, "f": np.inf}[kind]:
                raise ValueError(f"{name} is not a number that a state can hold")
    features, n = points.shape
    order = n - status["ghosts"]
    if order < 0 or status["order"] != order or (n == 0 and features > MOST_FEATURES):
        raise ValueError("the state's parts contradict one another")
    whole = order - status["pending"]
    if whole < 0 or (status["pending"] and (not factored or status["ghosts"])):
        raise ValueError("the state's parts contradict one another")
    if status["oldest"] and status["oldest"] >= order:
        raise ValueError("the state's parts contradict one another")
    side = whole if factored else 0
    expected = {"weights": (n, weights.shape[1]), "factor": (side, side), "diagonal": (whole,)}
    for name in State._fields[:-1]:
        array = arrays[name]
        shape = expected.get(name, points.shape if name == "points" else (n,))
        if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"the array {name!r} is not finite float64 of shape {shape}")
    with np.errstate(over="ignore"):
        derived = {
            "square_norms": (points**2).sum(axis=0),
            "absolute_norms": np.abs(points).sum(axis=0),
            "diagonal": (arrays["factor"] ** 2).sum(axis=1) if factored else np.zeros(whole),
        }
    agree = all(np.allclose(arrays[name], right, 1e-6, 0.0) for name, right in derived.items())
    unit = 0.0 < status["scale"] <= 1.0
    if status["cells"] > order or not unit or not agree:
        raise ValueError("the state's parts contradict one another")
    if (arrays["self_kernels"] <= 0.0).any() or (factored and (arrays["diagonal"] <= 0.0).any()):
        raise ValueError("the state's kernel values are not positive")
    state = _arrays(features, weights.shape[1], max(n, 1), factored)
    state.points[:, :n] = points
    state.weights[:, :n] = weights.T
    state.factor[:side, :side] = arrays["factor"]
    for name in ("square_norms", "absolute_norms", "self_kernels", "diagonal"):
        getattr(state, name)[: len(arrays[name])] = arrays[name]
    for name, value in status.items():
        state.status[0][name] = value
    return state


def _arrays(features: int, columns: int, capacity: int, factored: bool) -> State:
    side = capacity if factored else 0
    return State(
        points=_aligned(features, capacity),
        square_norms=np.zeros(capacity),
        absolute_norms=np.zeros(capacity),
        self_kernels=np.zeros(capacity),
        weights=_aligned(columns, capacity),
        factor=np.zeros((side, side)),
        diagonal=np.zeros(capacity),
        status=np.zeros(1, STATUS),
    )


def _aligned(rows: int, columns: int) -> np.ndarray:
    """Zeros that begin at a cache line."""
    raw = np.zeros(rows * columns + 7)
    first = -raw.ctypes.data // 8 % 8
    return raw[first : first + rows * columns].reshape(rows, columns)
