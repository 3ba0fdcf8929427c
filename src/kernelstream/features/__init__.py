"""Kernel features: a low-rank subspace of the kernel's space, learned from a stream."""

from kernelstream.features.joint import OnlineKernelFeatureClassifier, OnlineKernelFeatureRegressor
from kernelstream.features.online import OnlineKernelFeatures

__all__ = [
    "OnlineKernelFeatureClassifier",
    "OnlineKernelFeatureRegressor",
    "OnlineKernelFeatures",
]
