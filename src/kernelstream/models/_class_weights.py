"""Weights of classes: given, or such that all classes count alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.parameters import Number

#: Samples of each class that are taken for granted: the first one of a class among thousands of
#: others would otherwise count for thousands.
TAKEN_FOR_GRANTED = 30

_weight = Number(least=0.0, most=LARGEST_ENTRY)


def check(class_weight: Any) -> None:
    """Refuse weights that are none."""
    if not isinstance(class_weight, dict):
        return
    for label, weight in class_weight.items():
        if not _weight.accepts(weight):
            raise ValueError(f"class_weight of {label!r:.80} is {weight!r:.80}: {_weight.words}")


def absent(class_weight: Any, classes: NDArray[Any]) -> list[Any]:
    """Classes that weights were given for and that are not there."""
    if not isinstance(class_weight, dict):
        return []
    used = {_key(class_weight, label) for label in classes.tolist()}
    return [label for label in class_weight if label not in used]


def of_all(class_weight: Any, labels: NDArray[Any], weights: Any) -> Any:
    """Weights of samples where all are known: balanced classes have the same weight in all."""
    if class_weight is None:
        return weights
    if class_weight != "balanced":
        return _given(class_weight, labels, weights)
    classes, places = np.unique(labels, return_inverse=True)
    counts = np.bincount(places, weights=weights, minlength=len(classes))
    with np.errstate(divide="ignore"):
        factors = np.where(counts > 0.0, counts.sum() / (len(classes) * counts), 0.0)[places]
    return factors if weights is None else weights * factors


def of_next(class_weight: Any, labels: NDArray[Any], weights: Any, met: dict[Any, int]) -> Any:
    """Weights of the next samples of a stream; ``met`` counts those of each class so far.

    Balanced: (n + 30 k) / (k (m + 30)), where n samples came so far, the sample itself included, m
    of its class and of k classes altogether. In any chunks the same.
    """
    if class_weight is None:
        return weights
    if class_weight != "balanced":
        return _given(class_weight, labels, weights)
    counted = np.ones(len(labels), bool) if weights is None else weights != 0.0
    classes, places = np.unique(labels, return_inverse=True)
    own = np.zeros(len(labels))
    total = np.full(len(labels), float(sum(met.values()))) + np.cumsum(counted)
    kinds = np.full(len(labels), float(len(met)))
    for place, label in enumerate(classes.tolist()):
        so_far = np.cumsum(counted & (places == place))
        own[places == place] = (met.get(label, 0) + so_far)[places == place]
        if label not in met:
            kinds += so_far > 0
        if len(so_far) and so_far[-1]:
            met[label] = met.get(label, 0) + int(so_far[-1])
    kinds = np.maximum(kinds, 1.0)
    factors = (total + TAKEN_FOR_GRANTED * kinds) / (kinds * (own + TAKEN_FOR_GRANTED))
    return factors if weights is None else weights * factors


def _given(class_weight: dict[Any, float], labels: NDArray[Any], weights: Any) -> Any:
    classes, places = np.unique(labels, return_inverse=True)
    keys = [_key(class_weight, label) for label in classes.tolist()]
    factors = np.array([float(class_weight.get(key, 1.0)) for key in keys])[places]
    return factors if weights is None else weights * factors


def _key(class_weight: dict[Any, float], label: Any) -> Any:
    """How the weights name a label: as it is, or true and false as files have them."""
    word = str(label).lower()
    return word if isinstance(label, bool) and label not in class_weight else label
