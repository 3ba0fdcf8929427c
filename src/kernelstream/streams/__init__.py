"""Where samples come from: files, arrays, data sets and synthetic generators."""

from kernelstream.streams.bad_rows import BadRows
from kernelstream.streams.batch import Batch, Column, Source, Text
from kernelstream.streams.datasets import Dataset, list_datasets, load_dataset
from kernelstream.streams.drifting import (
    make_changing_board,
    make_interchanging_rbf,
    make_moving_squares,
    make_random_trees,
    make_rotating_hyperplane,
    make_sea,
    make_transient_chessboard,
)
from kernelstream.streams.drifting_numbers import (
    make_changing_relevance,
    make_late_categories,
    make_random_walk,
    make_seasonal,
)
from kernelstream.streams.environments import Transitions, transitions
from kernelstream.streams.errors import StreamError
from kernelstream.streams.logged import LoggedTransitions
from kernelstream.streams.market import make_drifting_market
from kernelstream.streams.opening import open_stream
from kernelstream.streams.robot import make_robot_arm
from kernelstream.streams.synthetic import make_multidist, make_regression_outliers
from kernelstream.streams.synthetic_manifolds import make_spheres, make_turning_ellipsoid
from kernelstream.streams.textons import load_textures

__all__ = [
    "BadRows",
    "Batch",
    "Column",
    "Dataset",
    "LoggedTransitions",
    "Source",
    "StreamError",
    "Text",
    "Transitions",
    "list_datasets",
    "load_dataset",
    "load_textures",
    "make_changing_board",
    "make_changing_relevance",
    "make_drifting_market",
    "make_interchanging_rbf",
    "make_late_categories",
    "make_moving_squares",
    "make_multidist",
    "make_random_trees",
    "make_random_walk",
    "make_regression_outliers",
    "make_robot_arm",
    "make_rotating_hyperplane",
    "make_sea",
    "make_seasonal",
    "make_spheres",
    "make_transient_chessboard",
    "make_turning_ellipsoid",
    "open_stream",
    "transitions",
]
