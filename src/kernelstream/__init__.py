"""Kernel machines for endless streams."""

from typing import TYPE_CHECKING, Any

from kernelstream._version import __version__
from kernelstream.errors import DivergenceError, IllConditionedError
from kernelstream.expansion import KernelExpansion
from kernelstream.losses import Loss
from kernelstream.storage import ModelFileError
from kernelstream.streams import make_multidist, make_regression_outliers

if TYPE_CHECKING:
    from kernelstream.models import POLKClassifier, POLKRegressor, load, merge

__all__ = [
    "DivergenceError",
    "IllConditionedError",
    "KernelExpansion",
    "Loss",
    "ModelFileError",
    "POLKClassifier",
    "POLKRegressor",
    "__version__",
    "load",
    "make_multidist",
    "make_regression_outliers",
    "merge",
]


def __getattr__(name: str) -> Any:
    """Estimators when first asked for: scikit-learn takes longer to import than all of this."""
    if name in __all__:
        from kernelstream import models

        return getattr(models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
