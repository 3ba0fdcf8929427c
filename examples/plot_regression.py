"""
Outliers and robust losses
==========================

A tenth of the targets of this stream carry a heavy-tailed error. The squared loss follows them;
losses that grow more slowly do so less.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import Loss, POLKRegressor, make_regression_outliers
from kernelstream.evaluation import plot_fit

X, y, clean = make_regression_outliers(6000, random_state=0, return_clean=True)
center = np.median(y)
unit = 1.5 * np.median(np.abs(y - center))
targets = (y - center) / unit  # steps and errors are in the target's units

# %%
# One pass each, same step, same budget. The error is measured against the curve without noise.
losses = [Loss("squared_error"), Loss("huber", 0.5), Loss("absolute_error"), Loss("quantile", 0.9)]
figure, axes = plt.subplots(2, 2, figsize=(9.0, 6.4), layout="constrained", sharey=True)
for loss, ax in zip(losses, axes.flat, strict=True):
    model = POLKRegressor(loss, gamma=50.0, eta0=0.2, average=True)
    model.partial_fit(X, targets)
    plot_fit(model, X, targets, ax=ax, show_legend=False)
    wrong = np.sqrt(np.mean((model.predict(X) * unit + center - clean) ** 2))
    title = f"{loss.name}: {wrong:.3f} from the curve, {model.model_order_} points"
    ax.set_title(title, loc="left", fontsize=11)

# %%
# ``quantile`` with level 0.9 is meant to lie above the curve, with nine tenths of the targets
# below it.
print(f"{np.mean(targets <= model.predict(X)):.1%} of the targets are below the last curve")
