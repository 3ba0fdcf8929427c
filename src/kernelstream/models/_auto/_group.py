"""A group of kernel experts between passes: how it begins, grows, and changes its metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, solve_triangular

from kernelstream.core.experts.group import (
    GROUP_STATUS,
    NOVEL,
    GroupState,
    fill_gram,
    group_pass,
    independent_points,
    project_rows,
    shrink_group,
)
from kernelstream.core.experts.renewal import set_values, take_values
from kernelstream.core.triangles import pack, unpack

#: Steps of the first-order experts.
RATES = (0.05, 0.3, 2.0)
#: Experts of a group.
SIZE = 1 + len(RATES)
#: Rows before the scales of columns are learned.
FIRST_SCALES = 64
#: How much of the certainty is kept when a factor is made again; without this the second-order
#: expert becomes overconfident.
_KEPT = 0.3
#: What the relevance of columns has in the scales before slopes are known.
_EXPECTED = 0.7
#: The least variance that a function keeps in any direction.
_LEAST = 1e-12


#: Arrays of a group whose last axis is as long as there are points, and triangles of that size.
_BY_POINT = ("points", "norms", "weights")
TRIANGLES = ("inverse", "covariance")


def triangle(n: int) -> int:
    """Numbers in a triangle of n rows, as it is held: where row n would begin."""
    return 4 * (n // 4 + 1) * (n - 2 * (n // 4))


def zero_triangle(n: int) -> NDArray[np.float64]:
    """Room for n rows, where a vector never lies in two lines of the processor's cache."""
    size = triangle(n)
    numbers = np.zeros(size + 7)
    first = -(numbers.ctypes.data // 8) % 8
    return numbers[first : first + size]


def live(name: str, array: NDArray[Any], points: int) -> NDArray[Any]:
    """The part of a group's array that belongs to its points."""
    if name in TRIANGLES:
        return array[: triangle(points)]
    return array[..., :points] if name in _BY_POINT else array


def unpacked(numbers: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The first n rows of a triangle that is held row by row, zeros above the diagonal."""
    result = np.zeros((n, n))
    unpack(numbers, result)
    return result


def packed(lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """The reverse: the lower triangle of a matrix row by row."""
    result = np.zeros(triangle(len(lower)))
    pack(np.ascontiguousarray(lower), result)
    return result


def _workspace(n: int) -> NDArray[np.float64]:
    """Three matrices, in one piece, for ``take_values`` and ``set_values`` of n points."""
    in_blocks = -(-n // 4) * 4
    return np.empty((3, in_blocks, in_blocks))


def as_columns(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, targets): as experts take them."""
    return targets[:, None] if targets.ndim == 1 else targets


#: The last row at which groups are renewed between two powers of two.
LAST_HALF = 3072


def is_renewal(row: int) -> bool:
    """Whether groups are renewed after so many rows: 1, 2, 4, ..., 64, 96, 128, ..., 4096, 8192."""
    part = row // 3 if row % 3 == 0 and 96 <= row <= LAST_HALF else row
    return part > 0 and part & (part - 1) == 0


def next_renewal(row: int) -> int:
    """The next such row.

    >>> [next_renewal(row) for row in (0, 1, 32, 64, 100, 128)]
    [1, 2, 64, 96, 128, 192]
    """
    power = 1 << row.bit_length()
    half = 3 * power // 4
    return half if 96 <= half <= LAST_HALF and row < half else power


class Group:
    """Experts that share a dictionary at one length scale.

    Parameters
    ----------
    features, outputs : int
    most : int
        Points at most.
    scale : float
        gamma times the number of features.
    numbers : bool
        Whether targets are numbers.
    power, shrinkage : float
        How far scales of columns follow the slopes, and how long they hesitate.
    full : bool
        Whether it learns a full metric instead of scales.
    """

    def __init__(
        self, features: int, outputs: int, most: int, scale: float, numbers: bool, seed: int,
        power: float = 1.0, shrinkage: float = 4.0, full: bool = False, rates: Any = RATES,
    ) -> None:  # fmt: skip
        self.outputs, self.scale = outputs, scale
        self.power, self.shrinkage = power, shrinkage
        status = np.zeros(1, GROUP_STATUS)
        status["most"], status["random"], status["numbers"] = most, seed, numbers
        status["gamma"] = scale / features
        status["amplitude"] = amplitude(scale, numbers)
        status["noise"] = 1.0
        status["interval"] = 8 if outputs <= 3 else 16
        room = most + 1
        self.state = GroupState(
            status, np.zeros((features, room)), np.zeros(room), zero_triangle(room),
            zero_triangle(room), np.zeros(((1 + len(rates)) * outputs, room)),
            np.ones(features), np.zeros(features),
            np.zeros((features, features) if full else (0, 0)), np.array(rates, dtype=float),
            np.zeros(1 + len(rates)), np.ones(outputs if numbers and outputs > 1 else 0),
        )  # fmt: skip
        #: (p,): scales before any are learned, and what learned ones are shrunk to.
        self.base = np.ones(features)
        #: (p, p): rows are turned by it first; (0, 0) where they are not.
        self.turn = np.eye(features) if full else np.zeros((0, 0))

    @staticmethod
    def nbytes_for(
        features: int, outputs: int, numbers: bool, most: int, full: bool, rates: int = 3
    ) -> int:
        """Bytes of a group, in closed form."""
        room, experts = most + 1, 1 + rates
        held = room * (features + 1 + experts * outputs) + 2 * triangle(room) + 3 * features
        held += 2 * features * features * full + rates + experts
        held += outputs if numbers and outputs > 1 else 0
        return 8 * held + GROUP_STATUS.itemsize

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (*self.state, self.turn, self.base))

    @property
    def order(self) -> int:
        """Points held."""
        return int(self.state.status[0]["points"])

    @property
    def age(self) -> int:
        """Rows learned from."""
        return int(self.state.status[0]["seen"])

    def run(self, rows: Any, targets: Any, weights: Any, out: Any, first: int) -> Any:
        """Predict into ``out``, then learn where there are targets. Returns variances."""
        if len(self.turn):
            turned = np.empty_like(rows)
            project_rows(rows, self.turn, turned)
            rows = turned
        variances = np.empty(len(rows))
        targets = as_columns(targets)
        group_pass(self.state, self.outputs, rows, targets, weights, out, first, variances)
        return variances

    def replay(self, rows: Any, targets: Any, relevance: Any = None) -> NDArray[np.float64]:
        """Learn from rows of the past, and return what was predicted on the way."""
        n = len(rows)
        out = np.empty((n, len(self.state.losses), self.outputs))
        weights, first = np.ones(n), 0
        while first < n:
            end = min(n, next_renewal(first))
            self.run(rows[first:end], targets[first:end], weights[first:end], out[first:end], 0)
            first = end
            if is_renewal(first):
                self.renew(relevance=relevance)
        return out

    def rehearse(self, rows: Any, targets: Any) -> None:
        """Learn again from the latest of these rows, in the metric that was just learned.

        Early on this is what makes a good metric useful at once: on data with few relevant columns
        it halved the error.
        """
        n = min(len(rows), self.age // 2)
        state = self.state
        kept = {name: state.status[name].copy() for name in ("seen", "looks", "mean_loss")}
        losses = state.losses.copy()
        out = np.empty((n, len(losses), self.outputs))
        self.run(rows[len(rows) - n :], targets[len(rows) - n :], np.ones(n), out, 0)
        for name, value in kept.items():
            state.status[name] = value
        state.losses[:] = losses

    # ---- between passes ---------------------------------------------------------------

    def gram(self) -> NDArray[np.float64]:
        """Kernel values among the points."""
        lower = self._lower_gram()
        return lower + np.tril(lower, -1).T  # type: ignore[no-any-return]

    def _lower_gram(self) -> NDArray[np.float64]:
        values = np.zeros((self.order, self.order))
        fill_gram(self.state, values)
        return values

    def residual(self) -> float:
        """max |T^T T K - I|: how good the factor is."""
        n = self.order
        inverse = unpacked(self.state.inverse, n)
        return float(np.abs(inverse.T @ inverse @ self.gram() - np.eye(n)).max(initial=0.0))

    def uncovered(self, rows: NDArray[np.float64]) -> float:
        """How far rows are from the span of the points: mean square, per k(x, x)."""
        if len(self.turn):
            rows = rows @ self.turn.T
        state, n = self.state, self.order
        status, points = state.status[0], state.points[:, :n]
        squares = (np.square(rows) @ state.scales)[:, None] + state.norms[:n]
        squares -= 2.0 * (rows * state.scales) @ points
        kernel = np.exp(-status["gamma"] * np.maximum(squares, 0.0)) * status["amplitude"] + 1.0
        reached = np.square(kernel @ unpacked(state.inverse, n).T).sum(axis=1)
        return float(1.0 - reached.mean() / (status["amplitude"] + 1.0))

    def coefficients(self) -> NDArray[np.float64]:
        """(experts outputs, n): the functions as sums over the points' kernels."""
        n = self.order
        return self.state.weights[:, :n] @ unpacked(self.state.inverse, n)

    def column_scales(self) -> NDArray[np.float64]:
        """(p,): how differences along each column count in distances."""
        return np.square(self.turn).sum(axis=0) if len(self.turn) else self.state.scales

    def begin_like(self, other: Group) -> None:
        """Begin with the scales of columns that another group has learned."""
        learned = other.column_scales()
        self.base = learned / learned.mean()
        self.state.scales[:] = self.base

    def change_units(self, shift: Any, stretch: Any) -> None:
        """Targets are now (y + shift) * stretch of what they were; so are the functions.

        Of several targets these are arrays.
        """
        state, n = self.state, self.order
        square = np.minimum(stretch, 1e100) ** 2
        if len(state.noises):
            # No more than all of a target: one that was the same so far has a unit only now.
            noises = np.clip(state.noises * square, 1e-8, 1.0)
            mean = np.exp(np.log(noises).mean())
            square = mean / state.status[0]["noise"]
            state.noises[:], state.status["noise"] = noises, mean
        else:
            state.status["noise"] = np.clip(state.status["noise"] * square, 1e-8, 1e4)
        state.status["mean_loss"] = np.minimum(state.status["mean_loss"] * square, 1e8)
        state.losses[:] = np.minimum(state.losses * square, 1e8)
        shift, stretch = (np.resize(each, (len(state.weights), 1)) for each in (shift, stretch))
        state.weights[:, :n] += shift * unpacked(state.inverse, n).sum(axis=1)
        state.weights[:, :n] *= stretch

    def renew(self, kept: float = _KEPT, relevance: Any = None) -> None:
        """Learn the metric, make the factor again, and let the second order be less certain.

        The functions keep their values at the points; of the certainty so much is ``kept``. What
        is known of the ``relevance`` of columns, (p,), counts until slopes say more.
        """
        state, n = self.state, self.order
        status = state.status
        if n == 0:
            return
        functions, work = np.empty((len(state.weights), n)), _workspace(n)
        if not take_values(state, _LEAST, functions, work):
            work[2, :n, :n] = self._root()
        if self.age >= FIRST_SCALES:
            self._learn_metric(relevance)
        least = 0.1 * NOVEL * (status[0]["amplitude"] + 1.0)
        if not set_values(state, least, kept, functions, work):
            own = independent_points(self._lower_gram(), least)
            state.points[:, : len(own)] = state.points[:, own]
            state.norms[: len(own)] = state.norms[own]
            status["points"] = len(own)
            functions = np.ascontiguousarray(functions[:, own])
            spread = np.tril(work[2, :n, :n])[own]
            work = _workspace(len(own))
            work[2, : len(own), : len(own)] = qr(spread.T, mode="r")[0][: len(own)].T
            set_values(state, 0.0, kept, functions, work)

    def _root(self) -> NDArray[np.float64]:
        """A root of the covariance of the values where rounding has made that indefinite."""
        inverse, covariance = (
            unpacked(getattr(self.state, name), self.order) for name in TRIANGLES
        )
        sizes, axes = eigh(covariance, lower=True)
        root = qr(np.sqrt(np.maximum(sizes, _LEAST))[:, None] * axes.T, mode="r")[0]
        return np.ascontiguousarray(solve_triangular(inverse, root.T, lower=True))

    def _learn_metric(self, relevance: Any = None) -> None:
        state, n = self.state, self.order
        features = len(state.scales)
        even = 0.1 + 0.9 * min(1.0, self.shrinkage * features / self.age)
        if len(self.turn):
            slopes = self.turn.T @ state.metric @ self.turn
            sizes, axes = eigh(0.5 * (slopes + slopes.T))
            sizes = np.maximum(sizes, 0.0) ** self.power
            if not sizes.sum() > 0.0:
                return
            sizes = np.sqrt((1.0 - even) * features * sizes / sizes.sum() + even)
            turn = (axes * sizes) @ axes.T
            change = turn @ np.linalg.inv(self.turn)
            back = np.linalg.inv(change)
            state.points[:, :n] = change @ state.points[:, :n]
            state.metric[:] = back.T @ state.metric @ back
            self.turn = turn
        else:
            sizes = state.slopes**self.power
            if not sizes.sum() > 0.0:
                return
            prior = self.base
            if relevance is not None and (prior == 1.0).all():  # or an earlier pass said more
                expected = relevance**self.power
                expected *= features / expected.sum()
                prior = (1.0 - _EXPECTED) * prior + _EXPECTED * expected
            state.scales[:] = (1.0 - even) * features * sizes / sizes.sum() + even * prior
        points = state.points[:, :n]
        state.norms[:n] = (state.scales[:, None] * points * points).sum(axis=0)

    def slopes(self) -> NDArray[np.float64]:
        """(p,): mean squares of the second-order functions' slopes along the inputs."""
        if not len(self.turn):
            return self.state.slopes
        return np.diagonal(self.turn.T @ self.state.metric @ self.turn)

    def catch_up(self) -> None:
        """The second order goes on from where the leading expert is, and knows nothing for sure."""
        state, own = self.state, self.outputs
        best = int(np.argmin(state.losses))
        state.weights[:own] = state.weights[own * best : own * (best + 1)]
        state.covariance[: triangle(self.order)] = packed(np.eye(self.order))
        state.losses[0] = state.losses[best]

    def resize(self, most: int) -> None:
        """Room for so many points; those that no longer fit leave."""
        shrink_group(self.state, self.outputs, most)
        status, n = self.state.status, self.order
        status["most"] = most
        changed = {}
        for name in (*_BY_POINT, *TRIANGLES):
            old = getattr(self.state, name)
            changed[name] = (
                zero_triangle(most + 1)
                if name in TRIANGLES
                else np.zeros((*old.shape[:-1], most + 1))
            )
            live(name, changed[name], n)[...] = live(name, old, n)
        self.state = GroupState(**{**self.state._asdict(), **changed})

    def add_output(self, place: int) -> None:
        """Room for one more class, at ``place``."""
        room = self.state.weights.shape[1]
        weights = self.state.weights.reshape(-1, self.outputs, room)
        weights = np.insert(weights, place, 0.0, axis=1)
        self.outputs += 1
        self.state = self.state._replace(weights=weights.reshape(-1, room))
        self.state.status["interval"] = 8 if self.outputs <= 3 else 16


def amplitude(scale: float, numbers: bool) -> float:
    """A of the kernel: coarse functions may be large."""
    coarse = 4.0 if numbers else 30.0
    if scale <= 0.125:
        return coarse * 0.125 / scale
    return 1.0 if numbers else 10.0
