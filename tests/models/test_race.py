"""The race between length scales: which group gets more points."""

import numpy as np
import pytest

from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._race import judge_challenger, race
from kernelstream.models._auto._sizes import Sizes


def race_between(losses):
    """A committee at its race, its groups from coarse to fine with these losses."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(512, 3))
    committee = Committee(3, 1, True, Sizes(8, 16, 512, 4), False, "auto", 0)
    committee.seen = 2048
    committee.mixture.recent[:] = 0.0
    committee.mixture.recent[:, committee.lasting()[-1]] = 1.0  # all rows count alike
    for group, loss in zip(committee.groups, losses, strict=True):
        group.state.losses[:] = loss
    race(committee, (rows, rows[:, 0]))
    return committee


@pytest.mark.parametrize(
    ("losses", "leader"),
    [((0.5, 0.6, 0.7), 0), ((0.9, 0.6, 0.61), 2), ((0.9, 0.6, 0.63), 1), ((0.6, 0.605, 0.9), 1)],
)
def test_the_finest_of_groups_that_are_as_good_gets_the_points(losses, leader):
    committee = race_between(losses)
    assert committee.leader == leader
    assert committee.challenger == np.argmax(losses)
    assert committee.groups[leader].state.status[0]["most"] == 16


@pytest.mark.parametrize(("loss", "wins"), [(0.65, True), (0.67, False)])
def test_a_challenger_with_fewer_points_may_be_a_little_worse(loss, wins):
    committee = race_between((0.9, 0.6, 0.7))
    committee.seen = 4096
    for group, now in zip(committee.groups, (loss, 0.6, 0.7), strict=True):
        group.state.losses[:] = now
    judge_challenger(committee)
    assert committee.leader == (0 if wins else 1)
    assert committee.groups[2 if wins else 0] is None
    assert committee.groups[committee.leader].state.status[0]["most"] == 16
