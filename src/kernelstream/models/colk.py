"""Compositional online learning with kernels (COLK): the mean loss plus its risk."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.direct import QUASI_GRADIENT
from kernelstream.core.direct.quasi_gradient import (
    AVERAGE,
    CVAR,
    DISPERSION,
    MOMENTUM,
    SEMIDEVIATION,
)
from kernelstream.docstrings import documented
from kernelstream.models import _parameters as p
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._past import Remembering, tracking_settings
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models.polk import _POLK
from kernelstream.parameters import Number, Whole
from kernelstream.registry import Method, register
from kernelstream.search import LogRange

#: name -> (branch of the compiled pass, whether ``order`` counts)
_RISKS = {
    "variance": (DISPERSION, False),
    "semivariance": (SEMIDEVIATION, False),
    "moments": (DISPERSION, True),
    "semideviations": (SEMIDEVIATION, True),
    "cvar": (CVAR, False),
}


class _Paired(Remembering):
    """Steps on pairs, and the function before the last step."""

    tracking: Annotated[  # type: ignore[misc]
        Literal["momentum", "average"],
        """How the mean loss is tracked: by gradient tracking (20), which follows the changes of the
        function and averages only noise, or by plain averaging (19).""",
    ] = "momentum"
    tracking_rate: Annotated[
        float,
        Number(above=0.0, most=1.0),
        LogRange(0.005, 0.5),
        """Step of the tracker (beta in the paper), and of the threshold of ``cvar``: the last 1 /
        tracking_rate steps are remembered.""",
        "The first steps are averaged plainly.",
    ] = 0.05
    tracking_schedule: p.TrackingSchedule = "constant"
    tracking_decay: p.TrackingDecay = 0.01
    batch_size: Annotated[
        int,
        Whole(2, 1_000_000),
        "Samples per step, an even number: samples 1 and 2, 3 and 4, ... are the pairs.",
        """An unfinished batch waits until it is full, or for ``flush()``: until then it is not
        learned from. A sample that is flushed alone is its own partner, which leaves only the mean
        loss (and ``cvar``) of it.""",
    ] = 2

    slack: ClassVar[int] = 0  # type: ignore[misc]
    _lasting = (*_POLK._lasting, "tracking")

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.batch_size % 2:
            raise ValueError(
                f"batch_size must be even: samples come in pairs, got {self.batch_size}"
            )

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        state, outputs = self._fitted(), self._outputs
        weights = state.weights[:, : state.order].T
        if self.average:
            return weights[:, outputs : 2 * outputs].copy()
        return weights[:, :outputs] * state.status[0]["scale"]

    def _choices(self, outputs: int, most: int) -> dict[str, Any]:
        momentum = self.tracking == "momentum"
        return {
            **super()._choices(outputs, most),
            "tracking": MOMENTUM if momentum else AVERAGE, "tracking_rate": self.tracking_rate,
            **tracking_settings(self),
        }  # fmt: skip

    nbytes_ = documented(
        _POLK.nbytes_,
        """Bytes held, at most 8 c (p + C + 4 + c) plus a record and the unfinished batch, where
        the capacity c is at most 4 max(16 + batch_size, M + batch_size) and C counts the outputs,
        once for the function, once for its average and once for ``tracking="momentum"``, and M the
        points removed in the last step, too.""",
    )

    @property
    def tracker_(self) -> Any:
        """The tracked mean loss (of the cut losses)."""
        return float(self._fitted().status[0]["tracker"])


class _COLK(_Paired):
    """The parameters and the step that classification and regression share.

    Notes
    -----
    For a pair (x, y), (x', y') of independent samples with losses l, l' and tracker g, (47) is

        f~ = (1 - eta alpha) f - eta (d + w m(l - g) (d - d')),    m(u) = sum_p p u^(p - 1),

    d = l'(f(x), y) k(x, .) and d' likewise at x', g tracking l'. Here both samples take both
    roles and the two directions are averaged: the mean is the same, the variance never larger
    (it is a conditional expectation given the unordered pair), and no sample is spent on
    tracking alone. With ``risk_weight=0`` the step is POLK's for ``batch_size=2``, bit for bit.
    Then KOMP, as in POLK.

    Gradient tracking, g <- (1 - beta) (g - l'(f_before)) + l'(f), needs the function before the
    last step at new samples. Its weights are kept in columns of their own beside the current
    ones, where compression does not touch them; the points that the last step removed stay for
    one step behind the others. So f_before is exact, through compression too, and costs no
    kernel values but those of the removed points (none in most steps). A change from outside
    (a lowered cap, ``merge``, points merged in a rebuilt factor) makes both functions equal.

    With ``variance`` the tracker g cancels within a pair. With (19) what remains is proportional to
    the gradient of (l - l')^2; with (20) the losses of the function before the last step remain,
    too. The other risks need the tracker. The positive part of ``semivariance`` enters squared and
    is not smoothed. ``cvar`` is Rockafellar and Uryasev's: u + E max(l - u,
    0) / (1 - level) with the threshold u learned along, its step beta in units of u.

    References
    ----------
    .. [1] A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal, "Nonparametric compositional stochastic
       optimization for risk-sensitive kernel learning", IEEE Trans. Signal Processing (2021).
    """

    risk: Annotated[
        Literal["variance", "semivariance", "moments", "semideviations", "cvar"],
        """What is added to the mean loss: its ``variance``, its ``semivariance`` (the mean square
        of what exceeds the mean), its central ``moments`` 2 to ``order`` (odd ones with their
        sign), its ``semideviations`` (the mean powers 2 to ``order`` of what exceeds the mean), or
        ``cvar``, the mean of the losses above their quantile ``level``.""",
    ] = "variance"
    risk_weight: Annotated[
        float,
        Number(least=0.0),
        "How much of the risk is added (eta in the paper).",
        """0: POLK with the same batches. A moment of order p is in units of the loss to the power
        p, the weight in their inverse.""",
    ] = 0.1
    order: Annotated[
        int, Whole(2, 8), "The highest of the ``moments`` or ``semideviations`` (P in the paper)."
    ] = 4
    level: Annotated[
        float, Number(above=0.0, below=1.0), "Of ``cvar``: 0.9 is the mean of the worst tenth."
    ] = 0.9
    clip: Annotated[
        float | None,
        Number(above=0.0),
        """No deviation of a loss from the tracker may add more than this multiple of the loss's own
        gradient: deviations are cut where they would, also on their way into the tracker.""",
        """``None`` switches this off. ``cvar`` needs none: it adds risk_weight / (1 - level).""",
    ] = 4.0

    _direct = QUASI_GRADIENT

    def _choices(self, outputs: int, most: int) -> dict[str, Any]:
        risk, by_order = _RISKS[self.risk]
        order = int(self.order) if by_order else 2
        cut = largest_deviation(float(self.risk_weight), order, self.clip if risk != CVAR else None)
        return {
            **super()._choices(outputs, most), "risk": risk,
            "risk_weight": self.risk_weight, "moments": order, "level": self.level, "cut": cut,
        }  # fmt: skip

    def _overflow_cure(self) -> str:
        bound = "level" if self.risk == "cvar" else "clip"
        smaller = f"eta0 or risk_weight, or {'set' if self.clip is None else 'a smaller'} clip"
        if self.risk == "cvar":
            smaller = "eta0, risk_weight or level"
        return (
            f"eta0={self.eta0} with risk_weight={self.risk_weight} and "
            f"{bound}={getattr(self, bound)} makes steps too large for this kernel and these "
            f"targets. Choose a smaller {smaller}, scale the data and the target, or use a loss "
            "with a bounded derivative such as 'huber'."
        )

    def _facts_in_words(self) -> dict[str, str]:
        own = {"moments": "order", "semideviations": "order", "cvar": "level"}.get(self.risk)
        number = f", {own} {getattr(self, own)}" if own else ""
        return {"risk": f"{self.risk}, weight {self.risk_weight}{number}"}

    @property
    def threshold_(self) -> float:
        """The tracked ``level`` quantile of the loss, for ``cvar``."""
        return float(self._fitted().status[0]["threshold"])


def largest_deviation(weight: float, order: int, clip: float | None) -> float:
    """The deviation d at which weight * sum_{p=2..order} p d^(p - 1) reaches ``clip``."""
    if clip is None or weight == 0.0:
        return np.inf
    # No term of the sum exceeds the whole: neither the first nor the last, which may overflow.
    last = min(clip / (order * weight), 1e300) ** (1.0 / (order - 1))
    low, high = 0.0, min(clip / (2.0 * weight), last, 1e70)
    for _ in range(100):
        middle = 0.5 * (low + high)
        reached = weight * sum(p * middle ** (p - 1) for p in range(2, order + 1))
        low, high = (low, middle) if reached > clip else (middle, high)
    return float(low)


class COLKClassifier(_COLK, KernelClassifier):
    """Risk-sensitive nonlinear classification of a stream, in bounded memory.

    See Also
    --------
    COLKRegressor : the same for numbers.
    POLKClassifier : the mean loss alone.

    Examples
    --------
    >>> from kernelstream import COLKClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = COLKClassifier(risk="cvar", level=0.9)
    >>> for start in range(0, 5000, 500):  # the stream arrives in pieces
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.score(X_test, y_test) > 0.96)
    True
    """

    loss: Annotated[p.ClassLoss, "The risk is that of this loss's distribution."] = field(
        default="hinge", kw_only=False
    )
    eta0: p.Eta0 = 0.5

    _parsimony = 0.1


class COLKRegressor(_COLK, KernelRegressor):
    """Risk-sensitive nonlinear regression on a stream, in bounded memory.

    See Also
    --------
    COLKClassifier : the same for classes.
    POLKRegressor : the mean loss alone.

    Examples
    --------
    Three in ten samples come with a large error upwards. The risk-neutral model is right on
    average; the risk-sensitive one gives some of that away for fewer large losses:

    >>> import numpy as np
    >>> from kernelstream import COLKRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-1.0, 1.0, (20000, 1))
    >>> y = np.sin(3.0 * X[:, 0]) + 2.0 * (random.random(20000) < 0.3)
    >>> def losses(model):
    ...     return 0.5 * (model.partial_fit(X, y).predict(X) - y) ** 2
    >>> neutral = losses(COLKRegressor(risk_weight=0.0, gamma=5.0, average=True))
    >>> averse = losses(COLKRegressor(risk_weight=1.0, gamma=5.0, average=True))
    >>> bool(averse.var() < 0.5 * neutral.var()), bool(averse.mean() > neutral.mean())
    (True, True)
    """

    loss: Annotated[
        p.NumberLoss,
        "The risk is that of its distribution; ``squared_error`` is (f - y)^2 / 2, half of the "
        "paper's.",
    ] = field(default="squared_error", kw_only=False)


register(
    Method(
        name="colk",
        title="COLK",
        description="the mean loss plus its variance, semivariance, moments or CVaR, from pairs of "
        "samples; any function of an expectation",
        paper="Bedi et al., IEEE TSP 2021",
        classifier=COLKClassifier,
        regressor=COLKRegressor,
        names=("CompositionalLearner",),
        try_first=("gamma", "eta0"),
        without_risk="polk",
    )
)
