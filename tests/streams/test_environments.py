"""Transitions from environments: what is terminal, what was only cut short."""

import numpy as np
import pytest

from kernelstream.streams import transitions


class Corridor:
    """Steps 0, 1, 2, ... to a wall at ``length``; cut short after ``limit``. Pays its place."""

    def __init__(self, length, limit):
        self.length, self.limit = length, limit
        self.seeds = []

    def reset(self, seed=None):
        self.seeds.append(seed)
        self.place = self.steps = 0
        return np.array([[self.place, -1]]), {}

    def step(self, action):
        self.place += action
        self.steps += 1
        over, cut = self.place >= self.length, self.steps >= self.limit
        return np.array([[self.place, -1]]), float(self.place), over, cut, {}


def test_episodes_follow_one_another():
    environment = Corridor(length=3, limit=10)
    met = transitions(environment, lambda state: 1, 7, seed=5)
    assert met.states[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert met.next_states[:, 0].tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert met.states.shape == met.next_states.shape == (7, 2)
    assert met.rewards.tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert met.terminal.tolist() == [False, False, True, False, False, True, False]
    assert met.last.tolist() == met.terminal.tolist()
    assert environment.seeds == [5, None, None]


def test_an_episode_cut_short_is_not_terminal():
    met = transitions(Corridor(length=5, limit=2), lambda state: 1, 4)
    assert not met.terminal.any()
    assert met.last.tolist() == [False, True, False, True]
    assert met.next_states[:, 0].tolist() == [1, 2, 1, 2]
    assert np.isnan(met.returns(0.9)).all()


def test_the_wall_reached_at_the_limit_is_terminal():
    met = transitions(Corridor(length=2, limit=2), lambda state: 1, 2)
    assert met.terminal.tolist() == [False, True]


def test_returns_are_discounted_sums():
    met = transitions(Corridor(length=3, limit=10), lambda state: 1, 5)
    expected = [1 + 0.5 * (2 + 0.5 * 3), 2 + 0.5 * 3, 3, np.nan, np.nan]
    assert met.returns(0.5) == pytest.approx(expected, nan_ok=True)


def test_a_policy_sees_what_the_environment_gives():
    seen = []
    transitions(Corridor(length=3, limit=10), lambda state: seen.append(state.shape) or 1, 2)
    assert seen == [(1, 2), (1, 2)]


def test_no_transition_is_refused():
    with pytest.raises(ValueError, match="n_transitions"):
        transitions(Corridor(3, 3), lambda state: 1, 0)


def test_a_real_environment():
    gymnasium = pytest.importorskip("gymnasium")
    with gymnasium.make("CartPole-v1") as environment:
        met = transitions(environment, lambda state: int(state[2] > 0.0), 100, seed=0)
    assert met.states.shape == (100, 4)
    assert met.states.dtype == np.float64
    assert (met.rewards == 1.0).all()
    assert met.terminal.any()
    follows = ~met.last[:-1]
    assert (met.next_states[:-1][follows] == met.states[1:][follows]).all()


def test_a_class_or_a_fraction_is_refused():
    class Environment:
        pass

    with pytest.raises(TypeError, match=r"pass an environment, .* Environment\(\)"):
        transitions(Environment, lambda state: 0, 5)
    with pytest.raises(ValueError, match="integer"):
        transitions(Environment(), lambda state: 0, 5.0)
