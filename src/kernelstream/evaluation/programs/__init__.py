"""Learners of other packages in a prequential run, and rules that know no features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from kernelstream.evaluation.learner import Learner
from kernelstream.evaluation.programs.capymoa import CapyMOAProgram
from kernelstream.evaluation.programs.one_by_one import OneByOne, Program
from kernelstream.evaluation.programs.partial_fit import PartialFitProgram
from kernelstream.evaluation.programs.river import RiverProgram
from kernelstream.evaluation.programs.rules import RULES, Rule

__all__ = [
    "RULES",
    "CapyMOAProgram",
    "OneByOne",
    "PartialFitProgram",
    "Program",
    "RiverProgram",
    "Rule",
    "learner_for",
]


def learner_for(
    model: Any, metrics: Sequence[str] | None, classes: ArrayLike | None, losses: bool
) -> Learner:
    """A model under test: one of this package, of River, of CapyMOA, or with ``partial_fit``."""
    if isinstance(model, Learner):
        return model
    if not hasattr(model, "predict_then_learn"):
        if RiverProgram.takes(model):
            return OneByOne(RiverProgram(model), metrics)
        if CapyMOAProgram.takes(model):
            return OneByOne(CapyMOAProgram(model), metrics)
    return Learner(model, metrics, classes, losses)
