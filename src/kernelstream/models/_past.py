"""Estimators that keep the function before the last step: gradient tracking (20) compares both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from kernelstream.compression import komp
from kernelstream.core.reduce.komp import BLOCK, GREEDY, prune_block
from kernelstream.core.state import State
from kernelstream.models.polk import _POLK
from kernelstream.schedules import STEP_NAMES


class Remembering(_POLK):
    """POLK whose last rows of weights are the function before the last step (``core/past.py``)."""

    tracking: ClassVar[str]  # a parameter of those that derive from it

    @property
    def _remembers(self) -> bool:
        return self.tracking == "momentum"

    @property
    def _parts(self) -> int:
        return super()._parts + self._remembers

    @property
    def _projected(self) -> int:
        """Weight columns that compression sees; those of the past follow."""
        return self._outputs * (self._parts - self._remembers)

    @contextmanager
    def _compressible(self) -> Iterator[State]:
        """The state as compression may see it; where that moves points, the past starts again."""
        state = self._state
        points = state.points[:, : state.order].copy()
        try:
            yield state._replace(weights=state.weights[: self._projected])
        finally:
            if not np.array_equal(points, state.points[:, : state.order]):
                self._restart_past()

    def _restart_past(self) -> None:
        """The function before the last step is the current one."""
        state, outputs = self._state, self._outputs
        state.status[0]["ghosts"] = 0
        if self._remembers:
            current = state.weights[:outputs, : state.order] * state.status[0]["scale"]
            state.weights[-outputs:, : state.order] = current

    def _shrink(self, limit: int) -> None:
        if self._state.extent > limit:
            self._restart_past()
        super()._shrink(limit)

    def _drop_points(self, most: int) -> None:
        with self._compressible() as state:
            prune_block(state, self._outputs, 0.0, 0.0, most, GREEDY, BLOCK)

    def _watch(self) -> None:
        with self._compressible() as state:
            komp.watch(state, self.kernel_, self._outputs)


def tracking_settings(model: Any) -> dict[str, Any]:
    """How beta changes with the steps, by the names of ``core/settings.py``."""
    code = STEP_NAMES[model.tracking_schedule]
    return {"tracking_schedule": code, "tracking_decay": model.tracking_decay}
