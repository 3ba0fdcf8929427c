"""
Four parts, one model
=====================

Four models learn a quarter of a stream each, on four machines perhaps. Their mean is a function
with all their points; compressed, it is one model again, and can go on learning.
"""

import matplotlib.pyplot as plt

from kernelstream import POLKClassifier, make_multidist, merge
from kernelstream.evaluation import plot_decision_surface

X, y, X_test, y_test = make_multidist(20_000, n_test=5000, random_state=6)


def learner():
    """The same kernel for all: functions of different spaces have no mean."""
    return POLKClassifier(gamma=1 / 1.2, eta0=0.5, compression_error=0.2)


def describe(name, model):
    error = 1.0 - model.score(X_test, y_test)
    print(f"{name:>24}: {model.model_order_:3} points, test error {error:.2%}")


# %%
parts = [learner().partial_fit(X[i::4], y[i::4]) for i in range(4)]
for number, part in enumerate(parts, start=1):
    describe(f"part {number}", part)

# %%
# The mean alone, and compressed: to a number of points, or to an error in the norm of the RKHS.
mean = merge(parts)
small = merge(parts, max_points=25)
describe("mean", mean)
describe("at most 25 points", small)
describe("within 0.5 of the mean", merge(parts, error=0.5))
describe("one model for everything", learner().partial_fit(X, y))
print(f"distance of the first two: {mean.expansion_.distance(small.expansion_):.3f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
for model, ax in zip([parts[0], small], axes, strict=True):
    plot_decision_surface(model, X[:600], y[:600], ax=ax, resolution=200, show_legend=False)
    title = "one of the parts" if model is parts[0] else "all four, merged and compressed"
    ax.set_title(f"{title}: {model.model_order_} points", loc="left", fontsize=11)
