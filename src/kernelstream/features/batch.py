"""Kernel features of a data set that is there as a whole (Algorithm 1 of OK-FEB)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.core.kernel import Rows
from kernelstream.kernels import (
    Kernel,
    Points,
    first_gamma,
    kernel_from_config,
    kernel_matrix,
    make_kernel,
)
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._files import Saved, _plain, _unplain, restore_names
from kernelstream.models._stream import as_before_on_error, random_numbers
from kernelstream.parameters import Instance, Number, Parameters, RandomState, Whole, Words
from kernelstream.rows import copy_rows, count_rows, dense_matrix, plain_matrix, slice_rows

#: Kernel values computed at once where the whole matrix is not kept.
_BLOCK_VALUES = 4_000_000


class KernelFeatures(
    Parameters, Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator  # type: ignore[misc]
):  # fmt: skip
    """Features whose inner products approximate a kernel, learned from all samples at once.

    Every sample is projected, in the space of the kernel, on a subspace of ``n_components``
    dimensions that fits all of them best in the sense of regularised least squares. The result
    is close to kernel PCA without centering. For streams and for more samples than a kernel
    matrix can hold there is :class:`~kernelstream.features.OnlineKernelFeatures`.

    Notes
    -----
    The objective is (1 / 2n) sum |phi(x) - L q|^2 + (alpha / 2n) (|L|^2 + sum |q|^2), L = Phi A.
    Given A the coefficients are q = (A^T K A + alpha I)^-1 A^T k(x), given all of them in Q the
    factor is A = Q^T (Q Q^T + alpha I)^-1 [1]_. The features are z = (A^T K A)^(1/2) q: r numbers
    with z.z' = <L q, L q'>.

    References
    ----------
    .. [1] F. Sheikholeslami, D. Berberidis, G. B. Giannakis, "Large-scale kernel-based feature
       extraction via low-rank subspace tracking on a budget", IEEE Trans. Signal Processing
       66 (2018).

    Examples
    --------
    >>> from kernelstream.features import KernelFeatures
    >>> from kernelstream.streams import make_spheres
    >>> X, y = make_spheres(500, random_state=0)
    >>> features = KernelFeatures(7, gamma=0.01, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> Z.shape
    (500, 7)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).max() < 0.01)
    True
    """

    n_components: Annotated[
        int, Whole(1), "Dimensions of the subspace (r in the paper): features per sample."
    ] = field(default=10, kw_only=False)
    kernel: p.Kernel = "rbf"
    gamma: p.Gamma = "auto"
    degree: p.Degree = 3
    coef0: p.Coef0 = 1.0
    alpha: Annotated[
        float, Number(least=1e-100, most=1e100), "Regularisation (lambda in the paper)."
    ] = 1e-3
    max_iter: Annotated[
        int,
        Whole(1),
        "Most iterations, each an update of the coefficients (7) and of the factor (9).",
    ] = 50
    tol: Annotated[
        float,
        Number(least=0.0),
        "Stop when an iteration lowers the objective by less than this share of it.",
    ] = 1e-6
    init: Annotated[
        Any,
        Words("random"),
        Instance(Sequence, np.ndarray, words="an array", kind="(n_samples, n_components) array"),
        "The factor to begin with: normal random numbers, or given.",
    ] = "random"
    cache_size: Annotated[
        float,
        Number(least=0.0),
        "Megabytes for the kernel matrix.",
        """Where it does not fit, its values are computed again in every iteration, in blocks:
        slower, but of any number of samples.""",
    ] = 500
    random_state: Annotated[Any, RandomState(), 'For ``init="random"``.'] = None

    dictionary_: Annotated[
        NDArray[np.float64],
        "(n_samples, p): the samples: the subspace is spanned by their images.",
    ] = field(init=False)
    factor_: Annotated[NDArray[np.float64], "(n_samples, n_components): how (A in the paper)."] = (
        field(init=False)
    )
    objective_: Annotated[
        NDArray[np.float64],
        "(2 n,): the objective (3) after each update. It never increases (Proposition 1).",
    ] = field(init=False)
    n_iter_: Annotated[int, "Iterations made."] = field(init=False)
    kernel_: Annotated[Kernel, "The kernel with all its numbers."] = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- learning ---------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the subspace; ``y`` is not used."""
        self._check_values()
        rows = check.check_rows(self, X, new=True)
        kernel = make_kernel(self.kernel, first_gamma(self.gamma, rows), self.degree, self.coef0)
        check.check_kernel_range(kernel, rows)
        factor = self._first_factor(count_rows(rows))
        with as_before_on_error(self):
            check.note_features(self, X)
            self.kernel_ = kernel
            self.dictionary_ = dense_matrix(copy_rows(rows))
            self._alternate(rows, factor)
            self._prepare()
        return self

    def _first_factor(self, samples: int) -> NDArray[np.float64]:
        shape = samples, self.n_components
        if isinstance(self.init, str):
            return random_numbers(self.random_state).normal(size=shape)
        factor = np.array(self.init, dtype=np.float64)
        if factor.shape != shape or not np.isfinite(factor).all():
            raise ValueError(
                f"init must be 'random' or finite numbers of shape {shape} (samples, "
                f"n_components), got an array of shape {factor.shape}"
            )
        return factor

    def _alternate(self, rows: Rows, factor: NDArray[np.float64]) -> None:
        """Algorithm 1."""
        samples = count_rows(rows)
        trace = float(self.kernel_.diagonal(self.dictionary_).sum())
        kept = None
        if 8 * samples**2 <= 1e6 * self.cache_size:
            kept = np.vstack([values for _, values in self._kernel_blocks(rows)])
        identity = self.alpha * np.eye(self.n_components)

        def times_kernel(factor: NDArray[np.float64]) -> NDArray[np.float64]:
            return self._images(rows, factor) if kept is None else kept @ factor

        def objective(images: Any, gram: Any, coefficients: Any) -> float:
            """(3): sum |phi - L q|^2 = tr K - 2 tr(K A Q) + tr(Q^T A^T K A Q), with the rest."""
            fit = trace - 2.0 * float(np.sum(images * coefficients.T))
            fit += float(np.sum(coefficients * (gram @ coefficients)))
            size = float(np.trace(gram)) + float(np.sum(coefficients**2))
            return (fit + self.alpha * size) / (2.0 * samples)

        images = times_kernel(factor)  # K A
        history: list[float] = []
        for _ in range(self.max_iter):
            gram = factor.T @ images  # A^T K A
            coefficients = _solve(gram + identity, images.T)  # (7)
            history.append(objective(images, gram, coefficients))
            factor = _solve(coefficients @ coefficients.T + identity, coefficients).T  # (9)
            images = times_kernel(factor)
            history.append(objective(images, factor.T @ images, coefficients))
            if len(history) > 2 and history[-3] - history[-1] <= self.tol * history[-3]:
                break
        self.factor_ = np.ascontiguousarray(factor)
        self.objective_ = np.array(history)
        self.n_iter_ = len(history) // 2

    def _images(self, rows: Rows, factor: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, n_components): k(x)^T A of each sample."""
        return np.vstack([values @ factor for _, values in self._kernel_blocks(rows)])

    def _kernel_blocks(self, rows: Rows) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The kernel matrix of samples and dictionary, some rows of it at a time."""
        stored, samples = Points.of(self.dictionary_), count_rows(rows)
        size = max(1, _BLOCK_VALUES // stored.order)
        for first in range(0, samples, size):
            end = min(first + size, samples)
            block = slice_rows(rows, first, end)
            yield slice(first, end), kernel_matrix(self.kernel_, block, stored)

    def _prepare(self) -> None:
        """What turns kernel values into coefficients and features, from dictionary and factor."""
        samples = check.check_rows(self, self.dictionary_, new=True)
        gram = self.factor_.T @ self._images(samples, self.factor_)
        self._gram = (gram + gram.T) / 2.0
        # q^T = (k(x)^T A) inverse, in this order: where A^T K A is singular, A inverse is huge.
        self._inverse = _solve(self._gram + self.alpha * np.eye(len(gram)), np.eye(len(gram)))
        values, vectors = eigh(self._gram)
        self._root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    # ---- what was learned -------------------------------------------------------------

    @property
    def nbytes_(self) -> int:
        """Bytes held."""
        check_is_fitted(self, "factor_")
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    @property
    def _n_features_out(self) -> int:
        return int(self.factor_.shape[1])

    def transform(self, X: Any) -> NDArray[np.float64]:
        """(n, n_components): the features z = (A^T K A)^(1/2) q of each sample."""
        blocks = self._kernel_blocks(self._check(X))
        coefficients = [(values @ self.factor_) @ self._inverse for _, values in blocks]  # (11b)
        return np.vstack(coefficients) @ self._root

    def inverse_fit_error(self, X: Any) -> NDArray[np.float64]:
        """(n,): the squared distance |phi(x) - L q|^2 of each sample to its approximation."""
        rows = self._check(X)
        error = np.empty(count_rows(rows))
        whole = self.kernel_.diagonal(plain_matrix(rows))
        for place, values in self._kernel_blocks(rows):
            images = values @ self.factor_
            q = images @ self._inverse
            inner = np.sum(images * q, axis=1)  # <phi(x), L q>
            error[place] = whole[place] - 2.0 * inner + np.sum((q @ self._gram) * q, axis=1)
        return np.maximum(error, 0.0)

    def kernel_approximation(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """(n, m): the inner products of the features of X and Y (X itself if not given)."""
        features = self.transform(X)
        return features @ (features if Y is None else self.transform(Y)).T

    def _check(self, X: Any) -> Rows:
        check_is_fitted(self, "factor_")
        return check.check_samples(self, X)

    # ---- files ------------------------------------------------------------------------

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_is_fitted(self, "factor_")
        parameters = self.get_params()
        if not isinstance(parameters["init"], str):
            parameters["init"] = "random"  # what it led to is in the file
        header = {
            "version": __version__,
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "kernel": self.kernel_.to_config(),
            "names": list(getattr(self, "feature_names_in_", [])) or None,
        }
        arrays = {
            "dictionary": self.dictionary_,
            "factor": self.factor_,
            "objective": self.objective_,
        }
        return header, arrays

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        parameters = header["parameters"]
        model = cls(**{name: _unplain(value) for name, value in parameters.items()})
        model._check_values()
        model.kernel_ = kernel_from_config(header["kernel"])
        parts = [arrays[name] for name in ("dictionary", "factor", "objective")]
        dictionary, factor, objective = parts
        if [part.ndim for part in parts] != [2, 2, 1]:
            raise ValueError("the arrays do not have the shapes they should")
        if factor.shape != (len(dictionary), model.n_components) or not len(dictionary):
            raise ValueError("the factor contradicts the dictionary")
        if any(part.dtype != np.float64 for part in parts):
            raise ValueError("the arrays do not hold numbers of double precision")
        if not np.isfinite(factor).all():
            raise ValueError("the factor is not finite")
        restore_names(model, header["names"], dictionary.shape[1])
        check.check_kernel_range(model.kernel_, check.check_rows(model, dictionary, new=True))
        model.dictionary_, model.factor_, model.objective_ = dictionary, factor, objective
        model.n_iter_ = len(objective) // 2
        model._prepare()
        return model


def _solve(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """matrix^-1 right, for a symmetric positive definite matrix scaled to a unit diagonal.

    The scaling makes the Cholesky factor as well conditioned as a diagonal scaling can: the
    columns of A may differ by many powers of ten.
    """
    scale = 1.0 / np.sqrt(np.diag(matrix))
    scaled, right = scale[:, None] * matrix * scale[None, :], scale[:, None] * right
    try:
        inside = cho_solve(cho_factor(scaled, lower=True), right)
    except LinAlgError:  # more columns than directions, and alpha below rounding
        values, vectors = eigh(scaled)
        live = values > len(values) * np.finfo(np.float64).eps * values[-1]
        vectors = vectors[:, live]
        inside = vectors @ ((vectors.T @ right) / values[live, None])
    return scale[:, None] * inside
