"""Methods that project on their points: they keep a factor of the inverse kernel matrix."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from kernelstream.compression import komp
from kernelstream.core.grow import SPAN
from kernelstream.core.reduce.komp import BLOCK, GREEDY, prune_block
from kernelstream.core.settings import make_settings
from kernelstream.docstrings import documented
from kernelstream.losses import make_loss
from kernelstream.models._single import SingleSteps
from kernelstream.models._words import CAP_COSTS, count_of


class ProjectingEstimator(SingleSteps):
    """A method says what its steps are, and what it does at the cap in words."""

    _at_the_cap: ClassVar[str]  # what happens there, after "made room 3 times by"

    _grow: ClassVar[int] = SPAN  # see core/grow

    def _choices(self) -> dict[str, Any]:
        """The numbers of its steps, by the names of ``core/settings.py``."""
        raise NotImplementedError

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        return make_settings(
            grow=self._grow, reduce=self._reduce, outputs=outputs, compressed=outputs,
            loss=make_loss(self.loss).code, batch=1, most=most, **self._choices(),
        )  # fmt: skip

    def _drop_points(self, most: int) -> None:
        prune_block(self._state, self._outputs, 0.0, 0.0, most, GREEDY, BLOCK)

    def _watch(self) -> None:
        komp.watch(self._state, self.kernel_, self._outputs)

    def _cap_effect(self, cap: str) -> str:
        times = count_of(self.n_forced_, "time")
        return f"{cap} made room {times} by {self._at_the_cap}. {CAP_COSTS}"

    def _approximation(self) -> tuple[str, str]:
        return "Projections", (
            "What was projected on the points is not quite what it was. This is how far the "
            "function moved by that, in the norm of the function space, summed over all steps. At "
            f"the cap room is made by {self._at_the_cap}."
        )

    nbytes_ = documented(
        SingleSteps.nbytes_,
        """Bytes held, at most 8 c (p + C + 4 + c) plus a record, where the capacity c is at most
        4 max(17, M + 1) and C counts the outputs.""",
    )

    @property
    def residual_(self) -> float:
        """``max |S S^T K - I|``: how far the factor of the inverse Gram matrix is from exact."""
        return komp.residual(self._fitted(), self.kernel_)
