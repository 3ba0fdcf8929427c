"""What a pass does with each sample: which parts, and their numbers.

One record instead of dozens of arguments: a part that needs another number adds a line here, and
no signature changes. Numbers that a method does not use are zero.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SETTINGS = np.dtype(
    (
        np.record,
        [
            # Which parts: codes in core/direct, core/grow and core/reduce.
            ("direct", "i8"),
            ("grow", "i8"),
            ("reduce", "i8"),
            # The function.
            ("outputs", "i8"),
            ("compressed", "i8"),  # rows of weights that compression acts on: the first ones
            ("loss", "i8"),
            ("loss_number", "f8"),  # the loss's own parameter
            # The step.
            ("regularisation", "f8"),  # lambda
            ("schedule", "i8"),
            ("initial_step", "f8"),  # eta
            ("decay", "f8"),
            ("batch", "i8"),  # samples per step
            ("aggressiveness", "f8"),  # C of passive-aggressive steps
            ("nu", "f8"),  # share of the samples that an adaptive margin is to leave outside
            ("averaging", "f8"),  # 0: none; s >= 1: average with weights growing like t^(s - 1) ...
            ("horizon", "f8"),  # ... until that means fewer steps than these, then fading
            # Compression.
            ("novelty", "f8"),  # eta of Projectron: what is nearer to the span is projected
            ("most", "i8"),  # cap on the number of points
            ("slack", "i8"),  # points beyond the cap before they are projected together
            ("budget", "i8"),  # error that a step may make
            ("budget_number", "f8"),
            ("projection", "i8"),  # what pursuit removes
            ("radius", "f8"),  # of the ball that the function stays in
            ("largest", "f8"),  # BOGD: cap on weights in steps, gamma in the paper
            ("start", "i8"),  # NPBSGD: points up to which nothing leaves ...
            ("delay", "f8"),  # ... and beta of min(1, beta / t), the probability that one does then
            # Tracking of an inner expectation: COLK and policy evaluation.
            ("tracking", "i8"),
            ("tracking_rate", "f8"),  # beta ...
            ("tracking_schedule", "i8"),  # ... as a function of the step
            ("tracking_decay", "f8"),
            ("risk", "i8"),
            ("risk_weight", "f8"),  # eta in the paper
            ("moments", "i8"),  # P: moments 2 .. P of the loss
            ("level", "f8"),  # of CVaR
            ("cut", "f8"),  # deviations from the tracker are cut at +- this
            # Cells: AVM.
            ("cell_shape", "i8"),
            ("delta", "f8"),  # their diameter
            ("exact", "f8"),  # P(Z_t = 1) = max(0, 1 - exact / t^exact_decay): beta and rho
            ("exact_decay", "f8"),
            ("by_margin", "i8"),  # whether Z_t is 0 for samples with ...
            ("exact_margin", "f8"),  # ... a smaller margin than this
            ("suffix", "f8"),  # 0: no average; 1: of all iterates; between: of the last such part
            ("lagging", "i8"),  # whether the iterates averaged are those before each step
            ("average_from", "i8"),  # the average begins again after so many steps, or 0
            ("memory", "f8"),  # 0: predict with the average; else with that or the last iterate,
            # whichever made fewer mistakes on about so many of the samples compared
            ("ball", "i8"),  # 1: project onto the ball of radius sqrt(2 l(0) / lambda)
        ],
    )
)


def make_settings(**values: Any) -> NDArray[Any]:
    """The record, as the array of one that passes take."""
    settings = np.zeros(1, SETTINGS)
    for name, value in values.items():
        settings[0][name] = value
    return settings
