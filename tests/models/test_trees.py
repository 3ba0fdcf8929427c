"""The trees of the automatic model: what becomes of them when sizes change, and damaged files."""

import numpy as np
import pytest

from kernelstream import AutoClassifier, AutoRegressor, load, storage


def rules(n=3000, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 10))
    return X, (X[:, 0] > 0.3).astype(int) + 2 * (X[:, 1] > 0.0)


@pytest.fixture(scope="module")
def grown():
    X, y = rules()
    return AutoClassifier(random_state=0).partial_fit(X, y)


def test_trees_lead_where_rules_are_nested():
    X, _ = rules(6000)
    right = np.where(X[:, 2] > 0.2, X[:, 3] > 0.5, X[:, 4] > -0.3)
    y = np.where(X[:, 0] > 0.3, np.where(X[:, 1] > 0.0, right, X[:, 5] > 0.0), X[:, 6] > 0.4)
    model = AutoClassifier(random_state=0).partial_fit(X[:5000], y[:5000])
    assert model.experts_["trees"] > 0.3
    assert model._state.committee.mixture.used[:, model._state.committee.trees].all()
    assert model.column_importances_[7:].sum() < 0.1
    assert np.mean(model.predict(X[5000:]) == y[5000:]) > 0.85


def test_a_new_class_leaves_the_trees(grown, tmp_path):
    grown.save(tmp_path / "model.ks")
    model = load(tmp_path / "model.ks")
    assert model.fingerprint() == grown.fingerprint()
    nodes = model._state.experts.forest.state.nodes.copy()
    X, _ = rules(1)
    model.partial_fit(X, [99])
    assert (model._state.experts.forest.state.nodes >= nodes).all()
    assert model.nbytes_ <= 4_000_000


def test_less_memory_begins_the_trees_again_and_doubts_them(tmp_path):
    X, y = rules()
    model = AutoRegressor(random_state=0).partial_fit(X, y.astype(float))
    before = model._state.experts
    share = before.leading.mixture.shares[0, before.leading.trees].sum()
    model.set_params(max_bytes=500_000).partial_fit(X[:1], y[:1].astype(float))
    after = model._state.experts
    assert after.forest is None or after.forest.state.nodes.max() == 1
    if after.forest is not None:
        assert after.leading.mixture.shares[0, after.leading.trees].sum() < 0.5 * share
    assert model.nbytes_ <= 500_000
    model.save(tmp_path / "model.ks")
    assert load(tmp_path / "model.ks").fingerprint() == model.fingerprint()


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("forest_column", (0, -1), 0),
        ("forest_errors", (0, 3), 1e200),
        ("forest_cut", (0, 0), 1e300),
        ("mixture_powers", (0, 0, 0), 1e308),
        ("mixture_covariance", (0, 0, 0, 0), -1e200),
        ("mixture_past", (0, 0), -1.0),
        ("mixture_seen", (0,), -1.0),
        ("mixture_recent", (0, 0), 1e308),
        ("memory_right", (0,), 7e8),
        ("memory_scales", (0,), -1.0),
    ],
)
def test_damaged_numbers_are_refused(grown, tmp_path, name, place, number):
    header, arrays = grown._document()
    arrays = {key: array.copy() for key, array in arrays.items()}
    if name == "forest_column":
        place = (int(arrays["forest_nodes"].argmin()), -1)
    arrays[name][place] = number
    storage.write(tmp_path / "model.ks", "AutoClassifier", header, arrays)
    with pytest.raises(ValueError, match=r"model\.ks"):
        load(tmp_path / "model.ks")
