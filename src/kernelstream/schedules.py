"""Step sizes eta_t and compression errors eps_t that follow them, as small values.

POLK's Table 1 pairs them: a constant step with eps = K eta^(3/2) keeps the model order
finite; a diminishing step with eps = eta^2 converges exactly while the order grows.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelstream.core import schedule as core

#: Steps that a file holds.
MOST_STEPS = 100_000

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
class Steps:
    """Step sizes given one by one, for ``learning_rate``.

    Parameters
    ----------
    given : array of numbers above 0, or function
        The steps eta_0, eta_1, ...; the last one stays. A function turns an array of step
        numbers, from 0 on, into an array of steps; it is called for many at once, and in
        whatever blocks the stream comes: it must depend on the numbers alone. Files hold arrays
        of up to 100,000 steps, and no function.

    Examples
    --------
    >>> from kernelstream import POLKRegressor, Steps
    >>> Steps([0.5, 0.25]).between(0, 4).tolist()
    [0.5, 0.25, 0.25, 0.25]
    >>> model = POLKRegressor(learning_rate=Steps(lambda t: 0.5 / (1.0 + 0.01 * t) ** 0.75))
    """

    given: Any

    #: The branch of the compiled schedule.
    code: ClassVar[int] = core.GIVEN

    def __post_init__(self) -> None:
        if not callable(self.given):
            steps = np.asarray(self.given)
            if steps.ndim != 1 or steps.dtype.kind not in "iuf" or not len(steps):
                raise ValueError(
                    "Steps takes a 1-D array of at least one number, or a function of an array of "
                    f"step numbers; got {self.given!r:.80}"
                )
            object.__setattr__(self, "given", tuple(steps.astype(np.float64).tolist()))
            self._check(steps, 0)

    def between(self, first: int, count: int) -> NDArray[np.float64]:
        """The steps ``first`` to ``first + count - 1``."""
        numbers = np.arange(first, first + count)
        if not callable(self.given):
            return np.array(self.given)[np.minimum(numbers, len(self.given) - 1)]
        steps = np.asarray(self.given(numbers), dtype=np.float64)
        if steps.shape != numbers.shape:
            raise ValueError(
                f"the function in Steps must turn {count} step numbers into as many steps, it "
                f"returned the shape {steps.shape}"
            )
        self._check(steps, first)
        return steps

    @staticmethod
    def _check(steps: NDArray[Any], first: int) -> None:
        bad = np.flatnonzero(~((steps > 0.0) & (steps < np.inf)))
        if len(bad):
            raise ValueError(f"step {first + bad[0]} is {steps[bad[0]]}: steps are numbers above 0")

    def to_config(self) -> list[float]:
        """The steps as plain data; ``ValueError`` where they are a function, or too many."""
        if callable(self.given) or len(self.given) > MOST_STEPS:
            what = "a function" if callable(self.given) else f"{len(self.given)} steps"
            raise ValueError(
                f"a file cannot hold {what} of learning_rate=Steps(...): give an array of at most "
                f"{MOST_STEPS} steps, such as Steps(steps.between(0, {MOST_STEPS})), first"
            )
        return list(self.given)


@dataclass(frozen=True)
class Parsimony:
    """A compression error that follows the step size: eps = factor * eta^power.

    Parameters
    ----------
    factor : float
        Not negative. Larger: fewer points.
    power : {1.5, 2}, default=1.5
        1.5 for constant steps, 2 for diminishing ones.

    Examples
    --------
    >>> from kernelstream import POLKRegressor, Parsimony
    >>> Parsimony(0.04)(0.25)
    0.005
    >>> model = POLKRegressor(learning_rate="inverse_sqrt", compression_error=Parsimony(1.0, 2))
    """

    factor: float
    power: float = 1.5

    #: How the command line takes it; the power may follow, after another colon.
    typed: ClassVar[str] = "parsimony:FACTOR (times the step size to the power 1.5)"

    def __post_init__(self) -> None:
        if not isinstance(self.factor, Real) or not 0.0 <= self.factor < math.inf:
            raise ValueError(f"the factor of Parsimony must be a number >= 0, got {self.factor!r}")
        if self.power not in (1.5, 2):
            raise ValueError(f"the power of Parsimony must be 1.5 or 2, got {self.power!r}")

    @classmethod
    def from_text(cls, text: str) -> Parsimony | None:
        """What the command line was given; None where it is something else.

        >>> Parsimony.from_text("parsimony:0.04"), Parsimony.from_text("parsimony:1:2")
        (Parsimony(factor=0.04, power=1.5), Parsimony(factor=1.0, power=2.0))
        """
        found = re.fullmatch(r"parsimony:([0-9.e+-]+)(?::(1\.5|2))?", text.strip().lower())
        try:
            return found and cls(float(found[1]), float(found[2] or 1.5))
        except ValueError:
            return None

    @property
    def code(self) -> int:
        """The branch of the compiled schedule."""
        return core.SQUARE if self.power == 2 else core.THREE_HALVES

    def __call__(self, eta: float) -> float:
        """The error that a step of size ``eta`` may make."""
        return float(core.error_budget(self.code, self.factor, eta))
