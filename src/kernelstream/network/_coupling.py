"""How an agent follows its neighbours, and how far it may.

Equation numbers are those of Koppel et al. (2020), Section III: see :mod:`kernelstream.network`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kernelstream.core.kernel import Rows, self_value
from kernelstream.kernels import Kernel
from kernelstream.losses import make_loss
from kernelstream.network._graph import as_strength
from kernelstream.network._messages import Name
from kernelstream.rows import plain_matrix


class Constraint(NamedTuple):
    """h_ij of (18) and its derivative in f_i, functions of the values of both at n samples.

    Both take the values of agent i and of its neighbour j, (n, outputs) each.
    """

    value: Callable[[Any, Any], Any]  # (n,)
    derivative: Callable[[Any, Any], Any]  # (n, outputs)


def as_constraint(given: Any) -> Constraint | None:
    """A pair of functions, checked; or nothing."""
    if given is None:
        return None
    if not isinstance(given, tuple) or len(given) != 2 or not all(map(callable, given)):
        raise ValueError(
            f"constraint must be a pair of functions, h_ij and its derivative in f_i, got {given!r}"
        )
    return Constraint(*given)


@dataclass(frozen=True)
class Coupling:
    """How an agent follows its neighbours.

    Parameters
    ----------
    kind : {"consensus", "proximity"}
        Penalty (17), or multipliers and tolerances (19)-(20).
    penalty : float or dict of neighbour to float
        c of (17), for ``consensus``.
    tolerance : float or dict of neighbour to float
        gamma_ij of (18), for ``proximity``.
    dual_regularisation : float
        delta of (20).
    normalised : bool
        Divide the pull by 1 + 2 eta pull k(x, x): f(x) moves less than half its way to what the
        neighbours answer, whatever the strength. Otherwise a penalty that could make neighbours
        overshoot one another is refused, and a pull that comes to do so later (of a multiplier,
        or with a kernel whose k(x, x) has no bound) is cut at half the way.
    limited : bool
        False: (17) and (19) as they are printed. Nothing is divided, refused or cut; only weights
        that would overflow are refused.
    two_way : bool
        Also learn at the neighbours' samples: the other half of the penalty's gradient, which
        (17) leaves out.

    constraint : Constraint, optional
        h_ij of (18), for ``proximity``; by default |f_i - f_j|^2. Its curvature is not known, so
        that nothing can be limited.

    Examples
    --------
    >>> from kernelstream.network import Coupling
    >>> Coupling("consensus", penalty={"Ann": 0.1, "Bob": 1.0}).penalty["Bob"]
    1.0
    """

    kind: str
    penalty: float | Mapping[Name, float] = 0.0
    tolerance: float | Mapping[Name, float] = 0.0
    dual_regularisation: float = 0.0
    normalised: bool = True
    two_way: bool = False
    limited: bool = True
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        as_strength("dual_regularisation", self.dual_regularisation)
        if self.constraint is not None and (self.limited or self.two_way):
            raise ValueError(
                "a constraint of your own is for coupling='printed' and two_way=False: how much of "
                "its pull would be stable is not known, nor its derivative in the neighbour's value"
            )
        for what, given in (("penalty", self.penalty), ("tolerance", self.tolerance)):
            for number in given.values() if isinstance(given, Mapping) else [given]:
                as_strength(what, number)

    def check_step(self, eta0: float) -> None:
        """Refuse steps with which (20) could make multipliers negative."""
        if not self.dual_regularisation * eta0**2 < 1.0:
            raise ValueError(
                f"dual_regularisation * eta0**2 must be below 1 for multipliers to stay "
                f"non-negative, got {self.dual_regularisation} * {eta0}**2"
            )

    def check_explicit(self, penalty: float, model: Any) -> None:
        """Refuse an explicit pull with which two neighbours could overshoot one another.

        ``penalty`` is the sum over all neighbours. Learning at one x, they lose a part of their
        difference: from 2 on it grows. No check where every step has a limit of its own, see
        :func:`pull_factor`.
        """
        if self.normalised or not self.limited or not _bounded(self, model.kernel_):
            return
        # With two_way every edge pulls at both its agents' samples.
        total = penalty * (2.0 if self.two_way else 1.0)
        k_xx = self_value(model.kernel_.program, 0.0)
        # With several outputs the margin is a difference of two of them.
        curvature = make_loss(model.loss).curvature * (2.0 if model._outputs > 1 else 1.0)
        pull, slope = model.eta0 * total * k_xx, model.eta0 * curvature * k_xx
        # Each agent goes `pull` of its way to the other: their difference is multiplied by
        # 1 - 2 pull - slope - eta0 alpha, to be kept above -1. More neighbours are no worse: the
        # eigenvalues of I - D^-1 A, which 2 bounds, take the place of 2.
        lost = 2.0 * pull + slope + model.eta0 * model.alpha
        if not lost < 2.0:
            raise ValueError(
                "eta0 * (2 * penalty * degree * k(x, x) + curvature of the loss * k(x, x) + "
                f"alpha) = {lost:.3g} is not below 2: neighbours would overshoot one another. "
                "Choose a smaller penalty or eta0, or coupling='normalised', which limits the "
                "pull of any penalty"
            )


def pull_factor(coupling: Coupling, kernel: Kernel, pull: float, unit: float, rows: Rows) -> float:
    """The factor of the pull of all neighbours together, which is ``eta pull`` in such units.

    It is a gradient step on a quadratic of curvature at most pull k(x, x): f moves that share
    of its way to the neighbours' values. They move towards f in the same round, so a share
    beyond 1/2 would overshoot; half leaves the loss a step of its own.
    """
    if pull == 0.0 or not coupling.limited:
        return unit
    largest = 0.0  # k(x, x) grows with |x| where it is not the same everywhere
    if not kernel.unit:
        matrix = plain_matrix(rows)
        largest = float((matrix.multiply(matrix) if rows.sparse else matrix**2).sum(axis=1).max())
    rate = pull * self_value(kernel.program, largest)
    if coupling.normalised:
        return float(1.0 / (1.0 / unit + 2.0 * rate))  # unit / (1 + 2 unit rate)
    if _bounded(coupling, kernel):
        return unit  # what overshoots was refused, see check_explicit
    return float(1.0 / max(1.0 / unit, 2.0 * rate))


def _bounded(coupling: Coupling, kernel: Kernel) -> bool:
    """Whether the pull is known before the first sample."""
    return coupling.kind == "consensus" and kernel.unit
