"""Numbers that the fits of `tests/fingerprints.py` came to in version 0.1, kept for good.

``python -m tests.reference write`` records what they come to now in ``tests/golden/0.1/fits.npz``:
only where a method itself was changed. ``python -m tests.reference`` compares, and names the fits
that differ at all, with the largest difference.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fingerprints import MODELS, learned

FILE = Path(__file__).parent / "golden" / "0.1" / "fits.npz"
#: Samples of each stream that are predicted.
ROWS = 25
_METHODS = ("decision_function", "predict", "transform", "inverse_fit_error")
_NUMBERS = ("model_order_", "n_seen_", "n_forced_", "error_spent_")


def numbers(name: str) -> NDArray[np.float64]:
    """Predictions of a fit and what it counted."""
    model = learned(name)
    X: Any = next(iter(MODELS[name].stream().values()))[:ROWS]
    parts = [getattr(model, method)(X) for method in _METHODS if hasattr(model, method)]
    parts += [getattr(model, number) for number in _NUMBERS if hasattr(model, number)]
    return np.concatenate([np.ravel(part).astype(np.float64) for part in parts])


def difference(now: NDArray[np.float64], then: NDArray[np.float64]) -> float:
    """The largest, relative to numbers above 1."""
    if now.shape != then.shape:
        return np.inf
    return float(np.max(np.abs(now - then) / np.maximum(1.0, np.abs(then)), initial=0.0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["write"]:
        np.savez_compressed(FILE, **{name: numbers(name) for name in MODELS})
        sys.exit()
    recorded = np.load(FILE)
    for name in recorded:
        then, now = recorded[name], numbers(name)
        if not np.array_equal(now, then):
            print(f"{name}: {difference(now, then):.1e}")
    print(f"{len(recorded)} fits compared")
