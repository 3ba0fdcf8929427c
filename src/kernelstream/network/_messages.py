"""What agents send one another, and their records of rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.kernel import Rows

Name = str | int


@dataclass(frozen=True)
class Lesson:
    """What an agent's function is at its own samples, and how strongly that ties the receiver.

    The strength is c, or 2 mu_ji: the multiplier that must be sent, as Koppel et al. (2020) say.
    """

    X: Any  # (n, p)
    values: NDArray[np.float64]  # (n, outputs)
    strength: float


@dataclass(frozen=True)
class Message:
    """What agents send one another.

    A request carries ``X``, (n, p). Its answer carries ``values`` (n, outputs), what the answering
    agent's function is there, and with ``two_way`` a lesson about the answering agent's samples.
    """

    sender: Name
    round: int
    X: Any = None
    receiver: Name | None = None
    values: Any = None
    lesson: Lesson | None = None


@dataclass
class RoundRecord:
    """An agent's record of a round; numbers from before it learned, None where there are none."""

    agent: Name
    round: int
    samples: int = 0
    loss: float | None = None  # mean over its samples
    error: float | None = None  # share of mistakes, or mean squared error
    differences: dict[Name, float] = field(default_factory=dict)  # mean |f_i - f_j|^2 at them
    violations: dict[Name, float] = field(default_factory=dict)  # difference - tolerance
    multipliers: dict[Name, float] = field(default_factory=dict)  # mu_ij after the round
    order: int = 0  # points after the round
    messages: int = 0  # requests it sent, and answers that came
    bytes: int = 0  # of the numbers in them

    @property
    def disagreement(self) -> float | None:
        """Mean of the differences over the neighbours that answered."""
        values = list(self.differences.values())
        return sum(values) / len(values) if values else None


def request_size(rows: Rows) -> int:
    """Bytes of a request's samples: dense numbers, or the three arrays of a CSR matrix."""
    if rows.sparse:
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    return int(rows.dense.nbytes)


def answer_size(answer: Message) -> int:
    """Bytes of an answer. A lesson's samples were counted when they were sent as a request."""
    lesson = 0 if answer.lesson is None else answer.lesson.values.nbytes + 8
    return int(answer.values.nbytes) + lesson
