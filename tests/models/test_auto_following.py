"""Fine structure that changes: more points for the group that follows it, old rules given up."""

import copy
from unittest.mock import patch

import numpy as np
import pytest

from kernelstream import AutoClassifier, load
from kernelstream.models._auto import _following
from kernelstream.streams import make_changing_board, make_moving_squares

ROWS, GROWN = 3500, 3000


def board():
    return make_changing_board(ROWS, period=500, random_state=12)


@pytest.fixture(scope="module")
def grown():
    """A model after so many rows that one of its groups has more points than the others."""
    X, y = board()
    return AutoClassifier(random_state=0).partial_fit(X[:GROWN], y[:GROWN])


def test_a_fine_group_gets_points(grown):
    committee = grown._state.committee
    assert committee.raced == 0
    leader = committee.groups[committee.leader]
    others = [group for group in committee.groups if group is not leader]
    most = committee.sizes.most
    assert most < leader.order <= committee.sizes.changing
    assert max(group.order for group in others) <= most
    assert leader.residual() < 1e-6


def test_chunks_and_files_give_the_same_bits(grown, tmp_path):
    X, y = board()
    grown.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint() == grown.fingerprint()
    again.partial_fit(X[GROWN:], y[GROWN:])
    whole = AutoClassifier(random_state=0)
    for first in range(0, ROWS, 97):
        whole.partial_fit(X[first : first + 97], y[first : first + 97])
    assert whole.fingerprint() == again.fingerprint()


@pytest.mark.parametrize("caps", [{"max_bytes": 600_000}, {"max_points": 200}, {"max_points": 450}])
def test_caps_hold(caps):
    X, y = board()
    model = AutoClassifier(random_state=0, **caps)
    for first in range(0, ROWS, 250):
        model.partial_fit(X[first : first + 250], y[first : first + 250])
        assert model.nbytes_ <= caps.get("max_bytes", 4_000_000)
        assert model._state.order <= caps.get("max_points", np.inf)
    committee = model._state.committee
    assert committee.leader >= 0
    assert committee.groups[committee.leader].state.status[0]["most"] == committee.sizes.changing


def test_caps_lowered_later_are_kept(grown, tmp_path):
    X, y = board()
    grown.save(tmp_path / "model")
    model = load(tmp_path / "model")
    for most in (1_000_000, 300_000, 2_000_000):
        model.set_params(max_bytes=most).partial_fit(X[GROWN : GROWN + 10], y[GROWN : GROWN + 10])
        assert model.nbytes_ <= most


@pytest.mark.parametrize(("factor", "behind"), [(1.9, False), (2.1, True)])
def test_a_second_order_that_fell_behind_catches_up(grown, factor, behind):
    committee = copy.deepcopy(grown._state.committee)
    group = committee.groups[0]
    group.state.losses[:] = factor, 2.0, 1.0, 3.0
    before = group.coefficients().reshape(4, -1)
    _following.catch_up(committee)
    after = group.coefficients().reshape(4, -1)
    expected = before[2] if behind else before[0]
    np.testing.assert_array_equal(after[0], expected)
    np.testing.assert_array_equal(after[1:], before[1:])
    assert group.state.losses[0] == (1.0 if behind else factor)


def test_rows_that_count_alike_are_not_given_up():
    X, y = make_moving_squares(3000, random_state=11)
    models = []
    for behind in (_following._BEHIND, np.inf):
        with patch.object(_following, "_BEHIND", behind):
            model = AutoClassifier(forget=False, random_state=0).partial_fit(X, y)
        models.append(model.fingerprint())
    assert models[0] == models[1]
