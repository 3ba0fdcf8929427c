"""A run as a page: one HTML file that needs nothing else."""

from kernelstream.report.comparison_page import write_comparison_report
from kernelstream.report.features_page import write_features_report
from kernelstream.report.page import write_report

__all__ = ["write_comparison_report", "write_features_report", "write_report"]
