"""The same predictions as the Kernel Adaptive Filtering Toolbox, sample by sample."""

import numpy as np
import pytest

from benchmarks import kafbox

with np.load(kafbox.RECORDED, allow_pickle=False) as _file:
    RECORDED = dict(_file)
RUNS = [tuple(name.split("/")) for name in RECORDED if name.partition("/")[2] in kafbox.FILTERS]


def test_every_filter_was_recorded():
    assert {method for _, method in RUNS} == set(kafbox.FILTERS)


@pytest.mark.parametrize(("stream", "method"), RUNS)
def test_predictions_and_points_are_those_of_the_toolbox(stream, method):
    X, y = RECORDED[f"{stream}/X"], RECORDED[f"{stream}/y"]
    theirs, their_points = RECORDED[f"{stream}/{method}"].T
    ours, points = kafbox.FILTERS[method][2]()(X, y)
    assert np.array_equal(points, their_points)
    # Its explicit inverses lose digits where points are close to one another.
    np.testing.assert_allclose(ours, theirs, atol=1e-7)
