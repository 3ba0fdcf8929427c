"""Chunking does not matter; the same seed gives the same bits; no global random state."""

import numpy as np
import pytest

from kernelstream import (
    AVMRegressor,
    Parsimony,
    POLKRegressor,
)
from tests.models.tools import (
    CLASSIFIERS,
    ESTIMATORS,
    FORMS,
    REGRESSORS,
    at_once,
    capped,
    every,
    every_expansion,
    having,
    in_bytes,
    in_pieces,
    stream,
    usable,
)

#: AVM says that this kernel is not for it: it keeps the promises all the same.
pytestmark = pytest.mark.filterwarnings("ignore:kernel='laplacian' depends on the l1 distance")


CHUNKING = {
    "plain": {},
    "batches of 5": {"batch_size": 5},
    "batches of 32": {"batch_size": 32},
    "average": {"average": True},
    "fading average": {"average": True, "average_horizon": 50},
    "average of a part": {"average": True, "average_horizon": 0.2},
    "averaged batches": {"average": True, "average_horizon": 50, "batch_size": 5},
    "random projection": {"projection": "random"},
    "cap": {"max_points": 9},
    "slack": {"max_points": 9, "slack": 4},
    "cap on bytes": {"max_bytes": 6000},
    "cap on bytes of batches": {"max_bytes": 6000, "batch_size": 5},
    "polynomial": {"kernel": "poly", "degree": 2, "eta0": 0.01},
    "laplacian": {"kernel": "laplacian"},
    "schedule": {"learning_rate": "inverse_sqrt", "compression_error": Parsimony(1.0, 2)},
    "delta given": {"delta": 0.5},
    "rectangles": {"delta": 0.5, "coverage": "hyperrectangle"},
    "exact at times": {"exact_probability": 10.0, "exact_decay": 0.7},
    "averaged moments": {
        "batch_size": 6,
        "risk": "moments",
        "average": True,
        "average_horizon": 50,
    },
    "without gradient tracking": {"tracking": "average", "risk": "cvar", "max_points": 9},
}


#: Single samples, pieces of a batch, several batches at once.
MIXED = (1, 1, 2, 7, 1, 30, 3, 60)
#: Single samples until all that waits for its first samples has decided, then the rest.
SINGLE = (1,) * 210 + (1000,)
CHUNKED = [(c, name) for c in ESTIMATORS for name in CHUNKING if usable(c, CHUNKING[name])]


@capped
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize(("estimator_class", "name"), CHUNKED)
def test_chunking_does_not_matter(estimator_class, name, features, form):
    X, y = stream(estimator_class, n=403, features=features)
    parameters = CHUNKING[name]
    if "max_bytes" in parameters:
        most = parameters["max_bytes"] * in_bytes(estimator_class) * features // 3
        parameters = {**parameters, "max_bytes": most}
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y))
    if estimator_class in CLASSIFIERS:  # new classes appear, before and after the others
        y[100:] += 3 * (np.arange(303) % 5 == 0)
        y[303:] -= 4 * (np.arange(100) % 3 == 0)
    X = FORMS[form](X)
    runs = [(weight, MIXED)]
    if features == 3 and form == "dense":  # hundreds of calls take a while
        runs = [(None, MIXED), (weight, SINGLE)]
    for sample_weight, sizes in runs:
        prints = {
            in_pieces(
                estimator_class(random_state=0, **parameters), X, y, size, sample_weight
            ).fingerprint()
            for size in (sizes, 1000)
        }
        assert len(prints) == 1


@every_expansion
def test_gamma_scale_is_frozen_by_the_first_call(estimator_class):
    X, y = stream(estimator_class)
    model = estimator_class(gamma="scale", **at_once(estimator_class)).partial_fit(X[:100], y[:100])
    assert model.kernel_.gamma == pytest.approx(1.0 / (3.0 * X[:100].var()))
    assert model.partial_fit(5.0 * X, y).kernel_.gamma == pytest.approx(1.0 / (3.0 * X[:100].var()))


def drawing(estimator_class):
    """What draws random numbers while learning."""
    return having(estimator_class, projection="random", exact_probability=10.0)


@every
@pytest.mark.parametrize("random", [False, True])
def test_same_seed_same_bits(estimator_class, random):
    X, y = stream(estimator_class)
    parameters = drawing(estimator_class) if random else {}

    def learn(seed):
        return estimator_class(random_state=seed, **parameters).fit(X, y)

    assert learn(3).fingerprint() == learn(3).fingerprint()
    assert not np.array_equal(learn(3)._evaluate(X), learn(4)._evaluate(X))


@every
def test_global_random_state_is_neither_used_nor_changed(estimator_class):
    X, y = stream(estimator_class)
    weights = []
    before = np.random.get_state()  # noqa: NPY002
    try:
        for seed in (0, 1):
            np.random.seed(seed)  # noqa: NPY002
            expected = np.random.get_state()[1].copy()  # noqa: NPY002
            estimator_class(**drawing(estimator_class)).fit(X, y)
            weights.append(estimator_class(random_state=0).fit(X, y)._evaluate(X))
            _, now, position, *_ = np.random.get_state()  # noqa: NPY002
            assert np.array_equal(now, expected)
            assert position == 624
    finally:
        np.random.set_state(before)  # noqa: NPY002
    assert np.array_equal(*weights)


@capped
@pytest.mark.parametrize("estimator_class", REGRESSORS)
def test_bits_do_not_depend_on_where_arrays_lie(estimator_class):
    """Sums in compiled loops must not change their order with the placement of memory."""
    parameters = having(
        estimator_class, batch_size=50, max_points=100, compression_error=Parsimony(0.001),
        eta0=0.01, delta=3.0, average=True, average_horizon=0.5,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    held = []
    for seed in range(12):
        X = rng.normal(size=(700, 8))
        y = np.sin(X.sum(axis=1))
        prints = set()
        for _ in range(3):
            held.append(np.empty(int(rng.integers(1, 200_000))))
            model = estimator_class(random_state=seed, **parameters)
            prints.add(model.partial_fit(X, y).fingerprint())
        assert len(prints) == 1


@pytest.mark.parametrize("estimator_class", [POLKRegressor, AVMRegressor])
def test_samples_left_out_do_not_change_a_bit_of_the_predictions(estimator_class):
    """In any chunking: what is said of the others comes from the compiled pass throughout."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 5)), random.normal(size=300)
    weights = (random.random(300) < 0.8).astype(float)
    said = []
    for size in (300, 41, 1):
        model = estimator_class(random_state=0)
        said.append(np.concatenate([
            model.predict_then_learn(X[i : i + size], y[i : i + size], weights[i : i + size])
            for i in range(0, 300, size)
        ]))  # fmt: skip
    assert np.array_equal(said[0], said[1])
    # A sample that is left out and comes alone is evaluated alone, which may round otherwise.
    assert np.array_equal(said[0][weights > 0], said[2][weights > 0])
    assert said[0] == pytest.approx(said[2], rel=1e-12, abs=1e-12)
