"""
The value of a policy
=====================

How good is each state of a system, if a given policy goes on from there? The value function
answers this, and can be learned from transitions alone, one after the other. Here: the car of
Gymnasium's ``MountainCar-v0`` that must swing itself up a hill, and a policy that always pushes in
the direction of motion.
"""

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelPolicyEvaluation
from kernelstream.evaluation import plot_value_surface
from kernelstream.streams import transitions


def policy(state):
    """Push to the right when moving to the right, else to the left."""
    return 2 if state[1] >= 0.0 else 0


environment = gymnasium.make("MountainCar-v0")
met = transitions(environment, policy, 40_000, seed=0)
print(f"{met.last.sum()} episodes, {met.terminal.sum()} of them reached the top")

# %%
# A step costs 1 until the top is reached. Positions and velocities differ in size, so states are
# standardised; rewards are scaled so that values are of order one.
discount = 0.99
mean, unit = met.states.mean(axis=0), met.states.std(axis=0)
model = KernelPolicyEvaluation(
    discount, gamma=4.0, eta0=0.5, compression_error=0.02, random_state=0
)
for start in range(0, len(met.rewards), 1000):  # they arrive in pieces
    part = slice(start, start + 1000)
    model.partial_fit(
        (met.states[part] - mean) / unit,
        met.rewards[part] / 10.0,
        (met.next_states[part] - mean) / unit,
        met.terminal[part],
    )
print(f"{model.model_order_} stored states, {model.nbytes_} bytes")

# %%
# The value of a state is what the rewards after it come to, which other episodes show directly.
test = transitions(environment, policy, 3000, seed=1)
returns = test.returns(discount)
known = np.isfinite(returns)  # the last episode was not played to its end
predicted = 10.0 * model.predict((test.states - mean) / unit)
wrong = predicted[known] - returns[known]
print(f"R2 {1.0 - np.mean(wrong**2) / np.var(returns[known]):.3f} against Monte Carlo returns")

# %%
# Left: the learned function over the plane of positions and velocities, in standard deviations,
# with some of the states that were visited (small) and those that are stored (large). Where the car
# never comes, the value means nothing. Right: value against return.
figure, (plane, against) = plt.subplots(1, 2, figsize=(11.0, 4.8), layout="constrained")
some = np.random.default_rng(0).choice(len(met.rewards), 800, replace=False)
plot_value_surface(model, (met.states[some] - mean) / unit, ax=plane)
plane.set_xlabel("position")
plane.set_ylabel("velocity")
plane.set_title("value / 10", loc="left")
against.plot(returns[known], predicted[known], ".", markersize=3, color="0.4")
against.axline((-40.0, -40.0), slope=1.0, color="0.7", linewidth=1.0)
against.set_xlabel("Monte Carlo return")
against.set_ylabel("value")
