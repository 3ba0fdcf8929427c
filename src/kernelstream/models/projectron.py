"""Projectron and Projectron++."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from kernelstream.core.direct import GRADIENT
from kernelstream.core.grow import NOVELTY
from kernelstream.core.reduce import SPANNED
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._projection import ProjectingEstimator
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import LogRange


class ProjectronClassifier(ProjectingEstimator, KernelClassifier):
    """The kernel perceptron whose mistakes are projected where the points nearly span them.

    See Also
    --------
    ProjectronPlusClassifier : learns from samples on the right side, too.
    POLKClassifier : points also leave again.

    Notes
    -----
    For every sample (x, y), with the points d_j, their kernel matrix K and the novelty eta [1]_:

    1. y f(x) > 0: nothing;
    2. else d = K^-1 k, k the kernel values of x with the points, and delta^2 = k(x, x) - k.d, the
       squared distance of k(x, .) to their span;
    3. delta <= eta, or no room: f += y sum_j d_j k(d_j, .);
    4. else x becomes a point of weight y.

    So the number of points stays bounded, cap or not. With more than two classes the weight is 1
    for the class of x and -1 for the best other one, on points that all classes share (the paper
    has two classes; the multi-class program of one of its authors has points for each class). With
    sample weights the distance is that of the weighted sample. The paper has no cap.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", JMLR 10
       (2009).

    Examples
    --------
    >>> from kernelstream import ProjectronClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = ProjectronClassifier(gamma=2.0).partial_fit(X, y)
    >>> model.model_order_ < 100
    True
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    novelty: Annotated[
        float,
        Number(above=0.0),
        LogRange(0.01, 0.9),
        "Mistakes at most this far from the span of the points are projected on them (eta in the "
        "paper), in the norm of the RKHS; larger: fewer points.",
    ] = 0.3

    loss: ClassVar[Any] = "perceptron"  # type: ignore[misc]
    _grow, _reduce = NOVELTY, SPANNED
    _at_the_cap = "projecting a mistake that would have become a point"
    _smaller_with = (("a larger", "novelty"), ("a smaller", "max_points"))

    def _choices(self) -> dict[str, Any]:
        return {"direct": GRADIENT, "initial_step": 1.0, "novelty": self.novelty}


class ProjectronPlusClassifier(ProjectronClassifier):
    """Projectron++: samples on the right side but close to the boundary are projected, too.

    See Also
    --------
    ProjectronClassifier : learns from mistakes alone.

    Notes
    -----
    Mistakes are treated as by Projectron. A sample on the right side with hinge loss H = 1 - y f(x)
    > 0 never becomes a point; where H > delta / eta it is projected, and tau times of it:
    f += tau y sum_j d_j k(d_j, .), tau = min(H / kappa, 2 (H - delta / eta) / kappa, 1) with
    kappa = k.d [1]_. With more than two classes 2 kappa stands for kappa: the step is made for two
    of them. delta is a norm, as in the paper; the program of one of its authors has delta^2 there
    and in the test of mistakes.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", JMLR 10
       (2009), Figure 2.

    Examples
    --------
    >>> from kernelstream import ProjectronPlusClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = ProjectronPlusClassifier(gamma=2.0).partial_fit(X, y)
    >>> model.model_order_ < 100
    True
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    loss: ClassVar[Any] = "hinge"  # type: ignore[misc]


register(
    Method(
        name="projectron",
        title="Projectron",
        description="mistakes become points, or are projected where the points nearly span them",
        paper="Orabona et al., JMLR 2009",
        classifier=ProjectronClassifier,
        try_first=("gamma", "novelty"),
    )
)
register(
    Method(
        name="projectron++",
        title="Projectron++",
        description="the same, and samples close to the boundary are projected as well",
        paper="Orabona et al., JMLR 2009",
        classifier=ProjectronPlusClassifier,
        try_first=("gamma", "novelty"),
    )
)
