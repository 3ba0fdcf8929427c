"""KRLS-T: forgetting, caps, classes, chunks and files."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream import KRLSTClassifier, KRLSTRegressor, ModelFileError, load, storage
from kernelstream.models._auto._tracker import TrackerState
from tests.models.tools import in_pieces, stream

BOTH = pytest.mark.parametrize("kind", [KRLSTClassifier, KRLSTRegressor])


def test_noise_of_a_known_size_is_found():
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (3000, 1))
    y = 100.0 + 20.0 * np.sin(2.0 * X[:, 0]) + 3.0 * random.normal(size=3000)
    model = KRLSTRegressor().partial_fit(X, y)
    predicted, std = model.predict(X, return_std=True)
    assert 2.7 < np.median(std) < 3.5
    assert np.sqrt(np.mean((predicted - 100.0 - 20.0 * np.sin(2.0 * X[:, 0])) ** 2)) < 1.0


def test_forgetting_follows_a_jump_and_returns_to_the_prior():
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 2))
    y = np.where(np.arange(2000) < 1000, 1.0, -1.0) * np.sin(2.0 * X[:, 0])
    y += 0.1 * random.normal(size=2000)
    wrong = []
    for forget in (0.99, 1.0):
        predicted = KRLSTRegressor(forget=forget).predict_then_learn(X, y)
        wrong.append(np.mean(np.square(predicted - y)[1300:]))
    assert wrong[0] < 0.3 * wrong[1]
    forgetful = KRLSTRegressor(forget=0.5, noise=0.01).partial_fit(X, y)
    lasting = KRLSTRegressor(forget=1.0, noise=0.01).partial_fit(X, y)
    spread = [model.predict(X, return_std=True)[1].mean() for model in (forgetful, lasting)]
    assert spread[0] > 3.0 * spread[1]


@BOTH
def test_any_chunks_and_forms_give_the_same_bits(kind):
    X, y = stream(kind, n=300, classes=3)
    make = lambda: kind(max_points=20, forget=0.99, random_state=0)  # noqa: E731
    whole = make().partial_fit(X, y)
    assert in_pieces(make(), X, y, 7).fingerprint() == whole.fingerprint()
    assert make().partial_fit(csr_array(X), y).fingerprint() == whole.fingerprint()
    one = make()
    for x, target in zip(X, y, strict=True):
        one.learn_one(x, target)
    assert one.fingerprint() == whole.fingerprint()
    weighted = make().partial_fit(
        np.vstack([X, X]), np.append(y, y), sample_weight=np.repeat([1.0, 0.0], len(y))
    )
    assert weighted.fingerprint() == whole.fingerprint()


@BOTH
@pytest.mark.parametrize("learn_scales", [False, True])
def test_files_go_on_where_they_stopped(kind, learn_scales, tmp_path):
    X, y = stream(kind, n=400, classes=3)
    parameters = {"max_points": 25, "learn_scales": learn_scales, "random_state": 0}
    whole = kind(**parameters).partial_fit(X, y)
    half = kind(**parameters).partial_fit(X[:170], y[:170])
    half.save(tmp_path / "half.ks")
    again = load(tmp_path / "half.ks")
    assert again.fingerprint() == half.fingerprint()
    assert again.partial_fit(X[170:], y[170:]).fingerprint() == whole.fingerprint()
    assert again.nbytes_ == whole.nbytes_


@BOTH
def test_memory_stays_below_the_closed_form(kind):
    X, y = stream(kind, n=300, classes=4)
    model = kind(max_points=30).partial_fit(X, y)
    outputs = 1 if kind is KRLSTRegressor else 4
    assert model.nbytes_ <= TrackerState.nbytes_for(3, outputs, kind is KRLSTRegressor, 30)
    assert model.model_order_ == 30
    cap = model.nbytes_ - 5000
    model.set_params(max_bytes=cap).partial_fit(X, y)
    assert model.nbytes_ <= cap
    assert 1 < model.model_order_ < 30
    with pytest.raises(ValueError, match=r"it must be \d+ at least"):
        kind(max_bytes=100).partial_fit(X, y)


def test_classes_come_at_any_time():
    X, y = stream(KRLSTClassifier, n=600, classes=3)
    first = y < 2
    model = KRLSTClassifier().partial_fit(X[first], y[first])
    model.partial_fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_learned_scales_find_the_column_that_matters():
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 8))
    y = np.sin(2.0 * X[:, 0]) + 0.05 * random.normal(size=1500)
    errors = [
        np.mean(np.square(KRLSTRegressor(learn_scales=scales).predict_then_learn(X, y) - y)[700:])
        for scales in (False, True)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_what_cannot_change_on_the_way():
    X, y = stream(KRLSTRegressor)
    model = KRLSTRegressor().partial_fit(X, y)
    with pytest.raises(ValueError, match="gamma cannot change"):
        model.set_params(gamma=3.0).partial_fit(X, y)
    model.set_params(gamma="auto", forget=0.9, noise=0.5).partial_fit(X, y)
    with pytest.raises(ValueError, match="forget must be"):
        model.set_params(forget=0.0).partial_fit(X, y)


DAMAGES = {
    "more outputs": lambda header, arrays: header["state"].update(outputs=3),
    "other size": lambda header, arrays: header["state"]["group"]["status"].update(most=10**9),
    "NaN": lambda header, arrays: arrays["group_weights"].fill(np.nan),
    "other points": lambda header, arrays: arrays["group_points"].fill(0.5),
    "errors out of order": lambda header, arrays: arrays["intervals_ordered"].sort(axis=0) or
    arrays.update(intervals_ordered=arrays["intervals_ordered"][:, ::-1].copy()),
    "no scale": lambda header, arrays: arrays["intervals_scale"].fill(-1.0),
    "no target": lambda header, arrays: header["state"].update(target=None),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_nonsense_in_files_is_refused(name, tmp_path):
    X, y = stream(KRLSTRegressor)
    header, arrays = KRLSTRegressor(max_points=10).partial_fit(X, y)._document()
    arrays = {key: array.copy() for key, array in arrays.items()}
    DAMAGES[name](header, arrays)
    storage.write(tmp_path / "bad.ks", "KRLSTRegressor", header, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "bad.ks")


@pytest.mark.parametrize("name", ["auto", "krlst"])
def test_files_with_a_full_factor_still_predict_the_same(name):
    """Until the factor became a triangle, files had other coordinates."""
    folder = Path(__file__).parent / "files"
    expected = np.load(folder / "expected.npz")
    model = load(folder / f"{name}.ks")
    predict = model.predict if name == "auto" else model.predict_proba
    np.testing.assert_allclose(predict(expected["X"]), expected[name], rtol=1e-9, atol=1e-9)
