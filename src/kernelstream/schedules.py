"""Step sizes eta_t and error budgets eps_t as small values.

POLK's Table 1 pairs them: a constant step with eps = K eta^(3/2) keeps the model order
finite; a diminishing step with eps = eta^2 converges exactly while the order grows.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelstream.core import schedule as core

STEP_NAMES = {
    "constant": core.CONSTANT,
    "inverse_time": core.INVERSE_TIME,
    "inverse_sqrt": core.INVERSE_SQRT,
}


@dataclass(frozen=True)
class StepSize:
    """eta_t for t = 0, 1, 2, ...

    Parameters
    ----------
    name : {"constant", "inverse_time", "inverse_sqrt"}
        eta0, eta0 / (1 + decay t) or eta0 / sqrt(1 + decay t).
    eta0 : float
    decay : float

    Examples
    --------
    >>> [StepSize("inverse_time", 0.5, decay=1.0)(t) for t in range(3)]
    [0.5, 0.25, 0.16666666666666666]
    """

    name: str
    eta0: float
    decay: float = 0.0

    @property
    def code(self) -> int:
        """The branch of the compiled schedule."""
        return STEP_NAMES[self.name]

    def __call__(self, t: int) -> float:
        """The step size of step ``t``."""
        return float(core.step_size(self.code, self.eta0, self.decay, t))


@dataclass(frozen=True)
class ErrorBudget:
    """eps_t, the Hilbert norm error that one step may make.

    Parameters
    ----------
    name : {"fixed", "three_halves", "square"}
        eps = number, eps = number eta^(3/2) or eps = number eta^2.
    number : float

    Examples
    --------
    >>> ErrorBudget("three_halves", 0.04)(0.25)
    0.005
    """

    name: str
    number: float

    @property
    def code(self) -> int:
        """The branch of the compiled budget."""
        names = {"fixed": core.FIXED, "three_halves": core.THREE_HALVES, "square": core.SQUARE}
        return names[self.name]

    def __call__(self, eta: float) -> float:
        """The budget of a step of size ``eta``."""
        return float(core.error_budget(self.code, self.number, eta))
