"""Kernel machines for endless streams."""

from kernelstream._version import __version__
from kernelstream.errors import DivergenceError, IllConditionedError
from kernelstream.expansion import KernelExpansion
from kernelstream.losses import Loss
from kernelstream.models import POLKClassifier, POLKRegressor
from kernelstream.models._files import load
from kernelstream.storage import ModelFileError
from kernelstream.streams import make_multidist, make_regression_outliers

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
]
