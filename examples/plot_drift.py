"""
A market that changes
=====================

Raw rows with dates, texts and gaps from an invented electricity market whose rule drifts, and
breaks halfway. Preparation, model and evaluation each see a row once, in the order of time.
"""

import numpy as np
import pandas as pd

from kernelstream import POLKClassifier, Preparation, StreamModel
from kernelstream.evaluation import Prequential
from kernelstream.streams import make_drifting_market, open_stream

market = pd.DataFrame(make_drifting_market(20_000, random_state=6))
print(market.head(3).to_string(index=False))

# %%
# A stream hands out batches of raw columns. The first one decides the layout of the features.
stream = open_stream(market, target="direction", batch_rows=1000)
first = next(stream)
preparation = Preparation(stream.schema, ignore=["direction"]).start(first)

# %%
# A large step and strong regularisation let the model forget: what it learned has lost half its
# weight after ``log(2) / (eta0 * alpha)`` samples.
eta0, alpha = 1.0, 1e-3
print(f"half-life: {np.log(2.0) / (eta0 * alpha):.0f} samples")
estimator = POLKClassifier(
    gamma=preparation.suggested_gamma, eta0=eta0, alpha=alpha, compression_error=0.2
)
model = StreamModel(estimator, preparation, "direction", "classification")

# %%
# Every sample is predicted before it is learned from; the run keeps score. The grey line is where
# the rule breaks.
run = Prequential(model.estimator, ["accuracy", "kappa"], every=500)
for batch in (first, *stream):
    run.update(*model.admit(batch))
trace = run.finish()
figure = trace.plot()
for ax in figure.axes[:3]:
    ax.axvline(len(market) // 2, color="0.6", linewidth=1.0)

# %%
# The dashed baseline repeats the last direction. It is hard to beat here, since neighbouring half
# hours are alike: the baseline lives off the direction before, which the model does not see.
for name, value in trace.summary().items():
    print(f"{name:>24} {value:10.4g}")
