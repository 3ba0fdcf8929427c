"""Transitions of a policy in an environment with Gymnasium's interface."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Transitions(NamedTuple):
    """What a policy met with, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.streams import Transitions
    >>> states = np.arange(4.0)[:, None]
    >>> end = np.array([False, False, True])
    >>> met = Transitions(states[:3], np.ones(3), states[1:], terminal=end, last=end)
    >>> met.returns(discount=0.5)
    array([1.75, 1.5 , 1.  ])
    """

    states: NDArray[np.float64]  # (n, p)
    rewards: NDArray[np.float64]  # (n,)
    next_states: NDArray[np.float64]  # (n, p)
    terminal: NDArray[np.bool_]  # (n,) nothing follows the next state
    last: NDArray[np.bool_]  # (n,) the episode ended here, for that or another reason

    def returns(self, discount: float) -> NDArray[np.float64]:
        """The discounted sum of the rewards from each transition to the end of its episode.

        NaN where the episode was cut short, by the environment or by the end of these transitions:
        what would have followed is not known.
        """
        sums = np.empty(len(self.rewards))
        following = np.nan
        for i in range(len(sums) - 1, -1, -1):
            if self.last[i]:
                following = 0.0 if self.terminal[i] else np.nan
            following = self.rewards[i] + discount * following
            sums[i] = following
        return sums


def transitions(
    environment: Any,
    policy: Callable[[NDArray[np.float64]], Any],
    n_transitions: int,
    seed: int | None = None,
) -> Transitions:
    """Let a policy act in a Gymnasium environment, episode after episode.

    An episode that the environment truncates (a time limit) starts again, but its last transition
    is not terminal: the state that it led to would have gone on to earn rewards.

    Parameters
    ----------
    environment : gymnasium.Env
        Its observations are flattened to vectors of numbers. Not closed.
    policy : callable
        The action for an observation as the environment gives it.
    n_transitions : int
    seed : int, optional
        Of the environment's first reset.

    Returns
    -------
    Transitions
        ``states, rewards, next_states, terminal`` for
        :meth:`~kernelstream.KernelPolicyEvaluation.partial_fit`, and ``last``.

    Examples
    --------
    >>> class Countdown:  # pays 1 a step until nothing is left
    ...     def reset(self, seed=None):
    ...         self.left = 3.0
    ...         return np.array([self.left]), {}
    ...     def step(self, action):
    ...         self.left -= 1.0
    ...         return np.array([self.left]), 1.0, self.left == 0.0, False, {}
    >>> met = transitions(Countdown(), lambda state: 0, 4)
    >>> met.states.ravel(), met.terminal
    (array([3., 2., 1., 3.]), array([False, False,  True, False]))
    >>> met.returns(0.5)
    array([1.75, 1.5 , 1.  ,  nan])
    """
    if isinstance(environment, type):
        raise TypeError(
            f"pass an environment, not a class of them: {environment.__name__}(), or gymnasium.make"
        )
    if not (isinstance(n_transitions, Integral) and n_transitions >= 1):
        raise ValueError(f"n_transitions must be an integer of at least 1, got {n_transitions!r}.")
    observation, _ = environment.reset(seed=seed)
    width = np.size(observation)
    met = Transitions(
        np.empty((n_transitions, width)), np.empty(n_transitions),
        np.empty((n_transitions, width)), np.zeros(n_transitions, bool),
        np.zeros(n_transitions, bool),
    )  # fmt: skip
    for i in range(n_transitions):
        met.states[i] = np.ravel(observation)
        observation, reward, terminated, truncated, _ = environment.step(policy(observation))
        met.rewards[i] = reward
        met.next_states[i] = np.ravel(observation)
        met.terminal[i] = terminated
        met.last[i] = terminated or truncated
        if met.last[i]:
            observation, _ = environment.reset()
    return met
