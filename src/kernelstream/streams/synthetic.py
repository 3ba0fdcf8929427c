"""The synthetic data of the papers: the mixture of POLK and the outliers of COLK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Draws n numbers.
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
RandomState = int | np.random.SeedSequence | np.random.Generator | None


def make_multidist(
    n_samples: int = 5000,
    n_test: int = 0,
    *,
    n_classes: int = 5,
    n_components: int = 3,
    std: float = 0.2,
    center_std: float = 1.0,
    random_state: RandomState = None,
) -> tuple[NDArray[Any], ...]:
    """Classes that are mixtures of Gaussians in the plane, as in Section 5.2 of POLK.

    A label y is drawn uniformly, then a component j of its class, then
    x ~ N(mu_yj, std^2 I). The means are drawn once, mu_yj ~ N(theta_y, center_std^2 I), with
    the theta_y equally spaced on the unit circle.

    Parameters
    ----------
    n_samples : int, default=5000
        Length of the stream.
    n_test : int, default=0
        Size of a test set from the same mixture; the paper takes 2500.
    n_classes : int, default=5
    n_components : int, default=3
        Gaussians per class.
    std : float, default=0.2
        Standard deviation of a component.
    center_std : float, default=1.0
        Standard deviation of the means around the theta of their class.
    random_state : int, SeedSequence, Generator or None, default=None
        An int gives the same mixture whatever the sizes. None draws a new one on every call.

    Returns
    -------
    X : (n_samples, 2) float64
    y : (n_samples,) int64, 0 .. n_classes - 1
    X_test, y_test : the same for the test set, only if n_test > 0

    Notes
    -----
    Erratum: the paper prints a variance of 0.2. A batch SVM then has 16-40 % error; the 4 %
    of its Table 2 need a standard deviation of 0.2, which is the default here. Even so the
    error varies with the means (1-23 % over ten draws): compare methods on the same draw.

    References
    ----------
    A. Koppel, G. Warnell, E. Stump, A. Ribeiro. Parsimonious online learning with kernels via
    sparse projections in function space. JMLR 20, 2019.

    Examples
    --------
    >>> from kernelstream.streams import make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, 2500, random_state=0)
    >>> X.shape, X_test.shape, len(set(y.tolist()))
    ((5000, 2), (2500, 2), 5)
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_test", n_test, 0)
    _check_count("n_classes", n_classes, 2)
    _check_count("n_components", n_components, 1)
    _check_not_negative("std", std)
    _check_not_negative("center_std", center_std)

    # One generator in this order: mixture, stream, test set. The mixture depends on the seed alone.
    rng = np.random.default_rng(random_state)
    means = _draw_means(n_classes, n_components, center_std, rng)
    train = _draw_mixture(means, std, n_samples, rng)
    return train if n_test == 0 else train + _draw_mixture(means, std, n_test, rng)


#: Samples drawn together by the generators of blocks.
BLOCK_SAMPLES = 100_000


def multidist_blocks(
    n_samples: int, *, random_state: RandomState = None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The stream of :func:`make_multidist`, of any length, in blocks of 100,000 samples.

    With an int as ``random_state`` a longer stream begins with the shorter one, and the first
    100,000 samples are ``make_multidist(100_000)``.

    >>> [len(y) for X, y in multidist_blocks(250_000, random_state=0)]
    [100000, 100000, 50000]
    """
    rng = np.random.default_rng(random_state)
    means = _draw_means(5, 3, 1.0, rng)
    for _, count in _blocks(n_samples):
        X, y = _draw_mixture(means, 0.2, BLOCK_SAMPLES, rng)  # always whole: the same prefix
        yield X[:count], y[:count]


def _blocks(n_samples: int) -> Iterator[tuple[int, int]]:
    """Where each block begins, and how many samples it has."""
    _check_count("n_samples", n_samples, 1)
    for start in range(0, n_samples, BLOCK_SAMPLES):
        yield start, min(BLOCK_SAMPLES, n_samples - start)


def _draw_means(
    n_classes: int, n_components: int, center_std: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    centers = np.column_stack([np.cos(angles), np.sin(angles)])
    offsets = rng.normal(scale=center_std, size=(n_classes, n_components, 2))
    return centers[:, None, :] + offsets  # type: ignore[no-any-return]


def _draw_mixture(
    means: NDArray[np.float64], std: float, n_samples: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    n_classes, n_components, n_features = means.shape
    y = rng.integers(n_classes, size=n_samples)
    component = rng.integers(n_components, size=n_samples)
    return means[y, component] + rng.normal(scale=std, size=(n_samples, n_features)), y


def make_regression_outliers(
    n_samples: int = 6000,
    *,
    noise: float = 0.3,
    outlier_rate: float = 0.1,
    outlier_distribution: str | Draw = "student_t",
    outlier_scale: float = 3.0,
    outlier_mode: str = "added",
    degrees_of_freedom: float = 2.0,
    random_state: RandomState = None,
    return_clean: bool = False,
    return_outliers: bool = False,
) -> tuple[NDArray[Any], ...]:
    """A noisy curve with outliers, after the `regression outliers` data of COLK, Section V.

    y = 2 x + 3 sin(6 x) + noise, with x uniform on [0, 1]; a sample is an outlier with
    probability `outlier_rate`, and then a second, larger error enters its target. By default
    a tenth of the targets get an error of 3 times Student's t with 2 degrees of freedom added.

    Parameters
    ----------
    n_samples : int, default=6000
    noise : float, default=0.3
        Standard deviation of the Gaussian noise that every target has.
    outlier_rate : float in [0, 1], default=0.1
        The probability that a sample is an outlier, independent of x.
    outlier_distribution : str or callable, default="student_t"
        The second error is `outlier_scale` times a draw from

        - "student_t": Student's t with `degrees_of_freedom` (infinite variance up to 2);
        - "gaussian": standard normal;
        - "uniform": uniform on [-1, 1];
        - "exponential": exponential of mean 1 (one-sided: a skewed target);
        - a function of a NumPy Generator and n that returns n numbers.
    outlier_scale : float, default=3.0
        The default is the amplitude of the curve.
    outlier_mode : {"added", "replaced"}, default="added"
        An outlier's target is what it would have been plus the second error, or that error alone:
        a wrong reading that knows nothing of x.
    degrees_of_freedom : float, default=2.0
        Of "student_t".
    random_state : int, SeedSequence, Generator or None, default=None
        An int makes the data reproducible, and a longer stream begins with the shorter one.
    return_clean : bool, default=False
        Return the curve without noise and outliers too: the target of an honest test.
    return_outliers : bool, default=False
        Return which samples are outliers, too.

    Returns
    -------
    X : (n_samples, 1) float64
    y : (n_samples,) float64
    y_clean : (n_samples,) float64, only if return_clean
    is_outlier : (n_samples,) bool, only if return_outliers

    Notes
    -----
    The paper gives the curve and its "zero mean Gaussian noise", but not the range of x, nor
    the size of the noise, nor how outliers enter. The range [0, 1] suits its kernel bandwidth
    of 0.06; the rest are parameters here. It also prints 60000 samples where the split it
    goes on to describe fits 6000.

    References
    ----------
    A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal. Nonparametric compositional stochastic
    optimization for risk-sensitive kernel learning. IEEE Trans. Signal Processing, 2021.

    Examples
    --------
    >>> from kernelstream.streams import make_regression_outliers
    >>> X, y, y_clean = make_regression_outliers(1000, random_state=0, return_clean=True)
    >>> X.shape, y.shape
    ((1000, 1), (1000,))
    >>> bool(abs(y - y_clean).max() > 5)
    True
    """
    _check_count("n_samples", n_samples, 1)
    _check_not_negative("noise", noise)
    _check_not_negative("outlier_scale", outlier_scale)
    _check_share("outlier_rate", outlier_rate)
    _check_positive("degrees_of_freedom", degrees_of_freedom)
    if outlier_mode not in ("added", "replaced"):
        raise ValueError(f"outlier_mode must be 'added' or 'replaced', got {outlier_mode!r}.")
    named = _OUTLIERS | {"student_t": _student_t(float(degrees_of_freedom))}
    draw = outlier_distribution
    if not callable(draw):
        if not isinstance(draw, str) or draw not in named:
            raise ValueError(
                "outlier_distribution must be a name or a function of a Generator and n, got "
                f"{draw!r}. The names: {', '.join(sorted(named))}."
            )
        draw = named[draw]

    rngs = np.random.default_rng(random_state).spawn(4)
    X, y, y_clean, is_outlier = _draw_outliers(
        n_samples, noise, outlier_rate, draw, outlier_scale, outlier_mode == "replaced", rngs
    )
    extras = [part for part, wanted in ((y_clean, return_clean), (is_outlier, return_outliers))
              if wanted]  # fmt: skip
    return X, y, *extras


def regression_outliers_blocks(
    n_samples: int, *, random_state: RandomState = None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The same samples as :func:`make_regression_outliers`, in blocks of 100,000."""
    rngs = np.random.default_rng(random_state).spawn(4)
    for _, count in _blocks(n_samples):
        yield _draw_outliers(count, 0.3, 0.1, _student_t(2.0), 3.0, False, rngs)[:2]


def _draw_outliers(
    n_samples: int,
    noise: float,
    outlier_rate: float,
    draw: Draw,
    outlier_scale: float,
    replaced: bool,
    rngs: list[np.random.Generator],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    x_rng, noise_rng, choice_rng, size_rng = rngs
    x = x_rng.uniform(size=n_samples)
    y_clean = 2 * x + 3 * np.sin(6 * x)
    is_outlier = choice_rng.uniform(size=n_samples) < outlier_rate
    drawn = np.asarray(draw(size_rng, n_samples))
    if drawn.shape != (n_samples,) or drawn.dtype.kind not in "biuf":
        raise ValueError(
            f"outlier_distribution must return {n_samples} numbers, got shape {drawn.shape} of "
            f"{drawn.dtype}."
        )
    outliers = outlier_scale * drawn.astype(np.float64)
    if not np.isfinite(outliers).all():
        raise ValueError(
            "outlier_distribution must return finite numbers, also times outlier_scale: "
            f"draw {int(np.argmin(np.isfinite(outliers)))} is {drawn[~np.isfinite(outliers)][0]}."
        )
    y = y_clean + noise_rng.normal(scale=noise, size=n_samples)
    y = np.where(is_outlier, outliers if replaced else y + outliers, y)
    return x[:, None], y, y_clean, is_outlier


def _student_t(degrees_of_freedom: float) -> Draw:
    return lambda rng, n: rng.standard_t(degrees_of_freedom, size=n)


# Each draws n errors of scale one.
_OUTLIERS: dict[str, Draw] = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
}


def _check_count(name: str, value: object, minimum: int) -> None:
    if not (isinstance(value, Integral) and int(value) >= minimum):
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}.")


def _check_not_negative(name: str, value: object) -> None:
    if not (isinstance(value, Real) and 0 <= float(value) < float("inf")):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")


def _check_positive(name: str, value: object) -> None:
    if not (isinstance(value, Real) and 0 < float(value) < float("inf")):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")


def _check_share(name: str, value: object) -> None:
    if not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ValueError(f"{name} must be in [0, 1], got {value!r}.")
