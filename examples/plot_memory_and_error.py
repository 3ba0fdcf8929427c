"""
Memory against error
====================

``compression_error`` is the error, in the norm of the RKHS, that each step may make to save
points. It is the one number that trades memory and time for accuracy.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import POLKClassifier, make_multidist

X, y, X_test, y_test = make_multidist(20_000, n_test=5000, random_state=3)
POLKClassifier().partial_fit(X[:100], y[:100])  # compiles, or loads what is compiled

# %%
# From hardly any compression to far too much:
budgets = np.geomspace(0.02, 1.0, 9)
rows = []
for allowed in budgets:
    model = POLKClassifier(gamma=1 / 1.2, eta0=0.5, compression_error=allowed)
    begin = time.perf_counter()
    model.partial_fit(X, y)
    each = 1e6 * (time.perf_counter() - begin) / len(y)
    error = 1.0 - model.score(X_test, y_test)
    rows.append((model.model_order_, error))
    found = f"{rows[-1][0]:4} points, error {error:6.1%}, {each:.2f} us"
    print(f"compression_error {allowed:5.3f}: {found}")
points, errors = np.array(rows).T

# %%
# The error stays where it is over a wide range, then goes up at once: when the budget of a step
# is as large as the step, nothing can be learned.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
for ax, values, label in ((left, points, "points"), (right, 100.0 * errors, "test error, %")):
    ax.plot(budgets, values, "o-", color="#0072B2")
    ax.set(xscale="log", xlabel="compression_error", ylabel=label)
    ax.set_ylim(bottom=0)
    ax.grid(color="#E6E6E6")
