"""Random Fourier features: D frequencies drawn from the spectrum of the kernel."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.kernel import Rows
from kernelstream.core.linear_features import FOURIER
from kernelstream.kernels import Gaussian, Kernel, Laplacian, Matern32, Matern52
from kernelstream.models._linear_features import LinearOnFeatures, phases
from kernelstream.parameters import Whole

#: Heavy tails give larger ones, whose phases would hold no digit.
LARGEST_FREQUENCY = 1e9


class RandomFeatures(LinearOnFeatures):
    """2 D features cos(w.x) / sqrt(D) and sin(w.x) / sqrt(D), whose products are near the kernel.

    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.
    """

    max_points: Annotated[
        int,
        Whole(1, 10_000),
        "Frequencies (D in the paper): each takes the memory of a point, and gives two features.",
    ] = 400

    _sets = 2

    def _shapes(self, features: int, outputs: int, most: int) -> dict[str, tuple[int, ...]]:
        return {
            "points": (features, most), "square_norms": (0,), "absolute_norms": (0,),
            "weights": (2 * outputs, most), "projection": (0, 0),
        }  # fmt: skip

    def _kind(self) -> int:
        return FOURIER

    def _fill(self, state: Any, seed: int) -> None:
        super()._fill(state, seed)
        most = self._size(state)
        state.points[:] = frequencies(self.kernel_, seed, most, self.n_features_in_)
        state.status[0]["order"] = most

    def _resize(self, most: int) -> None:
        old = self._state
        new = self._allocate(most)
        self._fill(new, int(old.status[0]["random"]))  # the same frequencies, more or fewer
        kept = min(most, self._size(old))
        # Features have 1 / sqrt(D): what is kept of the function does not change.
        new.weights[:, :kept] = old.weights[:, :kept] * np.sqrt(most / self._size(old))
        for name in ("seen", "forced", "scale"):
            new.status[0][name] = old.status[0][name]
        self._state = new

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        state, outputs = self._state, self._outputs
        weights = state.weights * (state.status[0]["scale"] / np.sqrt(self._size(state)))
        found = phases(state, rows)
        return np.cos(found) @ weights[:outputs].T + np.sin(found) @ weights[outputs:].T  # type: ignore[no-any-return]

    def _check_read(self, state: Any) -> None:
        super()._check_read(state)
        far = np.abs(state.points).max(initial=0.0) > LARGEST_FREQUENCY
        if far or state.order != self._size(state):
            raise ValueError("the state's parts contradict one another")


def frequencies(kernel: Kernel, seed: int, count: int, features: int) -> NDArray[np.float64]:
    """(p, D) from the kernel's spectrum; the first ones of more are the same.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern
    seed : int
    count, features : D and p
    """
    random = np.random.default_rng(seed)
    gamma: Any = getattr(kernel, "gamma", None)
    if isinstance(kernel, Gaussian):
        drawn = np.sqrt(2.0 * gamma) * random.standard_normal((count, features))
    elif isinstance(kernel, Laplacian):
        drawn = gamma * random.standard_cauchy((count, features))
    elif isinstance(kernel, Matern32 | Matern52):  # Student's t, of as many degrees as 2 nu
        degrees = 3.0 if isinstance(kernel, Matern32) else 5.0
        drawn = np.sqrt(2.0 * gamma) * random.standard_normal((count, features))
        squares = 2.0 * np.random.default_rng([seed, 1]).standard_gamma(degrees / 2.0, count)
        drawn /= np.sqrt(squares / degrees)[:, None]
    else:
        raise ValueError(
            f"random features need a kernel whose spectrum is known: 'rbf', 'laplacian', "
            f"'matern32' or 'matern52', got {kernel!r}"
        )
    return np.clip(drawn.T, -LARGEST_FREQUENCY, LARGEST_FREQUENCY)
