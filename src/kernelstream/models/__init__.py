"""Estimators: one method, one file."""

from kernelstream.models._files import load
from kernelstream.models.merging import merge
from kernelstream.models.polk import POLKClassifier, POLKRegressor

__all__ = ["POLKClassifier", "POLKRegressor", "load", "merge"]
