"""A function in the RKHS as a value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream import storage
from kernelstream.compression import komp
from kernelstream.core.blas import BLAS_FROM
from kernelstream.core.kernel import Rows
from kernelstream.core.threads import one_thread
from kernelstream.kernels import Kernel, Points, kernel_from_config, kernel_matrix
from kernelstream.limits import LARGEST_ENTRY
from kernelstream.rows import as_finite_rows, count_rows, slice_rows

#: Kernel values computed at once when a function is evaluated: 1 MiB, to stay in cache.
_BLOCK = 1 << 17


class KernelExpansion:
    """f(x) = sum_j weights_j k(points_j, x), one column of weights per output.

    Immutable: every operation returns a new function.

    Parameters
    ----------
    kernel : Kernel
    points : (M, p) array
        The dictionary.
    weights : (M,) or (M, C) array
        One output, or C of them. A 1-D ``weights`` makes a function with 1-D values.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.kernels import Gaussian
    >>> f = KernelExpansion(Gaussian(1.0), [[0.0], [0.1], [2.0]], [1.0, 1.0, -1.0])
    >>> f([[0.0]]).round(3)
    array([1.972])
    >>> g = f.compress(max_points=2)
    >>> len(g), round(f.distance(g), 3)
    (2, 0.14)
    >>> len(f.compress(error=0.2)), len(f.compress(error=0.1))
    (2, 3)
    """

    def __init__(self, kernel: Kernel, points: ArrayLike, weights: ArrayLike) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel such as Gaussian(1.0), got {kernel!r}")
        if np.iscomplexobj(points) or np.iscomplexobj(weights):
            raise ValueError("points and weights must be real")
        self.kernel = kernel
        self.points = np.array(points, dtype=np.float64)
        self.weights = np.array(weights, dtype=np.float64)
        if self.points.ndim != 2 or self.weights.ndim not in (1, 2):
            raise ValueError(
                "points must have shape (M, p) and weights (M,) or (M, C), got "
                f"{self.points.shape} and {self.weights.shape}"
            )
        if len(self.points) != len(self.weights):
            raise ValueError(f"{len(self.points)} points but {len(self.weights)} weights")
        if not (np.isfinite(self.points).all() and np.isfinite(self.weights).all()):
            raise ValueError("points and weights must be finite")
        self.points.flags.writeable = False
        self.weights.flags.writeable = False

    @property
    def _columns(self) -> NDArray[np.float64]:
        """The weights as (M, C), also for one output."""
        return self.weights[:, None] if self.weights.ndim == 1 else self.weights

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        outputs = "" if self.weights.ndim == 1 else f", {self.weights.shape[1]} outputs"
        return (
            f"KernelExpansion({self.kernel!r}, {len(self)} points in "
            f"{self.points.shape[1]} dimensions{outputs})"
        )

    @property
    def nbytes(self) -> int:
        """Bytes held by points and weights."""
        return self.points.nbytes + self.weights.nbytes

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """The values at the rows of X (dense or sparse)."""
        rows = as_finite_rows(X)
        if rows.dense.shape[1] != self.points.shape[1]:
            raise ValueError(f"X must have {self.points.shape[1]} columns, got shape {np.shape(X)}")
        return expand(self.kernel, rows, Points.of(self.points), self.weights)

    def __add__(self, other: KernelExpansion) -> KernelExpansion:
        if not isinstance(other, KernelExpansion):
            return NotImplemented
        self._check_like(other)
        return KernelExpansion(
            self.kernel,
            np.concatenate([self.points, other.points]),
            np.concatenate([self.weights, other.weights]),
        )

    def __mul__(self, factor: float) -> KernelExpansion:
        if not isinstance(factor, int | float | np.number):
            return NotImplemented
        return KernelExpansion(self.kernel, self.points, self.weights * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> KernelExpansion:
        if not isinstance(divisor, int | float | np.number):
            return NotImplemented
        return self * (1.0 / float(divisor))

    def __neg__(self) -> KernelExpansion:
        return self * -1.0

    def __sub__(self, other: KernelExpansion) -> KernelExpansion:
        return self + (-other) if isinstance(other, KernelExpansion) else NotImplemented

    def inner(self, other: KernelExpansion) -> float:
        """The inner product <f, g> in the RKHS, summed over outputs."""
        self._check_like(other)
        gram = self.kernel(self.points, other.points)
        return float(np.sum((self._columns.T @ gram) * other._columns.T))

    def norm(self) -> float:
        """The norm of f in the RKHS."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def distance(self, other: KernelExpansion) -> float:
        """The norm of f - g in the RKHS."""
        return (self - other).norm()

    def compress(
        self, error: float | None = None, max_points: int | None = None
    ) -> KernelExpansion:
        """The same function with fewer points (KOMP).

        Parameters
        ----------
        error : float, optional
            The distance in the RKHS that may be lost. Without it only points that the others
            span to eight digits are merged (at most 1e-4 of a weight is lost with each),
            unless ``max_points`` forces more.
        max_points : int, optional
            At most this many points remain, whatever is lost: see :meth:`distance`.
        """
        check_error(error)
        if max_points is not None and not (isinstance(max_points, Integral) and max_points >= 0):
            raise ValueError(f"max_points must be a whole number >= 0, got {max_points!r}")
        most = len(self) if max_points is None else int(max_points)
        weights = np.ascontiguousarray(self._columns)
        if weights.shape[1] == 0:
            return KernelExpansion(self.kernel, self.points[:0], self.weights[:0])
        state = komp.compressed_state(self.kernel, self.points, weights, error or 0.0, most)
        n = state.order
        points, weights = state.points[:, :n].T.copy(), state.weights[:, :n].T.copy()
        return KernelExpansion(self.kernel, points, weights.reshape(n, *self.weights.shape[1:]))

    @staticmethod
    def merge(
        functions: Sequence[KernelExpansion],
        weights: Sequence[float] | None = None,
        error: float | None = None,
        max_points: int | None = None,
    ) -> KernelExpansion:
        """The weighted mean of several functions, compressed.

        Parameters
        ----------
        functions : sequence of KernelExpansion
            All with the same kernel, features and outputs.
        weights : sequence of float, optional
            Not negative; equal by default. They are divided by their sum.
        error, max_points
            As in :meth:`compress`.
        """
        functions = list(functions)
        if not functions:
            raise ValueError("merge needs at least one function")
        for function in functions:
            if not isinstance(function, KernelExpansion):
                raise TypeError(
                    f"merge takes KernelExpansions, got {type(function).__name__}; of a model "
                    "pass model.expansion_"
                )
        shares = checked_shares(weights, np.ones(len(functions)))
        total = functions[0] * (shares[0] / shares.sum())
        for function, share in zip(functions[1:], shares[1:], strict=True):
            total = total + function * (share / shares.sum())
        return total.compress(error, max_points)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the function to a file: plain data, checksummed, replaced atomically."""
        header = {"kernel": self.kernel.to_config()}
        arrays = {"points": self.points, "weights": self.weights}
        storage.write(path, "KernelExpansion", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KernelExpansion:
        """Read a function written by :meth:`save`."""
        document = storage.read(path)
        if document.kind != "KernelExpansion":
            raise storage.ModelFileError(
                f"{os.fspath(path)} holds a {document.kind}, not a KernelExpansion"
            )
        with storage.believing(path, document):
            return cls._from_document(document)

    @classmethod
    def _from_document(cls, document: storage.Document) -> KernelExpansion:
        kernel = kernel_from_config(document.header["kernel"])
        points, weights = document.arrays["points"], document.arrays["weights"]
        if np.abs(points).max(initial=0.0) > 1e3 * LARGEST_ENTRY:  # as of a model: see its files
            raise ValueError("the points are too large")
        return cls(kernel, points, weights)

    def _check_like(self, other: KernelExpansion) -> None:
        if not isinstance(other, KernelExpansion):
            raise TypeError(f"expected another KernelExpansion, got {other!r}")
        if self.kernel != other.kernel:
            raise ValueError(
                f"the functions live in different spaces: {self.kernel!r} and {other.kernel!r}"
            )
        if self.points.shape[1] != other.points.shape[1]:
            raise ValueError(
                f"the functions take {self.points.shape[1]} and {other.points.shape[1]} features"
            )
        if self.weights.shape[1:] != other.weights.shape[1:]:
            raise ValueError(
                f"the functions have different outputs: weights of shape {self.weights.shape} "
                f"and {other.weights.shape}"
            )


def check_error(error: Any) -> None:
    """Refuse what is no distance that may be lost."""
    if error is not None and not (np.isfinite(error) and error >= 0.0):
        raise ValueError(f"error must be a finite number >= 0, got {error!r}")


def checked_shares(weights: Any, default: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of a mean, not negative and not all zero, one for each of the default ones."""
    shares = default if weights is None else np.asarray(weights, float)
    usable = shares.shape == default.shape and (np.isfinite(shares) & (shares >= 0.0)).all()
    if not usable or not shares.any():
        raise ValueError(
            f"weights must be {len(default)} numbers >= 0, not all zero; got {weights!r}"
        )
    return shares


def expand(
    kernel: Kernel, rows: Rows, stored: Any, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """sum_j weights_j k(points_j, x) for every sample, in blocks of bounded memory.

    ``stored`` are :class:`Points` or a state, ``weights`` theirs, (order, ...).
    """
    samples, n = count_rows(rows), stored.order
    out = np.empty((samples, *weights.shape[1:]))
    block = max(1, _BLOCK // max(n, 1))
    with one_thread(samples * n * (len(stored.points) + out[:1].size) >= BLAS_FROM):
        for first in range(0, samples, block):
            end = min(first + block, samples)
            out[first:end] = kernel_matrix(kernel, slice_rows(rows, first, end), stored) @ weights
    return out
