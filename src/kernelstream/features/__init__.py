"""Low-rank nonlinear features: a few numbers per sample whose products approximate a kernel."""

from kernelstream.features.batch import KernelFeatures
from kernelstream.features.joint import OnlineKernelFeatureClassifier, OnlineKernelFeatureRegressor
from kernelstream.features.online import OnlineKernelFeatures

__all__ = [
    "KernelFeatures",
    "OnlineKernelFeatureClassifier",
    "OnlineKernelFeatureRegressor",
    "OnlineKernelFeatures",
]
