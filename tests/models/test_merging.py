"""Several models as one."""

import numpy as np
import pandas
import pytest

from kernelstream import POLKClassifier, POLKRegressor, load, make_multidist, merge
from kernelstream.expansion import KernelExpansion


def parts(n=3, **parameters):
    X, y = make_multidist(1500, random_state=0)
    settings = {"gamma": 1 / 1.2, "compression_error": 0.3, "random_state": 0, **parameters}
    return [POLKClassifier(**settings).partial_fit(X[i::n], y[i::n]) for i in range(n)]


@pytest.mark.parametrize("average", [False, True])
def test_the_mean_function(average):
    models = parts(average=average)
    merged = merge(models, weights=[1.0, 2.0, 1.0])
    expected = KernelExpansion.merge([model.expansion_ for model in models], [1.0, 2.0, 1.0])
    X, _ = make_multidist(200, random_state=5)
    assert np.allclose(merged.decision_function(X), expected(X), atol=1e-3)
    assert merged.n_seen_ == 1500
    assert merged.residual_ < 1e-5


def test_weights_follow_the_samples_seen():
    X, y = make_multidist(1000, random_state=0)
    models = [POLKClassifier().partial_fit(X[:900], y[:900], classes=range(5)),
              POLKClassifier().partial_fit(X[900:], y[900:], classes=range(5))]  # fmt: skip
    by_default, given = merge(models), merge(models, weights=[0.9, 0.1])
    assert by_default.expansion_.distance(given.expansion_) < 1e-6


def test_models_stay_and_the_merged_one_learns_on(tmp_path):
    models = parts()
    before = [model.fingerprint() for model in models]
    merged = merge(models, max_points=20)
    assert merged.model_order_ <= 20
    assert [model.fingerprint() for model in models] == before
    merged.save(tmp_path / "merged.ks")
    X, y = make_multidist(500, random_state=0)
    assert load(tmp_path / "merged.ks").partial_fit(X, y).fingerprint() == (
        merged.partial_fit(X, y).fingerprint()
    )


def test_classes_that_only_some_have_met():
    X, y = make_multidist(1500, random_state=0)
    two, four = y < 2, y >= 1
    models = [POLKClassifier(gamma=1.0, random_state=0).fit(X[two], y[two]),
              POLKClassifier(gamma=1.0, random_state=0).fit(X[four], y[four])]  # fmt: skip
    merged = merge(models)
    assert merged.classes_.tolist() == [0, 1, 2, 3, 4]
    assert merged.score(X, y) > 0.75


def test_one_model_is_compressed():
    (model,) = parts(1)
    smaller = merge([model], max_points=10)
    assert smaller.model_order_ == 10
    assert smaller.n_seen_ == model.n_seen_
    distance = smaller.expansion_.distance(model.expansion_)
    assert np.isclose(smaller.error_spent_ - model.error_spent_, distance, rtol=1e-4)


def test_merging_is_associative_up_to_the_error():
    models = parts(4)
    at_once = merge(models, weights=[1.0] * 4, error=0.05)
    tree = merge(
        [merge(models[:2], [1.0, 1.0], error=0.05), merge(models[2:], [1.0, 1.0], error=0.05)],
        weights=[1.0, 1.0],
        error=0.05,
    )
    assert at_once.expansion_.distance(tree.expansion_) <= 3 * 0.05 + 1e-3


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([POLKClassifier(gamma=0.5)], "different spaces"),
        ([POLKRegressor()], "different kinds"),
        ([POLKClassifier(gamma=1 / 1.2, average=True)], "different kinds"),
    ],
)
def test_what_does_not_belong_together(others, message):
    X, y = make_multidist(100, random_state=0)
    others = [other.partial_fit(X, y) for other in others]
    with pytest.raises(ValueError, match=message):
        merge([*parts(1), *others])


@pytest.mark.parametrize("columns", [["b", "a"], ["a", "c"]])
def test_other_features_are_refused(columns):
    X, y = make_multidist(100, random_state=0)
    models = [
        POLKClassifier().partial_fit(pandas.DataFrame(X, columns=names), y)
        for names in (["a", "b"], columns)
    ]
    with pytest.raises(ValueError, match=r"features are \['a', 'b'\] and .*the same order"):
        merge(models)
    assert merge([models[0], models[0]]).feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("caps", [{"max_points": 5}, {"max_bytes": 4000}])
def test_the_caps_of_the_models_hold(caps, batch_size):
    models = parts(2, batch_size=batch_size, **caps)
    merged = merge(models, max_points=50)
    assert merged.model_order_ <= caps.get("max_points", 50)
    assert merged.nbytes_ <= caps.get("max_bytes", np.inf)
    assert merged.fingerprint() == merge(models).fingerprint()
    assert merge(models, max_points=3).model_order_ <= 3


@pytest.mark.parametrize("max_points", [-5, 0, 1.9, True, "3", np.inf, 10**30])
def test_numbers_of_points_are_checked(max_points):
    with pytest.raises(ValueError, match="max_points must be a whole number"):
        merge(parts(1), max_points=max_points)


@pytest.mark.parametrize("size", [1e308, 1e-320])
def test_weights_of_any_size(size):
    models = parts(2)
    assert merge(models, [size, size]).fingerprint() == merge(models, [1.0, 1.0]).fingerprint()


def test_refusals():
    with pytest.raises(ValueError, match="at least one"):
        merge([])
    with pytest.raises(TypeError, match="models of this package that are one kernel expansion"):
        merge([3])
    with pytest.raises(ValueError, match="numbers >= 0"):
        merge(parts(2), weights=[1.0])
    with pytest.raises(ValueError, match="error must be"):
        merge(parts(1), error=-1.0)
