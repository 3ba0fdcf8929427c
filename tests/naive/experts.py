"""Kernel experts on one dictionary, written out: kernel matrix, values at the points, covariance.

K are kernel values among the points, mu the experts' values at the points, Sigma the covariance of
the second-order expert's values: what the automatic model keeps in orthonormal coordinates.
"""

import numpy as np


def softmax(m):
    e = np.exp(m - m.max())
    return e / e.sum()


def implicit(m, y, reach):
    """g with m + reach g at the end of the step, by bisection on s = sigma(-(d + a s))."""
    if len(m) == 1:
        return np.zeros(1)
    wrong = np.delete(np.arange(len(m)), y)
    top = m[wrong].max()
    r = np.exp(m[wrong] - top)
    margin = m[y] - top - np.log(r.sum())
    r /= r.sum()
    a = (1.0 + r @ r) * reach
    low, high = 0.0, 1.0
    for _ in range(200):
        s = 0.5 * (low + high)
        low, high = (s, high) if s < 1.0 / (1.0 + np.exp(margin + a * s)) else (low, s)
    g = np.zeros(len(m))
    g[wrong], g[y] = -s * r, s
    return g


class Group:
    """The same decisions as the compiled pass, given its random numbers."""

    def __init__(self, gamma, amplitude, scales, rates, outputs, most, numbers, draws):
        self.gamma, self.A, self.w = gamma, amplitude, scales
        self.rates, self.outputs, self.most, self.numbers = rates, outputs, most, numbers
        self.draws = draws
        self.points = np.empty((0, len(scales)))
        self.mu = np.empty((0, 1 + len(rates), outputs))
        self.Sigma = np.empty((0, 0))
        self.seen, self.noise, self.mean_loss = 0, np.ones(outputs), 0.0  # noise: of each number
        self.losses = np.zeros(1 + len(rates))

    def kernel(self, X, Z):
        r2 = (self.w * (X[:, None] - Z[None]) ** 2).sum(axis=2)
        return self.A * np.exp(-self.gamma * r2) + 1.0

    def step(self, x, target, weight):
        """Predictions of all experts, then learn."""
        n, k_xx = len(self.points), self.A + 1.0
        K, k = self.kernel(self.points, self.points), self.kernel(self.points, x[None])[:, 0]
        q = np.linalg.solve(K, k) if n else np.empty(0)
        kappa = k @ q
        g2 = k_xx - kappa
        h = self.Sigma @ q
        v = max(0.0, q @ h) + g2
        m = (
            np.einsum("i,ieo->eo", q, self.mu)
            if n
            else np.zeros((1 + len(self.rates), self.outputs))
        )
        shrink = np.ones(len(m))
        shrink[0] = 1.0 / np.sqrt(1.0 + np.pi * v / 8.0)
        said = (
            m
            if self.numbers
            else np.array([softmax(s * row) for s, row in zip(shrink, m, strict=True)])
        )

        if self.numbers:
            loss = np.minimum((target - m) ** 2, 36.0 * self.noise).mean(axis=1)
        else:
            y = int(target)
            loss = -np.log(0.98 * said[:, y] + 0.02 / self.outputs)
        self.losses += max(1.0 / (self.seen + 1), 1.0 / 512) * (loss - self.losses)
        best = int(np.argmin(self.losses))
        wanted = g2 > 1e-3 * k_xx
        chance = next(self.draws)
        if wanted and n >= self.most:
            share = 0.3 if best else max(0.03, 3.0 * self.most / (self.seen + 1.0))
            wanted = loss[best] > self.mean_loss and chance < share
        self.mean_loss += max(1.0 / (self.seen + 1), 1e-3) * (loss[best] - self.mean_loss)
        if wanted:  # the new point's values are those predicted, its variance is v
            self.points = np.vstack([self.points, x])
            self.mu = np.concatenate([self.mu, m[None]])
            self.Sigma = np.block([[self.Sigma, h[:, None]], [h[None], np.array([[v]])]])
            h, k, kappa = np.append(h, v), np.append(k, k_xx), k_xx

        if self.numbers:
            error = target - m[0]
            gain = weight / (np.exp(np.log(self.noise).mean()) + v * weight)  # one Sigma: one noise
            self.mu[:, 0] += np.outer(h, gain * error)
            for e, eta in enumerate(np.array(self.rates) * weight, 1):
                move = eta * (target - m[e]) / (1.0 + eta * kappa)
                self.mu[:, e] = (1.0 - 3e-5) * self.mu[:, e] + np.outer(k, move)
            share = 1.0 - 0.5 * v / (self.noise + v)
            rate = max(3.0 / (self.seen + 10.0), 1e-3)
            seen = np.minimum(9.0 * self.noise, error**2) * share
            self.noise = np.maximum(self.noise + rate * (seen - self.noise), 1e-8)
        else:
            g = implicit(m[0], y, v * weight)
            self.mu[:, 0] += np.outer(h, weight * g)
            p = softmax(m[0] + v * weight * g)
            beta = weight * (2.0 * p * (1.0 - p)).max()
            gain = beta / (1.0 + beta * v)
            for e, eta in enumerate(np.array(self.rates) * weight, 1):
                move = np.outer(k, eta * implicit(m[e], y, eta * kappa))
                self.mu[:, e] = (1.0 - 3e-5) * self.mu[:, e] + move
        thin = next(self.draws)
        if gain * v < 0.1:
            gain = 0.1 / v if thin * 0.1 < gain * v else 0.0
        self.Sigma = self.Sigma - gain * np.outer(h, h)
        self.seen += 1
        if len(self.points) > self.most:
            inverse = np.linalg.inv(self.kernel(self.points, self.points))
            alpha = inverse @ self.mu[:, best]
            cost = (alpha**2).sum(axis=1) / np.diag(inverse)
            j = int(np.argmin(cost[:-1]))
            order = np.delete(np.arange(len(self.points)), j)
            self.points, self.mu = self.points[order], self.mu[order]
            self.Sigma = self.Sigma[np.ix_(order, order)]
        return said, v


class Shares:
    """Of experts, by likelihood; a little is given back."""

    def __init__(self, experts):
        self.now = self.past = np.full(experts, 1.0 / experts)
        self.seen = 0

    def step(self, likelihoods, importance):
        self.seen += 1
        shares = self.now * likelihoods**importance
        shares /= shares.sum()
        self.past = self.past + (shares - self.past) / (self.seen + 1.0)
        self.now = 0.999 * shares + 0.001 * (0.9 * self.past + 0.1 / len(shares))


def likelihoods(errors, scale):
    """Of Student's t with 4 degrees of freedom, the largest 1."""
    found = (1.0 + errors**2 / (4.0 * scale)) ** -2.5
    return found / found.max()


def relative_squares(errors, square, deviations=10.0):
    """Squared errors over their mean; beyond so many deviations they count by their logarithm."""
    found, far = errors**2 / square, deviations**2
    return np.where(found > far, far + far * np.log(np.maximum(found, 1.0) / far), found)


def wide_likelihoods(errors, square):
    """Of normal errors with ten times this mean square, the largest 1."""
    found = -0.05 * relative_squares(errors, square)
    return np.exp(found - found.max())


def next_share(share, error, other, square, importance):
    """Of one of two predictions, after their errors."""
    ahead = np.diff(relative_squares(np.array([error, other]), square))[0]
    odds = share / (1.0 - share) * np.exp(0.5 * importance * ahead)
    return 0.99 * odds / (1.0 + odds) + 0.005


class Nearer:
    """A prediction held against the simplest experts: all of the way from these to it, or a part.

    The part is a ridge regression that forgets, on targets ten deviations from it at most.
    """

    def __init__(self, simplest):
        first = np.array([1.0, *[1.0, 4.0][-simplest:]])
        self.shares = first / first.sum()
        self.part, self.precision = np.array([1.0, 0.0])[-simplest:], np.ones(simplest)

    def step(self, simple, mixed, y, square, importance):
        kept = np.clip(self.part, 0.0, 1.0)
        made = np.append(mixed, (1.0 - kept) * simple + kept * mixed)
        answer = self.shares @ made
        likely = -0.5 * relative_squares(y - made, square, 3.0)
        shares = self.shares * np.exp(importance * (likely - likely.max()))
        self.shares = 0.999 * shares / shares.sum() + 0.001 / len(shares)
        way = mixed - simple
        error = np.clip(y - simple - self.part * way, -10.0 * square**0.5, 10.0 * square**0.5)
        self.precision = (1999.0 * self.precision + 1.0) / 2000.0 + importance * way**2 / square
        self.part = self.part + importance * way * error / square / self.precision
        return answer


class Powers:
    """A geometric mean of experts' probabilities, its powers a logistic regression that forgets.

    Of one class against the others, which keep their proportions while a row is learned.
    """

    def __init__(self, experts, spread, rows):
        self.powers, self.spread, self.rows = np.full(experts, 1.0 / experts), spread, rows
        self.covariance, self.seen = spread * np.eye(experts), 0

    def mean(self, logs):
        return softmax(self.powers @ logs)

    def step(self, logs, label, importance):
        made = self.mean(logs)
        others = np.delete(made, label) / (1.0 - made[label])
        x = logs[:, label] - np.delete(logs, label, axis=1) @ others
        h = self.covariance @ x
        margin, low, high = np.log(made[label] / (1.0 - made[label])), 0.0, 1.0
        for _ in range(100):  # how wrong it is where the step ends
            s = 0.5 * (low + high)
            still = s < 1.0 / (1.0 + np.exp(margin + importance * (x @ h) * s))
            low, high = (s, high) if still else (low, s)
        self.powers = self.powers + importance * s * h
        bend = importance * s * (1.0 - s)
        self.covariance = np.linalg.inv(np.linalg.inv(self.covariance) + bend * np.outer(x, x))
        self.seen += 1
        if self.seen % 16 == 0:
            prior = self.spread * np.eye(len(x))
            self.covariance = self.covariance + 16.0 / self.rows * (prior - self.covariance)


class ClassMixture:
    """Experts of classes mixed by shares and by pools, before it is calibrated."""

    def __init__(self, experts, pools):
        self.shares = Shares(experts)
        self.pools = [Powers(experts, *pool) for pool in pools]
        self.ways = np.full(1 + len(pools), 1.0 / (1 + len(pools)))

    def step(self, probabilities, label, importance):
        """What was mixed before the row."""
        above = 0.98 * probabilities + 0.02 / probabilities.shape[1]
        logs = np.log(above)
        made = np.array([self.shares.now @ above, *(pool.mean(logs) for pool in self.pools)])
        mixed = self.ways @ made
        self.shares.step(above[:, label] / above[:, label].max(), importance)
        for pool in self.pools:
            pool.step(logs, label, importance)
        ways = self.ways * (0.98 * made[:, label] + 0.02 / made.shape[1]) ** importance
        self.ways = 0.999 * ways / ways.sum() + 0.001 / len(ways)
        return mixed


class NumberMixture:
    """Experts of numbers mixed: shares by likelihood, a pool by ridge regression on differences.

    The last experts are the simplest ones: the last value, unless it is not known, and the mean.
    """

    def __init__(self, experts, spread, simplest):
        self.nearer, self.simplest = Nearer(simplest), simplest
        self.shares, self.wide = Shares(experts), Shares(experts)
        self.ways, self.scale, self.wide_scale = np.full(3, 1.0 / 3.0), 1.0, 1.0
        self.moment, self.targets, self.inside = np.zeros(experts), [0.0], 0.5
        self.covariance, self.spread = spread * np.eye(experts), spread

    def step(self, numbers, y, importance):
        """The prediction from before the row."""
        e = len(numbers)
        least, largest = min(self.targets), max(self.targets)
        beyond = 0.5 * (largest - least) if len(self.targets) > 3 else np.inf
        low, high = least - beyond, largest + beyond
        inside, near = self.inside, np.clip(numbers, low, high)
        differ = (near != numbers).any()
        free, held = (0.5 * (self.shares.now + self.wide.now) @ each for each in (numbers, near))
        if self.simplest == 2:
            numbers = numbers + inside * (near - numbers)
        self.targets.append(y)
        first, third = self.shares.now @ numbers, self.wide.now @ numbers
        x = numbers - first
        if self.simplest == 2:
            x = np.clip(x, -30.0, 30.0)
        powers = self.covariance @ self.moment
        ways = np.array([first, first + powers @ x, third])
        made = self.ways @ ways
        noise, wide = self.scale, self.wide_scale
        made = self.nearer.step(numbers[-self.simplest :], made, y, wide, importance)
        error = y - ways
        self.shares.step(likelihoods(y - numbers, noise), importance)
        self.wide.step(wide_likelihoods(y - numbers, wide), importance)
        rate = max(1.0 / (self.shares.seen + 1.0), 1.0 / 512.0)
        counts = 5.0 / (4.0 + error[0] ** 2 / noise)
        self.scale = max(1e-12, noise + rate * (counts * error[0] ** 2 - noise))
        self.wide_scale = (1.0 - rate) * wide + rate * min(error[0] ** 2, 100.0 * wide)
        shares = self.ways * wide_likelihoods(error, wide) ** importance
        self.ways = 0.999 * shares / shares.sum() + 0.001 / 3.0
        # A target three deviations from what was predicted at most; then some way to the prior.
        target = powers @ x + np.clip(error[1], -3.0 * np.sqrt(noise), 3.0 * np.sqrt(noise))
        precision = np.linalg.inv(self.covariance) + importance * np.outer(x, x) / noise
        moment = self.moment + importance * target * x / noise
        reduced = self.covariance = np.linalg.inv(precision)
        if self.shares.seen % 16 == 0:
            self.covariance = 0.9984 * reduced + 0.0016 * self.spread * np.eye(e)
        self.moment = np.linalg.solve(self.covariance, reduced @ moment)
        if differ:
            self.inside = next_share(self.inside, y - held, y - free, wide, importance)
        return made + inside * (np.clip(made, low, high) - made)


class Chain:
    """Which class followed which, for the ``rows`` classes that were the last one most lately."""

    def __init__(self, classes, rows, decay):
        self.classes, self.rows, self.decay = classes, rows, decay
        self.counts = {}  # class -> what followed it, the class of longest ago first
        self.last = None

    def step(self, label):
        """Probabilities of the next class, which is ``label``."""
        counts = self.counts.pop(self.last, np.zeros(self.classes))
        made = (counts + 0.5 / self.classes) / (counts.sum() + 0.5)
        counts = counts * self.decay
        counts[label] += 1.0
        if self.last is not None:
            self.counts[self.last] = counts
            if len(self.counts) > self.rows:
                del self.counts[next(iter(self.counts))]
        self.last = label
        return made


class Lags:
    """The next number by ridge regression of differences on earlier ones, all rows at hand."""

    def __init__(self, lags, variances):
        self.lags, self.variances = lags, variances
        self.numbers, self.square = [], 0.0
        self.rows, self.targets, self.weights = [], [], []

    def inputs(self):
        y, n = np.array(self.numbers), len(self.numbers)
        differences = np.append(np.diff(y)[::-1], np.zeros(max(0, max(self.lags) + 1 - n)))
        found = differences[np.array(self.lags) - 1] / np.sqrt(self.square)
        return np.append(1.0, np.clip(np.append(y[-1], found), -10.0, 10.0))

    def step(self, target, weight):
        """The prediction from before the row."""
        made = last = self.numbers[-1] if self.numbers else 0.0
        root = np.sqrt(self.square)
        if self.square > 0.0:
            x, rows = self.inputs(), np.array(self.rows).reshape(-1, len(self.variances))
            scaled = rows.T * self.weights
            precision = np.diag(1.0 / self.variances) + scaled @ rows
            step = np.linalg.solve(precision, scaled @ self.targets) @ x if len(rows) else 0.0
            made = last + root * np.clip(step, -10.0, 10.0)
            self.rows.append(x)
            self.targets.append(np.clip((target - last) / root, -10.0, 10.0))
            self.weights.append(weight)
        if self.numbers:
            square = (target - last) ** 2
            square = min(square, 100.0 * self.square) if self.square > 0.0 else square
            self.square += max(1.0 / len(self.numbers), 1.0 / 2000.0) * (square - self.square)
        self.numbers.append(target)
        return made


class SimilarRows:
    """The most similar of the latest rows: what the nearest says, and the five nearest together."""

    def __init__(self, scales, kept, classes=0):
        self.scales, self.kept, self.classes = scales, kept, classes
        self.rows, self.targets = [], []  # the latest first
        self.right = np.array([0.5, 1.0])

    def step(self, x, target=None):
        """(2,) numbers, or (2, classes) probabilities; without a target nothing is kept."""
        distances = [float((self.scales * (x - row) ** 2).sum()) for row in self.rows]
        order = sorted(range(len(self.rows)), key=lambda i: (distances[i], i))[:5]
        found = np.array([self.targets[i] for i in order])
        soft = 0.1 * max([distances[i] for i in order], default=0.0) + 1e-9
        weights = np.array([(distances[order[0]] + soft) / (distances[i] + soft) for i in order])
        if self.classes:
            said = self._probabilities(found, weights)
            if target is not None and len(found):
                self.right = 0.999 * (self.right + np.array([found[0] == target, 1.0]))
        else:
            said = np.array([found[0], weights @ found / weights.sum()] if order else [0.0, 0.0])
        if target is not None:
            self.rows = [x, *self.rows][: self.kept]
            self.targets = [target, *self.targets][: self.kept]
        return said

    def _probabilities(self, labels, weights):
        said = np.full((2, self.classes), 1.0 / self.classes)
        if len(labels):
            sure = self.right[0] / self.right[1] if self.classes > 1 else 1.0
            said[0] = (1.0 - sure) / max(1, self.classes - 1)
            said[0, int(labels[0])] = sure
        votes = np.full(self.classes, 0.5 / self.classes)
        np.add.at(votes, labels.astype(int), weights)
        said[1] = votes / votes.sum()
        return said
