"""Several numbers per sample, one dictionary: against the twins, and all that a model promises."""

import contextlib

import numpy as np
import pytest
from sklearn.metrics import r2_score

import kernelstream
from kernelstream import AVMRegressor, COLKRegressor, KRLSTRegressor, Loss, POLKRegressor
from kernelstream.kernels import Gaussian
from kernelstream.streams import make_robot_arm
from tests.naive import avm as naive_avm
from tests.naive import kernels
from tests.naive.polk import polk

KINDS = {
    "POLK": lambda **given: POLKRegressor(**given),
    "POLK, batches and average": lambda **given: POLKRegressor(batch_size=6, average=True, **given),
    "AVM": lambda **given: AVMRegressor(delta=0.8, **given),
    "AVM, delta by the samples": lambda **given: AVMRegressor(average="auto", **given),
}
LOSSES = ["squared_error", "absolute_error", Loss("huber", 0.5), Loss("epsilon_insensitive", 0.1)]
kinds = pytest.mark.parametrize("kind", KINDS)


def arm(n=300, seed=0):
    return make_robot_arm(n, random_state=seed)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("batch", [1, 4])
def test_polk_equals_the_twin(loss, batch):
    X, Y = arm(24)
    model = POLKRegressor(
        loss, kernel=Gaussian(0.4), eta0=0.4, alpha=1e-3, compression_error=0.2, batch_size=batch
    ).partial_fit(X, Y).flush()  # fmt: skip
    name, number = (loss, 0.0) if isinstance(loss, str) else (loss.name, loss.number)
    twin = polk(
        kernels.gaussian(0.4), X, Y, name, number, outputs=3, regularisation=1e-3, initial_step=0.4,
        budget_number=0.2, batch=batch,
    )  # fmt: skip
    assert len(twin.points) < 24
    expected = kernels.matrix(kernels.gaussian(0.4), X, twin.points) @ twin.weights
    assert np.allclose(model.predict(X), expected, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_avm_equals_the_twin(loss):
    X, Y = arm(60)
    model = AVMRegressor(loss, kernel=Gaussian(0.4), alpha=0.1, delta=1.5).partial_fit(X, Y)
    name, number = (loss, 0.0) if isinstance(loss, str) else (loss.name, loss.number)
    twin = naive_avm.avm(
        naive_avm.gaussian(0.4), X, Y, name, number, outputs=3, regularisation=0.1, delta=1.5
    )
    expected = kernels.matrix(kernels.gaussian(0.4), X, twin.points) @ twin.weights
    assert np.allclose(model.predict(X), expected, rtol=0.0, atol=1e-9)


@kinds
def test_equal_columns_are_learned_equally(kind):
    X, Y = arm()
    model = KINDS[kind](gamma=0.5).partial_fit(X, Y[:, [0, 1, 0]]).flush()
    said = model.predict(X)
    assert said.shape == (300, 3)
    assert np.array_equal(said[:, 0], said[:, 2])
    assert not np.array_equal(said[:, 0], said[:, 1])
    assert np.isclose(model.score(X, Y[:, [0, 1, 0]]), r2_score(Y[:, [0, 1, 0]], said))


@kinds
def test_chunks_one_by_one_files_and_copies_give_the_same_bits(kind, tmp_path):
    X, Y = arm()
    whole = KINDS[kind](gamma=0.5, random_state=0)
    first = whole.predict_then_learn(X, Y)
    parts = KINDS[kind](gamma=0.5, random_state=0)
    for x, y in zip(X[:15], Y[:15], strict=True):
        parts.learn_one(x, y)
    said = parts.predict_then_learn(X[15:103], Y[15:103])
    assert np.allclose(said, first[15:103], rtol=0.0, atol=1e-12)  # what waits is predicted at once
    parts.save(tmp_path / "model.ks")  # with what waits
    parts = kernelstream.load(tmp_path / "model.ks")
    parts.partial_fit(X[103:], Y[103:])
    assert parts.fingerprint() == whole.fingerprint()
    assert np.array_equal(parts.predict(X), whole.predict(X))


@kinds
def test_memory_stays_within_the_bytes(kind):
    X, Y = arm(600)
    model = KINDS[kind](gamma=20.0, max_bytes=20_000)
    # Cells of a given diameter find no room; POLK, and a delta by the samples, make do.
    full = pytest.warns(kernelstream.CapWarning, match="max_bytes=20000 left no room")
    with full if kind == "AVM" else contextlib.nullcontext():
        for first in range(0, 600, 50):
            model.partial_fit(X[first : first + 50], Y[first : first + 50])
            assert model.nbytes_ <= 20_000


@kinds
def test_another_number_of_targets_is_refused(kind):
    X, Y = arm(20)
    model = KINDS[kind]().partial_fit(X, Y)
    before = model.fingerprint()
    with pytest.raises(ValueError, match="y has 2 numbers per sample, the model has learned 3"):
        model.partial_fit(X, Y[:, :2])
    with pytest.raises(ValueError, match="y has 1 number per sample"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="learn_one takes 3 targets"):
        model.learn_one(X[0], Y[0, :2])
    with pytest.raises(ValueError, match="NaN at row 3"):
        model.partial_fit(X, np.where(np.arange(20)[:, None] == 3, np.nan, Y))
    assert model.fingerprint() == before
    assert model.fit(X, Y[:, 0]).predict(X).shape == (20,)  # from scratch


@pytest.mark.parametrize("estimator_class", [COLKRegressor, KRLSTRegressor])
def test_models_of_one_number_say_who_learns_several(estimator_class):
    with pytest.raises(ValueError, match="POLKRegressor and AVMRegressor"):
        estimator_class().fit(*arm(20))


def test_merging():
    X, Y = arm()
    halves = [POLKRegressor(gamma=0.5).partial_fit(X[i::2], Y[i::2]) for i in range(2)]
    merged = kernelstream.merge(halves, error=0.0)
    mean = (halves[0].predict(X) + halves[1].predict(X)) / 2.0
    assert np.allclose(merged.predict(X), mean, atol=1e-6)
    with pytest.raises(ValueError, match="3 and 1 numbers"):
        kernelstream.merge([halves[0], POLKRegressor(gamma=0.5).partial_fit(X, Y[:, 0])])
