"""Kernels as small values: named, printed, added, multiplied, scaled, saved.

>>> import numpy as np
>>> kernel = 0.5 * Gaussian(gamma=1.0) + Linear()
>>> kernel
Sum(Scaled(Gaussian(gamma=1.0), 0.5), Linear())
>>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]])).round(4)
array([[0.5   , 0.1839]])
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.core import kernel as core
from kernelstream.core.kernel import Rows
from kernelstream.rows import as_finite_rows, count_rows, dense_matrix

#: Sums, products and scalings nested deeper than this are refused (a hostile file, a loop).
DEEPEST = 64

#: Kernels by the name of their class, which their configuration has.
_CLASSES: dict[str, type[Kernel]] = {}


class _Instruction(NamedTuple):
    code: int  # of the compiled branch
    numbers: tuple[float, float, float] = (0.0, 0.0, 0.0)
    needs: str = ""  # what the branch looks at: x.x' "dots", |x - x'|^2 "squares", |x - x'|_1 "l1"
    pushes: int = 1  # by how many values the stack grows


class Kernel:
    """A positive semi-definite function k(x, x').

    Kernels combine: ``a + b``, ``a * b`` and ``2.0 * a`` are kernels again.
    """

    #: k(x, x) = 1 for every x.
    unit: ClassVar[bool] = False
    #: k(x, x') depends on the Euclidean distance alone.
    isotropic: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not cls.__name__.startswith("_"):
            _CLASSES[cls.__name__] = cls

    def _instructions(self) -> list[_Instruction]:
        raise NotImplementedError

    @cached_property
    def program(self) -> core.Program:
        """The kernel as the compiled loops read it."""
        codes, numbers, needs, pushes = zip(*self._instructions(), strict=True)
        return core.Program(
            np.array(codes, dtype=np.int64),
            np.array(numbers, dtype=np.float64),
            needs_dots="dots" in needs,
            needs_squares="squares" in needs,
            needs_l1="l1" in needs,
            depth=int(np.cumsum(pushes).max()),
        )

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The matrix k(x_i, y_j); Y defaults to X."""
        rows = as_finite_rows(X)
        points = dense_matrix(as_finite_rows(X if Y is None else Y))
        if points.shape[1] != rows.dense.shape[1]:
            raise ValueError(f"X has {rows.dense.shape[1]} features, but Y has {points.shape[1]}")
        return kernel_matrix(self, rows, Points.of(points))

    def diagonal(self, X: ArrayLike) -> NDArray[np.float64]:
        """The values k(x_i, x_i)."""
        rows = as_finite_rows(X)
        norms = np.empty((count_rows(rows), 2))
        kernel_matrix(self, rows, Points.of(np.empty((0, rows.dense.shape[1]))), norms)
        return np.array([core.self_value(self.program, square) for square in norms[:, 0]])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "program"}

    def to_config(self) -> dict[str, Any]:
        """Plain data that :func:`kernel_from_config` turns back into this kernel."""
        config: dict[str, Any] = {"name": type(self).__name__}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            config[field.name] = value.to_config() if isinstance(value, Kernel) else value
        return config

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def _positive(owner: object, name: str, zero: bool = False) -> None:
    """Check a number and keep it as a plain float."""
    value = getattr(owner, name)
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        wanted = "a finite number >= 0" if zero else "a finite number > 0"
        raise ValueError(f"{type(owner).__name__}: {name} must be {wanted}, got {value!r}")
    object.__setattr__(owner, name, float(value))


@dataclass(frozen=True)
class _Radial(Kernel):
    gamma: float
    unit = isotropic = True
    _code: ClassVar[int]
    _needs: ClassVar[str] = "squares"

    def __post_init__(self) -> None:
        _positive(self, "gamma")

    def _instructions(self) -> list[_Instruction]:
        return [_Instruction(self._code, (self.gamma, 0.0, 0.0), self._needs)]


@dataclass(frozen=True)
class Gaussian(_Radial):
    """``exp(-gamma |x - x'|^2)``. The papers also write gamma = 1 / (2 c^2), c the bandwidth."""

    _code = core.GAUSSIAN


@dataclass(frozen=True)
class Laplacian(_Radial):
    """``exp(-gamma |x - x'|_1)``, with the l1 distance as in scikit-learn.

    Of the Euclidean distance: :class:`Matern12`.
    """

    isotropic = False
    _code = core.LAPLACIAN
    _needs = "l1"


@dataclass(frozen=True)
class Matern12(_Radial):
    """``exp(-s), s = sqrt(2 gamma) |x - x'|``: the Laplacian of the Euclidean distance."""

    _code = core.MATERN12


@dataclass(frozen=True)
class Matern32(_Radial):
    """``(1 + s) exp(-s), s = sqrt(6 gamma) |x - x'|``: length scale 1 / sqrt(2 gamma)."""

    _code = core.MATERN32


@dataclass(frozen=True)
class Matern52(_Radial):
    """``(1 + s + s^2 / 3) exp(-s), s = sqrt(10 gamma) |x - x'|``: same length scale as Matern32."""

    _code = core.MATERN52


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x.x' + coef0)^degree."""

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, "gamma")
        _positive(self, "coef0", zero=True)
        whole = isinstance(self.degree, Integral) and not isinstance(self.degree, bool)
        if not whole or not 1 <= self.degree <= 64:
            raise ValueError(
                f"Polynomial: degree must be a whole number from 1 to 64, got {self.degree!r}"
            )
        object.__setattr__(self, "degree", int(self.degree))

    def _instructions(self) -> list[_Instruction]:
        return [_Instruction(core.POLYNOMIAL, (self.gamma, self.coef0, self.degree), "dots")]


@dataclass(frozen=True)
class Linear(Kernel):
    """x.x'"""

    def _instructions(self) -> list[_Instruction]:
        return [_Instruction(core.LINEAR, needs="dots")]


@dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    first: Kernel
    second: Kernel
    _code: ClassVar[int]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.first!r}, {self.second!r})"

    def _instructions(self) -> list[_Instruction]:
        both = [*self.first._instructions(), *self.second._instructions()]
        return [*both, _Instruction(self._code, pushes=-1)]


@dataclass(frozen=True, repr=False)
class Sum(_Pair):
    """k(x, x') = first(x, x') + second(x, x')."""

    _code = core.ADD


@dataclass(frozen=True, repr=False)
class Product(_Pair):
    """k(x, x') = first(x, x') second(x, x')."""

    _code = core.MULTIPLY


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """k(x, x') = factor kernel(x, x'), factor > 0."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        _positive(self, "factor")

    def __repr__(self) -> str:
        return f"Scaled({self.kernel!r}, {self.factor!r})"

    def _instructions(self) -> list[_Instruction]:
        scale = _Instruction(core.SCALE, (self.factor, 0.0, 0.0), pushes=0)
        return [*self.kernel._instructions(), scale]


class Points(NamedTuple):
    """Stored points as the compiled loops read them; the state of a model has the same fields."""

    points: NDArray[np.float64]  # (p, at least order): feature-major
    square_norms: NDArray[np.float64]
    absolute_norms: NDArray[np.float64]
    order: int  # how many there are

    @classmethod
    def of(cls, matrix: NDArray[np.float64]) -> Points:
        """The rows of a matrix."""
        squares, absolutes = (matrix**2).sum(axis=1), np.abs(matrix).sum(axis=1)
        return cls(matrix.T.copy(order="C"), squares, absolutes, len(matrix))


def kernel_matrix(
    kernel: Kernel, rows: Rows, stored: Any, norms: Any = None
) -> NDArray[np.float64]:
    """(n, order): kernel values of all samples with :class:`Points` or those of a state.

    ``norms``, (n, 2), receives the samples' squared norms and l1 norms.
    """
    samples = count_rows(rows)
    out = np.empty((samples, stored.order))
    norms = np.empty((samples, 2)) if norms is None else norms
    core.kernel_rows(
        kernel.program, rows, 0, samples, stored.points, stored.square_norms,
        stored.absolute_norms, stored.order, out, norms,
    )  # fmt: skip
    return out


#: What an estimator's ``kernel=`` may name.
KERNEL_NAMES: dict[str, type[Kernel]] = {
    "rbf": Gaussian,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "linear": Linear,
}


def make_kernel(kernel: str | Kernel, gamma: float, degree: int, coef0: float) -> Kernel:
    """The kernel that an estimator's parameters describe."""
    if isinstance(kernel, Kernel):
        return kernel
    kernel_class = KERNEL_NAMES[kernel]
    numbers = {"gamma": float(gamma), "degree": int(degree), "coef0": float(coef0)}
    own = [field.name for field in fields(kernel_class)]  # type: ignore[arg-type]
    return kernel_class(**{name: numbers[name] for name in own})


def first_gamma(gamma: float | str, *samples: Rows) -> float:
    """The number behind ``gamma``: "scale" and "auto" as scikit-learn means them.

    "scale" is 1 / (features * variance of all entries); the variance is taken about the mean, since
    a difference of squares would cancel far from the origin.
    """
    features = samples[0].dense.shape[1]
    if gamma == "auto":
        return 1.0 / features
    if gamma != "scale":
        return float(gamma)
    stored = [rows.data if rows.sparse else rows.dense for rows in samples]
    count = features * sum(count_rows(rows) for rows in samples)
    zeros = count - sum(values.size for values in stored)
    mean = sum(values.sum() for values in stored) / count
    squares = sum(((values - mean) ** 2).sum() for values in stored) + zeros * mean**2
    variance = float(squares / count)
    return 1.0 / (features * variance) if variance > 1e-100 else 1.0


def kernel_from_config(config: Any, depth: int = 0) -> Kernel:
    """The kernel behind :meth:`Kernel.to_config`; ``ValueError`` if it describes none."""
    if depth > DEEPEST:
        raise ValueError("the kernel is nested too deeply")
    if not isinstance(config, dict) or config.get("name") not in _CLASSES:
        raise ValueError(f"not a kernel: {config!r:.80}")
    values = {
        name: kernel_from_config(value, depth + 1) if isinstance(value, dict) else value
        for name, value in config.items()
        if name != "name"
    }
    kernel_class = _CLASSES[config["name"]]
    for name in ("first", "second", "kernel"):
        if name in values and not isinstance(values[name], Kernel):
            raise ValueError(f"{config['name']}: {name} is not a kernel")
    try:
        return kernel_class(**values)
    except TypeError as error:
        raise ValueError(f"{config['name']}: {error}") from None
