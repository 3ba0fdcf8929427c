"""The synthetic data of OK-FEB: points on surfaces in space, at rest and turning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.synthetic import RandomState, _blocks, _check_count, _check_not_negative


def make_spheres(
    n_samples: int = 5000, *, noise: float = 0.1, random_state: RandomState = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two noisy spheres around the origin, one inside the other: Section VII-A of OK-FEB.

    A label is drawn, both with the same probability; then x uniformly from the surface of the
    sphere of radius 1 (label 1) or 2 (label -1); then Gaussian noise is added. No linear
    classifier separates the two.

    Parameters
    ----------
    n_samples : int, default=5000
    noise : float, default=0.1
        Standard deviation of the noise (sigma in the paper, which gives no number).
    random_state : int, SeedSequence, Generator or None, default=None
        An int makes the data reproducible, and a longer stream begins with the shorter one.

    Returns
    -------
    X : (n_samples, 3) float64
    y : (n_samples,) int64, -1 or 1

    References
    ----------
    F. Sheikholeslami, D. Berberidis, G. B. Giannakis. Large-scale kernel-based feature extraction
    via low-rank subspace tracking on a budget. IEEE Trans. Signal Processing 66, 2018.

    Examples
    --------
    >>> from kernelstream.streams import make_spheres
    >>> X, y = make_spheres(1000, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 3), [-1, 1])
    """
    _check_count("n_samples", n_samples, 1)
    _check_not_negative("noise", noise)
    rngs = np.random.default_rng(random_state).spawn(3)
    return _draw_spheres(n_samples, noise, rngs)


def spheres_blocks(
    n_samples: int, *, random_state: RandomState = None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The same samples as :func:`make_spheres`, in blocks of 100,000."""
    rngs = np.random.default_rng(random_state).spawn(3)
    for _, count in _blocks(n_samples):
        yield _draw_spheres(count, 0.1, rngs)


def _draw_spheres(
    n_samples: int, noise: float, rngs: list[np.random.Generator]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    label_rng, surface_rng, noise_rng = rngs
    outer = label_rng.integers(2, size=n_samples)
    X = (1.0 + outer)[:, None] * _directions(n_samples, surface_rng)
    return X + noise_rng.normal(scale=noise, size=X.shape), 1 - 2 * outer


def _directions(n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Points of the unit sphere, uniform: normal vectors have no preferred direction."""
    X = rng.normal(size=(n_samples, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)  # type: ignore[no-any-return]


def make_turning_ellipsoid(
    n_samples: int = 2000,
    *,
    period: int = 1000,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """An ellipsoid that turns after 1000 samples: Section VII-B of OK-FEB.

    The first ``period`` samples lie on (x1/3)^2 + x2^2 + x3^2 = 1, the next on
    x1^2 + (x2/3)^2 + x3^2 = 1, then it turns back, and so on. A point is drawn uniformly from
    the unit sphere and stretched along the axis: the paper does not say how it is drawn.

    Parameters
    ----------
    n_samples : int, default=2000
        The paper's stream ends with the second ellipsoid.
    period : int, default=1000
        Samples between two turns.
    noise : float, default=0.0
        Standard deviation of Gaussian noise; the paper has none.
    random_state : int, SeedSequence, Generator or None, default=None
        An int makes the data reproducible, and a longer stream begins with the shorter one.

    Returns
    -------
    X : (n_samples, 3) float64
    y : (n_samples,) int64, 0 or 1
        Which of the two ellipsoids a sample is from.

    Examples
    --------
    >>> from kernelstream.streams import make_turning_ellipsoid
    >>> X, y = make_turning_ellipsoid(2000, random_state=0)
    >>> abs(X[:1000]).max(axis=0).round(1), abs(X[1000:]).max(axis=0).round(1)
    (array([3., 1., 1.]), array([1., 3., 1.]))
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("period", period, 1)
    _check_not_negative("noise", noise)
    rngs = np.random.default_rng(random_state).spawn(2)
    return _draw_ellipsoid(0, n_samples, period, noise, rngs)


def turning_ellipsoid_blocks(
    n_samples: int, *, random_state: RandomState = None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The same samples as :func:`make_turning_ellipsoid`, in blocks of 100,000."""
    rngs = np.random.default_rng(random_state).spawn(2)
    for first, count in _blocks(n_samples):
        yield _draw_ellipsoid(first, count, 1000, 0.0, rngs)


def _draw_ellipsoid(
    first: int, n_samples: int, period: int, noise: float, rngs: list[np.random.Generator]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    surface_rng, noise_rng = rngs
    X = _directions(n_samples, surface_rng)
    turned = (first + np.arange(n_samples)) // period % 2
    X[np.arange(n_samples), turned] *= 3.0
    return X + noise_rng.normal(scale=noise, size=X.shape), turned
