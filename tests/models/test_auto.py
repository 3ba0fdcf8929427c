"""The automatic model where streams are hard on it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from kernelstream import AutoClassifier, AutoRegressor, KRLSTRegressor, load, storage
from kernelstream.models._auto._sizes import plan
from kernelstream.models._auto._state import AutoState

N = 1600


def rows(features=4, n=N, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, features))
    return X, (X[:, 0] * X[:, 1] > 0.0).astype(int), np.sin(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("factor", [1e3, 1e9, 1e100])
def test_targets_that_grow(factor):
    X, _, y = rows()
    y[700:] *= factor
    model = AutoRegressor(random_state=0)
    predicted = model.predict_then_learn(X, y)
    assert np.isfinite(predicted).all()
    assert np.isfinite(model.predict_interval(X)).all()
    model.fingerprint()  # can be written


def test_counts_that_are_mostly_zero_are_not_predicted_by_the_last_one():
    """The last value is exact in most rows, and twice as far off as the mean in all others."""
    random = np.random.default_rng(0)
    X, often = random.normal(size=(2000, 4)), random.random(2000) < 0.05
    y = np.where(often, random.exponential(5.0, size=2000).round(), 0.0)
    made = AutoRegressor(random_state=0).predict_then_learn(X, y)
    assert np.square(made - y)[20:].mean() < 1.1 * y[20:].var()


@pytest.mark.parametrize("value", [1e6, 1e150])
def test_one_target_far_out(value):
    X, _, y = rows()
    y[700] = value
    predicted = AutoRegressor(random_state=0).predict_then_learn(X, y)
    assert np.abs(predicted[701:]).max() < 20.0
    assert np.sqrt(np.mean((predicted - y)[1200:] ** 2)) < 0.5 * y[1200:].std()


@pytest.mark.parametrize("inputs", ["lags", "hour"])
def test_jumps_are_followed_at_once(inputs):
    """At most twice the squared error of the last value where targets jump by many deviations."""
    random, n = np.random.default_rng(0), 2000
    y = 5.0 + 0.02 * random.normal(size=n)
    for begin in np.cumsum(random.integers(80, 250, size=12)):
        burst = y[begin : begin + 30]  # a pump that runs now and then
        burst += 80.0 * (1.0 - np.exp(-0.5 * np.arange(len(burst)))) + random.normal(
            size=len(burst)
        )
    X = np.column_stack([y[:-2], y[1:-1]] if inputs == "lags" else [np.arange(n - 2) % 24.0])
    predicted = AutoRegressor(random_state=0).predict_then_learn(X, y[2:])
    errors, of_no_change = np.square(predicted - y[2:])[1:], np.square(y[2:] - y[1:-1])[1:]
    assert errors.sum() < 2.0 * of_no_change.sum()


def test_one_row_far_out():
    X, y, _ = rows(n=3000)
    X[700] = 1e6
    predicted = AutoClassifier(random_state=0).predict_then_learn(X, y, classes=[0, 1])
    assert np.mean(predicted[1500:] == y[1500:]) > 0.93


@pytest.mark.parametrize("forget", [True, False])
def test_one_kind_of_experts_alone(forget, tmp_path):
    X, y, _ = rows(n=2600)
    model = AutoClassifier(forget=forget, random_state=0).partial_fit(X, y)
    assert model._state.committee.mixture.shares.sum(axis=1) == pytest.approx(1.0)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint() == model.fingerprint()
    assert model.score(X, y) > 0.9


def test_one_class_comes_back_from_a_file(tmp_path):
    X, _, _ = rows()
    model = AutoClassifier(random_state=0).partial_fit(X, np.zeros(N, int))
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X[:2]).tolist() == [0, 0]


def test_chunks_give_the_same_bits_also_where_little_is_remembered():
    X, _, _ = rows(features=50, n=2600)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    models = []
    for size in (2600, 97):
        model = AutoRegressor(max_bytes=1_000_000, random_state=0)
        for first in range(0, len(y), size):
            model.partial_fit(X[first : first + size], y[first : first + size])
        models.append(model.fingerprint())
    assert models[0] == models[1]


@pytest.mark.parametrize("targets", [1, 2])
def test_chunks_give_the_same_bits_where_units_change_within_a_pass(targets):
    """Units of a target are looked at every 64 rows, wherever calls and passes end."""
    X, _, y = rows(n=1300)
    y[1030:] *= 1000.0  # off long before the pass that begins with row 1024 is over
    y = np.column_stack([y, X[:, 1]]) if targets == 2 else y
    models, predicted = [], []
    for size in (len(y), 32):
        models.append(AutoRegressor(random_state=0))
        parts = [slice(first, first + size) for first in range(0, len(y), size)]
        predicted.append([models[-1].predict_then_learn(X[part], y[part]) for part in parts])
    assert models[0].fingerprint() == models[1].fingerprint()
    assert np.array_equal(*(np.concatenate(each) for each in predicted))


def test_caps_that_are_raised_are_kept():
    X, _, y = rows(n=2200)
    model = AutoRegressor(max_bytes=200_000, random_state=0).partial_fit(X, y)
    for most in (400_000, 800_000, 1_500_000):
        model.set_params(max_bytes=most).partial_fit(X[:10], y[:10])
        assert model.nbytes_ <= most


@pytest.mark.parametrize("kind", [AutoClassifier, AutoRegressor])
def test_the_least_memory_is_enough(kind):
    X, y, _ = rows(n=100)
    with pytest.raises(ValueError, match="it must be") as refused:
        kind(max_bytes=1).partial_fit(
            X, y, **({"classes": [0, 1]} if kind is AutoClassifier else {})
        )
    least = int(str(refused.value).split()[-3])
    assert kind(max_bytes=least).partial_fit(X, y).nbytes_ <= least


def test_many_classes():
    X, _, _ = rows()
    model = AutoClassifier(random_state=0).partial_fit(X, np.arange(N) % 400)
    assert np.allclose(model.predict_proba(X[:3]).sum(axis=1), 1.0)


def one_after_another(classes, n, features=3):
    """Classes that come one after another, and earlier ones again, in no order of their names."""
    rng = np.random.default_rng(0)
    newest = np.minimum(np.arange(n) * classes // n, classes - 1)
    labels = np.where(rng.uniform(size=n) < 0.5, newest, rng.integers(0, newest + 1))
    return rng.normal(size=(n, features)) + labels[:, None] % 7, rng.permutation(classes)[labels]


@pytest.mark.parametrize(
    ("classes", "n", "most"), [(70, 300, "auto"), (140, 420, 900_000), (1000, 1500, "auto")]
)
def test_classes_that_come_one_after_another_keep_to_the_memory(classes, n, most):
    X, y = one_after_another(classes, n)
    model = AutoClassifier(max_bytes=most, random_state=0)
    for first in range(0, n, 10):
        model.partial_fit(X[first : first + 10], y[first : first + 10])
        assert model.nbytes_ <= (4_000_000 if most == "auto" else most)
    assert len(model.classes_) > 0.6 * classes
    assert np.allclose(model.predict_proba(X[:3]).sum(axis=1), 1.0)


def test_many_classes_in_chunks_and_files(tmp_path):
    X, y = one_after_another(200, 400)
    whole = AutoClassifier(random_state=0).partial_fit(X, y)
    parts = AutoClassifier(random_state=0)
    for first in range(0, 400, 37):
        parts.partial_fit(X[first : first + 37], y[first : first + 37])
        parts.save(tmp_path / "model")
        parts = load(tmp_path / "model")
    assert parts.fingerprint() == whole.fingerprint()


def test_files_with_a_row_of_counts_for_every_class():
    X, y = one_after_another(200, 600)
    model = AutoClassifier(random_state=0).partial_fit(X, y)
    header, arrays = model._state.to_document()
    classes, owners = header["outputs"], arrays.pop("owners")
    assert arrays.pop("times").shape == owners.shape < (classes,)
    counts = np.zeros((3, classes + 1, classes))  # as earlier versions wrote them
    counts[:, [*owners, -1]] = arrays["counts"]
    expected = arrays["counts"]
    arrays["counts"] = counts
    for place in (2, 3):
        weights, covariance = (f"linear{place}_{name}" for name in ("weights", "covariance"))
        arrays[weights] = np.pad(arrays[weights], ((0, 0), (0, classes)))
        square = np.eye(4 + classes)
        square[:4, :4] = arrays[covariance]
        arrays[covariance] = square
    again = AutoState.from_document(header, arrays, 3).committee
    order = np.argsort(owners)
    assert np.array_equal(again.chains.owners, owners[order])
    assert np.array_equal(again.chains.counts[:, :-1], expected[:, order])
    assert again.linear[2].weights.shape == (classes, 4)
    assert again.nbytes == model._state.committee.nbytes


def test_what_does_not_fit_is_refused_in_words():
    model = AutoClassifier(random_state=0)
    with pytest.raises(ValueError, match=r"must be \d+ at least"):
        model.partial_fit(np.zeros((2, 3)), [0, 1], classes=np.arange(20_000))


def test_later_rows_do_not_change_earlier_predictions():
    X, labels, y = rows(n=2600)
    for kind, target in ((AutoClassifier, labels), (AutoRegressor, y)):
        known = {"classes": [0, 1]} if kind is AutoClassifier else {}
        first = kind(random_state=0).predict_then_learn(X, target, **known)
        other = target.copy()
        other[1300:] = other[1300:][::-1]
        second = kind(random_state=0).predict_then_learn(X, other, **known)
        assert np.array_equal(first[:1301], second[:1301])
        assert not np.array_equal(first, second)


@pytest.mark.parametrize("seed", [2, 5])
def test_weights_however_large_leave_probabilities(seed):
    X, _, _ = rows(n=300, seed=seed)
    y = (np.sin(X[:, 0]) + X[:, 1] > 0.0).astype(int)
    weights = np.where(np.arange(300) % 7 == 0, 1e6, 1.0)
    model = AutoClassifier(random_state=0).partial_fit(X, y, sample_weight=weights)
    found = model.predict_proba(X)
    assert found.min() > 0.0
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(model.decision_function(X)).all()


def test_labels_without_structure_cost_nothing_but_the_majority():
    X, _, _ = rows(n=3000)
    y = (np.random.default_rng(1).random(3000) < 0.6).astype(int)
    predicted = AutoClassifier(random_state=0).predict_then_learn(X, y, classes=[0, 1])
    assert np.mean(predicted == y) > max(y.mean(), 1 - y.mean()) - 0.03


@pytest.mark.parametrize("kind", [AutoRegressor, KRLSTRegressor])
def test_pickles_of_another_layout_are_refused(kind):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = kind(random_state=0).partial_fit(X, X[:, 0])
    state = model.__getstate__()
    same = pickle.loads(pickle.dumps(model))
    assert same.fingerprint() == model.fingerprint()
    del state["_layout"]
    with pytest.raises(ValueError, match="another version of kernelstream"):
        kind.__new__(kind).__setstate__(state)
    new = kind()
    assert clone(pickle.loads(pickle.dumps(new))).get_params() == new.get_params()


def test_less_memory_takes_the_memory_of_earlier_numbers_away():
    """And more does not bring it back: what it had learned is gone."""
    X, _, y = rows()
    model = AutoRegressor(random_state=0).partial_fit(X[:800], y[:800])
    assert "earlier values" in model.experts_
    model.set_params(max_bytes=120_000).partial_fit(X[800:900], y[800:900])
    assert "earlier values" not in model.experts_
    assert model.nbytes_ <= 120_000
    model.set_params(max_bytes="auto").partial_fit(X[900:1000], y[900:1000])
    assert "earlier values" not in model.experts_
    assert sum(model.experts_.values()) == pytest.approx(1.0)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()


def test_a_series_without_helpful_inputs():
    """Half of the squared error of the last value: the season of a day, in half hours."""
    random, n = np.random.default_rng(0), 4000
    y = np.sin(np.arange(n) * np.pi / 24.0) ** 3 + 0.1 * random.normal(size=n)
    X = random.normal(size=(n, 2))
    made = AutoRegressor(random_state=0).predict_then_learn(X, y)
    half = slice(n // 2, None)
    assert np.square(made - y)[half].mean() < 0.5 * np.square(np.diff(y))[half].mean()
    late = AutoRegressor(random_state=0, labels_delayed=True).partial_fit(X[:500], y[:500])
    assert "earlier values" not in late.experts_


@pytest.mark.parametrize("rows_", [200, 1000])
def test_noise_is_predicted_by_its_mean(rows_):
    lost = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(rows_, 8)), random.normal(size=rows_)
        made = AutoRegressor(random_state=0).predict_then_learn(X, y)
        mean = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, rows_)])
        lost.append(np.square(made - y)[20:].sum() / np.square(mean - y)[20:].sum() - 1.0)
    assert np.mean(lost) < 0.03


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("weight", [100.0, 1e6])
def test_heavy_samples_of_a_series(weight, delayed):
    """The last value, which predict must not use, may be much nearer than what it says."""
    X = np.arange(8.0)[:, None]
    y = np.r_[np.zeros(5), 1.0, 2.0, 3.0]
    model = AutoRegressor(random_state=0, labels_delayed=delayed)
    model.partial_fit(X, y, sample_weight=[1.0] * 7 + [weight])
    assert np.isfinite(model.predict(X)).all()
    walk = np.cumsum(np.random.default_rng(1).normal(size=400))
    model.partial_fit(np.arange(400.0)[:, None], walk, sample_weight=np.full(400, weight))
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("rows_", [3000, 200_000])
def test_a_jump_after_a_long_time_without_a_change(rows_):
    """By then the deviation is next to nothing, but it is no measure of the jump."""
    random = np.random.default_rng(0)
    y = np.r_[random.normal(size=1000), np.zeros(rows_), np.full(500, 5.0)]
    X = random.normal(size=(len(y), 1))
    made = AutoRegressor(random_state=0).predict_then_learn(X, y)
    assert np.abs(made - y)[-500:].mean() < 1.5
    assert np.abs(made - y)[-300:].max() < 0.1


@pytest.mark.parametrize("spike", [1e5, 1e12])
def test_spikes_now_and_then_set_no_unit(spike):
    X, _, y = rows(n=4000)
    usual = np.arange(len(y)) % 100 != 99
    y[~usual] = spike
    made = AutoRegressor(random_state=0).predict_then_learn(X, y)
    assert np.abs(made - y)[usual].mean() < 0.6 * np.abs(y[usual] - y[usual].mean()).mean()


@pytest.mark.parametrize("size", [1.0, 1e30, 9e149])
def test_the_same_large_value_for_long(size, tmp_path):
    y = size * np.r_[0.0, np.full(262_400, 1.0), np.full(300, 1.01), np.full(300, -1.0)]
    X = np.random.default_rng(0).normal(size=(len(y), 1))
    model = AutoRegressor(random_state=0)
    made = model.predict_then_learn(X, y)
    assert np.abs(made / size - y / size)[-200:].max() < 0.1
    model.save(tmp_path / "model.ks")


@pytest.mark.parametrize("targets", [1, 4, 8])
def test_more_memory_never_takes_fresh_starts_away(targets):
    young = [plan(3, targets, True, False, None, kb * 1000).young for kb in range(200, 4000, 50)]
    first = np.flatnonzero(young)[0]
    assert all(young[first:])
    assert plan(3, targets, True, False, None, 4_000_000).lags


def test_points_go_before_whole_covariances():
    whole = [plan(33, 2, False, False, None, bytes_).whole for bytes_ in (100_000, 1_000_000)]
    assert whole == [1, 4]
    assert plan(300, 1, True, False, None, 4_000_000).whole == 2


def test_noise_costs_little():
    """Before errors say more, most of the answer is the mean."""
    lost = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(200, 12)), random.normal(size=200)
        made = AutoRegressor(random_state=0).predict_then_learn(X, y)
        mean = np.cumsum(y)[:-1] / np.arange(1, 200)
        ours, of_mean = (np.square(y[1:] - each)[19:].sum() for each in (made[1:], mean))
        lost.append(ours / of_mean - 1.0)
    assert np.mean(lost) < 0.01


@pytest.mark.parametrize(("far_out", "low", "high"), [(False, 0.4, 0.7), (True, 0.9, 1.1)])
def test_far_beyond_the_targets_so_far_half_the_way_is_predicted(far_out, low, high):
    """All of it where targets turned out to lie far beyond those before."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    if far_out:
        X = np.where(random.random((500, 1)) < 0.1, 10.0 * X, X)
    y = X @ [1.0, 2.0, 0.0]
    model = AutoRegressor(random_state=0).partial_fit(X, y)
    rows = 20.0 * random.normal(size=(200, 3))
    truth = rows @ [1.0, 2.0, 0.0]
    beyond = np.abs(truth) > 1.5 * np.abs(y).max()
    part = model.predict(rows)[beyond] / truth[beyond]
    assert low < np.median(part) < high


def test_targets_that_grow_are_followed_beyond_all_before():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    y = np.exp(np.arange(2000) / 100.0)
    made = AutoRegressor(random_state=0).predict_then_learn(X, y)
    of_last, ours = (each[20:] / y[21:] for each in (np.diff(y), made[1:] - y[1:]))
    assert np.sqrt(np.mean(ours**2)) < 0.2 * np.sqrt(np.mean(of_last**2))


def test_large_weights_while_targets_grow(tmp_path):
    """The pool's covariance was lost to rounding: NaN, and a file that could not be loaded."""
    X = np.random.default_rng(0).normal(size=(90, 4))
    model = AutoRegressor(random_state=0)
    made = model.predict_then_learn(X, 10.0 ** np.linspace(-20, 20, 90), np.full(90, 1e6))
    assert np.isfinite([*made, *model.predict(X)]).all()
    model.save(tmp_path / "model.ks")
    assert load(tmp_path / "model.ks").fingerprint() == model.fingerprint()


@pytest.mark.parametrize("size", [1e100, 1e150])
@pytest.mark.parametrize("seed", [9, 37, 0])
def test_targets_of_units_worlds_apart(seed, size, tmp_path):
    """One jumps from nothing beside walks: what its last value said of these was without bound."""
    random = np.random.default_rng(seed)
    X, Y = random.normal(size=(30, 3)), np.cumsum(random.normal(size=(30, 3)), axis=0)
    Y[:, 1] = np.where(np.arange(30) == 10, size, random.normal(size=30) / size)
    model = AutoRegressor(random_state=0).partial_fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    model.save(tmp_path / "model.ks")
    assert load(tmp_path / "model.ks").fingerprint() == model.fingerprint()


@pytest.mark.parametrize("kind", [AutoClassifier, AutoRegressor])
def test_a_model_that_saw_rows_without_weight_alone(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(5, 3))
    known = {"classes": [0, 1]} if kind is AutoClassifier else {}
    model = kind().partial_fit(X, [0, 1, 0, 1, 0], sample_weight=np.zeros(5), **known)
    model.save(tmp_path / "model.ks")
    assert load(tmp_path / "model.ks").fingerprint() == model.fingerprint()


def test_a_cap_that_leaves_room_for_fewer_covariances_alone():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(20, 512)), random.normal(size=(20, 9))
    model = AutoRegressor(random_state=0, max_bytes=50_488_298, max_points=30).partial_fit(X, Y)
    model.set_params(max_bytes=18_112_434).partial_fit(X, Y)
    assert model.nbytes_ <= 18_112_434


@pytest.mark.parametrize(("name", "number"), [("extremes", -1e200), ("inside", 1.0), ("seen", -1)])
def test_damaged_numbers_of_mixtures_are_refused(name, number, tmp_path):
    X, _, y = rows(n=100)
    header, arrays = AutoRegressor(random_state=0).partial_fit(X, y)._document()
    arrays[f"mixture_{name}"] = arrays[f"mixture_{name}"].copy()
    arrays[f"mixture_{name}"].flat[0] = number
    storage.write(tmp_path / "model.ks", "AutoRegressor", header, arrays)
    with pytest.raises(ValueError, match="shares of the experts"):
        load(tmp_path / "model.ks")
