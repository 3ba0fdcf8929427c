"""Estimators: one method, one file.

Every file in this folder is a method, imported when one of its names is asked for, or when all
methods are (:func:`import_all`): a new file is a new method. ``make lists`` writes the names below,
for type checkers and editors.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelstream.models._files import load
    from kernelstream.models.ahpatron import AhpatronClassifier
    from kernelstream.models.auto import AutoClassifier, AutoRegressor
    from kernelstream.models.avm import AVMClassifier, AVMRegressor
    from kernelstream.models.bogd import BOGDClassifier
    from kernelstream.models.bpa import BPANNClassifier, BPAPClassifier, BPASClassifier
    from kernelstream.models.bsgd import BSGDClassifier
    from kernelstream.models.colk import COLKClassifier, COLKRegressor
    from kernelstream.models.compositional import CompositionalLearner
    from kernelstream.models.dualsgd import DualSGDClassifier, DualSGDRegressor
    from kernelstream.models.fixed_budget_krls import FixedBudgetKRLSRegressor
    from kernelstream.models.fogd import FOGDClassifier, FOGDRegressor
    from kernelstream.models.forgetron import ForgetronClassifier
    from kernelstream.models.klms import KLMSRegressor
    from kernelstream.models.knlms import KNLMSRegressor
    from kernelstream.models.krls import KRLSRegressor
    from kernelstream.models.krlst import KRLSTClassifier, KRLSTRegressor
    from kernelstream.models.merging import merge
    from kernelstream.models.nogd import NOGDClassifier, NOGDRegressor
    from kernelstream.models.norma import NORMAClassifier, NORMARegressor
    from kernelstream.models.novelty import NoveltyDetector
    from kernelstream.models.npbsgd import NPBSGDClassifier, NPBSGDRegressor
    from kernelstream.models.ogd import OGDClassifier, OGDRegressor
    from kernelstream.models.passive_aggressive import KernelPAClassifier, KernelPARegressor
    from kernelstream.models.pegasos import PegasosClassifier
    from kernelstream.models.perceptron import KernelPerceptronClassifier
    from kernelstream.models.policy import KernelPolicyEvaluation
    from kernelstream.models.polk import POLKClassifier, POLKRegressor
    from kernelstream.models.projectron import ProjectronClassifier, ProjectronPlusClassifier
    from kernelstream.models.qklms import QKLMSRegressor
    from kernelstream.models.random_features import RandomFeatureClassifier, RandomFeatureRegressor
    from kernelstream.models.rbp import RBPClassifier
    from kernelstream.models.sliding_krls import SlidingKRLSRegressor
    from kernelstream.models.windowed_ogd import WindowedOGDClassifier, WindowedOGDRegressor

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
    "CompositionalLearner",
    "DualSGDClassifier",
    "DualSGDRegressor",
    "FOGDClassifier",
    "FOGDRegressor",
    "FixedBudgetKRLSRegressor",
    "ForgetronClassifier",
    "KLMSRegressor",
    "KNLMSRegressor",
    "KRLSRegressor",
    "KRLSTClassifier",
    "KRLSTRegressor",
    "KernelPAClassifier",
    "KernelPARegressor",
    "KernelPerceptronClassifier",
    "KernelPolicyEvaluation",
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
    "PegasosClassifier",
    "ProjectronClassifier",
    "ProjectronPlusClassifier",
    "QKLMSRegressor",
    "RBPClassifier",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "SlidingKRLSRegressor",
    "WindowedOGDClassifier",
    "WindowedOGDRegressor",
    "load",
    "merge",
]

#: Where the names above are defined.
_HOMES = {
    "AVMClassifier": "avm",
    "AVMRegressor": "avm",
    "AhpatronClassifier": "ahpatron",
    "AutoClassifier": "auto",
    "AutoRegressor": "auto",
    "BOGDClassifier": "bogd",
    "BPANNClassifier": "bpa",
    "BPAPClassifier": "bpa",
    "BPASClassifier": "bpa",
    "BSGDClassifier": "bsgd",
    "COLKClassifier": "colk",
    "COLKRegressor": "colk",
    "CompositionalLearner": "compositional",
    "DualSGDClassifier": "dualsgd",
    "DualSGDRegressor": "dualsgd",
    "FOGDClassifier": "fogd",
    "FOGDRegressor": "fogd",
    "FixedBudgetKRLSRegressor": "fixed_budget_krls",
    "ForgetronClassifier": "forgetron",
    "KLMSRegressor": "klms",
    "KNLMSRegressor": "knlms",
    "KRLSRegressor": "krls",
    "KRLSTClassifier": "krlst",
    "KRLSTRegressor": "krlst",
    "KernelPAClassifier": "passive_aggressive",
    "KernelPARegressor": "passive_aggressive",
    "KernelPerceptronClassifier": "perceptron",
    "KernelPolicyEvaluation": "policy",
    "NOGDClassifier": "nogd",
    "NOGDRegressor": "nogd",
    "NORMAClassifier": "norma",
    "NORMARegressor": "norma",
    "NPBSGDClassifier": "npbsgd",
    "NPBSGDRegressor": "npbsgd",
    "NoveltyDetector": "novelty",
    "OGDClassifier": "ogd",
    "OGDRegressor": "ogd",
    "POLKClassifier": "polk",
    "POLKRegressor": "polk",
    "PegasosClassifier": "pegasos",
    "ProjectronClassifier": "projectron",
    "ProjectronPlusClassifier": "projectron",
    "QKLMSRegressor": "qklms",
    "RBPClassifier": "rbp",
    "RandomFeatureClassifier": "random_features",
    "RandomFeatureRegressor": "random_features",
    "SlidingKRLSRegressor": "sliding_krls",
    "WindowedOGDClassifier": "windowed_ogd",
    "WindowedOGDRegressor": "windowed_ogd",
    "load": "_files",
    "merge": "merging",
}


def estimators_in(module: ModuleType) -> dict[str, type[Any]]:
    """The public estimators that a module defines, by name."""
    from kernelstream.models._stream import StreamEstimator

    return {
        name: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and issubclass(kind, StreamEstimator)
        and kind.__module__ == module.__name__
        and not name.startswith("_")
    }


def import_all() -> None:
    """Import every file of this folder: all methods are registered then, and named here."""
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not file.name.rpartition(".")[2].startswith("_"):
            globals().update(estimators_in(importlib.import_module(file.name)))


def __getattr__(name: str) -> Any:
    """Everything when it is first asked for: thirty methods take their time."""
    if name not in _HOMES and name[:1].isupper():
        import_all()  # a method whose file is new is not in the list yet
        if name in globals():
            return globals()[name]
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
