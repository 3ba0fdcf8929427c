"""Experts mixed online: what mixtures of classes and of numbers have in common.

Shares follow the likelihood of each expert; a little of them is always given back to what experts
had on average so far, so that one that was good before returns fast. Pools learn powers of the
experts, or what each adds, by steps of second order. Shares and pools are the ways of mixing, and
the better of these have the larger parts of the answer.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.jit import inner
from kernelstream.core.lanes import add_multiple, dot

#: The part of the shares that is given back in each row.
BACK = 1e-3
#: Rows over which shares are averaged for decisions.
RECENT = 512.0
#: Rows between two steps in which pools forget.
EVERY = 16


class Pool(NamedTuple):
    """How a pool learns."""

    spread: float  # variance of a power before any row: experts resemble each other, and must not
    # be played off against each other
    rows: float  # over which it forgets


class MixtureState(NamedTuple):
    """Mixtures of e experts, one for each set of experts that may be used.

    Of several numbers each has its own: number c by set s is mixed in row s q + c.
    """

    used: NDArray[np.int64]  # (mixtures, e)
    seen: NDArray[np.float64]  # (1,)
    shares: NDArray[np.float64]  # (mixtures, e)
    past: NDArray[np.float64]  # (mixtures, e) mean of the shares so far
    recent: NDArray[np.float64]  # (mixtures, e) and lately
    powers: NDArray[np.float64]  # (mixtures, pools, e)
    covariance: NDArray[np.float64]  # (mixtures, pools, e, e) of the powers
    ways: NDArray[np.float64]  # (mixtures, 1 + pools) shares of the ways; for numbers one more
    calibration: NDArray[np.float64]  # (mixtures, 9) see `calibrate`: numbers, their covariance
    scales: NDArray[np.float64]  # (mixtures,) squared errors of numbers, as they usually are
    wide_shares: NDArray[np.float64]  # (mixtures, e); (0, e) for classes
    wide_past: NDArray[np.float64]
    wide_scales: NDArray[np.float64]  # (mixtures,) mean squared errors
    extremes: NDArray[np.float64]  # (mixtures, 2) the least and the largest target so far
    inside: NDArray[np.float64]  # (mixtures,) how likely predictions belong near these
    parts: NDArray[np.float64]  # (mixtures, SIMPLEST) of the way from these to the mixture
    certain: NDArray[np.float64]  # (mixtures, SIMPLEST) of those: 1 / variance
    answers: NDArray[np.float64]  # (mixtures, 1 + SIMPLEST) shares: all of the way, or such parts
    unlike: NDArray[np.float64]  # (mixtures, 2) shares where a row is unlike the last one: of all
    # experts, and of those that do not look at it; of the first mixtures alone


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
def share_ways(ways, importance, likelihood):
    """Shares of ways after a row with these log likelihoods."""
    total, top = 0.0, -math.inf
    for k in range(len(ways)):
        top = max(top, likelihood[k])
    for k in range(len(ways)):
        ways[k] *= math.exp(importance * (likelihood[k] - top))
        total += ways[k]
    for k in range(len(ways)):
        ways[k] = (1.0 - BACK) * ways[k] / total + BACK / len(ways)


@inner
def spread_powers(mixture, m, k, x, h):
    """h = covariance x of pool k. Returns the variance of powers.x."""
    covariance, experts = mixture.covariance[m, k], len(x)
    for i in range(experts):
        h[i] = 0.0
    for i in range(experts):
        if x[i] != 0.0:
            add_multiple(x[i], covariance, i, h, experts)
    return max(0.0, dot(h, 0, x, 0, 0, experts))


@inner
def move_powers(mixture, m, k, pool, h, move, gain):
    """Powers of pool k move along ``h``; their covariance shrinks there, and forgets at times."""
    covariance, experts = mixture.covariance[m, k], len(h)
    for i in range(experts):
        mixture.powers[m, k, i] += move * h[i]
        if h[i] != 0.0:
            add_multiple(-gain * h[i], h, 0, covariance[i], experts)
    if mixture.seen[0] % EVERY == 0.0:
        kept = 1.0 - EVERY / pool.rows
        for i in range(experts):
            for q in range(experts):
                covariance[i, q] *= kept
            if mixture.used[m, i]:
                covariance[i, i] += pool.spread * (1.0 - kept)
