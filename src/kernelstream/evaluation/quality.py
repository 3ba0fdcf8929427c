"""Whether a model does better than rules that know no features."""

from __future__ import annotations

from collections.abc import Mapping

from kernelstream.evaluation.metrics import METRICS


def in_words(metric: str, values: Mapping[str, float], task: str) -> str:
    """A line on the baselines.

    >>> in_words("accuracy", {"no_change": 0.5, "majority": 0.75}, "classification")
    'accuracy of no change 0.5000, of the majority 0.7500'
    """
    rules = _rules(values, task).items()
    return f"{metric} of " + ", of ".join(f"{rule} {number(value)}" for rule, value in rules)


def beaten_by(metric: str, values: Mapping[str, float], task: str, suffix: str = "") -> str:
    """The rule that does as well as the model or better; nothing where the model is better.

    ``values`` has the metric and the baselines, each with ``suffix``.

    >>> beaten_by("mae", {"mae": 1.5, "no_change": 2.0, "majority": 1.25}, "regression")
    'the mean would have done better than the model (mae 1.25 instead of 1.5)'
    >>> beaten_by("mae", {"mae": 1.5, "no_change": 2.0, "majority": 1.49}, "regression")
    'the mean would have done as well as the model (mae 1.49, and 1.5)'
    """
    rules = _rules(values, task, suffix)
    sign = 1.0 if METRICS[metric].lower_is_better else -1.0
    rule = min(rules, key=lambda rule: sign * rules[rule])
    model, other = (f"{value:.4g}" for value in (values[metric + suffix], rules[rule]))
    if model == other != "nan":
        return f"{rule} would have done as well as the model ({metric} {other})"
    if sign > 0.0 and 0.99 * values[metric + suffix] <= rules[rule] < values[metric + suffix]:
        return f"{rule} would have done as well as the model ({metric} {other}, and {model})"
    if sign * values[metric + suffix] > sign * rules[rule]:
        return f"{rule} would have done better than the model ({metric} {other} instead of {model})"
    if values.get(f"kappa{suffix}", 1.0) < 5e-5:
        return "the model separates classes no better than chance (kappa 0)"
    return ""


def number(value: float | None) -> str:
    """A metric with four digits.

    >>> number(0.98765), number(123.456), number(None)
    ('0.9877', '123.5', '-')
    """
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if abs(value) >= 10 else f"{value:.4f}"


def _rules(values: Mapping[str, float], task: str, suffix: str = "") -> dict[str, float]:
    constant = "the majority" if task == "classification" else "the mean"
    return {"no change": values[f"no_change{suffix}"], constant: values[f"majority{suffix}"]}
