"""Experts mixed online: by shares, by a learned pool, and by the better of these ways.

Shares follow the likelihood of each expert; a little of them is always given back to what experts
had on average so far, so that one that was good before returns fast. The pool of classes is a
geometric mean whose powers are learned, that of numbers a least squares fit on the differences.

Numbers have shares of two kinds. In the first, errors are measured by how large they usually are;
so an expert that is exact in most rows leads, however far it is off in the others, as the last
value is where most targets are zero. In the second, wide ones, their squares count, over the mean
one, and so do those few rows. In the end the mixture of numbers is held against the simplest
experts, the last value and the mean: where it does no better than these, its prediction lies
nearer to theirs.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.steps import logistic, solve_logistic
from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import dot

#: The part of the shares that is given back in each row.
BACK = 1e-3
#: What every class has at least, together.
FLOOR = 0.02
#: The step of the powers.
POWER_STEP = 0.05
#: How uncertain the numbers of the calibration are at first (variance), and their largest size.
UNCALIBRATED, STEEPEST = (1.0, 0.05, 0.25), 8.0
#: The largest probability: of another class it is never 0, whatever weights samples have.
SUREST = 1.0 - 1e-9
#: Rows over which shares are averaged for decisions.
RECENT = 512.0
#: Rows over which the fit of the pool of numbers and the calibration forget.
LONG = 1e4
#: Variance of what that fit adds to the share of an expert, before any row: experts that resemble
#: each other must not be played off against each other.
SPREAD = 0.03
#: In the pool, experts that look at the last target are at most so many units of the target away
#: from the shares: after one that was far out a weight of a hundredth would be too much.
APART = 30.0
#: Errors beyond so many times the root of their mean square count as this much.
FARTHEST = 10.0
#: What a squared error, over the mean one, takes from the logarithm of a wide likelihood. Of normal
#: errors it is a half; but where few rows have large ones, each says little.
WIDE = 0.05
#: The same for the likelihoods of the mixture and of what lies nearer to the simplest experts.
NEARER = 0.5
#: How certain it is at first that all of the way from a simple expert to the mixture is right
#: (1 / variance), and the rows over which that is learned.
WHOLE, SHORT = 1.0, 2000.0
#: The simplest experts of numbers, the last ones: the last value and the mean.
SIMPLEST = 2


class MixtureState(NamedTuple):
    """Mixtures of e experts, one for each set of experts that may be used.

    Of several numbers each has its own: number c by set s is mixed in row s q + c.
    """

    used: NDArray[np.int64]  # (mixtures, e)
    seen: NDArray[np.float64]  # (1,)
    shares: NDArray[np.float64]  # (mixtures, e)
    past: NDArray[np.float64]  # (mixtures, e) mean of the shares so far
    recent: NDArray[np.float64]  # (mixtures, e) and lately
    powers: NDArray[np.float64]  # (mixtures, e)
    squares: NDArray[np.float64]  # (mixtures, e, e) of gradients (diagonal); or a covariance
    ways: NDArray[np.float64]  # (mixtures, 2) shares of the two ways; of three for numbers
    calibration: NDArray[np.float64]  # (mixtures, 9) see `calibrate`: numbers, their covariance
    scales: NDArray[np.float64]  # (mixtures,) squared errors of numbers, as they usually are
    wide_shares: NDArray[np.float64]  # (mixtures, e); (0, e) for classes
    wide_past: NDArray[np.float64]
    wide_scales: NDArray[np.float64]  # (mixtures,) mean squared errors
    parts: NDArray[np.float64]  # (mixtures, SIMPLEST) of the way from these to the mixture
    certain: NDArray[np.float64]  # (mixtures, SIMPLEST) of those: 1 / variance
    answers: NDArray[np.float64]  # (mixtures, 1 + SIMPLEST) shares: all of the way, or such parts


def uncalibrated() -> NDArray[np.float64]:
    """(9,) of `MixtureState.calibration`: probabilities as they are."""
    a, b, c = UNCALIBRATED
    return np.array([1.0, 1.0, 0.0, a, 0.0, b, 0.0, 0.0, c])


@inner
def share_out(used, shares, importance, likelihood):
    """Shares (e,) after a row with these log likelihoods."""
    total, top = 0.0, -math.inf
    for e in range(len(shares)):
        if used[e] and shares[e] > 0.0:
            top = max(top, likelihood[e])
    for e in range(len(shares)):
        if used[e]:
            shares[e] *= math.exp(importance * min(0.0, likelihood[e] - top))
            total += shares[e]
    for e in range(len(shares)):
        if used[e]:
            shares[e] /= total


@inner
def average(used, shares, means, rate):
    for e in range(len(shares)):
        if used[e]:
            means[e] += rate * (shares[e] - means[e])


@inner
def give_back(used, shares, past):
    """A little of the shares goes to what experts had on average."""
    count = 0
    for e in range(len(shares)):
        if used[e]:
            count += 1
    for e in range(len(shares)):
        if used[e]:
            back = 0.9 * past[e] + 0.1 / count
            shares[e] = (1.0 - BACK) * shares[e] + BACK * back


@inner
def follow_shares(mixture, m, importance, likelihood):
    """Everything about the shares after a row with these log likelihoods."""
    used, shares = mixture.used[m], mixture.shares[m]
    share_out(used, shares, importance, likelihood)
    slow = 1.0 / (mixture.seen[0] + 1.0)
    average(used, shares, mixture.past[m], slow)
    average(used, shares, mixture.recent[m], max(slow, 1.0 / RECENT))
    give_back(used, shares, mixture.past[m])


@inner
def follow_wide_shares(mixture, m, importance, likelihood):
    used, shares = mixture.used[m], mixture.wide_shares[m]
    share_out(used, shares, importance, likelihood)
    average(used, shares, mixture.wide_past[m], 1.0 / (mixture.seen[0] + 1.0))
    give_back(used, shares, mixture.wide_past[m])


@inner
def share_pair(ways, importance, first, second):
    """Shares of two ways after a row with these log likelihoods."""
    apart = importance * (second - first)
    odds = ways[1] / ways[0] * math.exp(min(600.0, max(-600.0, apart)))
    ways[0] = (1.0 - BACK) / (1.0 + odds) + 0.5 * BACK
    ways[1] = 1.0 - ways[0]


@inner
def share_ways(ways, importance, likelihood):
    """The same of more than two."""
    total, top = 0.0, -math.inf
    for k in range(len(ways)):
        top = max(top, likelihood[k])
    for k in range(len(ways)):
        ways[k] *= math.exp(importance * (likelihood[k] - top))
        total += ways[k]
    for k in range(len(ways)):
        ways[k] = (1.0 - BACK) * ways[k] / total + BACK / len(ways)


@inner
def calibrate(calibration, m, out, t):
    """Turn out[t, m], which sums to 1, into probabilities that come true as often as they say.

    The probability p of the likeliest class becomes 1 / (1 + exp(-(a log p - b log(1 - p) + c))),
    which can also level off where labels are noisy; the others keep their proportions, and the
    likeliest class stays so. Returns it, log p and -log(1 - p).
    """
    classes = out.shape[2]
    best, other = 0, 0.0
    for c in range(1, classes):
        if out[t, m, c] > out[t, m, best]:
            best = c
    p = min(out[t, m, best], 1.0 - 1e-6)
    low, high = math.log(p), -math.log(1.0 - p)
    if classes == 1:
        return best, low, high
    for c in range(classes):
        if c != best:
            other = max(other, out[t, m, c])
    a, b, c = calibration[m, 0], calibration[m, 1], calibration[m, 2]
    confidence = logistic(a * low + b * high + c)
    rest = 1.0 - out[t, m, best]
    if rest > 0.0:
        least = other / (rest + other)  # where the likeliest and the next are alike
        shown = min(max(confidence, least + 1e-9), SUREST)
        for c in range(classes):
            if c != best:
                out[t, m, c] *= (1.0 - shown) / rest
        out[t, m, best] = shown
    return best, low, high


@inner
def follow_confidence(calibration, m, importance, low, high, right):
    """A step of the numbers of `calibrate` on the log loss of being right.

    Of second order, as the numbers act alike: first-order steps took tens of thousands of rows
    where labels are noisy. The covariance is held as a triangle, row by row.
    """
    now = calibration[m]
    h0 = now[3] * low + now[4] * high + now[6]
    h1 = now[4] * low + now[5] * high + now[7]
    h2 = now[6] * low + now[7] * high + now[8]
    variance = h0 * low + h1 * high + h2
    margin = now[0] * low + now[1] * high + now[2]
    s = solve_logistic(margin if right else -margin, importance * variance)
    move = importance * (s if right else -s)
    now[0] = min(STEEPEST, max(0.0, now[0] + move * h0))
    now[1] = min(STEEPEST, max(0.0, now[1] + move * h1))
    now[2] = min(STEEPEST, max(-STEEPEST, now[2] + move * h2))
    bend = importance * s * (1.0 - s)
    gain = bend / (1.0 + bend * variance)
    kept = 1.0 - 1.0 / LONG
    now[3] = kept * (now[3] - gain * h0 * h0) + UNCALIBRATED[0] / LONG
    now[4] = kept * (now[4] - gain * h1 * h0)
    now[5] = kept * (now[5] - gain * h1 * h1) + UNCALIBRATED[1] / LONG
    now[6] = kept * (now[6] - gain * h2 * h0)
    now[7] = kept * (now[7] - gain * h2 * h1)
    now[8] = kept * (now[8] - gain * h2 * h2) + UNCALIBRATED[2] / LONG


@compiled
def mix_classes(mixture, probabilities, targets, sample_weights, out):
    """probabilities (n, experts, classes) to out (n, mixtures, classes), then learn the weights."""
    experts, classes = probabilities.shape[1], probabilities.shape[2]
    logs, likelihood = np.empty((experts, classes)), np.empty(experts)
    first, second = np.empty((2, classes))
    floor = FLOOR / classes
    for t in range(len(probabilities)):
        for e in range(experts):
            for c in range(classes):
                logs[e, c] = math.log((1.0 - FLOOR) * probabilities[t, e, c] + floor)
        if len(targets):
            mixture.seen[0] += 1.0
        for m in range(len(mixture.shares)):
            for c in range(classes):
                first[c] = second[c] = 0.0
            for e in range(experts):
                if mixture.used[m, e]:
                    for c in range(classes):
                        p = (1.0 - FLOOR) * probabilities[t, e, c] + floor
                        first[c] += mixture.shares[m, e] * p
                        second[c] += mixture.powers[m, e] * logs[e, c]
            top, total = -math.inf, 0.0
            for c in range(classes):
                top = max(top, second[c])
            for c in range(classes):
                second[c] = math.exp(second[c] - top)
                total += second[c]
            for c in range(classes):
                second[c] /= total
                out[t, m, c] = mixture.ways[m, 0] * first[c] + mixture.ways[m, 1] * second[c]
            best, low, high = calibrate(mixture.calibration, m, out, t)
            if len(targets) == 0:
                continue
            y, importance = np.int64(targets[t, 0]), sample_weights[t]
            follow_confidence(mixture.calibration, m, importance, low, high, y == best)
            for e in range(experts):
                if mixture.used[m, e]:
                    likelihood[e] = logs[e, y]
                    mean = 0.0
                    for c in range(classes):
                        mean += second[c] * logs[e, c]
                    slope = importance * (logs[e, y] - mean)
                    mixture.squares[m, e, e] += slope * slope
                    step = POWER_STEP / math.sqrt(mixture.squares[m, e, e] + 1e-6)
                    mixture.powers[m, e] += step * slope
            follow_shares(mixture, m, importance, likelihood)
            a = math.log((1.0 - FLOOR) * first[y] + floor)
            b = math.log((1.0 - FLOOR) * second[y] + floor)
            share_pair(mixture.ways[m], importance, a, b)


@inner
def log_density(error, scale):
    """Of Student's t with 4 degrees of freedom, up to a constant."""
    return -2.5 * math.log(1.0 + error * error / (4.0 * scale)) - 0.5 * math.log(scale)


@inner
def wide_likelihood(error, square):
    """The logarithm, up to a constant, where the mean square of errors is this one."""
    return -WIDE * min(error * error / square, FARTHEST**2)


@inner
def follow_scale(scale, error, rate):
    """The squared scale with which such errors are most likely, one step further."""
    counts = 5.0 / (4.0 + error * error / scale)
    return max(1e-12, scale + rate * (counts * error * error - scale))


@inner
def fit_pool(mixture, m, x, h, error, importance):
    """One step of least squares for what the differences ``x`` add."""
    experts = len(x)
    variance = 0.0
    for i in range(experts):
        h[i] = dot(mixture.squares[m], i, x, 0, 0, experts)
        variance += h[i] * x[i]
    noise = mixture.scales[m]
    limit = 3.0 * math.sqrt(noise)
    gain = importance / (noise + variance * importance)
    kept = 1.0 - 1.0 / LONG
    for i in range(experts):
        mixture.powers[m, i] += gain * h[i] * min(limit, max(-limit, error))
        for q in range(experts):
            reduced = mixture.squares[m, i, q] - gain * h[i] * h[q]
            mixture.squares[m, i, q] = kept * reduced
        if mixture.used[m, i]:
            mixture.squares[m, i, i] += SPREAD * (1.0 - kept)


@inner
def answer(mixture, m, numbers, t, c, mixed, candidates):
    """The prediction: what was mixed, or nearer to the simplest experts. Writes these, too."""
    first = numbers.shape[1] - SIMPLEST
    candidates[0] = mixed
    result = mixture.answers[m, 0] * mixed
    for k in range(SIMPLEST):
        simple = numbers[t, first + k, c]
        part = min(1.0, max(0.0, mixture.parts[m, k]))
        candidates[1 + k] = simple + part * (mixed - simple)
        result += mixture.answers[m, 1 + k] * candidates[1 + k]
    return result


@inner
def follow_answers(mixture, m, importance, numbers, t, c, y, candidates, likelihood, allowed):
    """Everything about the simplest experts after a row; the mean square of errors is known."""
    square, answers, mixed = mixture.wide_scales[m], mixture.answers[m], candidates[0]
    first, count = numbers.shape[1] - SIMPLEST, 0
    for k in range(len(candidates)):
        likelihood[k] = -NEARER * min((y - candidates[k]) ** 2 / square, FARTHEST**2)
        allowed[k] = mixture.used[m, first + k - 1] if k else 1
        count += allowed[k]
    share_out(allowed, answers, importance, likelihood)
    for k in range(len(candidates)):
        if allowed[k]:
            answers[k] = (1.0 - BACK) * answers[k] + BACK / count
    limit, kept = FARTHEST * math.sqrt(square), 1.0 - 1.0 / SHORT
    for k in range(SIMPLEST):
        simple = numbers[t, first + k, c]
        way = mixed - simple
        error = min(limit, max(-limit, y - simple - mixture.parts[m, k] * way))
        weight = importance * way / square
        certain = kept * mixture.certain[m, k] + (1.0 - kept) * WHOLE + weight * way
        mixture.certain[m, k] = certain
        mixture.parts[m, k] += weight * error / certain


@compiled
def mix_numbers(mixture, numbers, targets, sample_weights, out):
    """numbers (n, experts, q) to out (n, sets, q), then learn the weights."""
    experts, each = numbers.shape[1], numbers.shape[2]
    x, h, likelihood = np.empty(experts), np.empty(experts), np.empty(experts)
    made, of_ways = np.empty(3), np.empty(3)
    candidates, of_answers = np.empty(1 + SIMPLEST), np.empty(1 + SIMPLEST)
    allowed = np.empty(1 + SIMPLEST, np.int64)
    for t in range(len(numbers)):
        if len(targets):
            mixture.seen[0] += 1.0
        rate = max(1.0 / (mixture.seen[0] + 1.0), 1.0 / RECENT)
        for m in range(len(mixture.shares)):
            c, first, third = m % each, 0.0, 0.0
            for e in range(experts):
                if mixture.used[m, e]:
                    first += mixture.shares[m, e] * numbers[t, e, c]
                    third += mixture.wide_shares[m, e] * numbers[t, e, c]
            second = first
            apart = APART if mixture.used[m, experts - SIMPLEST] else math.inf
            for e in range(experts):
                x[e] = 0.0
                if mixture.used[m, e]:
                    x[e] = min(apart, max(-apart, numbers[t, e, c] - first))
                second += mixture.powers[m, e] * x[e]
            made[0], made[1], made[2] = first, second, third
            ways = mixture.ways[m]
            mixed = ways[0] * first + ways[1] * second + ways[2] * third
            out[t, m // each, c] = answer(mixture, m, numbers, t, c, mixed, candidates)
            if len(targets) == 0:
                continue
            y, importance = targets[t, c], sample_weights[t]
            # One scale for all: where all of them err, one that is usually exact loses no more.
            scale, wide = mixture.scales[m], mixture.wide_scales[m]
            for e in range(experts):
                if mixture.used[m, e]:
                    likelihood[e] = log_density(y - numbers[t, e, c], scale)
            follow_shares(mixture, m, importance, likelihood)
            for e in range(experts):
                if mixture.used[m, e]:
                    likelihood[e] = wide_likelihood(y - numbers[t, e, c], wide)
            follow_wide_shares(mixture, m, importance, likelihood)
            for k in range(len(made)):
                of_ways[k] = wide_likelihood(y - made[k], wide)
            share_ways(ways, importance, of_ways)
            follow_answers(
                mixture, m, importance, numbers, t, c, y, candidates, of_answers, allowed
            )
            fit_pool(mixture, m, x, h, y - second, importance)
            mixture.scales[m] = follow_scale(scale, y - first, rate)
            square = min((y - first) ** 2, FARTHEST**2 * wide)
            mixture.wide_scales[m] = max(1e-12, wide + rate * (square - wide))
