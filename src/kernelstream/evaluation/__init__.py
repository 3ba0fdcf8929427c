"""Looking at what a model has learned."""

from kernelstream.evaluation.plots import plot_decision_surface, plot_fit, plot_value_surface

__all__ = ["plot_decision_surface", "plot_fit", "plot_value_surface"]
