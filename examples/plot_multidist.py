"""
A decision surface grows
========================

Five intertwined classes, seen one sample at a time. The model is the black points, never more
than twenty; the pictures are the same model after more and more of the stream.
"""

import matplotlib.pyplot as plt

from kernelstream import POLKClassifier, make_multidist
from kernelstream.evaluation import plot_decision_surface

X, y, X_test, y_test = make_multidist(20_000, n_test=2500, random_state=6)

# %%
# ``average=True`` predicts with an average of all models so far, kept on the same points: right
# for a stream that does not change. The classes are named beforehand only so that all pictures
# have the same colours; new ones may come at any time.
model = POLKClassifier(gamma=1 / 1.2, eta0=4.0, compression_error=0.6, max_points=20, average=True)

figure, axes = plt.subplots(2, 2, figsize=(9.0, 8.0), layout="constrained")
seen = 0
for samples, ax in zip([50, 500, 2000, 20_000], axes.flat, strict=True):
    model.partial_fit(X[seen:samples], y[seen:samples], classes=range(5))
    seen = samples
    recent = slice(max(0, seen - 600), seen)
    plot_decision_surface(model, X[recent], y[recent], ax=ax, resolution=200, show_legend=False)
    error = 1.0 - model.score(X_test, y_test)
    title = f"{seen:,} samples: {model.model_order_} points, test error {error:.1%}"
    ax.set_title(title, loc="left", fontsize=11)

# %%
# What it holds in memory, what compression has cost in all, and how many points had to go because
# of the cap rather than by choice:
print(f"{model.nbytes_:,} bytes")
print(f"{model.error_spent_:.1f} spent in the norm of the RKHS, over {seen:,} steps")
print(f"{model.n_forced_:,} forced removals")
