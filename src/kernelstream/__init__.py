"""Kernel machines for endless streams."""

from typing import TYPE_CHECKING, Any

from kernelstream._version import __version__
from kernelstream.compression.coverage import Coverage
from kernelstream.errors import CapWarning, DivergenceError, IllConditionedError
from kernelstream.expansion import KernelExpansion
from kernelstream.losses import Loss
from kernelstream.schedules import Parsimony
from kernelstream.storage import ModelFileError
from kernelstream.streams import make_multidist, make_regression_outliers

if TYPE_CHECKING:
    from kernelstream.models import (
        AhpatronClassifier,
        AutoClassifier,
        AutoRegressor,
        AVMClassifier,
        AVMRegressor,
        BOGDClassifier,
        BPANNClassifier,
        BPAPClassifier,
        BPASClassifier,
        BSGDClassifier,
        COLKClassifier,
        COLKRegressor,
        CompositionalLearner,
        ForgetronClassifier,
        KernelPAClassifier,
        KernelPARegressor,
        KernelPerceptronClassifier,
        KernelPolicyEvaluation,
        KRLSTClassifier,
        KRLSTRegressor,
        NORMAClassifier,
        NORMARegressor,
        NPBSGDClassifier,
        NPBSGDRegressor,
        OGDClassifier,
        OGDRegressor,
        PegasosClassifier,
        POLKClassifier,
        POLKRegressor,
        ProjectronClassifier,
        ProjectronPlusClassifier,
        RBPClassifier,
        WindowedOGDClassifier,
        WindowedOGDRegressor,
        load,
        merge,
    )
    from kernelstream.network.sharding import fit_sharded
    from kernelstream.pipeline import StreamModel
    from kernelstream.preparation import Preparation
    from kernelstream.runs import ComparisonRun, Run, TuningRun, compare, tune

__all__ = [
    "AVMClassifier",
    "AVMRegressor",
    "AhpatronClassifier",
    "AutoClassifier",
    "AutoRegressor",
    "BOGDClassifier",
    "BPANNClassifier",
    "BPAPClassifier",
    "BPASClassifier",
    "BSGDClassifier",
    "COLKClassifier",
    "COLKRegressor",
    "CapWarning",
    "ComparisonRun",
    "CompositionalLearner",
    "Coverage",
    "DivergenceError",
    "ForgetronClassifier",
    "IllConditionedError",
    "KRLSTClassifier",
    "KRLSTRegressor",
    "KernelExpansion",
    "KernelPAClassifier",
    "KernelPARegressor",
    "KernelPerceptronClassifier",
    "KernelPolicyEvaluation",
    "Loss",
    "ModelFileError",
    "NORMAClassifier",
    "NORMARegressor",
    "NPBSGDClassifier",
    "NPBSGDRegressor",
    "OGDClassifier",
    "OGDRegressor",
    "POLKClassifier",
    "POLKRegressor",
    "Parsimony",
    "PegasosClassifier",
    "Preparation",
    "ProjectronClassifier",
    "ProjectronPlusClassifier",
    "RBPClassifier",
    "Run",
    "StreamModel",
    "TuningRun",
    "WindowedOGDClassifier",
    "WindowedOGDRegressor",
    "__version__",
    "compare",
    "fit_sharded",
    "load",
    "make_multidist",
    "make_regression_outliers",
    "merge",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Estimators when first asked for: scikit-learn takes longer to import than all of this."""
    if name in ("ComparisonRun", "Run", "TuningRun", "compare", "tune"):
        from kernelstream import runs

        return getattr(runs, name)
    # A method whose file is new is not in the list yet. Modules have names in small letters.
    if name in __all__ or name[:1].isupper():
        # The pipelines and the networks too, whatever is asked for: load reads their files.
        from kernelstream import feature_stream, models, network, pipeline, preparation

        homes = (models, pipeline, preparation, feature_stream, network)
        for home in homes:
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
