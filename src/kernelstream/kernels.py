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
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.core import kernel as core
from kernelstream.core.kernel import Rows
from kernelstream.rows import as_finite_rows, count_rows

#: Sums, products and scalings nested deeper than this are refused (a hostile file, a loop).
DEEPEST = 64

_Instruction = tuple[int, tuple[float, float, float]]


class Kernel:
    """A positive semi-definite function k(x, x').

    Kernels combine: ``a + b``, ``a * b`` and ``2.0 * a`` are kernels again.
    """

    #: k(x, x') depends on the distance alone and k(x, x) = 1.
    isotropic: ClassVar[bool] = False

    def _instructions(self) -> list[_Instruction]:
        raise NotImplementedError

    @cached_property
    def program(self) -> core.Program:
        """The kernel as the compiled loops read it."""
        instructions = self._instructions()
        codes = np.array([code for code, _ in instructions], dtype=np.int64)
        numbers = np.array([number for _, number in instructions], dtype=np.float64)
        depth = deepest = 0
        for code in codes:
            depth += -1 if code in (core.ADD, core.MULTIPLY) else code != core.SCALE
            deepest = max(deepest, int(depth))
        return core.Program(
            codes,
            numbers,
            needs_dots=bool(np.isin(codes, [core.POLYNOMIAL, core.LINEAR]).any()),
            needs_squares=bool(np.isin(codes, [core.GAUSSIAN, core.MATERN32, core.MATERN52]).any()),
            needs_l1=bool((codes == core.LAPLACIAN).any()),
            depth=deepest,
        )

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The matrix k(x_i, y_j); Y defaults to X."""
        rows = as_finite_rows(X)
        other = as_finite_rows(X if Y is None else Y)
        dense = np.zeros((0, 0)) if other.sparse else other.dense
        if other.sparse:
            from scipy.sparse import csr_array

            shape = (count_rows(other), rows.dense.shape[1])
            dense = csr_array((other.data, other.indices, other.indptr), shape=shape).toarray()
        if dense.shape[1] != rows.dense.shape[1]:
            raise ValueError(f"X has {rows.dense.shape[1]} features, but Y has {dense.shape[1]}")
        points = dense.T.copy(order="C")
        squares, absolutes = (dense**2).sum(axis=1), np.abs(dense).sum(axis=1)
        return kernel_matrix(self, rows, points, squares, absolutes, len(dense))

    def diagonal(self, X: ArrayLike) -> NDArray[np.float64]:
        """The values k(x_i, x_i)."""
        rows = as_finite_rows(X)
        norms = np.empty((count_rows(rows), 2))
        core.kernel_rows(
            self.program, rows, 0, len(norms), np.empty((rows.dense.shape[1], 0)), np.empty(0),
            np.empty(0), 0, np.empty((len(norms), 0)), norms,
        )  # fmt: skip
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
    isotropic = True
    _code: ClassVar[int]

    def __post_init__(self) -> None:
        _positive(self, "gamma")

    def _instructions(self) -> list[_Instruction]:
        return [(self._code, (float(self.gamma), 0.0, 0.0))]


@dataclass(frozen=True)
class Gaussian(_Radial):
    """``exp(-gamma |x - x'|^2)``. The papers also write gamma = 1 / (2 c^2), c the bandwidth."""

    _code = core.GAUSSIAN


@dataclass(frozen=True)
class Laplacian(_Radial):
    """``exp(-gamma |x - x'|_1)``, with the l1 distance as in scikit-learn."""

    _code = core.LAPLACIAN


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
        return [(core.POLYNOMIAL, (float(self.gamma), float(self.coef0), float(self.degree)))]


@dataclass(frozen=True)
class Linear(Kernel):
    """x.x'"""

    def _instructions(self) -> list[_Instruction]:
        return [(core.LINEAR, (0.0, 0.0, 0.0))]


@dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    first: Kernel
    second: Kernel
    _code: ClassVar[int]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.first!r}, {self.second!r})"

    def _instructions(self) -> list[_Instruction]:
        both = [*self.first._instructions(), *self.second._instructions()]
        return [*both, (self._code, (0.0, 0.0, 0.0))]


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
        return [*self.kernel._instructions(), (core.SCALE, (float(self.factor), 0.0, 0.0))]


def kernel_matrix(
    kernel: Kernel,
    rows: core.Rows,
    points: NDArray[np.float64],
    square_norms: NDArray[np.float64],
    absolute_norms: NDArray[np.float64],
    n: int,
) -> NDArray[np.float64]:
    """Kernel values of all samples with the first ``n`` columns of ``points``."""
    samples = count_rows(rows)
    out = np.empty((samples, n))
    core.kernel_rows(
        kernel.program, rows, 0, samples, points, square_norms, absolute_norms, n, out,
        np.empty((samples, 2)),
    )  # fmt: skip
    return out


#: What an estimator's ``kernel=`` may name.
KERNEL_NAMES: dict[str, Callable[[float, int, float], Kernel]] = {
    "rbf": lambda gamma, degree, coef0: Gaussian(gamma),
    "gaussian": lambda gamma, degree, coef0: Gaussian(gamma),
    "laplacian": lambda gamma, degree, coef0: Laplacian(gamma),
    "matern32": lambda gamma, degree, coef0: Matern32(gamma),
    "matern52": lambda gamma, degree, coef0: Matern52(gamma),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, gamma, coef0),
    "polynomial": lambda gamma, degree, coef0: Polynomial(degree, gamma, coef0),
    "linear": lambda gamma, degree, coef0: Linear(),
}

_CLASSES: dict[str, type[Kernel]] = {
    cls.__name__: cls
    for cls in (
        Gaussian, Laplacian, Matern32, Matern52, Polynomial, Linear, Sum, Product, Scaled,
    )
}  # fmt: skip


def make_kernel(kernel: str | Kernel, gamma: float, degree: int, coef0: float) -> Kernel:
    """The kernel that an estimator's parameters describe."""
    if isinstance(kernel, Kernel):
        return kernel
    return KERNEL_NAMES[kernel](float(gamma), int(degree), float(coef0))


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
