"""Where samples come from: synthetic generators and loaders of stored data sets."""

from kernelstream.streams.datasets import Dataset, list_datasets, load_dataset
from kernelstream.streams.market import make_drifting_market
from kernelstream.streams.synthetic import make_multidist, make_regression_outliers

__all__ = [
    "Dataset",
    "list_datasets",
    "load_dataset",
    "make_drifting_market",
    "make_multidist",
    "make_regression_outliers",
]
