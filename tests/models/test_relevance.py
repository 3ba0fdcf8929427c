"""Columns on which the target depends, before any function of them is known."""

import numpy as np
import pytest

from kernelstream import AutoClassifier, AutoRegressor
from kernelstream.models._auto._group import Group
from kernelstream.models._auto._relevance import relevance_of


def naive(rows, responses, freedom):
    """By definition: between-part sums of squares of columns of mean 0 and variance 1."""
    n, found = len(rows), []
    for column in rows.T:
        edges = [sorted(column)[n * k // 6] for k in range(1, 6)]
        top = max(column)
        parts = np.array([sum(x > edge or x == edge == top for edge in edges) for x in column])
        used = sorted(set(parts))
        between = sum(
            response[parts == part].sum() ** 2 / (parts == part).sum()
            for part in used
            for response in responses
        )
        expected = freedom * (len(used) - 1)
        clear = expected > 0.0 and between > expected + 4.0 * (2.0 * expected) ** 0.5
        found.append((between - expected) / n if clear else 0.0)
    return np.array(found)


def rows_of(seed, n=300):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, 7))
    rows[:, 5] = random.random(n) < (0.1 if seed else 0.9)  # two values
    rows[:, 6] = 3.0  # one
    return rows, random


@pytest.mark.parametrize("targets", [1, 2])
def test_numbers(targets):
    rows, random = rows_of(0)
    y = random.normal(size=(300, targets))
    y[:, 0] *= np.where(np.abs(rows[:, 1]) > 1.0, 6.0, 1.0)  # the spread alone
    y[:, -1] += 4.0 * rows[:, 5] + (rows[:, 2] > 1.0)
    y[y < -1.0] = -1.0  # many are equal
    ranks = np.array([[(each < x).sum() + (each <= x).sum() for x in each] for each in y.T])
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    apart = np.abs(ranks) - np.abs(ranks).mean(axis=1, keepdims=True)
    expected = sum(
        naive(rows, each / each.std(axis=1, keepdims=True), targets) for each in (ranks, apart)
    )
    found = relevance_of(rows, y, True)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[1] > 0.0
    assert found[5] > 0.0
    assert (found[[0, 3, 4, 6]] == 0.0).all()


def test_classes():
    rows, random = rows_of(1)
    label = (rows[:, 2] > 0.3) + 2.0 * (random.random(300) < 0.5)
    label[:3] = 9.0  # too few to say anything
    counted = [label == c for c in range(4)]
    responses = [(each - each.mean()) / each.mean() ** 0.5 for each in counted]
    found = relevance_of(rows, label[:, None], False)
    np.testing.assert_allclose(found, naive(rows, responses, 3), atol=1e-12)
    assert found.argmax() == 2


def test_nothing_is_found_where_nothing_is():
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        rows = random.normal(size=(200, 5))
        alarms += relevance_of(rows, random.standard_cauchy((200, 1)), True) is not None
        alarms += relevance_of(rows, random.integers(3, size=(200, 1)), False) is not None
    assert alarms < 20
    assert relevance_of(rows, np.ones((200, 1)), True) is None
    assert relevance_of(rows, np.ones((200, 1)), False) is None
    assert relevance_of(rows[:5], np.ones((5, 1)), True) is None


def test_one_class_with_rows_enough_says_nothing():
    rows = np.random.default_rng(4).normal(size=(30, 2))
    label = np.where(rows[:, :1] > np.sort(rows[:, 0])[-8], 1.0, 0.0)  # seven are 1
    assert relevance_of(rows, label, False) is None
    label[rows[:, :1] >= np.sort(rows[:, 0])[-8]] = 1.0  # eight
    assert relevance_of(rows, label, False)[0] > 0.0


@pytest.mark.parametrize("numbers", [True, False])
def test_two_of_thirty_columns_are_found_early(numbers):
    """Neither shifts the mean alone: found by the spread of the target alone."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (1000, 30))
    y = X[:, 3] * np.sin(4.0 * X[:, 17])
    if numbers:
        made = AutoRegressor(random_state=0).predict_then_learn(X, y)
        assert np.square(made - y)[500:].mean() < 0.1 * y.var()
    else:
        label = np.digitize(y, [-0.3, 0.3])  # the middle class gives both away
        made = AutoClassifier(random_state=0).predict_then_learn(X, label, classes=[0, 1, 2])
        assert (made != label)[500:].mean() < 0.25


def test_what_an_earlier_pass_learned_says_more():
    random = np.random.default_rng(0)
    rows, y = random.normal(size=(64, 3)), random.normal(size=(64, 1))

    def scales(base, relevance):
        group = Group(3, 1, 16, 0.5, True, 0)
        group.base = np.array(base)
        group.run(rows, y, np.ones(64), np.empty((64, 4, 1)), 0)
        group.renew(relevance=relevance)
        return group.state.scales

    known = np.array([0.0, 0.0, 1.0])
    assert scales([1.0, 1.0, 1.0], known)[2] > scales([1.0, 1.0, 1.0], None)[2] + 0.1
    assert (scales([2.0, 0.5, 0.5], known) == scales([2.0, 0.5, 0.5], None)).all()
