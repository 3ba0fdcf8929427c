"""Hoeffding trees with online bagging, written out: lists of nodes, and bins as arrays."""

import numpy as np


def impurity(stats, numbers):
    """Entropy, or squares around the means, times the weight."""
    if not numbers:
        p = stats[stats > 0] / stats.sum() if stats.sum() > 0 else np.ones(1)
        return -stats.sum() * (p * np.log(p)).sum()
    weight, sums, squares = stats[0], *np.split(stats[1:], 2)
    return np.maximum(0.0, squares - sums**2 / weight).sum() if weight > 0 else 0.0


class Leaf:
    def __init__(self, forest, path):
        p, m = forest.features, forest.columns
        self.columns = []
        for j in range(p):
            if next(forest.draws) * (p - j) < m - len(self.columns):
                self.columns.append(j)
        self.low, self.high = np.full(m, -3.2), np.full(m, 3.2)
        for column, cut, above in path:
            for i, j in enumerate(self.columns):
                if j == column and above:
                    self.low[i] = max(self.low[i], cut)
                elif j == column:
                    self.high[i] = min(self.high[i], cut)
        self.bins = np.zeros((m, 16, forest.statistics), np.float32)
        self.total, self.tried = np.zeros(forest.statistics), 0.0
        self.split = None  # column, cut, children


class Forest:
    """The same decisions as the compiled pass, given its random numbers."""

    def __init__(self, features, outputs, numbers, leaves, columns, draws):
        self.features, self.outputs, self.numbers = features, outputs, numbers
        self.leaves, self.columns, self.draws = leaves, columns, draws
        self.statistics = 1 + 2 * outputs if numbers else outputs
        self.trees = [None] * 10
        self.errors = np.tile([0.0, 0.0, 0.0, 1.0], (10, 1))

    def says(self, nodes):
        def weight(node):
            return node.total[0] if self.numbers else node.total.sum()

        first = 1 if self.numbers else 0
        mine = slice(first, first + self.outputs)
        usual = np.full(self.outputs, 0.0 if self.numbers else 1.0 / self.outputs)
        if len(nodes) > 1:
            usual = (nodes[-2].total[mine] + usual) / (weight(nodes[-2]) + 1.0)
        return (nodes[-1].total[mine] + 5.0 * usual) / (weight(nodes[-1]) + 5.0)

    def row_of(self, target):
        if not self.numbers:
            return np.eye(self.outputs)[int(target[0])]
        y = np.clip(target, -5.0, 5.0)
        return np.concatenate([[1.0], y, y * y])

    def is_worse(self, k, error):
        errors = self.errors[k]
        errors[0] += 1.0
        for i, rows, first in ((1, 100.0, 0.0), (2, 2000.0, 0.0), (3, 500.0, 9.0)):
            errors[i] += max(1.0 / (errors[0] + first), 1.0 / rows) * (error - errors[i])
        usual = errors[2]
        spread = usual**2 if self.numbers else max(1e-4, usual * (1.0 - usual))
        limit = max(usual + 3.0 * np.sqrt(spread / 200.0), 1.1 * usual)
        return errors[0] > 300 and errors[1] > limit

    def begin(self, k):
        self.errors[k] = [0.0, 0.0, 0.0, 1.0]
        self.trees[k] = Leaf(self, [])

    def step(self, z, target, importance):
        said, weights = np.zeros(self.outputs), 0.0
        for k in range(10):
            if self.trees[k] is None:
                self.begin(k)
            nodes, path = [self.trees[k]], []
            while nodes[-1].split:
                column, cut, children = nodes[-1].split
                path.append((column, cut, bool(z[column] > cut)))
                nodes.append(children[int(z[column] > cut)])
            own = self.says(nodes)
            weight = 1.0 if self.numbers else (1.0 - self.errors[k, 3]) ** 2 + 1e-3
            said, weights = said + weight * own, weights + weight
            if self.numbers:
                error = np.minimum(9.0, (target - own) ** 2).mean()
            else:
                error = 1.0 - own[int(target[0])]
            if self.is_worse(k, error):
                self.begin(k)
                nodes, path = [self.trees[k]], []
            count, product = 0, next(self.draws)
            while product > np.exp(-6.0):
                count, product = count + 1, product * next(self.draws)
            if count:
                self.learn(
                    k, nodes[-1], path, z, count * min(10.0, importance) * self.row_of(target)
                )
        return said / weights

    def learn(self, k, leaf, path, z, row):
        leaf.total = leaf.total + row
        for i, j in enumerate(leaf.columns):
            low, high = leaf.low[i], leaf.high[i]
            part = (z[j] - low) / (high - low) if high > low else 0.0
            leaf.bins[i, int(np.clip(part, 0.0, 0.999999) * 16)] += row
        if self.count(self.trees[k]) >= self.leaves:
            return
        stats = leaf.bins[0].astype(float).sum(axis=0)
        weight = stats[0] if self.numbers else stats.sum()
        if weight - leaf.tried < 200.0 or len(path) >= 30:
            return
        leaf.tried, whole = weight, impurity(stats, self.numbers)
        best = []
        for i in range(self.columns):
            sums = np.cumsum(leaf.bins[i].astype(float), axis=0)
            gains = [0.0]
            for left in sums[:-1]:
                on_left = left[0] if self.numbers else left.sum()
                enough = on_left >= 5.0 and weight - on_left >= 5.0
                rest = impurity(left, self.numbers) + impurity(sums[-1] - left, self.numbers)
                gains.append(whole - rest if enough else 0.0)
            best.append((max(gains), i, int(np.argmax(gains)) - 1))
        order = sorted(best, key=lambda each: -each[0])
        (first, i, after), second = order[0], (*order, (0.0,))[1][0]
        if first <= 0.0:
            return
        unsure = np.sqrt(np.log(100.0) / (2.0 * weight))
        if self.numbers:
            sure, worth = second < (1.0 - unsure) * first, first > 0.005 * whole
        else:
            unsure *= np.log(self.outputs)
            sure, worth = first - second > unsure * weight, first > 0.002 * weight
        if worth and (sure or unsure < 0.05):
            self.split(leaf, i, after, path)

    def split(self, leaf, i, after, path):
        column = leaf.columns[i]
        cut = leaf.low[i] + (leaf.high[i] - leaf.low[i]) * (after + 1) / 16
        right = Leaf(self, [*path, (column, cut, True)])
        left = Leaf(self, [*path, (column, cut, False)])
        left.total = leaf.bins[i, : after + 1].astype(float).sum(axis=0)
        right.total = leaf.bins[i, after + 1 :].astype(float).sum(axis=0)
        leaf.split = column, cut, (left, right)

    def count(self, node):
        """Leaves below a node."""
        return sum(self.count(child) for child in node.split[2]) if node.split else 1
