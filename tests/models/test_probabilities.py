"""Every classifier has probabilities, whatever its loss; and weights of classes."""

import pickle
import warnings

import numpy as np
import pytest

import kernelstream
from kernelstream import ModelFileError, POLKClassifier, merge, registry, storage
from kernelstream.evaluation import prequential
from kernelstream.features import OnlineKernelFeatureClassifier
from kernelstream.models._class_weights import of_all, of_next
from tests.models.tools import stream

CLASSIFIERS = [method.classifier for method in registry.methods().values() if method.classifier]
every = pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)


@every
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_every_classifier(kind, classes, tmp_path):
    X, y = stream(kind, n=400, classes=classes)
    model = kind(random_state=0).partial_fit(X[:200], y[:200])
    before = model.fingerprint()
    found = model.predict_proba(X)
    assert found.shape == (400, classes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
    assert np.allclose(np.exp(model.predict_log_proba(X)), found)
    assert model.fingerprint() == before
    model.save(tmp_path / "m")
    assert np.array_equal(kernelstream.load(tmp_path / "m").predict_proba(X), found)


@every
def test_predicted_before_each_sample(kind):
    X, y = stream(kind, n=200, classes=3)
    weights = np.ones(200)
    weights[50:60] = 0.0  # predicted, not learned from
    quick, slow = kind(random_state=0), kind(random_state=0)
    for model in (quick, slow):
        model.partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    found = quick.predict_proba_then_learn(X[30:], y[30:], sample_weight=weights[30:])
    for i in range(30, 200):
        said = slow.predict_proba_then_learn(X[[i]], y[[i]], sample_weight=weights[[i]])[0]
        np.testing.assert_allclose(found[i - 30], said, rtol=1e-9, atol=1e-12)
    assert quick.fingerprint() == slow.fingerprint()


@every
def test_one_by_one_gives_the_same_probabilities(kind):
    """Through a class that comes later, through copies, and with other calls in between."""
    X, y = stream(kind, n=90, classes=3)
    y = np.where(np.arange(90) < 40, y % 2, y)
    whole, model = kind(random_state=0).partial_fit(X, y), kind(random_state=0)
    for i in range(90):
        if i == 60:
            copy, model = model, pickle.loads(pickle.dumps(model))
            copy.learn_one(X[0], y[0])  # is no part of the other
        if i % 20 == 19:
            model.partial_fit(X[[i]], y[[i]])
        else:
            model.learn_one(X[i], y[i])
    assert model.fingerprint() == whole.fingerprint()
    assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))


def test_a_class_that_comes_later_had_no_probability():
    X, y = stream(POLKClassifier, n=60, classes=3)
    y = np.where(np.arange(60) < 40, y % 2, y)
    model = POLKClassifier().partial_fit(X[:10], y[:10])
    found = model.predict_proba_then_learn(X[10:], y[10:])
    first = int(np.argmax(y[10:] == 2))
    assert (found[: first + 1, 2] == 0.0).all()
    assert (found[first + 1 :, 2] > 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_log_loss_is_measured_for_every_loss():
    X, y = stream(POLKClassifier, n=400, classes=2)
    model = POLKClassifier(random_state=0)
    result = prequential(model, (X, y), metrics=["log_loss"], classes=[0, 1]).summary()
    twin = POLKClassifier(random_state=0)
    said = twin.predict_proba_then_learn(X, y, classes=[0, 1])[np.arange(400), y]
    np.testing.assert_allclose(
        result["log_loss"], -np.log(said)[1:].mean()
    )  # the first is only learned


def test_models_that_are_merged_share_what_they_know():
    X, y = stream(POLKClassifier, n=400, classes=2)
    halves = [POLKClassifier(gamma=1.0).partial_fit(X[i::2], y[i::2]) for i in range(2)]
    merged = merge(halves)
    tables = np.stack([model._calibration for model in halves])
    np.testing.assert_allclose(merged._calibration, tables.mean(axis=0))


def test_files_without_and_with_a_damaged_calibration(tmp_path):
    X, y = stream(POLKClassifier, n=200, classes=2)
    model = POLKClassifier(random_state=0).partial_fit(X, y)
    header, arrays = model._document()
    old = {name: part for name, part in arrays.items() if name != "calibration"}
    old_header = {name: part for name, part in header.items() if name != "met"}
    storage.write(tmp_path / "old", "POLKClassifier", old_header, old)
    loaded = kernelstream.load(tmp_path / "old")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.predict_proba(X).shape == (200, 2)
    assert loaded.partial_fit(X, y).predict_proba(X).shape == (200, 2)
    for bad in (arrays["calibration"][:2], np.full((3, 5), np.nan)):
        storage.write(tmp_path / "bad", "POLKClassifier", header, {**arrays, "calibration": bad})
        with pytest.raises(ModelFileError, match="calibration"):
            kernelstream.load(tmp_path / "bad")


# ---- weights of classes ----------------------------------------------------------------------


@every
def test_class_weights_are_sample_weights(kind, tmp_path):
    X, y = stream(kind, n=150, classes=2)
    labels = np.array(["no", "yes"])[y]
    weighted = kind(random_state=0, class_weight={"yes": 3.0}).partial_fit(X, labels)
    given = kind(random_state=0).partial_fit(X, labels, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert np.array_equal(weighted.decision_function(X), given.decision_function(X))
    one_by_one = kind(random_state=0, class_weight={"yes": 3.0})
    for x, label in zip(X, labels.tolist(), strict=True):
        one_by_one.learn_one(x, label)
    assert one_by_one.fingerprint() == weighted.fingerprint()
    weighted.save(tmp_path / "m")
    assert kernelstream.load(tmp_path / "m").class_weight == {"yes": 3.0}


def test_weights_of_classes_that_are_not_there():
    X, y = stream(POLKClassifier, n=40, classes=2)
    labels = np.array(["no", "yes"])[y]
    model = POLKClassifier(random_state=0, class_weight={"yes": 3.0, "ja": 5.0})
    with pytest.warns(UserWarning, match=r"class_weight has \['ja'\], which y does not have"):
        model.fit(X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it may still come
        model.partial_fit(X, labels)
        POLKClassifier(class_weight={"true": 2.0, False: 1.0}).fit(X, y == 1)
    np.testing.assert_array_equal(of_all({"true": 2.0}, np.array([True, False]), None), [2.0, 1.0])


def test_balanced_in_any_chunks_and_files(tmp_path):
    X, y = stream(POLKClassifier, n=200, classes=3)
    whole = POLKClassifier(random_state=0, class_weight="balanced").partial_fit(X, y)
    pieces = POLKClassifier(random_state=0, class_weight="balanced")
    for i in range(0, 200, 17):
        pieces.partial_fit(X[i : i + 17], y[i : i + 17])
        pieces.save(tmp_path / "m")
        pieces = kernelstream.load(tmp_path / "m")
    assert pieces.fingerprint() == whole.fingerprint()
    assert whole.fingerprint() != POLKClassifier(random_state=0).partial_fit(X, y).fingerprint()


def test_balanced_weights():
    labels = np.array([0] * 900 + [1] * 100)
    np.random.default_rng(0).shuffle(labels)
    np.testing.assert_allclose(of_all("balanced", labels, None)[labels == 1], 5.0)
    weights = of_next("balanced", labels, None, {})
    naive = []
    for i, label in enumerate(labels):
        so_far = labels[: i + 1]
        kinds = len(np.unique(so_far))
        naive.append((i + 1 + 30 * kinds) / (kinds * (np.sum(so_far == label) + 30)))
    np.testing.assert_allclose(weights, naive)
    late = of_next("balanced", np.tile(labels, 100), None, {})[-1000:]
    assert abs(late[labels == 1].sum() - late[labels == 0].sum()) < 10.0
    none = of_next("balanced", labels, np.zeros(1000), met := {})
    assert not none.any()
    assert not met


@pytest.mark.parametrize("wrong", [{"a": -1.0}, {"a": "x"}, {"a": np.inf}, "even", 2.0])
def test_class_weights_that_are_none(wrong):
    with pytest.raises(ValueError, match="class_weight"):
        POLKClassifier(class_weight=wrong).partial_fit([[0.0], [1.0]], [0, 1])


def test_features_and_a_learner_have_them_too():
    X, y = stream(OnlineKernelFeatureClassifier, n=300, classes=2)
    model = OnlineKernelFeatureClassifier(5, random_state=0)
    model.partial_fit(X[:10], y[:10])
    found = model.predict_proba_then_learn(X[10:], y[10:])
    assert np.mean(found.argmax(axis=1) == y[10:]) > 0.6
