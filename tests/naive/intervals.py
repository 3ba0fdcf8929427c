"""Intervals that follow the latest errors, written out for one predictor."""

import numpy as np
from scipy.stats import norm


def half_widths(errors, deviations, level, room=256, first=16):
    """Half of each row's interval, from just before its error."""
    scores = list(norm.ppf(0.5 + (np.arange(first) + 0.5) / (2 * first)) * np.sqrt(np.pi / 2))
    scale, correction, found = 0.0, 0.0, []

    def quantile(level):
        ordered = np.sort(scores[-room:])
        place = np.clip(level * (len(ordered) + 1) - 1, 0, len(ordered) - 1)
        return np.interp(place, np.arange(len(ordered)), ordered)

    for t, (error, deviation) in enumerate(zip(np.abs(errors), deviations, strict=True)):
        if t == 0:
            found.append(np.inf)
        else:
            found.append(deviation * scale * quantile(level) * np.exp(correction))
            relative = error / deviation
            score = min(1e6, relative / scale) if scale else 1e6 * (relative > 0)
            missed = score > quantile(0.9) * np.exp(correction)
            correction = np.clip(correction + 0.02 * (missed - 0.1), -2.0, 2.0)
            scores.append(score)
        scale += max(1.0 / (t + 1), 1.0 / 32.0) * (error / deviation - scale)
    return np.array(found)
