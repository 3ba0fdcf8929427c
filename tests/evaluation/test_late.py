"""Tests of labels that come late: rows in any form and in any chunks, against a naive loop."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from kernelstream import AutoClassifier, AutoRegressor, POLKClassifier
from kernelstream.evaluation import Prequential, late
from kernelstream.evaluation.learner import Learner

random = np.random.default_rng(0)
ROWS = random.normal(size=(300, 4)) * (random.random((300, 4)) < 0.5)
TARGETS = ROWS[:, 0] + np.abs(ROWS[:, 1])
CLASSES = np.where(TARGETS > 0.5, "up", "down")
CLASSES[200::20] = "else"  # a class that comes later


def naive(model, X, y, lag):
    """Each row by itself, as the model takes it."""
    said = []
    for i in range(len(y)):
        if i > lag:
            said.extend(model.predict(X[i : i + 1]))
        if i >= lag:
            model.partial_fit(X[i - lag : i - lag + 1], y[i - lag : i - lag + 1])
    for i in range(max(0, len(y) - lag), len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return said


def held(model):
    return {name: part.tobytes() for name, part in model._document()[1].items()}


KINDS = {
    "classes": (lambda: AutoClassifier(random_state=0, labels_delayed=True), CLASSES),
    "numbers": (lambda: AutoRegressor(random_state=0, labels_delayed=True), TARGETS),
    "polk": (lambda: POLKClassifier(random_state=0), CLASSES),
}


@pytest.mark.parametrize("lag", [1, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_give_the_bits_of_a_naive_loop(monkeypatch, kind, lag):
    monkeypatch.setattr(sys.modules[Prequential.__module__], "MOST_ROWS", 64)
    make, y = KINDS[kind]
    X = csr_array(ROWS)
    slow = make()
    said = naive(slow, X, y, lag)
    for size in (7, 120, 300):
        made = []
        predict = Learner.predict

        def keep(learner, *samples, predict=predict, made=made):
            found = predict(learner, *samples)
            made.extend(found.predicted)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(Learner, "predict", keep)
            run = Prequential(make(), lag=lag, every=50)
            for first in range(0, len(y), size):
                run.update(X[first : first + size], y[first : first + size])
            run.finish()
        assert made == said
        assert held(run.model) == held(slow)


def test_experts_get_whole_blocks_of_dense_rows(monkeypatch):
    """One by one, sparse rows take longer to take apart than to learn."""
    forms = []

    def learn(learner, X, y, learn=Learner.learn):
        forms.append(issparse(X))
        learn(learner, X, y)

    monkeypatch.setattr(Learner, "learn", learn)
    make, y = KINDS["classes"]
    Prequential(make(), lag=5).update(csr_array(ROWS), y)
    assert forms == [False] * (len(y) - 5)
    monkeypatch.setattr(late, "_WIDEST", 3)  # a row of many columns stays as it is
    forms.clear()
    Prequential(make(), lag=5).update(csr_array(ROWS), y)
    assert forms == [True] * (len(y) - 5)


def test_the_time_counts_rows_that_are_learned_at_the_end():
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = AutoRegressor(random_state=0, labels_delayed=True)
    run = Prequential(model, lag=399)
    run.update(X, X[:, 0])
    before = run.seconds
    run.finish()
    assert model.n_seen_ == 400
    assert run.seconds > before
