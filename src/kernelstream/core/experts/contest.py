"""Two models on the same stream: which of them predicts, and when a second one is worth a trial."""

import math

import numpy as np

from kernelstream.core.experts.class_mixture import FLOOR
from kernelstream.core.experts.mixture import BACK, RECENT
from kernelstream.core.experts.number_mixture import follow_scale, log_density
from kernelstream.core.experts.surprise import FAST, follow_means
from kernelstream.core.jit import compiled, inner

#: The numbers of a contest.
CONTEST_STATUS = np.dtype(
    (
        np.record,
        [
            ("rows", np.int64),  # since the first model is watched alone
            ("fast", np.float64),  # its mean loss lately
            ("slow", np.float64),  # and for longer
            ("variance", np.float64),
            ("doubt", np.int64),  # whether it became worse since
            ("lost", np.int64),  # trials in a row that were for nothing
            ("odds", np.float64),  # logarithm, of the second model
            ("recent", np.float64),  # its share lately
            ("leads", np.int64),  # whether it predicts
        ],
    )
)

#: Rows before the two means are compared.
SETTLED = 250
#: Trials for nothing double the latter, so often at most.
MOST_LOST = 4
#: Doubt: the fast mean is so many of its deviations above the slow one, and so many times it. A
#: trial costs time and hardly any error: doubt may be wrong more often than a mark of the history.
FAR, TIMES = 4.0, 1.1
#: Rows over which the share of the second model is averaged.
LATELY = 200.0
#: What it has to be for the second model to predict: a few rows are not enough.
ENOUGH = 0.25


@inner
def watch_alone(now, loss):
    """Follow the losses of the only model."""
    follow_means(now, loss, loss)
    far = now.fast > now.slow + FAR * math.sqrt(now.variance / (2.0 * FAST))
    settled = now.rows > SETTLED * 2 ** min(now.lost, MOST_LOST)
    if settled and far and now.fast > TIMES * now.slow:
        now.doubt = 1


@inner
def likelihood(made, t, targets, numbers, scales):
    """The logarithm, of a class, or of numbers together."""
    classes = made.shape[2]
    if not numbers:
        return math.log((1.0 - FLOOR) * made[t, 0, np.int64(targets[t, 0])] + FLOOR / classes)
    total = 0.0
    for c in range(len(scales)):
        total += log_density(targets[t, c] - made[t, 0, c], scales[c])
    return total


@compiled
def contest(status, scales, numbers, first, second, targets, sample_weights, out):
    """Predictions of the likelier model into ``out``, each from before its row, then learn.

    Parameters
    ----------
    status : (1,) CONTEST_STATUS
    scales : (2, q) squared errors of numbers, of the first model and of the second; 0: not known.
    first, second, out : (n, mixtures, outputs); ``second`` (0, ...) where there is one model.
    targets : (n, q) numbers, or (n, 1) classes by number.
    sample_weights : (n,)
    """
    now = status[0]
    before = np.empty(scales.shape[1])
    for t in range(len(first)):
        chosen = second if len(second) and now.leads else first
        for m in range(out.shape[1]):
            for c in range(out.shape[2]):
                out[t, m, c] = chosen[t, m, c]
        if numbers:
            loss, rate = 0.0, max(1.0 / (now.rows + 2.0), 1.0 / RECENT)
            for c in range(len(before)):
                error = targets[t, c] - first[t, 0, c]
                before[c] = scales[0, c] if scales[0, c] > 0.0 else 1.0
                scales[0, c] = follow_scale(before[c], error, rate)
                loss += math.log(1.0 + error * error / (4.0 * before[c]))
            loss /= len(before)
        else:
            loss = max(0.0, 1.0 - first[t, 0, np.int64(targets[t, 0])])
        if len(second) == 0:
            watch_alone(now, loss)
            continue
        apart = likelihood(second, t, targets, numbers, scales[1])
        apart -= likelihood(first, t, targets, numbers, before)
        if numbers:
            for c in range(len(before)):
                error = targets[t, c] - second[t, 0, c]
                scales[1, c] = follow_scale(scales[1, c], error, 1.0 / RECENT)
        odds = math.exp(min(600.0, max(-600.0, now.odds + sample_weights[t] * apart)))
        share = (1.0 - BACK) * odds / (1.0 + odds) + 0.5 * BACK
        now.odds = math.log(share / (1.0 - share))
        now.recent += (share - now.recent) / LATELY
        now.leads = np.int64(now.odds > 0.0 and now.recent > ENOUGH)
