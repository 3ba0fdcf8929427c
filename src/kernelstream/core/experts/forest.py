"""Trees of splits along single columns, grown on the stream: rules that smooth functions find late.

Hoeffding trees (Domingos and Hulten, KDD 2000) with online bagging, as in adaptive random forests
(Gomes et al., Machine Learning 2017): a leaf counts, for some of the columns, what its rows were
in bins of its range, and is split where the best split is surely better than the next. A tree that
has become worse begins again. Nodes and bins are bounded; the forest never grows beyond them.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.jit import compiled, inner
from kernelstream.core.splitmix import uniform

#: The numbers of a forest.
FOREST_STATUS = np.dtype((np.record, [("random", np.uint64), ("numbers", np.int64)]))

TREES, BINS = 10, 16
#: Units within which the bins of a whole tree lie: others count for the outermost ones.
REACH = 3.2
#: A row comes so many times, on average, to each tree, as many as a Poisson number says.
TIMES = 6.0
_NEVER = math.exp(-TIMES)
#: Weights of samples count up to so much.
HEAVIEST = 10.0
#: Weight of rows between two looks at whether a leaf is split, and of each side of a split.
GRACE, LEAST = 200.0, 5.0
#: The best split is better than the next with this probability, or both are alike.
WRONG, ALIKE = 0.01, 0.05
#: What a split must gain: of the entropy in nats, or of the part of the variance.
GAIN_CLASSES, GAIN_NUMBERS = 0.002, 0.005
#: A leaf says what its parent would, until it has seen more than this weight.
AS_PARENT = 5.0
#: No leaf is deeper.
DEEPEST = 30
#: Targets of numbers count up to so many units, squared errors up to so many.
FARTHEST, LARGEST_ERROR = 5.0, 9.0
#: A tree begins again if it is so many deviations, and so many times, worse than for long.
FAR, WORSE, SETTLED = 3.0, 1.1, 300.0
FAST, SLOW, LATELY = 100.0, 2000.0, 500.0
#: Rows that a tree which began again was wrong in, as it were.
AT_FIRST = 9.0
#: The weight of a tree that is always wrong; of one that never is it is 1 more.
SLIGHT = 1e-3


class ForestState(NamedTuple):
    """Trees of n nodes at most, (n + 1) / 2 of them leaves; m columns; s statistics.

    Statistics of classes: the weight of each. Of q numbers: the weight, q sums and q sums of
    squares. A leaf has a place among the leaves of its tree, where its bins are.
    """

    status: NDArray[np.void]  # (1,) FOREST_STATUS
    nodes: NDArray[np.int64]  # (trees,) in use; 0 before any row
    column: NDArray[np.int64]  # (trees, n) that splits a node; -1: a leaf
    cut: NDArray[np.float64]  # (trees, n) rows that are not above go to the child, others to
    child: NDArray[np.int64]  # (trees, n) ... the next node
    gain: NDArray[np.float64]  # (trees, n) of the split, times the weight of its rows
    total: NDArray[np.float64]  # (trees, n, s)
    place: NDArray[np.int64]  # (trees, n) of leaves
    tried: NDArray[np.float64]  # (trees, leaves) weight in the bins at the last look
    chosen: NDArray[np.int64]  # (trees, leaves, m) columns
    low: NDArray[np.float64]  # (trees, leaves, m) where the bins begin
    high: NDArray[np.float64]  # (trees, leaves, m) and end
    bins: NDArray[np.float32]  # (trees, leaves, m, BINS, s)
    errors: NDArray[np.float64]  # (trees, 4): rows, means of errors of few, many, and some rows


def new_forest(
    features: int, outputs: int, numbers: bool, leaves: int, columns: int, seed: int
) -> ForestState:
    """Before any row."""
    status = np.zeros(1, FOREST_STATUS)
    status["random"], status["numbers"] = seed, numbers
    nodes, s = 2 * leaves - 1, 1 + 2 * outputs if numbers else outputs
    errors = np.zeros((TREES, 4))
    errors[:, 3] = 1.0
    return ForestState(
        status, np.zeros(TREES, np.int64), np.full((TREES, nodes), -1),
        np.zeros((TREES, nodes)), np.zeros((TREES, nodes), np.int64), np.zeros((TREES, nodes)),
        np.zeros((TREES, nodes, s)), np.zeros((TREES, nodes), np.int64),
        np.zeros((TREES, leaves)), np.zeros((TREES, leaves, columns), np.int64),
        np.zeros((TREES, leaves, columns)), np.zeros((TREES, leaves, columns)),
        np.zeros((TREES, leaves, columns, BINS, s), np.float32), errors,
    )  # fmt: skip


@inner
def poisson(status):
    """How often a row comes; the multiplication method."""
    count, product = 0, uniform(status)
    while product > _NEVER:
        count += 1
        product *= uniform(status)
    return count


@inner
def weight_of(numbers, stats):
    """The weight of the rows that statistics are of."""
    if numbers:
        return stats[0]
    total = 0.0
    for c in range(len(stats)):
        total += stats[c]
    return total


@inner
def impurity(numbers, stats, weight):
    """Entropy, or squares around the means, times the weight."""
    found = 0.0
    if weight <= 0.0:
        return found
    if numbers:
        outputs = len(stats) // 2
        for c in range(1, 1 + outputs):
            found += max(0.0, stats[outputs + c] - stats[c] * stats[c] / weight)
        return found
    for c in range(len(stats)):
        if stats[c] > 0.0:
            found -= stats[c] * math.log(stats[c] / weight)
    return found


@inner
def clear_leaf(forest, k, place):
    forest.tried[k, place] = 0.0
    bins = forest.bins[k, place]
    for i in range(bins.shape[0]):
        forest.chosen[k, place, i] = 0
        forest.low[k, place, i] = forest.high[k, place, i] = 0.0
        for b in range(bins.shape[1]):
            for s in range(bins.shape[2]):
                bins[i, b, s] = 0.0


@inner
def begin_leaf(forest, k, node, place, features, path, depth):
    """A leaf without rows, with some of the columns, in the range that the path leaves them."""
    clear_leaf(forest, k, place)
    forest.place[k, node] = place
    columns, found = forest.chosen.shape[2], 0
    for j in range(features):
        if uniform(forest.status[0]) * (features - j) < columns - found:
            forest.chosen[k, place, found] = j
            forest.low[k, place, found], forest.high[k, place, found] = -REACH, REACH
            for d in range(depth):
                above = path[d]
                if forest.column[k, above] == j:
                    cut, first = forest.cut[k, above], forest.child[k, above]
                    if path[d + 1] == first:
                        forest.high[k, place, found] = min(forest.high[k, place, found], cut)
                    else:
                        forest.low[k, place, found] = max(forest.low[k, place, found], cut)
            found += 1


@inner
def begin_tree(forest, k, features, path):
    for node in range(forest.nodes[k]):
        forest.column[k, node] = -1
        forest.cut[k, node] = forest.gain[k, node] = 0.0
        forest.child[k, node] = forest.place[k, node] = 0
        for s in range(forest.total.shape[2]):
            forest.total[k, node, s] = 0.0
    for place in range((forest.nodes[k] + 1) // 2):
        clear_leaf(forest, k, place)
    forest.nodes[k] = 1
    for i in range(3):
        forest.errors[k, i] = 0.0
    forest.errors[k, 3] = 1.0  # it has no weight until it is known to be right
    begin_leaf(forest, k, 0, 0, features, path, 0)


@inner
def descend(forest, k, z, path):
    """The nodes from the root to the leaf of ``z`` into ``path``. Returns how many lie above."""
    node, depth = 0, 0
    path[0] = 0
    while forest.column[k, node] >= 0:
        above = z[forest.column[k, node]] > forest.cut[k, node]
        node = forest.child[k, node] + (1 if above else 0)
        depth += 1
        path[depth] = node
    return depth


@inner
def tree_says(forest, k, path, depth, numbers, said):
    """Probabilities, or numbers, of the leaf; of its parent while it knows little."""
    total, outputs = forest.total[k], len(said)
    leaf = path[depth]
    weight, above = weight_of(numbers, total[leaf]), 0.0
    if depth:
        parent = path[depth - 1]
        above = weight_of(numbers, total[parent])
    for c in range(outputs):
        usual = 0.0 if numbers else 1.0 / outputs
        i = 1 + c if numbers else c
        if depth:
            usual = (total[parent, i] + usual) / (above + 1.0)
        said[c] = (total[leaf, i] + AS_PARENT * usual) / (weight + AS_PARENT)


@inner
def tree_error(said, targets, t, numbers):
    """Of what a tree said: the probability of the wrong classes, or the mean squared error."""
    if not numbers:
        return 1.0 - said[np.int64(targets[t, 0])]
    error = 0.0
    for c in range(len(said)):
        error += min(LARGEST_ERROR, (targets[t, c] - said[c]) ** 2)
    return error / len(said)


@inner
def has_become_worse(errors, error, numbers):
    """Follow the means of a tree's errors; whether it is to begin again."""
    errors[0] += 1.0
    rate = 1.0 / errors[0]
    errors[1] += max(rate, 1.0 / FAST) * (error - errors[1])
    errors[2] += max(rate, 1.0 / SLOW) * (error - errors[2])
    errors[3] += max(1.0 / (errors[0] + AT_FIRST), 1.0 / LATELY) * (error - errors[3])
    usual = errors[2]
    spread = usual * usual if numbers else max(1e-4, usual * (1.0 - usual))
    beyond = FAR * math.sqrt(spread / (2.0 * FAST))
    return errors[0] > SETTLED and errors[1] > usual + beyond and errors[1] > WORSE * usual


@inner
def add_row(numbers, stats, targets, t, weight):
    """One more row in statistics."""
    if not numbers:
        stats[np.int64(targets[t, 0])] += weight
        return
    outputs = len(stats) // 2
    stats[0] += weight
    for c in range(outputs):
        y = min(FARTHEST, max(-FARTHEST, targets[t, c]))
        stats[1 + c] += weight * y
        stats[1 + outputs + c] += weight * y * y


@inner
def learn_row(forest, k, leaf, numbers, z, targets, t, weight):
    """Count a row in its leaf."""
    add_row(numbers, forest.total[k, leaf], targets, t, weight)
    place = forest.place[k, leaf]
    bins = forest.bins[k, place]
    for i in range(forest.chosen.shape[2]):
        low, high = forest.low[k, place, i], forest.high[k, place, i]
        part = 0.0
        if high > low:
            part = (z[forest.chosen[k, place, i]] - low) / (high - low)
        b = np.int64(min(0.999999, max(0.0, part)) * BINS)
        add_row(numbers, bins[i, b], targets, t, weight)


@inner
def best_cut(numbers, bins, left, right, whole, weight):
    """The bin after which a column is best cut, -1 where it cannot be, and what that gains."""
    best, most = -1, 0.0
    for s in range(len(left)):
        left[s] = right[s] = 0.0
    for b in range(BINS):
        for s in range(len(right)):
            right[s] += bins[b, s]
    for b in range(BINS - 1):
        filled = False
        for s in range(len(left)):
            filled |= bins[b, s] != 0.0
            left[s] += bins[b, s]
            right[s] -= bins[b, s]
        if not filled:
            continue
        on_left = weight_of(numbers, left)
        on_right = weight - on_left
        if on_left < LEAST or on_right < LEAST:
            continue
        rest = impurity(numbers, left, on_left) + impurity(numbers, right, on_right)
        if whole - rest > most:
            best, most = b, whole - rest
    return best, most


@inner
def split_leaf(forest, k, path, depth, numbers, features, left, right):
    """Split the last leaf of the path, if a split is surely the best one, and worth it."""
    leaf = path[depth]
    place = forest.place[k, leaf]
    bins = forest.bins[k, place]
    for s in range(len(right)):
        right[s] = 0.0
    for b in range(BINS):
        for s in range(len(right)):
            right[s] += bins[0, b, s]
    weight = weight_of(numbers, right)
    if weight - forest.tried[k, place] < GRACE or depth >= DEEPEST:
        return
    forest.tried[k, place] = weight
    whole = impurity(numbers, right, weight)
    first, second, chosen, after = 0.0, 0.0, -1, -1
    for i in range(bins.shape[0]):
        b, gain = best_cut(numbers, bins[i], left, right, whole, weight)
        if gain > first:
            first, second, chosen, after = gain, first, i, b
        elif gain > second:
            second = gain
    if chosen < 0:
        return
    unsure = math.sqrt(math.log(1.0 / WRONG) / (2.0 * weight))
    if numbers:
        sure, worth = second < (1.0 - unsure) * first, first > GAIN_NUMBERS * whole
    else:
        unsure *= math.log(len(left))
        sure, worth = first - second > unsure * weight, first > GAIN_CLASSES * weight
    if not (worth and (sure or unsure < ALIKE)):
        return
    low, high = forest.low[k, place, chosen], forest.high[k, place, chosen]
    child = forest.nodes[k]
    forest.nodes[k] = child + 2
    forest.column[k, leaf] = forest.chosen[k, place, chosen]
    forest.cut[k, leaf] = low + (high - low) * (after + 1) / BINS
    forest.child[k, leaf] = child
    forest.gain[k, leaf] = first
    for side in range(2):
        for s in range(len(left)):
            total = 0.0
            for b in range(0 if side == 0 else after + 1, after + 1 if side == 0 else BINS):
                total += bins[chosen, b, s]
            forest.total[k, child + side, s] = total
    for side in range(1, -1, -1):  # the first child takes the place of its parent
        forest.column[k, child + side] = -1
        path[depth + 1] = child + side
        own = (child + 1) // 2 if side else place
        begin_leaf(forest, k, child + side, own, features, path, depth + 1)


@compiled
def forest_pass(forest, rows, targets, sample_weights, out):
    """Predict each row, then learn it; without targets, predict alone.

    Parameters
    ----------
    forest : ForestState
    rows : (n, p)
    targets : (n, q) numbers, or (n, 1) classes by number; (0, 1)
    sample_weights : (n,)
    out : (n, 1, outputs): probabilities, or numbers.
    """
    status = forest.status[0]
    numbers, features, outputs = status.numbers != 0, rows.shape[1], out.shape[2]
    said, path = np.empty(outputs), np.empty(DEEPEST + 2, np.int64)
    left, right = np.empty(forest.total.shape[2]), np.empty(forest.total.shape[2])
    for t in range(len(rows)):
        z, weights = rows[t], 0.0
        for c in range(outputs):
            out[t, 0, c] = 0.0
        for k in range(len(forest.nodes)):
            if forest.nodes[k] == 0 and len(targets):
                begin_tree(forest, k, features, path)
            depth = descend(forest, k, z, path)
            tree_says(forest, k, path, depth, numbers, said)
            weight = 1.0 if numbers else (1.0 - forest.errors[k, 3]) ** 2 + SLIGHT
            weights += weight
            for c in range(outputs):
                out[t, 0, c] += weight * said[c]
            if len(targets) == 0 or sample_weights[t] == 0.0:
                continue
            error = tree_error(said, targets, t, numbers)
            if has_become_worse(forest.errors[k], error, numbers):
                begin_tree(forest, k, features, path)
                depth = 0
                path[0] = 0
            count = poisson(status)
            if count == 0:
                continue
            learn_row(
                forest, k, path[depth], numbers, z, targets, t,
                count * min(HEAVIEST, sample_weights[t]),
            )  # fmt: skip
            if forest.nodes[k] + 2 <= forest.column.shape[1]:
                split_leaf(forest, k, path, depth, numbers, features, left, right)
        for c in range(outputs):
            out[t, 0, c] /= weights
