"""Losses by their definition, and their derivatives in f.

``f`` is the vector of outputs. With one output a classification target is -1 or +1, with
several it is the index of the class. At a kink the derivative is zero, but a margin as large as the
perceptron's number is a mistake.
"""

import numpy as np

MARGIN = ("hinge", "squared_hinge", "smooth_hinge", "margin_log_loss", "perceptron")
CLASSIFICATION = (*MARGIN, "log_loss")
REGRESSION = ("squared_error", "absolute_error", "epsilon_insensitive", "huber", "quantile")


def _phi(name, number, m):
    """A margin loss."""
    if name == "hinge":
        return max(0.0, 1.0 - m)
    if name == "squared_hinge":
        return max(0.0, 1.0 - m) ** 2
    if name == "smooth_hinge":
        if m >= 1.0:
            return 0.0
        if m <= 1.0 - number:
            return 1.0 - m - number / 2.0
        return (1.0 - m) ** 2 / (2.0 * number)
    if name == "perceptron":
        return max(0.0, number - m)
    return np.logaddexp(0.0, -m)


def _phi_slope(name, number, m):
    if name == "hinge":
        return -1.0 * (m < 1.0)
    if name == "squared_hinge":
        return -2.0 * max(0.0, 1.0 - m)
    if name == "smooth_hinge":
        return -min(1.0, max(0.0, 1.0 - m) / number)
    if name == "perceptron":
        return -1.0 * (m <= number)
    return -np.exp(-np.logaddexp(0.0, m))  # -1 / (1 + e^m)


def _rival(f, label):
    """The best class other than ``label``; the first one in a tie."""
    others = [c for c in range(len(f)) if c != label]
    return max(others, key=lambda c: (f[c], -c))


def value(name, number, f, target):
    f = np.asarray(f, dtype=float)
    if name in REGRESSION:
        r = f[0] - target
        return {
            "squared_error": r**2 / 2.0,
            "absolute_error": abs(r),
            "epsilon_insensitive": max(0.0, abs(r) - number),
            "huber": r**2 / 2.0 if abs(r) <= number else number * (abs(r) - number / 2.0),
            "quantile": max(number * (target - f[0]), (1.0 - number) * (f[0] - target)),
        }[name]
    if len(f) == 1:
        return _phi(name, number, target * f[0])
    label = int(target)
    if name == "log_loss":
        return np.logaddexp.reduce(f) - f[label]
    return _phi(name, number, f[label] - f[_rival(f, label)])


def derivative(name, number, f, target):
    f = np.asarray(f, dtype=float)
    if name in REGRESSION and np.ndim(target):  # several numbers: the losses are added
        parts = zip(f, target, strict=True)
        return np.concatenate([derivative(name, number, [v], t) for v, t in parts])
    if name in REGRESSION:
        r = f[0] - target
        slope = {
            "squared_error": r,
            "absolute_error": np.sign(r),
            "epsilon_insensitive": np.sign(r) * (abs(r) > number),
            "huber": r if abs(r) <= number else number * np.sign(r),
            "quantile": (1.0 - number) * (r > 0.0) - number * (r < 0.0),
        }[name]
        return np.array([slope], dtype=float)
    if len(f) == 1:
        return np.array([target * _phi_slope(name, number, target * f[0])])
    label = int(target)
    out = np.zeros(len(f))
    if name == "log_loss":
        out = np.exp(f - np.logaddexp.reduce(f))
        out[label] -= 1.0
        return out
    rival = _rival(f, label)
    slope = _phi_slope(name, number, f[label] - f[rival])
    out[label], out[rival] = slope, -slope
    return out
