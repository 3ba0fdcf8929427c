"""A run as a page: one HTML file that needs nothing else."""

from kernelstream.report.page import write_report

__all__ = ["write_report"]
