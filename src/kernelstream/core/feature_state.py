"""The state of online kernel features between two samples, and as it is written to files."""

from typing import Any, NamedTuple

import numpy as np

from kernelstream.core.state import MOST_FEATURES

#: Fit errors remembered.
HISTORY = 1000

STATUS = np.dtype(
    (
        np.record,
        [
            ("order", "i8"),  # samples in S
            ("rank", "i8"),  # directions in use: the columns of A~ that are not zero
            ("seen", "i8"),  # samples consumed: n of the paper
            ("steps", "i8"),  # steps of the linear learner
            ("updates", "i8"),  # samples that changed A
            ("candidates", "i8"),  # samples that censoring was asked about ...
            ("censored", "i8"),  # ... and those it kept from changing A
            ("removed", "i8"),  # samples discarded because of the budget
            ("recorded", "i8"),  # fit errors recorded
            ("changes", "i8"),  # changes of M since it was computed from scratch
            ("exponent", "i8"),  # A = 2^exponent A~
            ("ridge", "f8"),  # lambda / 4^exponent, or the floor
            ("gram_square", "f8"),  # squared Frobenius norm of K
            ("error_spent", "f8"),  # sum of |g - projected g|_H over all updates
        ],
    )
)


class FeatureState(NamedTuple):
    """A subspace Phi_S A, and a function in it."""

    points: np.ndarray  # (p, capacity) float64, feature-major: column j is a stored sample
    square_norms: np.ndarray  # (capacity,) float64
    absolute_norms: np.ndarray  # (capacity,) float64
    gram: np.ndarray  # (capacity, capacity) float64, K; (0, 0) where nothing needs it
    factor: np.ndarray  # (capacity, r) float64, A~
    recency: np.ndarray  # (capacity,) float64, eta of (26)
    numbers: np.ndarray  # (capacity,) int64, the number of each stored sample in the stream
    inner: np.ndarray  # (r, r) float64, M = A~' K A~
    solver: np.ndarray  # (r, r) float64, lower triangular with (M + ridge I)^-1 = solver' solver
    root: np.ndarray  # (r, r) float64, the same without ridge, where something needs it
    rotation: np.ndarray  # (r, r) float64, of the aligned basis
    weights: np.ndarray  # (outputs, r) float64, v of the linear learner
    errors: np.ndarray  # (HISTORY,) float64, fit errors, the i-th at i modulo HISTORY ...
    places: np.ndarray  # (HISTORY,) int64, ... and the numbers of their samples
    status: np.ndarray  # (1,) STATUS

    @property
    def capacity(self) -> int:
        """Samples that fit before the arrays must grow."""
        return int(self.recency.shape[0])

    @property
    def order(self) -> int:
        """Samples stored."""
        return int(self.status[0]["order"])

    @property
    def extent(self) -> int:
        """Places in use: as many as there are stored samples."""
        return self.order

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self)


def allocate(
    features: int, components: int, outputs: int, capacity: int, dense: bool
) -> FeatureState:
    """A state that has seen nothing."""
    side = capacity if dense else 0
    return FeatureState(
        points=np.zeros((features, capacity)),
        square_norms=np.zeros(capacity),
        absolute_norms=np.zeros(capacity),
        gram=np.zeros((side, side)),
        factor=np.zeros((capacity, components)),
        recency=np.zeros(capacity),
        numbers=np.zeros(capacity, np.int64),
        inner=np.zeros((components, components)),
        solver=np.zeros((components, components)),
        root=np.zeros((components, components)),
        rotation=np.eye(components),
        weights=np.zeros((outputs, components)),
        errors=np.zeros(HISTORY),
        places=np.zeros(HISTORY, np.int64),
        status=np.zeros(1, STATUS),
    )


_PER_SAMPLE = ("square_norms", "absolute_norms", "factor", "recency", "numbers")
_OTHERS = FeatureState._fields[7:]


def resize(state: FeatureState, capacity: int) -> FeatureState:
    """The same state with another capacity."""
    n = state.order
    features, (outputs, components) = state.points.shape[0], state.weights.shape
    new = allocate(features, components, outputs, capacity, len(state.gram) > 0)
    new.points[:, :n] = state.points[:, :n]
    new.gram[:n, :n] = state.gram[:n, :n]
    for name in _PER_SAMPLE:
        getattr(new, name)[:n] = getattr(state, name)[:n]
    return new._replace(**{name: getattr(state, name) for name in _OTHERS})


def pack(state: FeatureState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The live part of a state as arrays and plain numbers, for files and hashes."""
    n, recorded = state.order, int(state.status[0]["recorded"])
    arrays = {name: getattr(state, name)[:n].copy() for name in _PER_SAMPLE}
    arrays |= {name: getattr(state, name).copy() for name in _OTHERS if name != "status"}
    arrays["points"] = np.ascontiguousarray(state.points[:, :n])
    arrays["gram"] = np.ascontiguousarray(state.gram[:n, :n])
    arrays["weights"] = np.ascontiguousarray(state.weights.T)  # as in the first files
    for name in ("errors", "places"):
        arrays[name] = arrays[name][:recorded]
    return arrays, {name: state.status[0][name].item() for name in STATUS.names or ()}


def unpack(arrays: dict[str, np.ndarray], status: dict[str, Any]) -> FeatureState:
    """The state behind :func:`pack`; ``ValueError`` if the parts do not belong together."""
    points, factor, weights = arrays["points"], arrays["factor"], arrays["weights"]
    if set(status) != set(STATUS.names or ()):
        raise ValueError("it was written by another version of kernelstream: learn it again")
    if points.ndim != 2 or factor.ndim != 2 or weights.ndim != 2 or arrays["gram"].ndim != 2:
        raise ValueError("the state's arrays are not those of kernel features")
    # An array without a byte may have an endless side: look before anything is allocated.
    endless = points.shape[1] == 0 and points.shape[0] > MOST_FEATURES
    if endless or arrays["inner"].shape != 2 * weights.shape[:1]:
        raise ValueError("the state's parts contradict one another")
    for name in STATUS.names or ():
        whole, value = STATUS[name].kind == "i", status[name]
        lowest = -(2**62) if name == "exponent" else 0
        good = type(value) is int or (type(value) is float and not whole)
        if not good or not lowest <= value < (2**62 if whole else np.inf):
            raise ValueError(f"{name} is not a number that a state can hold")
    (features, n), (r, outputs) = points.shape, weights.shape
    arrays = {**arrays, "weights": np.ascontiguousarray(weights.T)}
    dense = len(arrays["gram"]) > 0
    state = allocate(features, r, outputs, max(n, 1), dense)
    recorded = min(status["recorded"], HISTORY)
    for name in FeatureState._fields[:-1]:
        array, full = arrays[name], getattr(state, name)
        shape = {
            "points": (features, n), "gram": (n, n) if dense else (0, 0),
            "errors": (recorded,), "places": (recorded,), "factor": (n, r),
        }.get(name, (n,) if name in _PER_SAMPLE else full.shape)  # fmt: skip
        if array.shape != shape or array.dtype != full.dtype or not np.isfinite(array).all():
            raise ValueError(f"the array {name!r} is not finite {full.dtype} of shape {shape}")
        full[tuple(slice(length) for length in shape)] = array
    for name, value in status.items():
        state.status[0][name] = value
    with np.errstate(over="ignore"):
        agree = np.allclose(arrays["square_norms"], (points**2).sum(axis=0), 1e-6, 0.0)
        agree &= np.allclose(arrays["absolute_norms"], np.abs(points).sum(axis=0), 1e-6, 0.0)
    rank, live = status["rank"], np.abs(factor).max(axis=0, initial=0.0) > 0.0
    dead = slice(min(rank, r), None)
    agree &= not live[dead].any() and not weights[dead].any()
    agree &= status["order"] == n and rank <= min(r, n) and status["seen"] >= n
    agree &= bool(np.array_equal(np.triu(state.solver, 1), np.zeros((r, r))))
    if not agree or status["updates"] + status["censored"] > status["seen"]:
        raise ValueError("the state's parts contradict one another")
    return state


#: What to do with each sample.
FEATURE_SETTINGS = np.dtype(
    (
        np.record,
        [
            ("orthonormal", "i8"),  # whether the basis is made orthonormal after every update
            ("early", "i8"),  # stored samples that make a first subspace (orthonormal), or 0
            ("regularisation", "f8"),  # lambda
            ("most", "i8"),  # budget B
            ("solver", "i8"),
            ("step", "i8"),
            ("pace", "f8"),  # the constant of the steps
            ("bounded", "i8"),  # steps as printed, or how they are kept from overshooting
            ("removal", "i8"),
            ("forgetting", "f8"),  # beta
            ("censoring", "i8"),
            ("censoring_number", "f8"),
            ("align", "i8"),
            ("loss", "i8"),
            ("loss_number", "f8"),
            ("shrinkage", "f8"),  # lambda of the linear learner
            ("schedule", "i8"),
            ("initial_step", "f8"),
            ("decay", "f8"),
            ("outputs", "i8"),
        ],
    )
)
