"""A network of agents as a student would write it: Koppel et al. (2020), (17), (19)-(20), KOMP."""

import numpy as np

from tests.naive import kernels, losses
from tests.naive.komp import komp


class Node:
    """One agent: points, weights, and a multiplier per neighbour."""

    def __init__(self, features, outputs, neighbours):
        self.points = np.empty((0, features))
        self.weights = np.empty((0, outputs))
        self.multipliers = dict.fromkeys(neighbours, 0.0)

    def value(self, kernel, x):
        """f(x)."""
        total = np.zeros(self.weights.shape[1])
        for point, weight in zip(self.points, self.weights, strict=True):
            total += kernel(point, x) * weight
        return total


def network(
    kernel, neighbours, rounds, features, loss, loss_number=0.0, outputs=1, eta=0.5,
    regularisation=0.0, budget=0.1, most=10**9, penalty=None, tolerance=None, fading=0.0,
    normalised=True, two_way=False, silent=(), graphs=None, printed=False,
):  # fmt: skip
    """Run the rounds, each a dict of agent to (X, targets); returns nodes and differences.

    With ``penalty`` it is (17), with ``tolerance`` (19)-(20). Answers of ``silent`` agents never
    come. ``graphs``: the neighbours of every round, where they change.
    """
    nodes, differences = {}, []
    for t, batches in enumerate(rounds):
        neighbours = neighbours if graphs is None else graphs[t]
        for name in nodes:  # an edge that comes back begins at 0 again
            kept = nodes[name].multipliers
            nodes[name].multipliers = {j: kept.get(j, 0.0) for j in neighbours.get(name, [])}
        for name in neighbours:
            if name not in nodes:
                nodes[name] = Node(features, outputs, neighbours[name])
        # Everything an agent hears is from the start of the round.
        said = {
            (j, i): np.array([nodes[j].value(kernel, x) for x in X])
            for i, (X, _) in batches.items()
            for j in [i, *neighbours[i]]
        }

        def strength(i, j):
            return penalty if tolerance is None else 2.0 * nodes[i].multipliers[j]

        steps, found = {}, {}
        for i, (X, y) in batches.items():
            heard = [j for j in neighbours[i] if j not in silent]
            terms = []
            for r, x in enumerate(X):
                f = said[i, i][r]
                towards = sum(
                    (strength(i, j) * (f - said[j, i][r]) for j in heard), np.zeros(outputs)
                )
                slope = losses.derivative(loss, loss_number, f, y[r])
                terms.append((x, slope, towards))
            if two_way:  # the neighbours' samples
                for j in heard:
                    for r, x in enumerate(batches[j][0] if j in batches else []):
                        s = strength(j, i) * len(X) / len(batches[j][0])
                        f = nodes[i].value(kernel, x)
                        terms.append((x, np.zeros(outputs), s * (f - said[j, j][r])))
            pulled = sum(strength(i, j) for j in heard)
            if two_way:
                pulled += sum(strength(j, i) for j in heard if j in batches)
            rate = eta * pulled * max(kernel(x, x) for x, *_ in terms)
            # Half the way at most: the neighbours come towards it. Penalties are printed.
            cut = 1.0 if tolerance is None else max(1.0, 2.0 * rate)
            limit = 1.0 if printed else 1.0 + 2.0 * rate if normalised else cut
            steps[i] = [
                (x, -eta / len(X) * (slope + towards / limit)) for x, slope, towards in terms
            ]
            for j in heard:
                found[i, j] = float(np.mean(np.sum((said[i, i] - said[j, i]) ** 2, axis=1)))
        for i, step in steps.items():
            _move(nodes[i], kernel, step, 1.0 - eta * regularisation, budget, most)
        for (i, j), h in found.items():
            if tolerance is not None:  # (20)
                moved = (1.0 - fading * eta**2) * nodes[i].multipliers[j] + eta * (h - tolerance)
                nodes[i].multipliers[j] = max(0.0, moved)
        differences.append(found)
    return nodes, differences


def _move(node, kernel, step, shrink, budget, most):
    node.weights = node.weights * shrink
    for x, new in step:
        if not new.any():
            continue
        same = [k for k in range(len(node.points)) if (node.points[k] == x).all()]
        if same:
            node.weights[same[0]] += new
        else:
            node.points = np.vstack([node.points, x])
            node.weights = np.vstack([node.weights, new])
    kept, weights, _ = komp(
        kernels.matrix(kernel, node.points, node.points), node.weights, budget, most
    )
    node.points, node.weights = node.points[kept], weights[kept]
