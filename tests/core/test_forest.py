"""Trees that grow on the stream, against the same written out; what they hold; files."""

import numpy as np
import pytest

from kernelstream.core.experts.forest import new_forest
from kernelstream.core.jit import INTERPRETED
from kernelstream.core.splitmix import uniform
from kernelstream.models._auto._forest import LEAVES, Forest, forest_size
from tests.naive.forest import Forest as Naive

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # random


def draws(seed):
    """The numbers that the compiled pass draws."""
    status = np.zeros(1, np.dtype([("random", np.uint64)])).view(np.recarray)
    status["random"] = seed
    while True:
        yield uniform(status[0])


def rules(n, kind, outputs, numbers):
    """Rows and targets by rules along two of the columns; halfway another rule."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    if kind == "categories":
        X[:, 1:] = np.where(X[:, 1:] > 0.0, 1.0, -1.0)
    if kind == "constant":
        X[:] = 0.5
    first = np.where(np.arange(n) < n // 2, X[:, 0] > 0.3, X[:, 2] > 0.0)
    code = first + 2 * (X[:, 1] > 0.0)
    if numbers:
        Y = code[:, None] * np.arange(1.0, 1 + outputs) + 0.1 * random.normal(size=(n, outputs))
        Y[5] = 1e4  # counts for less
        return X, Y
    return X, (code % outputs)[:, None].astype(float)


@pytest.mark.parametrize("kind", ["apart", "categories", "constant"])
@pytest.mark.parametrize(
    ("outputs", "numbers"), [(1, False), (2, False), (4, False), (1, True), (2, True)]
)
def test_a_forest(kind, outputs, numbers):
    n = 300 if INTERPRETED else 900  # in the latter trees begin again
    X, Y = rules(n, kind, outputs, numbers)
    weights = np.where(np.arange(n) % 7 == 0, 20.0, 1.0)
    forest = Forest(4, outputs, numbers, 5, 3, 11)
    found, first = [], 0
    for size in (1, 2, n // 2, n - 3 - n // 2):
        part = slice(first, first + size)
        found.append(forest.run(X[part], Y[part], weights[part]))
        first += size
    twin = Naive(4, outputs, numbers, 5, 3, draws(11))
    expected = [twin.step(*row) for row in zip(X, Y, weights, strict=True)]
    np.testing.assert_allclose(np.concatenate(found)[:, 0], expected, rtol=1e-6, atol=1e-9)
    leaves = (forest.state.nodes + 1) // 2
    assert leaves.tolist() == [twin.count(tree) for tree in twin.trees]
    if kind != "constant" and outputs > 1:
        assert leaves.max() > 2
    before = forest.run(X[:5], np.empty((0, 1)), np.ones(5))
    np.testing.assert_array_equal(forest.run(X[:5], np.empty((0, 1)), np.ones(5)), before)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_a_tree_that_became_worse_begins_again(numbers):
    X, Y = rules(6000, "apart", 2, numbers)
    forest = Forest(4, 2, numbers, 64, 3, 0)
    forest.run(X[:3000], Y[:3000], np.ones(3000))
    before = forest.state.nodes.copy()
    assert before.min() > 5
    forest.run(X[3000:3300], Y[3000:3300], np.ones(300))
    assert (forest.state.nodes < before).any()
    out = forest.run(X[3300:], Y[3300:], np.ones(2700))[-1000:, 0]
    if numbers:
        assert np.square(out - Y[-1000:]).mean() < 0.1 * Y[-1000:].var(axis=0).mean()
    else:
        assert np.mean(out.argmax(axis=1) != Y[-1000:, 0]) < 0.03


def test_bytes_are_known_and_kept():
    for features, outputs, numbers in [(1, 1, True), (4, 2, False), (123, 2, False), (20, 3, True)]:
        leaves, columns = forest_size(features, outputs, numbers, 700_000)
        forest = Forest(features, outputs, numbers, leaves, columns, 0)
        assert forest.nbytes == Forest.nbytes_for(features, outputs, numbers, leaves, columns)
        assert forest.nbytes <= 700_000
        assert leaves in LEAVES
    assert forest_size(10, 1000, False, 1e6) == (0, 0)
    assert forest_size(4, 2, False, 10_000) == (0, 0)
    known = forest_size(10, 4, False, 700_000)
    assert forest_size(10, 5, False, 700_000) != known
    assert forest_size(10, 5, False, 700_000, known) == known  # trees are not begun again
    assert forest_size(10, 40, False, 700_000, known) != known
    assert forest_size(10, 4, False, 1e9, (0, 0)) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_files_and_other_changes(numbers):
    X, Y = rules(4000, "apart", 2, numbers)
    forest, again = Forest(4, 2, numbers, 16, 3, 0), Forest(4, 2, numbers, 16, 3, 5)
    forest.run(X[:3000], Y[:3000], np.ones(3000))
    forest.fell_half()
    assert (forest.state.nodes == 0).sum() == 5
    again.fill(forest.to_arrays())
    rest = X[3000:], Y[3000:], np.ones(1000)
    np.testing.assert_array_equal(forest.run(*rest), again.run(*rest))
    for name, array in forest.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name], err_msg=name)
    assert forest.gains()[3] < 0.1 * forest.gains().sum()
    new = X[:50], np.empty((0, 1)), np.ones(50)
    before = forest.run(*new)
    if numbers:
        forest.change_units(np.array([1.0, 0.0]), np.array([2.0, 0.5]))
        pulled = forest.run(*new) - (before + np.array([1.0, 0.0])) * np.array([2.0, 0.5])
        assert np.abs(pulled).max() < 0.1  # but for what draws small leaves to zero
        for _ in range(40):  # as where a target becomes smaller and smaller
            forest.change_units(0.0, 50.0)
            Forest(4, 2, True, 16, 3, 0).fill(forest.to_arrays())
        forest.run(X[:500], Y[:500], np.ones(500))
        forest.change_units(0.0, 1e6)
        assert not forest.state.nodes.any()
    else:
        forest.add_class(1)
        np.testing.assert_allclose(forest.run(*new)[:, :, [0, 2]], before, atol=0.05)


def damage(name, change):
    def damaged(arrays):
        array = arrays[name].copy()
        change(array)
        return {**arrays, name: array}

    return damaged


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm",
    [
        damage("column", lambda a: a.__setitem__((0, 0), 4)),
        damage("child", lambda a: a.__setitem__((0, 0), 0)),
        damage("child", lambda a: a.__setitem__((0, 0), 10**6)),
        damage("place", lambda a: a.__setitem__(slice(None), 7)),
        damage("chosen", lambda a: a.__setitem__((0, 0, 0), -1)),
        damage("column", lambda a: a.__setitem__((0, -1), 0)),
        damage("errors", lambda a: a.__setitem__((0, 3), 1e200)),
        damage("low", lambda a: a.__setitem__((0, 0, 0), -1e300)),
        damage("gain", lambda a: a.__setitem__((0, 0), 1e308)),
        damage("nodes", lambda a: a.__setitem__(0, 2)),
        damage("nodes", lambda a: a.__setitem__(0, 10**6)),
        damage("total", lambda a: a.__setitem__((0, 0, 0), np.nan)),
        damage("total", lambda a: a.__setitem__((0, 0, 0), -1.0)),
        lambda arrays: {**arrays, "bins": arrays["bins"][:, :1]},
    ],
)
def test_damaged_trees_are_refused(harm):
    X, Y = rules(2000, "apart", 2, False)
    forest = Forest(4, 2, False, 16, 3, 0)
    forest.run(X, Y, np.ones(2000))
    arrays = forest.to_arrays()
    Forest(4, 2, False, 16, 3, 0).fill(arrays)
    with pytest.raises(ValueError, match=r"tree|contradicts|is not finite"):
        Forest(4, 2, False, 16, 3, 0).fill(harm(arrays))


def test_a_forest_without_rows():
    state = new_forest(3, 2, False, 16, 2, 0)
    assert not state.nodes.any()
    forest = Forest(3, 2, False, 16, 2, 0)
    np.testing.assert_allclose(forest.run(np.zeros((2, 3)), np.empty((0, 1)), np.ones(2)), 0.5)
    again = Forest(3, 2, False, 16, 2, 0)
    again.fill(forest.to_arrays())
