"""Approximations of a kernel matrix by a small one: the rivals of kernel features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh, pinv
from sklearn.cluster import KMeans

from kernelstream.kernels import Kernel
from kernelstream.models._stream import random_numbers
from kernelstream.rows import as_finite_rows, dense_matrix

#: Eigenvalues below this part of the largest count as zero.
_SMALLEST = 1e-10
#: Singular values of MEKA's features below this count as zero: so does the authors' program.
_NOISE = 1e-3


class KernelApproximation(NamedTuple):
    """K is near ``factor core factor' + shift I``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.batch import KernelApproximation
    >>> KernelApproximation(np.array([[1.0], [2.0]]), np.array([[3.0]]), shift=0.5).matrix()
    array([[ 3.5,  6. ],
           [ 6. , 12.5]])
    """

    factor: NDArray[np.float64]  # (n, r)
    core: NDArray[np.float64]  # (r, r)
    shift: float = 0.0

    def matrix(self) -> NDArray[np.float64]:
        """(n, n): all of it."""
        n = len(self.factor)
        return self.factor @ self.core @ self.factor.T + self.shift * np.eye(n)  # type: ignore[no-any-return]


def improved_nystroem(
    kernel: Kernel, X: Any, points: int, *, random_state: Any = None
) -> KernelApproximation:
    """Nystroem with the centres of k-means for landmarks.

    K is near E W^+ E', E the kernel values of the samples with the centres and W those of the
    centres [1]_.

    References
    ----------
    .. [1] K. Zhang, I. Tsang, J. Kwok, "Improved Nystroem low-rank approximation and error
       analysis", ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.batch import improved_nystroem
    >>> from kernelstream.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = improved_nystroem(Gaussian(0.5), X, 40, random_state=0)
    >>> bool(abs(found.matrix() - Gaussian(0.5)(X)).max() < 0.05)
    True
    """
    rows = _checked(X, points)
    centres = _clusters(rows, points, random_state).cluster_centers_
    root = _inverse_root(kernel(centres))
    return KernelApproximation(kernel(rows, centres), root @ root.T)


def shifted_nystroem(
    kernel: Kernel, X: Any, points: int, *, random_state: Any = None
) -> KernelApproximation:
    """Modified Nystroem by spectral shifting (SS-Nystroem).

    Of all U and d the best for K near C U C' + d I in the Frobenius norm, C columns of K drawn at
    random: d = (tr K - tr C^+ K C) / (n - rank C) and U = C^+ K C^+' - d (C'C)^+ [1]_. The whole
    kernel matrix is needed. This is the form of [2]_ by the same authors without a shift before
    columns are taken; of [1]_ only the abstract was at hand.

    References
    ----------
    .. [1] S. Wang, C. Zhang, H. Qian, Z. Zhang, "Improving the modified Nystroem method using
       spectral shifting", KDD 2014.
    .. [2] S. Wang, L. Luo, Z. Zhang, "SPSD matrix approximation vis column selection: theories,
       algorithms, and extensions", JMLR 17 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.batch import shifted_nystroem
    >>> from kernelstream.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = shifted_nystroem(Gaussian(50.0), X, 40, random_state=0)
    >>> bool(found.shift > 0.5)  # the kernel matrix is not far from I
    True
    """
    rows = _checked(X, points)
    K = kernel(rows)
    C = K[:, random_numbers(random_state).permutation(len(rows))[:points]]
    inverse, rank = pinv(C, rtol=_SMALLEST, return_rank=True)
    inner = inverse @ K
    shift = (np.trace(K) - np.trace(inner @ C)) / max(len(rows) - rank, 1)
    return KernelApproximation(C, inner @ inverse.T - shift * (inverse @ inverse.T), float(shift))


def meka(
    kernel: Kernel,
    X: Any,
    rank: int,
    *,
    clusters: int = 5,
    threshold: float = 0.0,
    random_state: Any = None,
) -> KernelApproximation:
    """Memory-efficient kernel approximation (MEKA).

    k-means parts the samples; the block of each part has Nystroem features of twice as many
    landmarks as its share of the rank, and blocks between two parts are fitted by least squares
    on three times as many rows and columns [1]_. Blocks are left out where the kernel value of the
    two centres is below ``threshold``. As in the authors' program the result need not be positive
    semi-definite.

    References
    ----------
    .. [1] S. Si, C.-J. Hsieh, I. S. Dhillon, "Memory efficient kernel approximation", ICML 2014;
       JMLR 18 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.batch import meka
    >>> from kernelstream.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = meka(Gaussian(0.5), X, 60, clusters=3, random_state=0)
    >>> bool(abs(found.matrix() - Gaussian(0.5)(X)).mean() < 0.01)
    True
    """
    rows, random = _checked(X, max(rank, clusters)), random_numbers(random_state)
    if not 1 <= clusters <= rank:
        raise ValueError(f"clusters must lie between 1 and rank={rank}, got {clusters}")
    parts = _clusters(rows, clusters, random)
    members = [np.flatnonzero(parts.labels_ == part) for part in range(clusters)]
    ranks = [max(1, round(rank * len(each) / len(rows))) for each in members]
    bases = [
        _features(kernel, rows[each], share, random)
        for each, share in zip(members, ranks, strict=True)
    ]
    similar = kernel(parts.cluster_centers_)
    core = block_diag(*(np.eye(basis.shape[1]) for basis in bases))
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    for i in range(clusters):
        for j in range(i + 1, clusters):
            if similar[i, j] < threshold:
                continue
            left, right = (
                random.permutation(len(members[part]))[: 3 * bases[part].shape[1]]
                for part in (i, j)
            )
            block = kernel(rows[members[i][left]], rows[members[j][right]])
            link = _weak_inverse(bases[i][left]) @ block @ _weak_inverse(bases[j][right]).T
            core[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = link
            core[ends[j] : ends[j + 1], ends[i] : ends[i + 1]] = link.T
    factor = np.empty((len(rows), ends[-1]))
    factor[np.concatenate(members)] = block_diag(*bases)
    return KernelApproximation(factor, core)


def _checked(X: Any, least: int) -> NDArray[np.float64]:
    rows = dense_matrix(as_finite_rows(X))
    if not 1 <= least <= len(rows):
        raise ValueError(f"{least} points of {len(rows)} samples: give at least 1, at most all")
    return rows


def _clusters(rows: Any, count: int, random_state: Any) -> KMeans:
    return KMeans(count, n_init=1, random_state=random_numbers(random_state)).fit(rows)


def _weak_inverse(features: Any) -> NDArray[np.float64]:
    return pinv(features, atol=_NOISE, rtol=0.0)  # type: ignore[no-any-return]


def _inverse_root(matrix: Any, rank: int | None = None) -> NDArray[np.float64]:
    """R (m, rank at most) of a symmetric matrix: R R' is the inverse of its largest part."""
    values, vectors = eigh(matrix)
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    used = values > _SMALLEST * values[0]
    return vectors[:, used] / np.sqrt(values[used])  # type: ignore[no-any-return]


def _features(kernel: Kernel, rows: Any, rank: int, random: Any) -> NDArray[np.float64]:
    """(n, rank at most): Nystroem features of the largest eigenvalues."""
    landmarks = rows[random.permutation(len(rows))[: 2 * rank]]
    return kernel(rows, landmarks) @ _inverse_root(kernel(landmarks), rank)  # type: ignore[no-any-return]
