"""Kernel machines for endless streams."""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from kernelstream._version import __version__

if TYPE_CHECKING:
    from kernelstream.compression.coverage import Coverage
    from kernelstream.errors import CapWarning, DivergenceError, IllConditionedError
    from kernelstream.expansion import KernelExpansion
    from kernelstream.losses import Loss
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
        DualSGDClassifier,
        DualSGDRegressor,
        FixedBudgetKRLSRegressor,
        FOGDClassifier,
        FOGDRegressor,
        ForgetronClassifier,
        KernelPAClassifier,
        KernelPARegressor,
        KernelPerceptronClassifier,
        KernelPolicyEvaluation,
        KLMSRegressor,
        KNLMSRegressor,
        KRLSRegressor,
        KRLSTClassifier,
        KRLSTRegressor,
        NOGDClassifier,
        NOGDRegressor,
        NORMAClassifier,
        NORMARegressor,
        NoveltyDetector,
        NPBSGDClassifier,
        NPBSGDRegressor,
        OGDClassifier,
        OGDRegressor,
        PegasosClassifier,
        POLKClassifier,
        POLKRegressor,
        ProjectronClassifier,
        ProjectronPlusClassifier,
        QKLMSRegressor,
        RandomFeatureClassifier,
        RandomFeatureRegressor,
        RBPClassifier,
        SlidingKRLSRegressor,
        WindowedOGDClassifier,
        WindowedOGDRegressor,
        load,
        merge,
    )
    from kernelstream.network.sharding import fit_sharded
    from kernelstream.pipeline import StreamModel
    from kernelstream.preparation import Preparation
    from kernelstream.runs import ComparisonRun, Run, TuningRun, compare, tune
    from kernelstream.schedules import Parsimony, Steps
    from kernelstream.storage import ModelFileError
    from kernelstream.streams import make_multidist, make_regression_outliers

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
    "DualSGDClassifier",
    "DualSGDRegressor",
    "FOGDClassifier",
    "FOGDRegressor",
    "FixedBudgetKRLSRegressor",
    "ForgetronClassifier",
    "IllConditionedError",
    "KLMSRegressor",
    "KNLMSRegressor",
    "KRLSRegressor",
    "KRLSTClassifier",
    "KRLSTRegressor",
    "KernelExpansion",
    "KernelPAClassifier",
    "KernelPARegressor",
    "KernelPerceptronClassifier",
    "KernelPolicyEvaluation",
    "Loss",
    "ModelFileError",
    "NOGDClassifier",
    "NOGDRegressor",
    "NORMAClassifier",
    "NORMARegressor",
    "NPBSGDClassifier",
    "NPBSGDRegressor",
    "NoveltyDetector",
    "OGDClassifier",
    "OGDRegressor",
    "POLKClassifier",
    "POLKRegressor",
    "Parsimony",
    "PegasosClassifier",
    "Preparation",
    "ProjectronClassifier",
    "ProjectronPlusClassifier",
    "QKLMSRegressor",
    "RBPClassifier",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "Run",
    "SlidingKRLSRegressor",
    "Steps",
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


#: Where names are that need none of the estimators.
_HOMES = {
    "ComparisonRun": "runs",
    "compare": "runs",
    "Coverage": "compression.coverage",
    "CapWarning": "errors",
    "DivergenceError": "errors",
    "IllConditionedError": "errors",
    "KernelExpansion": "expansion",
    "Loss": "losses",
    "ModelFileError": "storage",
    "Parsimony": "schedules",
    "Run": "runs",
    "Steps": "schedules",
    "TuningRun": "runs",
    "tune": "runs",
    "make_multidist": "streams",
    "make_regression_outliers": "streams",
}


def __getattr__(name: str) -> Any:
    """Everything when it is first asked for: NumPy, Numba and scikit-learn take their time."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"kernelstream.{_HOMES[name]}"), name)
    # A method whose file is new is not in the list yet. Modules have names in small letters.
    if name in __all__ or name[:1].isupper():
        # The pipelines and the networks too, whatever is asked for: load reads their files.
        from kernelstream import feature_stream, models, network, pipeline, preparation

        homes = (models, pipeline, preparation, feature_stream, network)
        for home in homes:
            if hasattr(home, name):
                return getattr(home, name)
    elif not name.startswith("_") and importlib.util.find_spec(f"kernelstream.{name}"):
        return importlib.import_module(f"kernelstream.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
