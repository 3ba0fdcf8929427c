"""Several numbers per sample, one dictionary: against the twins, and all that a model promises."""

import contextlib

import numpy as np
import pytest
from sklearn.metrics import r2_score

import kernelstream
from kernelstream import (
    AutoRegressor,
    AVMRegressor,
    COLKRegressor,
    KRLSTRegressor,
    Loss,
    POLKRegressor,
    registry,
)
from kernelstream.kernels import Gaussian
from kernelstream.models._auto._sizes import nbytes_for
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
SEVERAL = [
    name
    for name, method in registry.methods().items()
    if method.regressor is not None and method.regressor._several
]
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


def test_all_regressors_learn_several():
    assert set(SEVERAL) == {name for name, kind in registry.methods().items() if kind.regressor}


@pytest.mark.parametrize("kind", [KRLSTRegressor, AutoRegressor])
def test_units_deviations_and_intervals_for_each_column(kind, tmp_path):
    """Columns of other sizes, with other noise, and one that is constant for a while."""
    random = np.random.default_rng(0)
    X, Y = arm(1500)
    clean, noise = Y * [1.0, 1e4, 1e-3], np.array([0.02, 2e3, 1e-4])
    Y = clean + random.normal(size=Y.shape) * noise
    Y[:300, 2] = 1e-3
    whole = kind(max_points=60, random_state=0)
    low, high = np.moveaxis(whole.predict_interval_then_learn(X, Y, coverage=0.9), 2, 0)
    assert low.shape == (1500, 3)
    inside = ((low <= Y) & (high >= Y))[800:].mean(axis=0)
    assert np.all((inside > 0.86) & (inside < 0.94))
    values, std = whole.predict(X, return_std=True)
    assert values.shape == std.shape == (1500, 3)
    assert np.all(np.sqrt(np.square(values - clean)[800:].mean(axis=0)) < Y[800:].std(axis=0) / 3)
    assert np.all(np.median(std, axis=0) > noise * 0.8)  # at least the noise of its own
    assert np.all(np.median(std, axis=0) < Y[800:].std(axis=0))
    widths = np.diff(whole.predict_interval(X), axis=2)[:, :, 0]
    assert np.median(widths[:, 1]) > 1e3 * np.median(widths[:, 0])

    cap = whole.nbytes_ - 2000
    parts = kind(max_points=60, random_state=0)
    parts.partial_fit(X[:290], Y[:290]).save(tmp_path / "model.ks")
    parts = kernelstream.load(tmp_path / "model.ks")
    assert np.isfinite(parts.predict_interval(X)).all()
    assert parts.partial_fit(X[290:], Y[290:]).fingerprint() == whole.fingerprint()
    assert parts.set_params(max_bytes=cap).partial_fit(X, Y).nbytes_ <= cap


def new_regressor(method, **given):
    """With a kernel that suits the arm, and small."""
    kind = registry.methods()[method].regressor
    random = {"random_state": 0} if "random_state" in kind().get_params() else {}
    caps = {"max_points": 40} if method not in ("colk", "polk", "avm", "ok-feb", "npbsgd") else {}
    kernel = {"gamma": 0.5} if "gamma" in kind().get_params() else {}
    return kind(**kernel, **random, **caps, **given)


def changing(n=5000, change=2400):
    """Three targets of six columns, all of them others from a row on; and noise."""
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, size=(n, 6))
    Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1], X[:, 0] * X[:, 1]])
    later = np.column_stack([np.sin(2.0 * X[:, 2]), -X[:, 3], X[:, 2] * X[:, 3]])
    Y[change:] = later[change:]
    return X, (Y + 0.1 * random.normal(size=Y.shape)) * [1.0, 1e3, 1e-3]


def test_the_automatic_model_starts_again_where_all_targets_change(tmp_path):
    X, Y = changing()
    model = AutoRegressor(random_state=0)
    made = model.predict_then_learn(X[:2900], Y[:2900])
    assert model._state.experts.young is not None  # in the middle of a trial
    model.save(tmp_path / "model.ks")
    again = kernelstream.load(tmp_path / "model.ks")
    assert again.fingerprint() == model.fingerprint()
    for first in range(2900, 5000, 70):
        part = slice(first, first + 70)
        made = np.vstack([made, again.predict_then_learn(X[part], Y[part])])
    whole = AutoRegressor(random_state=0)
    assert np.array_equal(whole.predict_then_learn(X, Y), made)
    assert whole.fingerprint() == again.fingerprint()
    assert whole.restarts_ == 1
    assert "it forgot everything once" in whole._what_it_did({})
    errors = np.sqrt(np.square(made - Y)[4000:].mean(axis=0)) / Y[4000:].std(axis=0)
    assert np.all(errors < 0.4)
    assert sum(whole.experts_.values()) == pytest.approx(1.0)
    shares = whole.history_
    rows = shares.pop("rows")
    assert np.allclose(sum(shares.values()), 1.0, atol=1e-6)
    assert rows[-1] == 5000
    assert np.argsort(whole.column_importances_)[-2:].tolist() in ([2, 3], [3, 2])


def test_the_automatic_model_finds_for_each_target_what_suits_it():
    """One is nonlinear, one linear, one a random walk."""
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 5))
    Y = np.column_stack([
        np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=3000),
        X @ [1.0, 2.0, -1.0, 0.5, 0.0] + 0.3 * random.normal(size=3000),
        np.cumsum(random.normal(size=3000)),
    ])  # fmt: skip
    together = AutoRegressor(random_state=0).predict_then_learn(X, Y)
    error = np.square(together - Y)[500:].mean(axis=0)
    assert error[0] < 0.3 * Y[:, 0].var()
    assert error[1] < 0.3**2 * 1.2  # the noise
    assert error[2] < 1.2  # the walk's own steps


@pytest.mark.parametrize("given", [{}, {"labels_delayed": True}, {"max_bytes": 300_000}])
def test_memory_of_the_automatic_model(given):
    X, Y = changing(3000)
    Y = np.hstack([Y, Y[:, ::-1]])
    model = AutoRegressor(random_state=0, **given)
    sizes = None
    for first in range(0, 3000, 250):
        model.partial_fit(X[first : first + 250], Y[first : first + 250])
        sizes = model._sizes(6)
        closed = nbytes_for(6, 6, True, model.labels_delayed, sizes)
        assert model.nbytes_ <= closed <= given.get("max_bytes", 4_000_000)
    model.set_params(max_bytes=200_000).partial_fit(X[:10], Y[:10])
    assert model.nbytes_ <= 200_000


def test_votes_of_stored_points_add_up():
    """With what linear experts and the mean add, which do not matter here."""
    X, Y = arm(1500)
    model = AutoRegressor(random_state=0).partial_fit(X, Y * [1.0, 50.0, 0.1] + [0.0, 7.0, 0.0])
    points, votes = model._point_votes(X[:20])
    assert votes.shape == (20, len(points), 3)
    total = votes.sum(axis=1) + model._state.targets.center
    scale = Y.std(axis=0) * [1.0, 50.0, 0.1]
    assert np.all(np.abs(total - model.predict(X[:20])) < 0.05 * scale)


@pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("method", SEVERAL)
def test_every_method(method, tmp_path):
    """One column is what one number was; chunks, files, equal columns; each column is learned."""
    X, Y = arm(150)
    Y = Y[:, :2] / Y[:, :2].std(axis=0)
    one = new_regressor(method).partial_fit(X, Y[:, 0])
    column = new_regressor(method).partial_fit(X, Y[:, :1])
    assert column.predict(X).shape == (150,)
    assert column.fingerprint() == one.fingerprint()

    whole = new_regressor(method)
    made = whole.predict_then_learn(X, Y)
    assert made.shape == whole.predict(X).shape == (150, 2)
    assert whole.flush().predict_one(X[0]).shape == (2,)
    parts = new_regressor(method)
    for x, y in zip(X[:5], Y[:5], strict=True):
        parts.learn_one(x, y)
    parts.partial_fit(X[5:60], Y[5:60]).save(tmp_path / "model.ks")
    parts = kernelstream.load(tmp_path / "model.ks").partial_fit(X[60:], Y[60:]).flush()
    assert parts.fingerprint() == whole.fingerprint()

    twins = new_regressor(method).partial_fit(X, Y[:, [0, 0]]).flush().predict(X)
    assert np.array_equal(twins[:, 0], twins[:, 1])
    alone = np.stack(
        [new_regressor(method).partial_fit(X, y).flush().predict(X) for y in Y.T], axis=1
    )
    together = ((Y - whole.predict(X)) ** 2).mean()
    assert together < 2.0 * ((Y - alone) ** 2).mean() + 0.01
    with pytest.raises(ValueError, match="y has 1 number per sample"):
        whole.partial_fit(X, Y[:, 0])


@pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
@pytest.mark.parametrize(
    "method", ["krls", "sw-krls", "klms", "qklms", "knlms", "pa", "ogd", "windowed-ogd", "fogd"]
)
def test_methods_whose_points_do_not_depend_on_the_target_learn_each_column_alone(method):
    """One dictionary for both is then the dictionary of each."""
    X, Y = arm(100)
    given = {"tolerance": 0.0} if method == "pa" else {}
    both = new_regressor(method, **given).partial_fit(X, Y[:, :2]).predict(X)
    for c in range(2):
        alone = new_regressor(method, **given).partial_fit(X, Y[:, c]).predict(X)
        assert np.allclose(both[:, c], alone, rtol=0.0, atol=1e-12)


def test_the_first_step_of_colk_is_the_papers_for_vectors():
    X, Y = arm(2)
    model = COLKRegressor(
        gamma=0.5, eta0=0.3, alpha=0.0, risk_weight=0.2, clip=None, tracking="average",
        compression_error=0.0,
    ).partial_fit(X, Y)  # fmt: skip
    losses, slopes = 0.5 * (Y**2).sum(axis=1), -Y  # |f - y|^2 / 2 at f = 0
    # (47) with (19), whose first step makes each tracker the other sample's own loss; both samples
    # take both roles.
    apart = 2.0 * 0.2 * (losses[0] - losses[1])
    directions = slopes * (1.0 + 2.0 * np.array([[apart], [-apart]]))
    expected = kernels.matrix(kernels.gaussian(0.5), X, X) @ (-0.3 / 2.0 * directions)
    assert np.allclose(model.predict(X), expected, rtol=0.0, atol=1e-12)


def test_merging():
    X, Y = arm()
    halves = [POLKRegressor(gamma=0.5).partial_fit(X[i::2], Y[i::2]) for i in range(2)]
    merged = kernelstream.merge(halves, error=0.0)
    mean = (halves[0].predict(X) + halves[1].predict(X)) / 2.0
    assert np.allclose(merged.predict(X), mean, atol=1e-6)
    with pytest.raises(ValueError, match="3 and 1 numbers"):
        kernelstream.merge([halves[0], POLKRegressor(gamma=0.5).partial_fit(X, Y[:, 0])])
