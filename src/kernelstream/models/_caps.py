"""What a cap on points or bytes did, in the same words for warnings, notes and reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def cap_note(model: Any, written: Callable[[str, int], str] = "{}={}".format) -> str:
    """What the cap did so far; nothing where it was not reached.

    What that costs is not known: it takes a run with a larger cap to tell, and often that one is
    hardly better.

    Parameters
    ----------
    model : fitted estimator of this package
    written : callable
        How a parameter and its value are written.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import POLKRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> print(cap_note(POLKRegressor(max_points=5, epsilon=0.0).partial_fit(X, X[:, 0])))
    max_points=5 made room 14 times by removing a point that the error budget would have kept. \
What that costs depends on the stream: a run with a larger cap tells
    """
    forced = model.n_forced_
    if not forced or not hasattr(model, "max_points"):  # a budget is no cap
        return ""
    cap, value = "max_bytes", model.max_bytes
    most = None if model.max_points is None else model.max_points + model.batch_size + model.slack
    if value is None or most == model._capacity_limit(model.n_features_in_):
        cap, value = "max_points", model.max_points
    tells = "What that costs depends on the stream: a run with a larger cap tells"
    if model.has_cells:
        return (
            f"{written(cap, value)} left no room for the cells of {_times(forced, 'sample')}: they "
            f"counted for the nearest core point. {tells}, and kernelstream diameter what a larger "
            "delta would do"
        )
    return (
        f"{written(cap, value)} made room {_times(forced, 'time')} by removing a point that the "
        f"error budget would have kept. {tells}"
    )


def _times(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count > 1 else ''}"
