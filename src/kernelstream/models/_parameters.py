"""Parameters that several methods share, each declared once.

In a class they are a short list, ``gamma: Gamma = "auto"``: see :mod:`kernelstream.parameters`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kernelstream.kernels import KERNEL_NAMES, make_kernel
from kernelstream.kernels import Kernel as KernelObject
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss
from kernelstream.parameters import Number, RandomState, Whole, Words
from kernelstream.schedules import STEP_NAMES, Parsimony, Steps
from kernelstream.search import Choices, LogRange

ClassLoss = Annotated[
    str | Loss,
    Words(*CLASSIFICATION_LOSSES),
    Choices("hinge", "squared_hinge", "log_loss"),
    "``hinge``, ``squared_hinge``, ``smooth_hinge``, ``log_loss`` or ``margin_log_loss``.",
    """With more than two classes ``hinge`` is Crammer and Singer's, ``margin_log_loss`` the
    logistic loss of the margin and ``log_loss`` the multinomial one. Probabilities are those of
    ``log_loss``; with the others they are estimated along the stream.""",
]
NumberLoss = Annotated[
    str | Loss,
    Words(*REGRESSION_LOSSES),
    Choices("squared_error", "huber", "absolute_error"),
    "``squared_error``, ``absolute_error``, ``epsilon_insensitive``, ``huber`` or ``quantile``.",
    """``Loss("quantile", 0.9)`` for another level. Standardise the target (scikit-learn's
    ``TransformedTargetRegressor``): steps, budgets and regularisation are in its units, and the
    function has no intercept.""",
]

Kernel = Annotated[
    str | KernelObject,
    Words(*sorted(KERNEL_NAMES)),
    """``rbf`` (or ``gaussian``), ``laplacian``, ``matern12``, ``matern32``, ``matern52``, ``poly``
    (or ``polynomial``), ``linear`` (no intercept: ``poly`` of degree 1 has one), or any Kernel,
    sums and products included.""",
    "See :mod:`kernelstream.kernels`.",
]
IsotropicKernel = Annotated[
    str | KernelObject,
    Words(
        *sorted(name for name in KERNEL_NAMES if make_kernel(name, 1.0, 3, 1.0).unit),
        needed="a kernel that depends on the distance alone with k(x, x) = 1",
    ),
    """``rbf`` (or ``gaussian``), ``matern12``, ``matern32``, ``matern52``, ``laplacian``, or such a
    Kernel.""",
    """It must be isotropic with k(x, x) = 1: only then are points that lie close to one another
    close in the RKHS.""",
]
Gamma = Annotated[
    float | Literal["auto", "scale"],
    Number(above=0.0),
    LogRange(1 / 16, 16.0, unit="gamma"),
    "Of a kernel given by name.",
    """``auto`` is 1 / features, right for standardised data; ``scale`` is 1 / (features * variance)
    of the first call's samples, then frozen.""",
]
Degree = Annotated[int, Whole(1, 64), "Of the polynomial kernel."]
Coef0 = Annotated[float, Number(least=0.0), "Of the polynomial kernel."]

Alpha = Annotated[
    float,
    Number(least=0.0),
    LogRange(1e-7, 1e-2),
    "Regularisation (lambda in the paper).",
    "Must satisfy eta0 * alpha < 1.",
]
NamedRate = Annotated[
    str,
    Words(*STEP_NAMES),
    "eta0, eta0 / (1 + alpha eta0 t) or eta0 / sqrt(1 + t), t counting steps.",
    "A constant step keeps following a stream that changes.",
]
LearningRate = Annotated[
    str | Steps,
    Words(*STEP_NAMES),
    "eta0, eta0 / (1 + eta_decay t) or eta0 / sqrt(1 + eta_decay t), t counting steps.",
    """A constant step keeps following a stream that changes. ``Steps([...])`` or
    ``Steps(function)`` gives the steps themselves; eta0 and eta_decay then count for nothing.""",
]
EtaDecay = Annotated[
    float | Literal["auto"],
    Number(least=0.0),
    "How fast diminishing steps fall.",
    """``auto`` is alpha * eta0 for ``inverse_time``, which is 1 / (alpha t) in the end, and 1 for
    ``inverse_sqrt``. With a small alpha ``inverse_time`` then hardly falls: give a decay.""",
]
TrackingSchedule = Annotated[
    str,
    Words(*STEP_NAMES),
    "tracking_rate, tracking_rate / (1 + tracking_decay t) or / sqrt(1 + tracking_decay t).",
    "A constant rate keeps following a stream that changes.",
]
TrackingDecay = Annotated[
    float, Number(least=0.0), "How fast a diminishing ``tracking_schedule`` falls."
]
Eta0 = Annotated[
    float, Number(above=0.0), LogRange(0.02, 2.0), "The (first) step size (eta in the paper)."
]

CompressionError = Annotated[
    float | Literal["auto"] | Parsimony,
    Number(least=0.0),
    LogRange(1e-3, 0.5),
    """The error that each step may make to save points (eps in the paper), in the norm of the RKHS;
    larger: fewer points. ``auto`` is 0.1 eta^(3/2) for classes, 0.02 eta^(3/2) for numbers.""",
    """``Parsimony(K)`` is K eta^(3/2), ``Parsimony(K, 2)`` is K eta^2: both follow the step size. A
    sample that the stored points span to eight digits is merged into them even where this costs
    more (at most 1e-4 of its weight); ``error_spent_`` includes it.""",
]
MaxPoints = Annotated[
    int | None, Whole(1, 1_000_000), "Never hold more points than this, whatever the error."
]
MaxBytes = Annotated[int | None, Whole(1), "Never hold more memory than this, whatever the error."]
Slack = Annotated[
    int,
    Whole(0, 10_000),
    "Points beyond the cap that may wait to be projected together.",
    """At a cap of several hundred points this turns products of a matrix with a vector into
    products of matrices: with 64 a step at 1000 points takes a third of the time, and the model is
    as good. They are part of the model at once, count in ``model_order_`` and ``nbytes_`` and have
    room within ``max_bytes``. Steps of one sample only.""",
]
BatchSize = Annotated[
    int,
    Whole(1, 1_000_000),
    "Samples per step.",
    """An unfinished batch waits until it is full, or for ``flush()``: until then it is not learned
    from. Larger batches want a larger ``eta0``.""",
]
Average = Annotated[
    bool,
    Choices(False, True),
    "Predict with an average of the iterates in which recent ones weigh more.",
    """It lives on the same points. Much better where the stream does not change, worse where it
    changes fast.""",
]
AverageHorizon = Annotated[
    int | None, Whole(2), "Of ``average``: how many steps back it reaches; none: all of them."
]
Projection = Annotated[
    Literal["greedy", "random"],
    """Remove the cheapest point (KOMP), or points drawn at random (Remark 6): cheaper steps, a
    worse model.""",
]

ClassWeight = Annotated[
    dict[Any, float] | Literal["balanced"] | None,
    "How much samples of each class count, by label; balanced: so that all classes count alike.",
    """They multiply the weights of samples; classes that are not named have 1. ``balanced`` counts
    along the stream in ``partial_fit``, and beforehand in ``fit``.""",
]
Epochs = Annotated[
    int,
    Whole(1),
    "Passes over the data in ``fit``; ``partial_fit`` always makes one.",
]
Shuffle = Annotated[
    bool,
    "Whether ``fit`` visits the samples in a random order; ``partial_fit`` never does.",
]
Seed = Annotated[
    Any,
    RandomState(),
    "For the order in ``fit``, and for whatever else the method draws at random.",
]
