"""Metrics of samples with several numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.parts import part_of, prefixed


class EachOutput:
    """Metrics of several numbers per sample, each output by itself, and their mean.

    ``make`` makes those of one output. As long as samples have one number it is one of them, with
    its bits and its arrays.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.outputs = [make()]

    def update(self, truth: ArrayLike, *predicted: NDArray[np.float64]) -> None:
        """Take in the next samples, (n,) or (n, outputs)."""
        truth = np.asarray(truth, dtype=np.float64)
        if truth.ndim == 1:
            self.outputs[0].update(truth, *predicted)
            return
        while len(self.outputs) < truth.shape[1]:
            self.outputs.append(self._make())
        for c, output in enumerate(self.outputs):
            output.update(truth[:, c], *(values[:, c] for values in predicted))

    def values(self) -> dict[str, float]:
        """Averaged over the outputs."""
        found = [output.values() for output in self.outputs]
        if len(found) == 1:
            return found[0]  # type: ignore[no-any-return]
        return {name: float(np.mean([each[name] for each in found])) for name in found[0]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that was taken in."""
        if len(self.outputs) == 1:
            return self.outputs[0].arrays()  # type: ignore[no-any-return]
        parts = [prefixed(f"{c}:", output.arrays()) for c, output in enumerate(self.outputs)]
        return {name: array for part in parts for name, array in part.items()}

    def set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what :meth:`arrays` returned."""
        count = len({name.partition(":")[0] for name in arrays if ":" in name}) or 1
        self.outputs = [self._make() for _ in range(count)]
        for c, output in enumerate(self.outputs):
            output.set_arrays(arrays if count == 1 else part_of(f"{c}:", arrays))
