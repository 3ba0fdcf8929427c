"""Experts of numbers mixed: by shares of two kinds, and by a pool.

In the shares of the first kind errors are measured by how large they usually are; so an expert that
is exact in most rows leads, however far it is off in the others, as the last value is where most
targets are zero. In those of the second, wide ones, their squares count, over the mean one, and so
do those few rows. The pool is a least squares fit on the differences to the first shares. In the
end the mixture is held against the simplest experts, the last value and the mean: where it does no
better than these, its prediction lies nearer to theirs. What is predicted far beyond the targets so
far is drawn back: one wild row of one expert would cost more than thousands of good ones gain.
Where targets turn out to lie there, as where sizes of cities are learned, it no longer is.
"""

import math

import numpy as np

from kernelstream.core.experts.mixture import (
    BACK,
    RECENT,
    Pool,
    average,
    follow_shares,
    give_back,
    move_powers,
    share_out,
    share_ways,
    spread_powers,
)
from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import dot
from kernelstream.core.units import FARTHEST_TARGET

#: The pools; what they add to the share of an expert has this spread.
NUMBER_POOLS = (Pool(0.03, 1e4),)
#: A step makes a pool at most so much more certain: beyond, its covariance is lost to rounding.
CERTAIN_TO = 1e-10
#: In the pool, experts that look at the last target are at most so many units of the target away
#: from the shares: after one that was far out a weight of a hundredth would be too much.
APART = 30.0
#: Errors beyond so many times the root of their mean square count by their logarithm; where the
#: mixture is held against the simplest experts, earlier: a single row must not turn everything.
FARTHEST, FAR = 10.0, 3.0
#: What a squared error, over the mean one, takes from the logarithm of a wide likelihood. Of normal
#: errors it is a half; but where few rows have large ones, each says little.
WIDE = 0.05
#: The same for the likelihoods of the mixture and of what lies nearer to the simplest experts.
NEARER = 0.5
#: What part of the way from a simple expert to the mixture is right, before any row: of the last
#: value all, of the mean none, as often there is nothing to learn; how certain that is
#: (1 / variance), and the rows over which it is learned.
FIRST_PARTS, CERTAIN, SHORT = (1.0, 0.0), 1.0, 2000.0
#: What the mixture has of the answer before any row, what lies nearer to the last value and what
#: lies nearer to the mean, relative to each other. Where there is something to learn the mean loses
#: its share within a few rows; where there is nothing, mixtures cost most in the first ones.
FIRST_ANSWERS = (1.0, 1.0, 4.0)
#: Predictions may lie beyond the least and the largest target so far by this part of what is
#: between these, once there were so many; how likely that rule is right before it was tried. By so
#: much what is predicted beyond is drawn there.
BEYOND, FEWEST, WITHIN = 0.5, 3.0, 0.5
#: The part of such a share, and of those for rows that are unlike the last one, that is given back.
GIVEN_BACK = 0.01
#: The simplest experts of numbers, the last ones: the last value and the mean.
SIMPLEST = 2


@inner
def log_density(error, scale):
    """Of Student's t with 4 degrees of freedom, up to a constant."""
    return -2.5 * math.log(1.0 + error * error / (4.0 * scale)) - 0.5 * math.log(scale)


@inner
def within(number, low, high):
    return min(high, max(low, number))


@inner
def relative_square(error, square, farthest):
    """A squared error over the mean one. Far out only its logarithm counts: where all err, as at a
    jump, the one that errs half as much is better, and no single row says everything.
    """
    found, far = error * error / square, farthest**2
    return found if found <= far else far * (1.0 + math.log(found / far))


@inner
def follow_scale(scale, error, rate):
    """The squared scale with which such errors are most likely, one step further."""
    counts = 5.0 / (4.0 + error * error / scale)
    return max(1e-12, scale + rate * (counts * error * error - scale))


@inner
def follow_wide_shares(mixture, m, importance, likelihood):
    used, shares = mixture.used[m], mixture.wide_shares[m]
    share_out(used, shares, importance, likelihood)
    average(used, shares, mixture.wide_past[m], 1.0 / (mixture.seen[0] + 1.0))
    give_back(used, shares, mixture.wide_past[m])


@inner
def fit_pool(mixture, m, k, pool, x, h, error, importance):
    """One step of least squares for what the differences ``x`` add."""
    for e in range(len(x)):
        x[e] = within(x[e], -FARTHEST_TARGET, FARTHEST_TARGET)
    variance = spread_powers(mixture, m, k, x, h)
    least = CERTAIN_TO * pool.spread * dot(x, 0, x, 0, 0, len(x)) * importance
    noise = max(mixture.scales[m], least)
    limit = 3.0 * math.sqrt(mixture.scales[m])
    gain = importance / (noise + variance * importance)
    move_powers(mixture, m, k, pool, h, gain * min(limit, max(-limit, error)), gain)


@inner
def reach(mixture, m, known):
    """The least and the largest prediction after so many targets."""
    if known < FEWEST:
        return -FARTHEST_TARGET, FARTHEST_TARGET
    least, largest = mixture.extremes[m, 0], mixture.extremes[m, 1]
    beyond = BEYOND * (largest - least)
    return least - beyond, largest + beyond


@inner
def follow_odds(share, importance, error, other, square):
    """The share of one of two predictions after their errors in a row in which they differ."""
    ahead = relative_square(other, square, FARTHEST) - relative_square(error, square, FARTHEST)
    odds = min(500.0, max(-500.0, NEARER * importance * ahead))
    odds = share / (1.0 - share) * math.exp(odds)
    return (1.0 - GIVEN_BACK) * odds / (1.0 + odds) + 0.5 * GIVEN_BACK


@inner
def answer(mixture, m, numbers, mixed, candidates):
    """The prediction: what was mixed, or nearer to the simplest experts. Writes these, too."""
    first = len(numbers) - SIMPLEST
    candidates[0] = mixed
    result = mixture.answers[m, 0] * mixed
    for k in range(SIMPLEST):
        simple = numbers[first + k]
        part = min(1.0, max(0.0, mixture.parts[m, k]))
        candidates[1 + k] = simple + part * (mixed - simple)
        result += mixture.answers[m, 1 + k] * candidates[1 + k]
    return result


@inner
def follow_answers(mixture, m, importance, numbers, y, candidates, likelihood, allowed):
    """Everything about the simplest experts after a row; the mean square of errors is known."""
    square, answers, mixed = mixture.wide_scales[m], mixture.answers[m], candidates[0]
    first, count = len(numbers) - SIMPLEST, 0
    for k in range(len(candidates)):
        likelihood[k] = -NEARER * relative_square(y - candidates[k], square, FAR)
        allowed[k] = mixture.used[m, first + k - 1] if k else 1
        count += allowed[k]
    share_out(allowed, answers, importance, likelihood)
    for k in range(len(candidates)):
        if allowed[k]:
            answers[k] = (1.0 - BACK) * answers[k] + BACK / count
    limit, kept = FARTHEST * math.sqrt(square), 1.0 - 1.0 / SHORT
    for k in range(SIMPLEST):
        simple = numbers[first + k]
        way = mixed - simple
        error = min(limit, max(-limit, y - simple - mixture.parts[m, k] * way))
        weight = importance * way / square
        certain = kept * mixture.certain[m, k] + (1.0 - kept) * CERTAIN + weight * way
        mixture.certain[m, k] = certain
        mixture.parts[m, k] += weight * error / certain


@inner
def look_apart(mixture, c, importance, out, targets, t):
    """Where a row is unlike the last one: as all experts, or as those that do not look at it."""
    shares, each = mixture.unlike[c], out.shape[2]
    last, any_row = out[t, 0, c], out[t, 1, c]
    out[t, 0, c] = shares[0] * last + shares[1] * any_row
    if len(targets) == 0:
        return
    y, square = targets[t, c], mixture.wide_scales[each + c]
    shares[0] = follow_odds(shares[0], importance, y - last, y - any_row, square)
    shares[1] = 1.0 - shares[0]


@compiled
def mix_numbers(mixture, numbers, targets, sample_weights, unlike, out):
    """numbers (n, experts, q) to out (n, sets, q), then learn the weights.

    ``unlike`` (n,) is not 0 for rows that are unlike the last one.
    """
    experts, each = numbers.shape[1], numbers.shape[2]
    said, x, h, likelihood = np.empty((4, experts))
    ways = mixture.ways.shape[1]
    made, of_ways = np.empty(ways), np.empty(ways)
    candidates, of_answers = np.empty(1 + SIMPLEST), np.empty(1 + SIMPLEST)
    allowed = np.empty(1 + SIMPLEST, np.int64)
    for t in range(len(numbers)):
        known = mixture.seen[0]
        if len(targets):
            mixture.seen[0] += 1.0
        rate = max(1.0 / (mixture.seen[0] + 1.0), 1.0 / RECENT)
        for m in range(len(mixture.shares)):
            c, first, third = m % each, 0.0, 0.0
            low, high = reach(mixture, m, known)
            # Of any row experts are added up as they are: so exported models do it, too.
            looks_back, inside = mixture.used[m, experts - SIMPLEST] != 0, mixture.inside[m]
            free, held, differ = 0.0, 0.0, False
            for e in range(experts):
                said[e] = numbers[t, e, c]
                if mixture.used[m, e]:
                    near = within(said[e], low, high)
                    differ |= near != said[e]
                    both = mixture.shares[m, e] + mixture.wide_shares[m, e]
                    free += 0.5 * both * said[e]
                    held += 0.5 * both * near
                    if looks_back:
                        said[e] += inside * (near - said[e])
                    first += mixture.shares[m, e] * said[e]
                    third += mixture.wide_shares[m, e] * said[e]
            apart = APART if looks_back else math.inf
            for e in range(experts):
                x[e] = within(said[e] - first, -apart, apart) if mixture.used[m, e] else 0.0
            made[0], made[ways - 1], mixed = first, third, 0.0
            for k in range(1, ways - 1):
                made[k] = first + dot(mixture.powers[m], k - 1, x, 0, 0, experts)
            for k in range(ways):
                mixed += mixture.ways[m, k] * made[k]
            found = answer(mixture, m, said, mixed, candidates)
            out[t, m // each, c] = found + inside * (within(found, low, high) - found)
            if len(targets) == 0:
                continue
            y, importance = targets[t, c], sample_weights[t]
            mixture.extremes[m, 0] = min(mixture.extremes[m, 0], y)
            mixture.extremes[m, 1] = max(mixture.extremes[m, 1], y)
            # One scale for all: where all of them err, one that is usually exact loses no more.
            scale, wide = mixture.scales[m], mixture.wide_scales[m]
            over = 0.25 / scale
            for e in range(experts):
                if mixture.used[m, e]:
                    likelihood[e] = -2.5 * math.log(1.0 + (y - said[e]) ** 2 * over)
            follow_shares(mixture, m, importance, likelihood)
            for e in range(experts):
                if mixture.used[m, e]:
                    likelihood[e] = -WIDE * relative_square(y - said[e], wide, FARTHEST)
            follow_wide_shares(mixture, m, importance, likelihood)
            for k in range(ways):
                of_ways[k] = -WIDE * relative_square(y - made[k], wide, FARTHEST)
                if 0 < k < ways - 1:
                    pool = NUMBER_POOLS[k - 1]
                    fit_pool(mixture, m, k - 1, pool, x, h, y - made[k], importance)
            share_ways(mixture.ways[m], importance, of_ways)
            follow_answers(mixture, m, importance, said, y, candidates, of_answers, allowed)
            if differ:
                mixture.inside[m] = follow_odds(
                    mixture.inside[m], importance, y - held, y - free, wide
                )
            mixture.scales[m] = follow_scale(scale, y - first, rate)
            square = min((y - first) ** 2, FARTHEST**2 * wide)
            mixture.wide_scales[m] = max(1e-12, wide + rate * (square - wide))
        if unlike[t] != 0.0 and out.shape[1] > 1:
            for c in range(each):
                look_apart(mixture, c, sample_weights[t], out, targets, t)
