"""Ahpatron."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.reduce import HALVE
from kernelstream.models import _parameters as p
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import RemovingEstimator
from kernelstream.parameters import Number
from kernelstream.registry import Method, register


class AhpatronClassifier(RemovingEstimator, KernelClassifier):
    """An aggressive perceptron on a budget: at the cap half of the points are projected.

    See Also
    --------
    ForgetronClassifier : weights shrink, and the oldest point leaves.
    BPAPClassifier : one point at a time is projected on the others.

    Notes
    -----
    With the cap B, for every sample (x, y) with y f(x) <= margin [1]_:

    1. where there are B points, the B / 2 with the larger weights stay; with the kernel matrix K_11
       of these and K_12 of these with the others w_1 += (K_11 + ridge)^-1 K_12 w_2, and f is scaled
       to the norm that it had;
    2. x becomes a point of weight eta y;
    3. where |f| exceeds the radius, f is scaled to it.

    One solution serves for B / 2 points. With more than two classes the weight is eta for the class
    of x and -eta for the best other one, and weights are compared as vectors. The definition is
    that of the authors' program (a ridge of 0.0005, here times k(x, x); scaling up in step 1 as
    well), with ties among weights decided for the older point; the paper's text was not at hand in
    full.

    References
    ----------
    .. [1] Y. Liao, J. Li, S. Liao, Q. Hu, J. Dang, "Ahpatron: a new budgeted online kernel learning
       machine with tighter mistake bound", AAAI 2024.

    Examples
    --------
    >>> from kernelstream import AhpatronClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = AhpatronClassifier(gamma=2.0, max_points=100).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    max_points: p.MaxPoints = 400
    eta0: p.Eta0 = 0.25
    margin: Annotated[
        float,
        Number(least=0.0),
        "Samples with y f(x) up to this are learned from (1 - epsilon in the paper).",
    ] = 0.5
    radius: Annotated[
        float | Literal["auto"],
        Number(above=0.0),
        "The largest norm of the function (U in the paper). ``auto`` is sqrt(B) / 2, B the cap on "
        "points.",
    ] = "auto"

    loss: ClassVar[Any] = "perceptron"  # type: ignore[misc]
    _reduce = HALVE
    _leaves = "the half of the points with the smaller weights, projected on the others"

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        settings = super()._settings(outputs, most)
        settings["radius"] = 0.5 * np.sqrt(most) if self.radius == "auto" else self.radius
        return settings

    def _choices(self) -> dict[str, Any]:
        return {"initial_step": self.eta0, "loss_number": self.margin}

    def _drop_points(self, most: int) -> None:
        super()._drop_points(most)
        self._state.status[0]["square_norm"] = self.expansion_.norm() ** 2

    def _overflow_cure(self) -> str:
        return "eta0 times the sample_weight is too large."

    def _approximation(self) -> tuple[str, str]:
        return "Projected points", (
            "How far the function moved where half of the points were projected on the others, in "
            "the norm of the function space, summed."
        )


register(
    Method(
        name="ahpatron",
        title="Ahpatron",
        description="samples close to the boundary become points; at the cap half of the points "
        "are projected on the others",
        paper="Liao et al., AAAI 2024",
        classifier=AhpatronClassifier,
        try_first=("gamma", "eta0", "max_points"),
    )
)
