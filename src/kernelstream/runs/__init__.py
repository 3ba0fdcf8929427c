"""Runs over a stream: predict, learn, look at it on the way, stop, and go on later."""

from kernelstream.runs._reading import RunError
from kernelstream.runs._result import Result
from kernelstream.runs.comparing import ComparisonRun, compare
from kernelstream.runs.extraction import FeatureRun
from kernelstream.runs.learning import Run
from kernelstream.runs.tuning import Tuning, TuningRun, tune

__all__ = [
    "ComparisonRun",
    "FeatureRun",
    "Result",
    "Run",
    "RunError",
    "Tuning",
    "TuningRun",
    "compare",
    "tune",
]
