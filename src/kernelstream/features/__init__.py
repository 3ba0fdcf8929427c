"""Low-rank nonlinear features: a few numbers per sample whose products approximate a kernel."""

from kernelstream.features.batch import KernelFeatures

__all__ = ["KernelFeatures"]
