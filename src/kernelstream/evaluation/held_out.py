"""How a model stands beside the stream: the error on samples held out, and the regularised risk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelstream.evaluation.labels import Labels
from kernelstream.evaluation.metrics import METRICS, make_metrics
from kernelstream.evaluation.risk import sample_losses
from kernelstream.evaluation.trace import BESIDE_THE_STREAM
from kernelstream.models._base import KernelEstimator


class HeldOut:
    """Samples that no model learns from.

    The papers' figures show the regularised risk E[loss] + alpha/2 |f|^2 and the error on a test
    set over the course of a run. Both are measured for the function as it is at a record.

    Parameters
    ----------
    samples : (X, y)
    metric : str
        One that needs predictions alone.
    """

    def __init__(self, samples: Any, metric: str) -> None:
        if not isinstance(samples, tuple) or len(samples) != 2:
            raise ValueError("held_out must be a tuple (X, y)")
        if METRICS[metric].needs:
            raise ValueError(
                f"held_out is measured by the first metric, and {metric} needs more than "
                "predictions: name another one first"
            )
        self._X, self._y = samples[0], np.asarray(samples[1])
        self._metric = metric
        count = self._X.shape[0] if hasattr(self._X, "shape") else len(self._X)
        if self._y.ndim not in (1, 2) or not len(self._y) or count != len(self._y):
            raise ValueError(f"held_out has {count} rows and targets of shape {self._y.shape}")

    def values(self, model: Any, stream_loss: float) -> dict[str, float]:
        """The columns of a record; ``stream_loss`` is the mean loss on the stream so far."""
        labels = Labels() if METRICS[self._metric].classification else None
        metrics = make_metrics((self._metric,), labels, window=len(self._y), fading=0.999)
        predicted = model.predict(self._X)
        metrics.update(self._y, predicted)
        found = dict.fromkeys(BESIDE_THE_STREAM, math.nan)
        found["held_out"] = metrics.values()[self._metric]
        if isinstance(model, KernelEstimator) and hasattr(model, "alpha"):
            shape = 0.5 * float(model.alpha) * model.expansion_.norm() ** 2
            values = model.decision_function(self._X) if labels is not None else predicted
            losses = sample_losses(model, values, self._y)
            found["held_out_risk"] = float(np.nanmean(losses)) + shape
            found["risk"] = stream_loss + shape
        return found
