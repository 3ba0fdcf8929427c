"""Rows after which predictions became worse at once: a stream that changed."""

import math

import numpy as np

from kernelstream.core.experts.mixture import RECENT
from kernelstream.core.experts.number_mixture import follow_scale
from kernelstream.core.jit import compiled, inner

#: The numbers of the watch.
WATCH_STATUS = np.dtype(
    (
        np.record,
        [
            ("seen", np.int64),
            ("rows", np.int64),  # since the last mark
            ("fast", np.float64),  # mean loss lately
            ("slow", np.float64),  # and for longer
            ("variance", np.float64),
            ("settled", np.int64),  # rows at which both means were settled
            (
                "wiggle",
                np.float64,
            ),  # by how much the fast mean was above the other, squared, on average
        ],
    )
)

#: Rows over which the two means go.
FAST, SLOW = 50.0, 1000.0
#: Rows before the first mark, and between two.
APART = 500
#: A mark: the fast mean is so many of its deviations above the slow one, and so many times it.
FAR, TIMES = 6.0, 1.5
#: A single loss counts for at most so many deviations: a mark needs several bad rows.
MOST = 5.0
#: Rows after which deviations are known well enough for that.
SETTLED = 100
#: Rows over which the usual difference of the two means goes, and so many it takes to be known.
LONG, KNOWN = 10000.0, 250


@inner
def follow_means(now, loss, bounded):
    """The fast mean, of the ``bounded`` losses, the slow mean, and the variance around it."""
    now.rows += 1
    slow = max(1.0 / now.rows, 1.0 / SLOW)
    apart = loss - now.slow
    now.fast += max(1.0 / now.rows, 1.0 / FAST) * (bounded - now.fast)
    now.slow += slow * apart
    now.variance = (1.0 - slow) * (now.variance + slow * apart * apart)


@compiled
def watch(status, scales, numbers, errors, marks, strengths):
    """Follow the errors (n, q) of rows; ``marks`` (n,) receives the places of marks.

    Returns how many. ``scales`` (q,) are squared errors of numbers, as the mixture has them.

    ``strengths`` (n,) receives how many times as far as usual the fast mean was above the other:
    losses that come in waves, as where a row resembles the last one, often are. 0 where that is
    not known yet.

    Errors are the probability of the wrong classes, or of numbers the distance, whose loss is that
    of Student's t: a few outliers are no change. Of several numbers it is the mean of their losses.
    """
    now, count = status[0], 0
    for t in range(len(errors)):
        loss = errors[t, 0]
        now.seen += 1
        if numbers:
            loss, rate = 0.0, max(1.0 / now.seen, 1.0 / RECENT)
            for c in range(len(scales)):
                error = errors[t, c]
                if scales[c] == 0.0:
                    scales[c] = error * error
                if scales[c] > 0.0:
                    loss += math.log(1.0 + error * error / (4.0 * scales[c]))
                    scales[c] = follow_scale(scales[c], error, rate)
            loss /= len(scales)
        bounded = loss
        if now.rows >= SETTLED:
            bounded = min(loss, now.slow + MOST * math.sqrt(now.variance))
        follow_means(now, loss, bounded)
        beyond = FAR * math.sqrt(now.variance / (2.0 * FAST))
        if now.rows > APART and now.fast > now.slow + beyond and now.fast > TIMES * now.slow:
            marks[count] = t
            strengths[count] = 0.0
            if now.settled >= KNOWN and now.wiggle > 0.0:
                strengths[count] = (now.fast - now.slow) / math.sqrt(now.wiggle)
            count += 1
            now.rows = 0
            now.fast = now.slow = now.variance = 0.0
        elif now.rows > APART:
            now.settled += 1
            gap = max(0.0, now.fast - now.slow)
            now.wiggle += max(1.0 / now.settled, 1.0 / LONG) * (gap * gap - now.wiggle)
    return count
