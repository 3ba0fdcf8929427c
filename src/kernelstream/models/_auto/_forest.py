"""The trees of an automatic model between passes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.forest import (
    AS_PARENT,
    BINS,
    DEEPEST,
    FOREST_STATUS,
    LARGEST_ERROR,
    REACH,
    TREES,
    forest_pass,
    new_forest,
)
from kernelstream.models._auto._files import fill
from kernelstream.parts import Arrays

#: Leaves of a tree; with less memory there are fewer, and at last no trees.
LEAVES = (64, 32, 16)
#: The part of the columns that a leaf counts; with less memory fewer, and its root at least.
_PART = 0.6
#: The most bytes of a forest, however many there are.
MOST_BYTES = 2**24
#: The largest sum: beyond, trees begin again, and files are refused.
_MOST = 1e30
#: With larger changes of a target's unit trees begin again.
_CHANGE = 100.0


def forest_size(
    features: int, outputs: int, numbers: bool, room: float, known: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Leaves of a tree, and columns that each counts, in so many bytes; (0, 0): there is none.

    A size that is ``known`` stays where it takes no more than three times the room: with another
    one trees would begin again.
    """
    if known is not None:
        need = Forest.nbytes_for(features, outputs, numbers, *known) if known[0] else 0
        if need <= min(3.0 * room, MOST_BYTES):
            return known
    least = min(features, math.ceil(math.sqrt(features)))
    for leaves in LEAVES:
        for columns in range(max(least, math.ceil(_PART * features)), least - 1, -1):
            need = Forest.nbytes_for(features, outputs, numbers, leaves, columns)
            if need <= min(room, MOST_BYTES):
                return leaves, columns
    return 0, 0


class Forest:
    """Trees with ``leaves`` leaves at most, each of which counts ``columns`` of the columns."""

    def __init__(
        self, features: int, outputs: int, numbers: bool, leaves: int, columns: int, seed: int
    ) -> None:
        self.features, self.outputs, self.numbers, self.seed = features, outputs, numbers, seed
        self.state = new_forest(features, outputs, numbers, leaves, columns, seed)

    @staticmethod
    def nbytes_for(features: int, outputs: int, numbers: bool, leaves: int, columns: int) -> int:
        """The bytes of a forest, in closed form."""
        statistics = 1 + 2 * outputs if numbers else outputs
        node, leaf = 8 * (5 + statistics), 8 + columns * (24 + 4 * BINS * statistics)
        trees = (2 * leaves - 1) * node + leaves * leaf + 40
        return TREES * trees + FOREST_STATUS.itemsize

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.state)

    @property
    def leaves(self) -> int:
        """Of a tree, at most."""
        return self.state.chosen.shape[1]

    @property
    def columns(self) -> int:
        """That a leaf counts."""
        return self.state.chosen.shape[2]

    def run(self, rows: Any, targets: Any, weights: Any) -> NDArray[np.float64]:
        """(n, 1, outputs): predictions, each from before its row; without targets nothing else."""
        out = np.empty((len(rows), 1, self.outputs))
        forest_pass(self.state, rows, targets, weights, out)
        return out

    def begun_again(self) -> Forest:
        """One that knows nothing."""
        return Forest(
            self.features, self.outputs, self.numbers, self.leaves, self.columns, self.seed
        )

    def fell_half(self) -> None:
        """The half of the trees that is worst lately begins again: the stream may have changed."""
        state = self.state
        worst = np.argsort(-state.errors[:, 1], kind="stable")[: TREES // 2]
        new = self.begun_again().state
        for name in state._fields[1:]:
            getattr(state, name)[worst] = getattr(new, name)[worst]

    def tree(self, k: int) -> tuple[NDArray[Any], ...]:
        """Columns and cuts of its splits, where leaves lie (splits, leaves), what leaves say.

        A leaf lies above (1) or below (-1) the cuts on the way to it.
        """
        state, nodes = self.state, max(1, int(self.state.nodes[k]))
        inner = np.flatnonzero(state.column[k, :nodes] >= 0)
        leaves = np.flatnonzero(state.column[k, :nodes] < 0)
        above = np.zeros((nodes, nodes))  # (splits, nodes)
        parent = np.full(nodes, -1)
        for node in inner.tolist():
            for side, child in enumerate((state.child[k, node], state.child[k, node] + 1)):
                above[:, child], parent[child] = above[:, node], node
                above[node, child] = 2.0 * side - 1.0
        said = np.array(
            [self._says(state.total[k], leaf, parent[leaf]) for leaf in leaves.tolist()]
        )
        columns, cuts = state.column[k, inner], state.cut[k, inner]
        return columns, cuts, above[np.ix_(inner, leaves)], said

    def _says(self, total: NDArray[np.float64], leaf: int, parent: int) -> NDArray[np.float64]:
        """What a leaf says; see ``core.experts.forest.tree_says``."""
        mine = slice(1, 1 + self.outputs) if self.numbers else slice(None)
        weights = total[:, 0] if self.numbers else total.sum(axis=1)
        usual = np.full(self.outputs, 0.0 if self.numbers else 1.0 / self.outputs)
        if parent >= 0:
            usual = (total[parent, mine] + usual) / (weights[parent] + 1.0)
        found = (total[leaf, mine] + AS_PARENT * usual) / (weights[leaf] + AS_PARENT)
        return found  # type: ignore[no-any-return]

    def gains(self) -> NDArray[np.float64]:
        """(p,): what the splits along each column have gained."""
        inner = self.state.column >= 0
        columns, gains = self.state.column[inner], self.state.gain[inner]
        return np.bincount(columns, gains, minlength=self.features).astype(np.float64)

    def add_class(self, place: int) -> None:
        state = self.state
        self.outputs += 1
        self.state = state._replace(
            total=np.insert(state.total, place, 0.0, axis=2),
            bins=np.insert(state.bins, place, 0.0, axis=4),
        )

    def change_units(self, shift: Any, stretch: Any) -> None:
        """Targets are now (y + shift) * stretch of what they were; of several, arrays."""
        shift, stretch = (np.resize(each, self.outputs) for each in (shift, stretch))
        size = np.abs(np.array([shift, stretch, 1.0 / np.maximum(stretch, 1e-300)]))
        if not (size <= _CHANGE).all():
            self.state = self.begun_again().state
            return
        q = self.outputs
        for stats in (self.state.total, self.state.bins):
            weight, sums = stats[..., :1].astype(float), stats[..., 1 : 1 + q].astype(float)
            squares = stats[..., 1 + q :] + (2.0 * sums + weight * shift) * shift
            stats[..., 1 + q :] = squares * np.square(stretch)
            stats[..., 1 : 1 + q] = (sums + weight * shift) * stretch
        self.state.errors[:, 1:] *= np.mean(np.square(stretch))
        np.minimum(self.state.errors[:, 1:], LARGEST_ERROR, out=self.state.errors[:, 1:])
        self.state.gain[:] *= np.mean(np.square(stretch))
        held = self.state.total, self.state.bins, self.state.gain
        if max(np.abs(part).max() for part in held) > _MOST:
            self.state = self.begun_again().state

    # ---- files ------------------------------------------------------------------------

    def to_arrays(self) -> Arrays:
        arrays = {
            name: np.ascontiguousarray(array) for name, array in self._live(self._most()).items()
        }
        return {
            **{name: array.copy() for name, array in arrays.items()},
            "random": self.state.status["random"].copy(), "nodes": self.state.nodes.copy(),
            "errors": self.state.errors.copy(),
        }  # fmt: skip

    def fill(self, arrays: Mapping[str, Any]) -> None:
        """Take over what :meth:`to_arrays` gave; ValueError if it cannot be that."""
        state = self.state
        nodes, random = arrays["nodes"], arrays["random"]
        most = state.column.shape[1]
        if nodes.shape != (TREES,) or nodes.dtype != np.int64 or random.dtype != np.uint64:
            raise ValueError("the trees contradict the state")
        if random.shape != (1,) or (nodes < 0).any() or (nodes > most).any():
            raise ValueError("the trees contradict the state")
        if ((nodes % 2 == 0) & (nodes > 0)).any():
            raise ValueError("the nodes of the trees are out of range")
        state.nodes[:], state.status["random"] = nodes, random
        fill({"errors": state.errors, **self._live(self._most())}, arrays)
        self._check()

    def _most(self) -> int:
        """Nodes of the largest tree."""
        return int(self.state.nodes.max())

    def _live(self, nodes: int) -> Arrays:
        """Arrays by node and by leaf, as far as trees of so many nodes need them."""
        state, leaves = self.state, (nodes + 1) // 2
        by_node = ("column", "cut", "child", "gain", "total", "place")
        by_leaf = ("tried", "chosen", "low", "high", "bins")
        found = {name: getattr(state, name)[:, :nodes] for name in by_node}
        return found | {name: getattr(state, name)[:, :leaves] for name in by_leaf}

    def _check(self) -> None:
        """Whatever a pass looks up must be there."""
        state = self.state
        weights = state.total[..., 0] if self.numbers else state.total
        signless = state.errors, state.tried, state.gain, weights
        largest = LARGEST_ERROR if self.numbers else 1.0
        if (
            any((part < 0.0).any() for part in signless)
            or (state.errors[:, 1:] > largest).any()
            or (state.high < state.low).any()
            or max(np.abs(part).max() for part in (state.low, state.high, state.cut)) > REACH
            or max(np.abs(part).max() for part in (state.gain, state.total, state.bins)) > _MOST
        ):
            raise ValueError("the numbers of the trees are out of range")
        if (state.chosen < 0).any() or (state.chosen >= self.features).any():
            raise ValueError("a tree splits a column that there is not")
        if (state.column < -1).any() or (state.column >= self.features).any():
            raise ValueError("a tree splits a column that there is not")
        unused = np.arange(state.column.shape[1]) >= state.nodes[:, None]
        if (state.column[unused] >= 0).any():
            raise ValueError("the nodes of a tree are not those of a tree")
        for k, nodes in enumerate(state.nodes.tolist()):
            column, child, place = (
                getattr(state, name)[k, :nodes] for name in ("column", "child", "place")
            )
            inner, leaves = np.flatnonzero(column >= 0), np.flatnonzero(column < 0)
            children = np.sort(np.concatenate([child[inner], child[inner] + 1, [0][:nodes]]))
            if not np.array_equal(children, np.arange(nodes)) or (child[inner] <= inner).any():
                raise ValueError("the nodes of a tree are not those of a tree")
            if not np.array_equal(np.sort(place[leaves]), np.arange(len(leaves))):
                raise ValueError("the leaves of a tree have no places")
            depth = np.zeros(nodes, int)
            for node in inner.tolist():
                depth[child[node] : child[node] + 2] = depth[node] + 1
            if depth.max(initial=0) > DEEPEST:
                raise ValueError("a tree is too deep")
