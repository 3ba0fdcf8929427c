"""Values of parameters that are worth trying, declared beside the parameters.

    eta0: Annotated[float, Number(above=0.0), LogRange(0.02, 5.0), "The step size."] = 0.2

:func:`search_space` collects them, as scikit-learn's searches and ``ParameterSampler`` take them.
"""

from __future__ import annotations

from typing import Any, Literal


class Candidates:
    """Values of one parameter to choose from."""

    def at(self, place: float, gamma: float) -> Any:
        """The value at a place in [0, 1), where ``gamma`` is what suits the columns."""
        raise NotImplementedError

    def distribution(self, gamma: float) -> Any:
        """What ``ParameterSampler`` draws from: a list, or a distribution of SciPy."""
        raise NotImplementedError


class LogRange(Candidates):
    """Numbers between two, their logarithms equally likely.

    In units of the ``gamma`` that suits the columns, or of the ``distance`` that belongs to it,
    1 / sqrt(gamma), the same range suits any number of columns.

    >>> LogRange(0.1, 10.0, unit="gamma").at(0.5, gamma=1 / 8)
    0.125
    """

    def __init__(
        self, low: float, high: float, *, unit: Literal["", "gamma", "distance"] = ""
    ) -> None:
        self.low, self.high, self.unit = low, high, unit

    def at(self, place: float, gamma: float) -> float:
        """A number."""
        return float(self._scale(gamma) * self.low * (self.high / self.low) ** place)

    def distribution(self, gamma: float) -> Any:
        """Of SciPy."""
        from scipy.stats import loguniform  # takes a while, and few need it

        scale = self._scale(gamma)
        return loguniform(self.low * scale, self.high * scale)

    def _scale(self, gamma: float) -> float:
        return {"": 1.0, "gamma": gamma, "distance": gamma**-0.5}[self.unit]


class Choices(Candidates):
    """Some values, equally likely.

    >>> Choices("hinge", "log_loss").at(0.75, gamma=1.0)
    'log_loss'
    """

    def __init__(self, *values: Any) -> None:
        self.values = values

    def at(self, place: float, gamma: float) -> Any:
        """One of them."""
        return self.values[int(place * len(self.values))]

    def distribution(self, gamma: float) -> Any:
        """A list."""
        return list(self.values)


def search_space(kind: type[Any], gamma: float) -> dict[str, Any]:
    """The parameters of an estimator that are worth a search, and what to draw from.

    What bounds memory (``max_points``, ``max_bytes``) is not among them: more is better, and costs.

    Parameters
    ----------
    kind : class
        An estimator of this package.
    gamma : float
        What suits the columns: 1 / features for standardised ones.

    Returns
    -------
    dict of str to list or distribution
        In the order in which the estimator declares its parameters.

    Examples
    --------
    >>> from sklearn.model_selection import ParameterSampler
    >>> from kernelstream import AVMClassifier
    >>> from kernelstream.search import search_space
    >>> space = search_space(AVMClassifier, gamma=1 / 8)
    >>> sorted(space)
    ['alpha', 'delta', 'gamma', 'loss']
    >>> for parameters in ParameterSampler(space, 2, random_state=0):
    ...     model = AVMClassifier(**parameters)
    """
    declared = {name: each.candidates for name, each in kind._parameters.items()}
    return {
        name: candidates.distribution(gamma)
        for name, candidates in declared.items()
        if candidates is not None
    }
