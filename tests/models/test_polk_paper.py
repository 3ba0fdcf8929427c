"""POLK in the regimes of the paper's Table 1, against its algorithm boxes, to 1e-9.

The boxes are ``tests/naive/polk.py`` (Algorithm 2) and ``tests/naive/komp.py`` (Algorithm 1), every
projection from scratch. Where points are nearly dependent rounding decides which one leaves: the
samples here are apart. It decides, too, among the equal weights that the samples of one batch get
from the hinge, and from any loss of classes while f is 0: in batches the samples have weights of
their own. The last batch is smaller than the others: the box takes what there is, and the model
holds it until ``flush``.
"""

import numpy as np
import pytest

import kernelstream
from kernelstream import Parsimony, POLKClassifier, POLKRegressor, Steps
from kernelstream.kernels import Gaussian
from tests.naive import kernels
from tests.naive.polk import polk

RUNS = range(20)
ALPHA, ETA, KERNEL = 1e-3, 0.4, Gaussian(1.5)


def falling(t):
    return ETA / (1.0 + 0.2 * t) ** 0.6


#: Parameters, and what the box takes for them.
REGIMES = {
    "constant, K eta^(3/2)": (
        {"compression_error": Parsimony(0.3)},
        {"budget": "three_halves", "budget_number": 0.3},
    ),
    "1 / t, K eta^2": (
        {"learning_rate": "inverse_time", "eta_decay": 0.5, "compression_error": Parsimony(0.7, 2)},
        {"schedule": "inverse_time", "decay": 0.5, "budget": "square", "budget_number": 0.7},
    ),
    "given, K eta^2": (
        {"learning_rate": Steps(falling), "compression_error": Parsimony(0.7, 2)},
        {"schedule": falling, "budget": "square", "budget_number": 0.7},
    ),
}


def stream(seed, n=14):
    random = np.random.default_rng(seed)
    X = random.uniform(-3.0, 3.0, (n, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=n)


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(
    ("loss", "batch"),
    [
        ("squared_error", 1),
        ("squared_error", 4),
        ("hinge", 1),
        ("hinge", 4),
        ("log_loss", 1),
        ("log_loss", 4),
    ],
)
def test_algorithm_2(regime, loss, batch):
    chosen, box = REGIMES[regime]
    removed = 0
    for seed in RUNS:
        X, y = stream(seed)
        weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(X)) if batch > 1 else None
        outputs = 3 if loss == "log_loss" else 1
        common = {"kernel": KERNEL, "alpha": ALPHA, "eta0": ETA, "batch_size": batch, **chosen}
        if loss == "squared_error":
            model = POLKRegressor(loss, **common).partial_fit(X, y, sample_weight=weights).flush()
            said = model.predict(X)
        else:
            y = np.digitize(y, [-0.7, 0.7] if outputs > 1 else [0.0])
            model = POLKClassifier(loss, **common)
            classes = np.arange(max(2, outputs))
            model.partial_fit(X, y, classes=classes, sample_weight=weights).flush()
            said = model.decision_function(X)
        twin = polk(
            kernels.gaussian(1.5), X, 2 * y - 1 if loss == "hinge" else y, loss, outputs=outputs,
            regularisation=ALPHA, initial_step=ETA, batch=batch, sample_weights=weights, **box,
        )  # fmt: skip
        f = kernels.matrix(kernels.gaussian(1.5), X, twin.points) @ twin.weights
        assert sorted(model.dictionary_.tolist()) == sorted(twin.points.tolist())
        assert np.allclose(said, f if outputs > 1 else f[:, 0], rtol=0.0, atol=1e-9)
        removed += len(X) - len(twin.points)
    assert removed > 0


def test_steps_do_not_depend_on_how_the_stream_is_cut(tmp_path):
    X, y = stream(0, 60)
    steps = Steps(falling)
    for batch in (1, 7):
        whole = POLKRegressor(learning_rate=steps, batch_size=batch).partial_fit(X, y)
        parts = POLKRegressor(learning_rate=steps, batch_size=batch)
        for x, target in zip(X[:20], y[:20], strict=True):
            parts.learn_one(x, target)
        for first, end in ((20, 23), (23, 41), (41, 60)):
            parts.partial_fit(X[first:end], y[first:end])
        assert np.array_equal(whole.flush().predict(X), parts.flush().predict(X))
    table = Steps(steps.between(0, 60))
    same = POLKRegressor(learning_rate=table, batch_size=7).partial_fit(X[:33], y[:33])
    same.save(tmp_path / "model.ks")
    same = kernelstream.load(tmp_path / "model.ks").partial_fit(X[33:], y[33:])
    assert same.learning_rate == table
    assert np.array_equal(same.flush().predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "at least one number"),
        ([[0.1]], "1-D array"),
        ([0.1, -1.0], "step 1 is -1.0"),
        (lambda t: np.ones(1), "as many steps"),
        (lambda t: 0.1 * t, "step 0 is 0.0"),
        (lambda t: 5.0 + 0.0 * t, "steps times alpha"),
    ],
)
def test_unusable_steps(given, message):
    X, y = stream(0)
    with pytest.raises(ValueError, match=message):
        POLKRegressor(learning_rate=Steps(given), alpha=0.5).partial_fit(X, y)


def test_a_function_in_a_file_is_refused_with_the_cure(tmp_path):
    model = POLKRegressor(learning_rate=Steps(falling)).partial_fit(*stream(0))
    with pytest.raises(ValueError, match="give an array"):
        model.save(tmp_path / "model.ks")
