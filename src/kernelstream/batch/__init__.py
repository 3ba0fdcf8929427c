"""Methods that see all samples at once: references for experiments, not for streams.

Beside them: :class:`kernelstream.features.KernelFeatures`, the batch features of OK-FEB's paper.
"""

from kernelstream.batch.approximation import (
    KernelApproximation,
    improved_nystroem,
    meka,
    shifted_nystroem,
)
from kernelstream.batch.import_vectors import ImportVectorMachine
from kernelstream.batch.libsvm import LibSVMClassifier
from kernelstream.batch.logistic import KernelLogisticRegression

__all__ = [
    "ImportVectorMachine",
    "KernelApproximation",
    "KernelLogisticRegression",
    "LibSVMClassifier",
    "improved_nystroem",
    "meka",
    "shifted_nystroem",
]
