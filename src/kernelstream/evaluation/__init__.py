"""How well a model does on a stream, and what it has learned."""

from kernelstream.evaluation.comparison import Comparison, Contestant
from kernelstream.evaluation.coverage_studies import (
    DiameterCurve,
    SamplingSurface,
    beta_rho_surface,
    candidate_deltas,
    diameter_curve,
)
from kernelstream.evaluation.fit_errors import Change, FitTrace, RiseDetector
from kernelstream.evaluation.metrics import METRICS, ClassMetrics, NumberMetrics
from kernelstream.evaluation.network_plots import (
    plot_agent_surfaces,
    plot_network,
    plot_network_trace,
)
from kernelstream.evaluation.plots import plot_decision_surface, plot_fit, plot_value_surface
from kernelstream.evaluation.prequential import Prequential, prequential
from kernelstream.evaluation.risk import LossDistribution
from kernelstream.evaluation.trace import Trace

__all__ = [
    "METRICS",
    "Change",
    "ClassMetrics",
    "Comparison",
    "Contestant",
    "DiameterCurve",
    "FitTrace",
    "LossDistribution",
    "NumberMetrics",
    "Prequential",
    "RiseDetector",
    "SamplingSurface",
    "Trace",
    "beta_rho_surface",
    "candidate_deltas",
    "diameter_curve",
    "plot_agent_surfaces",
    "plot_decision_surface",
    "plot_fit",
    "plot_network",
    "plot_network_trace",
    "plot_value_surface",
    "prequential",
]
