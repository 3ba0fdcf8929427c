"""Samples that wait: in order, in arrays of their own, in files of this and of older versions."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream.buffer import Buffer
from kernelstream.evaluation.labels import buffer_from_state, buffer_state
from kernelstream.rows import as_rows

X = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0], [0.0, 0.0, 4.0], [5.0, 0.0, 0.0]])
FORMS = {"dense": np.array, "sparse": csr_array}
forms = pytest.mark.parametrize("form", FORMS)


def plain(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def weighted(form, first, end):
    rows = slice(first, end)
    return Buffer(as_rows(FORMS[form](X)[rows]), np.arange(4.0)[rows], np.full(end - first, 2.0))


def assert_equal(found, expected):
    assert np.array_equal(plain(found.matrix), plain(expected.matrix))
    assert np.array_equal(found.targets, expected.targets)
    assert np.array_equal(found.weights, expected.weights)


@forms
@pytest.mark.parametrize("later", FORMS)
def test_samples_that_follow_and_samples_that_leave(form, later):
    both = weighted(form, 0, 1).followed_by(weighted(later, 1, 4))
    assert both.rows.sparse == (later == "sparse")
    assert_equal(both, weighted("dense", 0, 4))
    assert_equal(both.since(2), weighted("dense", 2, 4))


@forms
def test_a_file_gives_the_same_samples(form):
    held = weighted(form, 0, 4).since(1)
    again = Buffer.from_arrays(held.to_arrays(), form == "sparse", 3, weighted=True)
    assert_equal(again, held)
    parts = [*again.to_arrays().values()], [*held.to_arrays().values()]
    assert not any(np.shares_memory(a, b) for a in parts[0] for b in parts[1])


@forms
def test_files_of_version_0_1(form):
    matrix = csr_array(X)
    parts = {"X": X} if form == "dense" else {n: getattr(matrix, n) for n in ("data", "indices")}
    if form == "sparse":
        parts["indptr"] = matrix.indptr.astype(np.int32)
    note = {"shape": [4, 3], "sparse": form == "sparse", "labels": None}
    found = buffer_from_state(note, {"y": np.arange(4.0), **parts})
    assert_equal(found, Buffer.of(X, np.arange(4.0)))


@forms
def test_labels_are_kept_with_the_samples(form):
    held = Buffer.of(FORMS[form](X), ["no", "perhaps", "no", "yes"])
    note, arrays = buffer_state(held, True)
    assert_equal(buffer_from_state(note, arrays), held)


SPOILED = {
    "another width": lambda a: a | {"dense": X[:, 1:]},
    "too few targets": lambda a: a | {"targets": np.arange(3.0)},
    "targets of another type": lambda a: a | {"targets": np.arange(4)},
    "infinite targets": lambda a: a | {"targets": np.full(4, np.inf)},
    "a NaN": lambda a: a | {"dense": np.full((4, 3), np.nan)},
    "negative weights": lambda a: a | {"weights": np.full(4, -1.0)},
    "nothing": lambda a: a | {"dense": X[:0], "targets": np.empty(0), "weights": np.empty(0)},
}


@pytest.mark.parametrize("name", SPOILED)
def test_nothing_in_a_file_is_trusted(name):
    arrays = SPOILED[name](weighted("dense", 0, 4).to_arrays())
    with pytest.raises(ValueError, match="that wait"):
        Buffer.from_arrays(arrays, False, 3, weighted=True)
