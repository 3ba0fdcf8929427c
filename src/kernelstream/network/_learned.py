"""What a network has learned: predictions of its agents and of their mean, and its course."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.losses import Loss
from kernelstream.models.polk import POLKClassifier
from kernelstream.network._agent import Agent
from kernelstream.network._engine import Engine
from kernelstream.network._messages import Name
from kernelstream.network._trace import NetworkTrace


class Learned:
    """The part of a network that answers questions; it changes nothing."""

    loss: Loss
    _names: list[Name]
    _away: dict[Name, Agent]
    _engine: Engine
    _trace: NetworkTrace
    _known: Any
    _started: bool
    _closed: bool

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(
                f"This {type(self).__name__} was closed, its agents are gone: save it before "
                "close, or make a new one"
            )

    def _check_started(self) -> None:
        self._check_open()
        if not self._started:
            raise RuntimeError(
                f"This {type(self).__name__} has learned nothing yet: call run or partial_fit_round"
            )

    @property
    def agents_(self) -> dict[Name, Agent]:
        """Copies of the agents as they are."""
        self._check_started()
        return self._engine.agents()

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted; for classification."""
        if self.loss.for_regression:
            raise AttributeError("a network that learns numbers has no classes")
        self._check_started()
        return self._known

    def model(self, agent: Name) -> Any:
        """A copy of an agent's model that stands alone: it predicts, learns, saves, merges."""
        self._check_known(agent)
        if agent in self._away:
            return copy.deepcopy(self._away[agent].model)
        return self.agents_[agent].model

    def _check_known(self, agent: Name) -> None:
        if agent not in self._names and agent not in self._away:
            raise ValueError(f"there is no agent {agent!r} in the graph")

    def decision_function(self, X: Any, agent: Name | None = None) -> NDArray[np.float64]:
        """Values of an agent's function, or without ``agent`` of the mean of all functions.

        (n,) for numbers and two classes, else (n, classes).
        """
        values = self._values(X, agent)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any, agent: Name | None = None) -> NDArray[Any]:
        """Predictions of an agent, or without ``agent`` of the mean of all functions (no vote)."""
        values = self._values(X, agent)
        if self.loss.for_regression:
            return values[:, 0]
        return POLKClassifier._labels(values, self.classes_)

    def errors(self, X: Any, y: Any) -> dict[Name, float]:
        """Every agent's share of mistakes, or mean squared error, on test samples."""
        y = np.asarray(y)
        errors = {}
        for name in self._names:
            predicted = self.predict(X, agent=name)
            if y.shape != predicted.shape:
                raise ValueError(f"y must have shape {predicted.shape}, got {y.shape}")
            wrong = (predicted - y) ** 2 if self.loss.for_regression else predicted != y
            errors[name] = float(wrong.mean())
        return errors

    def _values(self, X: Any, agent: Name | None) -> NDArray[np.float64]:
        self._check_started()
        if agent is not None:
            self._check_known(agent)
            if agent in self._away:
                return self._away[agent].predict(X)
            return self._engine.predict(agent, X)
        values = [self._engine.predict(name, X) for name in self._names]
        return np.mean(values, axis=0)

    @property
    def trace_(self) -> Any:
        """As a pandas data frame, a row per round (of a long run per 2, 4, 8 ... rounds).

        Means over agents and rounds: ``loss`` and ``error`` (share of mistakes or squared error)
        of the round's samples before they were learned, ``disagreement`` (mean of
        |f_i(x_i) - f_j(x_i)|^2 over neighbours j), ``violation`` (its positive part above the
        tolerance). Sums so far: ``samples``, ``messages``, ``bytes``. At the end of the row:
        ``average_violation`` (positive part of the mean over all rounds, per edge, then summed
        over edges: the left side of (21) over T), ``points`` and ``points NAME`` per agent,
        ``multiplier NAME NEIGHBOUR``, where names are written as in Python, texts in quotes.
        """
        return self._trace.frame()

    def trace_columns(self) -> dict[str, NDArray[np.float64]]:
        """The course of the rounds as plain arrays: ``trace_`` without pandas."""
        return self._trace.to_columns()
