"""Estimators: one method, one file."""

from kernelstream.models._files import load
from kernelstream.models.avm import AVMClassifier, AVMRegressor
from kernelstream.models.colk import COLKClassifier, COLKRegressor
from kernelstream.models.compositional import CompositionalLearner
from kernelstream.models.merging import merge
from kernelstream.models.policy import KernelPolicyEvaluation
from kernelstream.models.polk import POLKClassifier, POLKRegressor

__all__ = [
    "AVMClassifier",
    "AVMRegressor",
    "COLKClassifier",
    "COLKRegressor",
    "CompositionalLearner",
    "KernelPolicyEvaluation",
    "POLKClassifier",
    "POLKRegressor",
    "load",
    "merge",
]
