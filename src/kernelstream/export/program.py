"""What a frozen model computes for a row, as a list of steps that every writer understands.

A row is a few typed inputs; every step makes a vector of numbers from earlier ones and constants.
There are few kinds of steps, so that a writer is a table with a line or two for each:

=====================  ===========================================================================
step                   its vector
=====================  ===========================================================================
``read``               numbers of an input; NaN: missing
``days``, ``gap``      of a date: days since 1970, NaN if missing; 1 if missing, else 0
``circles``            of a date: sine and cosine of its time of day, weekday and day of the year
``texts``              how many of the texts belong to each place
``concat``, ``pick``   vectors after one another; some numbers of a vector
``+ - * /``            number by number; a vector of one number goes with every other
``minimum, maximum``   likewise
``greater``            1 where the first is greater than the second, else 0
``where``              numbers of the second vector where the first is not 0, else of the third
``isnan, exp, log,``   of each number
``sqrt, abs``
``product``            x M, where M is a constant matrix
``squares``            squared distances of x to each row of a constant matrix
``distances``          sums of absolute differences instead
``sum``, ``largest``   of the vector
``argmax``             the place of the largest number, the first of equal ones
=====================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Input:
    """Something that is given for each row."""

    name: str
    kind: str  # "number", "text" or "date"
    width: int | None = None  # of many numbers without names; None: one value

    @property
    def count(self) -> int:
        """Numbers that it holds."""
        return self.width or 1


@dataclass(frozen=True)
class TextTable:
    """Which place each text of a column has.

    Texts in ``own`` have the place given there. All others share places from ``room`` on: the
    remainder of the 32-bit MurmurHash3 of "column=text", seed 0, by ``shared``. Where that has
    more than ``longest`` characters, it is shortened first; 0: never. Where ``shared`` is 0 they
    have no place.
    """

    input: Input
    own: dict[str, int]
    missing: int  # the place of a missing text
    room: int
    shared: int
    longest: int


@dataclass(frozen=True, eq=False)
class Vector:
    """Some numbers of a row: a constant, or the result of a step."""

    program: Program = field(repr=False)
    width: int
    step: str  # of the table above, or "constant"
    operands: tuple[Vector, ...] = ()
    detail: Any = None  # an input, tables of texts, places to pick, or the constant's array

    def __add__(self, other: Vector | ArrayLike) -> Vector:
        return self._with("+", other)

    def __sub__(self, other: Vector | ArrayLike) -> Vector:
        return self._with("-", other)

    def __mul__(self, other: Vector | ArrayLike) -> Vector:
        if self.step == "product" and not isinstance(other, Vector) and np.size(other) == 1:
            # onnxruntime would make one operator of both, with the factor in float32.
            x, matrix = self.operands
            return x.product(matrix.detail * np.asarray(other, dtype=np.float64))
        return self._with("*", other)

    def __truediv__(self, other: Vector | ArrayLike) -> Vector:
        return self._with("/", other)

    def __gt__(self, other: Vector | ArrayLike) -> Vector:
        return self._with("greater", other)

    def minimum(self, other: Vector | ArrayLike) -> Vector:
        return self._with("minimum", other)

    def maximum(self, other: Vector | ArrayLike) -> Vector:
        return self._with("maximum", other)

    def where(self, yes: Vector | ArrayLike, no: Vector | ArrayLike) -> Vector:
        """``yes`` where these numbers are not 0, else ``no``."""
        chosen, other = self.program.vector(yes), self.program.vector(no)
        width = max(self.width, chosen.width, other.width)
        return self.program.add("where", width, (self, chosen, other))

    def isnan(self) -> Vector:
        return self._alone("isnan")

    def exp(self) -> Vector:
        return self._alone("exp")

    def log(self) -> Vector:
        return self._alone("log")

    def sqrt(self) -> Vector:
        return self._alone("sqrt")

    def abs(self) -> Vector:
        return self._alone("abs")

    def product(self, matrix: ArrayLike) -> Vector:
        """This vector times a constant matrix."""
        held = self.program.vector(matrix)
        return self.program.add("product", held.width, (self, held))

    def dot(self, weights: ArrayLike) -> Vector:
        """One number: the inner product with constant weights."""
        return self.product(np.reshape(weights, (-1, 1)))

    def squares(self, points: NDArray[np.float64]) -> Vector:
        return self.program.add("squares", len(points), (self, self.program.vector(points)))

    def distances(self, points: NDArray[np.float64]) -> Vector:
        return self.program.add("distances", len(points), (self, self.program.vector(points)))

    def sum(self) -> Vector:
        return self.program.add("sum", 1, (self,))

    def largest(self) -> Vector:
        return self.program.add("largest", 1, (self,))

    def argmax(self) -> Vector:
        return self.program.add("argmax", 1, (self,))

    def pick(self, places: Sequence[int]) -> Vector:
        return self.program.add("pick", len(places), (self,), list(places))

    def softmax(self) -> Vector:
        """Probabilities in proportion to the exponentials."""
        powers = (self - self.largest()).exp()
        return powers / powers.sum()

    def _alone(self, step: str) -> Vector:
        return self.program.add(step, self.width, (self,))

    def _with(self, step: str, other: Vector | ArrayLike) -> Vector:
        operand = self.program.vector(other)
        return self.program.add(step, max(self.width, operand.width), (self, operand))


class Program:
    """The steps of a model, in an order in which they can be computed.

    Attributes
    ----------
    inputs : list of Input
    steps : list of Vector
    values : Vector
        The prediction of a number; of classes their probabilities.
    place : Vector or None
        The place of the predicted class among ``labels``.
    labels : array or None
    target : str
    """

    def __init__(self, target: str = "target") -> None:
        self.target = target
        self.inputs: list[Input] = []
        self.steps: list[Vector] = []
        self.place: Vector | None = None
        self.labels: NDArray[Any] | None = None
        self.values: Vector

    def add(
        self, step: str, width: int, operands: tuple[Vector, ...] = (), detail: Any = None
    ) -> Vector:
        """One more step."""
        result = Vector(self, width, step, operands, detail)
        self.steps.append(result)
        return result

    def vector(self, numbers: Vector | ArrayLike) -> Vector:
        """A vector as it is; anything else as a constant."""
        if isinstance(numbers, Vector):
            return numbers
        array = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
        return Vector(self, array.shape[-1], "constant", (), array)

    def concat(self, *vectors: Vector) -> Vector:
        """Vectors after one another, without empty ones."""
        kept = tuple(vector for vector in vectors if vector.width)
        if len(kept) == 1:
            return kept[0]
        return self.add("concat", sum(vector.width for vector in kept), kept)

    def total(self, vectors: Sequence[Vector]) -> Vector:
        """Their sum, number by number."""
        result = vectors[0]
        for vector in vectors[1:]:
            result = result + vector
        return result

    def needed(self) -> list[Vector]:
        """The steps that the outputs depend on, in order."""
        wanted: set[int] = set()
        waiting = [self.values, *([self.place] if self.place is not None else [])]
        while waiting:
            vector = waiting.pop()
            if id(vector) not in wanted:
                wanted.add(id(vector))
                waiting.extend(vector.operands)
        return [step for step in self.steps if id(step) in wanted]
