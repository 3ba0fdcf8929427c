"""Where samples come from: files, arrays, data sets and synthetic generators."""

from kernelstream.streams.bad_rows import BadRows
from kernelstream.streams.batch import Batch, Column, Source, Text
from kernelstream.streams.datasets import Dataset, list_datasets, load_dataset
from kernelstream.streams.environments import Transitions, transitions
from kernelstream.streams.errors import StreamError
from kernelstream.streams.market import make_drifting_market
from kernelstream.streams.opening import open_stream
from kernelstream.streams.synthetic import make_multidist, make_regression_outliers
from kernelstream.streams.synthetic_manifolds import make_spheres, make_turning_ellipsoid

__all__ = [
    "BadRows",
    "Batch",
    "Column",
    "Dataset",
    "Source",
    "StreamError",
    "Text",
    "Transitions",
    "list_datasets",
    "load_dataset",
    "make_drifting_market",
    "make_multidist",
    "make_regression_outliers",
    "make_spheres",
    "make_turning_ellipsoid",
    "open_stream",
    "transitions",
]
