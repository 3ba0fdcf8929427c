"""Passive-aggressive learning on a budget: BPA-S, BPA-NN and BPA-P."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from kernelstream.core.direct import PASSIVE_AGGRESSIVE
from kernelstream.core.reduce import PROJECT_CHEAPEST, TO_NEIGHBOURS, TO_NEWEST
from kernelstream.models._base import KernelEstimator
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._projection import ProjectingEstimator
from kernelstream.models._removal import RemovingEstimator
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import LogRange


class _BPA(KernelEstimator):
    """What the three share.

    Notes
    -----
    A sample (x, y) with hinge loss H = max(0, 1 - y f(x)) > 0 is added with the weight tau y,
    tau = min(C, H / k(x, x)): PA-I. Where that makes one point too many, one of the old ones
    leaves, r, and its part w_r k(d_r, .) is projected on the span V of the points that take over
    [1]_:

    * BPA-S: V holds x alone, O(M) operations;
    * BPA-NN: x and the nearest neighbour of d_r among the old points, O(M) but for the neighbours;
    * BPA-P: all others, O(M^2).

    r is the one for which |f' - f|^2 / 2 + C H'(x) is least. As x is in V, what the projection
    misses is orthogonal to k(x, .): H' and tau are the same for all r, and r has the least
    |w_r|^2 e_r, e_r the squared distance of k(d_r, .) to V. Old points alone are candidates, as in
    LIBOL's program for BPA-S (the paper's text was not at hand). With more than two classes tau is
    that of the margin to the best other class, H / (2 k(x, x)) at most, the weight of which is
    -tau; |w_r|^2 sums over classes.

    References
    ----------
    .. [1] Z. Wang, S. Vucetic, "Online passive-aggressive algorithms on a budget", AISTATS 2010.
    """

    C: Annotated[
        float,
        Number(above=0.0),
        LogRange(0.01, 10.0),
        "The largest weight of a sample (aggressiveness); smaller: slower, less misled by noise.",
    ] = 1.0

    loss: ClassVar[Any] = "hinge"  # type: ignore[misc]

    def _choices(self) -> dict[str, Any]:
        return {"direct": PASSIVE_AGGRESSIVE, "aggressiveness": self.C}

    def _overflow_cure(self) -> str:
        return "C times the sample_weight is too large."


class BPASClassifier(_BPA, RemovingEstimator, KernelClassifier):
    """Passive-aggressive learning: at the cap a new point takes the place of an old one (BPA-S).

    See Also
    --------
    BPAPClassifier : all points take over what a point leaves, at a higher price.

    Examples
    --------
    >>> from kernelstream import BPASClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = BPASClassifier(gamma=2.0, C=0.1, max_points=100).partial_fit(X, y)
    >>> model.model_order_
    100
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    _reduce = TO_NEWEST
    _leaves = "a point that the newest one best replaces"


class BPANNClassifier(_BPA, RemovingEstimator, KernelClassifier):
    """Passive-aggressive learning: a point's nearest neighbour helps to replace it (BPA-NN).

    Every call of ``partial_fit`` that makes room finds the nearest neighbours of all points once:
    samples one by one take longer.

    See Also
    --------
    BPASClassifier : the newest point alone replaces it.

    Examples
    --------
    >>> from kernelstream import BPANNClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = BPANNClassifier(gamma=2.0, C=0.1, max_points=100).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    _reduce = TO_NEIGHBOURS
    _leaves = "a point that the newest one and its own nearest neighbour best replace"


class BPAPClassifier(_BPA, ProjectingEstimator, KernelClassifier):
    """Passive-aggressive learning: at the cap a point is projected on all others (BPA-P).

    A sample that the points span to eight digits is projected on them at once.

    See Also
    --------
    BPASClassifier : the newest point alone takes over, which is faster.

    Examples
    --------
    >>> from kernelstream import BPAPClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = BPAPClassifier(gamma=2.0, C=0.1, max_points=30).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    _reduce = PROJECT_CHEAPEST
    _at_the_cap = "projecting an old point on the others"


for _name, _title, _kind, _whom in (
    ("bpa-s", "BPA-S", BPASClassifier, "the newest point takes over the one that costs least"),
    ("bpa-nn", "BPA-NN", BPANNClassifier, "the newest point and its neighbour take over another"),
    ("bpa-p", "BPA-P", BPAPClassifier, "all points take over the one that costs least"),
):
    register(
        Method(
            name=_name,
            title=_title,
            description=f"passive-aggressive steps; at the cap {_whom}",
            paper="Wang and Vucetic, AISTATS 2010",
            classifier=_kind,
            try_first=("gamma", "C", "max_points"),
        )
    )
