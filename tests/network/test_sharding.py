"""Training on shards: the same model whoever learns which shard when, and what merging loses."""

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array

from kernelstream import AVMClassifier, POLKClassifier, POLKRegressor, fit_sharded, make_multidist
from kernelstream import merge as merge_models
from kernelstream.expansion import KernelExpansion
from kernelstream.network._shards import make_shard

SETTINGS = {"gamma": 1 / 1.2, "compression_error": 0.3, "random_state": 0}


def shards(n=4, samples=1600, seed=0):
    X, y = make_multidist(samples, random_state=seed)
    return [(X[i::n], y[i::n]) for i in range(n)]


def in_batches(shard, size):
    X, y = shard
    return ((X[first : first + size], y[first : first + size]) for first in range(0, len(y), size))


@pytest.mark.parametrize("parameters", [{}, {"batch_size": 8}, {"average": True}])
@pytest.mark.parametrize("merge_every", [None, 150])
def test_one_worker_or_many_arrays_or_batches(parameters, merge_every):
    model = POLKClassifier(**SETTINGS, **parameters)
    settings = {"merge_every": merge_every, "max_points": 25}
    expected = fit_sharded(model, shards(), workers=1, **settings)
    for given in (shards(), [in_batches(shard, 70) for shard in shards()]):
        found = fit_sharded(model, given, workers=4, **settings)
        assert found.fingerprint() == expected.fingerprint()
    sparse = [(csr_array(X), y) for X, y in shards()]
    found = fit_sharded(model, sparse, **settings)
    assert found.expansion_.distance(expected.expansion_) < 1e-6
    assert expected.n_seen_ == 1600
    assert expected.model_order_ <= 25
    assert not hasattr(model, "classes_")


def test_one_merge_is_the_tree_of_merges():
    model = POLKClassifier(**SETTINGS)
    parts = [POLKClassifier(**SETTINGS).partial_fit(X, y) for X, y in shards(5)]
    pairs = [merge_models(parts[:2], error=0.1), merge_models(parts[2:4], error=0.1)]
    tree = merge_models([merge_models(pairs, error=0.1), parts[4]], error=0.1)
    found = fit_sharded(model, shards(5), error=0.3)
    assert found.fingerprint() == tree.fingerprint()


@pytest.mark.parametrize("n", [2, 5, 8])
def test_merging_is_associative_up_to_the_error(n):
    model = POLKClassifier(**SETTINGS)
    parts = [POLKClassifier(**SETTINGS).partial_fit(X, y) for X, y in shards(n)]
    weights = [part.n_seen_ for part in parts]
    mean = KernelExpansion.merge([part.expansion_ for part in parts], weights)
    for error in (0.05, 0.5):
        distance = fit_sharded(model, shards(n), error=error).expansion_.distance(mean)
        assert distance <= error + 1e-3  # and what is spanned to eight digits
        assert distance > 0.3 * error  # the error is used


def test_merged_models_go_on_along_the_shards():
    # By hand: two rounds of two shards of unequal length.
    (X, y), (Z, t) = shards(2)
    Z, t = Z[:130], t[:130]
    parameters = {**SETTINGS, "learning_rate": "inverse_sqrt", "alpha": 1e-2}
    first = [
        POLKClassifier(**parameters).partial_fit(X[:100], y[:100]),
        POLKClassifier(**parameters).partial_fit(Z[:100], t[:100]),
    ]
    merged = merge_models(first, max_points=20)
    assert merged._state.status[0]["steps"] == 100  # t goes on along one shard
    second = [merge_models([merged]), merge_models([merged])]
    second[0].partial_fit(X[100:200], y[100:200])
    second[1].partial_fit(Z[100:], t[100:])
    by_hand = merge_models(second, weights=[100, 30], max_points=20)
    found = fit_sharded(
        POLKClassifier(**parameters), [(X[:200], y[:200]), (Z, t)], merge_every=100, max_points=20
    )
    assert found._state.status[0]["steps"] == by_hand._state.status[0]["steps"] == 200
    assert found.n_seen_ == 330
    assert found.error_spent_ > merged.error_spent_
    # By hand the merged model was factorised once more: the same to rounding.
    assert found.expansion_.distance(by_hand.expansion_) < 1e-6


def test_the_mean_of_shards_needs_larger_steps():
    """Each shard moves as far for a sample as one model would, their mean an n-th of that."""
    X, y = make_multidist(1600, random_state=0)
    parts = [(X[i::8], y[i::8]) for i in range(8)]
    small = {**SETTINGS, "eta0": 0.02, "compression_error": 0.004}
    large = {**SETTINGS, "eta0": 0.16, "compression_error": 0.032}
    norms = [
        fit_sharded(POLKClassifier(**chosen), parts).expansion_.norm() for chosen in (small, large)
    ]
    whole = POLKClassifier(**small).partial_fit(X, y).expansion_.norm()
    assert norms[0] < 0.3 * whole
    assert abs(norms[1] / whole - 1.0) < 0.3


def test_classes_that_only_some_shards_have():
    X, y = make_multidist(1500, random_state=0)
    found = fit_sharded(
        POLKClassifier(**SETTINGS), [(X[y < 3], y[y < 3]), (X[y > 1], y[y > 1])], merge_every=200
    )
    assert found.classes_.tolist() == [0, 1, 2, 3, 4]


def test_numbers():
    random = np.random.default_rng(0)
    X = random.uniform(-3.0, 3.0, (2000, 1))
    y = np.sin(2.0 * X[:, 0])
    parts = [(X[i::4], y[i::4]) for i in range(4)]
    model = fit_sharded(POLKRegressor(random_state=0), parts, merge_every=100)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("suffix", ["npz", "csv"])
@pytest.mark.parametrize("merge_every", [None, 90])
def test_files(tmp_path, suffix, merge_every):
    names = []
    for i, (X, y) in enumerate(shards(2, 500)):
        names.append(tmp_path / f"{i}.{suffix}")
        if suffix == "npz":
            np.savez(names[-1], X=X, y=y)
        else:
            rows = [f"{a!r},{b!r},{c}" for (a, b), c in zip(X.tolist(), y, strict=True)]
            names[-1].write_text("\n".join(["a,b,target", *rows]))
    model = POLKClassifier(**SETTINGS)
    found = fit_sharded(model, names, merge_every=merge_every, target="target")
    expected = fit_sharded(model, shards(2, 500), merge_every=merge_every)
    assert found.n_seen_ == 500
    assert np.array_equal(found.dual_coef_, expected.dual_coef_)
    assert found.classes_.dtype == expected.classes_.dtype == np.int64


def write_frames(folder, frames):
    names = [folder / f"{i}.csv" for i in range(len(frames))]
    for frame, name in zip(frames, names, strict=True):
        frame.to_csv(name, index=False, float_format="%.17g")
    return names


def as_frames(given, *columns):
    """The shards as frames whose columns come in these orders."""
    frames = [pandas.DataFrame(X, columns=["a", "b"]).assign(target=y) for X, y in given]
    return [frame[list(order)] for frame, order in zip(frames, columns, strict=True)]


def in_memory(frames):
    return [(frame.drop(columns="target"), frame["target"].to_numpy()) for frame in frames]


@pytest.mark.parametrize("kind", ["files", "frames", "batches", "mixed"])
def test_columns_follow_the_first_shard(tmp_path, kind):
    given = shards(2, 600)
    frames = as_frames(given, ("a", "b", "target"), ("b", "target", "a"))
    files = write_frames(tmp_path, frames)
    chosen = {
        "files": files,
        "frames": in_memory(frames),
        "batches": [iter([pair]) for pair in in_memory(frames)],
        "mixed": [files[0], in_memory(frames)[1]],
    }[kind]
    model = POLKClassifier(**SETTINGS)
    found = fit_sharded(model, chosen, merge_every=100)
    expected = fit_sharded(model, given, merge_every=100)
    assert np.array_equal(found.dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("place", [0, 1])
def test_other_columns_are_refused(tmp_path, place):
    frames = as_frames(shards(2, 60), ("a", "b", "target"), ("a", "b", "target"))
    more = [*frames]
    more[place] = more[place].assign(c=1.0)
    message = "does not have column 'c'" if place == 0 else "also has column 'c'"
    for chosen in (write_frames(tmp_path, more), in_memory(more)):
        with pytest.raises(ValueError, match=message):
            fit_sharded(POLKClassifier(), chosen)


def test_the_caps_of_the_model_hold():
    for caps in ({"max_points": 6}, {"max_bytes": 4000}):
        model = POLKClassifier(**SETTINGS, batch_size=4, **caps)
        found = fit_sharded(model, shards(), max_points=50)
        assert found.model_order_ <= caps.get("max_points", 50)
        assert found.nbytes_ <= caps.get("max_bytes", np.inf)


@pytest.mark.parametrize("bad", [0, 1])
def test_an_error_ends_the_reading(bad):
    read = []

    def endless(shard):
        for _ in range(10**9):
            read.append(shard)
            yield (np.full((2, 2), np.nan if shard == bad else 0.0), [0, 1])

    short = (np.full((2, 2), np.nan), [0, 1])
    for given in ([endless(0), endless(1)], [short, endless(1 - bad)]):
        with pytest.raises(ValueError, match="NaN"):
            fit_sharded(POLKClassifier(), given)
    assert len(read) < 10**5


def test_a_large_batch_in_small_portions():
    X = np.zeros((300_000, 1))
    shard = make_shard(iter([(X, X[:, 0])]), None, 0, False)
    portions = 0
    while next(shard.portions(1), None) is not None:
        portions += 1
    assert portions == 300_000


def test_a_pair_as_a_list():
    model = POLKClassifier(**SETTINGS)
    found = fit_sharded(model, [list(shard) for shard in shards()])
    assert found.fingerprint() == fit_sharded(model, shards()).fingerprint()
    found = fit_sharded(model, [shards(2), shards(4)[0]])  # a list of two batches
    assert found.n_seen_ == 1600 + 400


def test_texts_in_files_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("city,target\nUlm,1\nBonn,2\n")
    with pytest.raises(ValueError, match="'city' does not hold numbers"):
        fit_sharded(POLKClassifier(), [tmp_path / "a.csv"], target="target")


@pytest.mark.parametrize(
    ("model", "given", "settings", "message"),
    [
        (POLKClassifier(), [], {}, "at least one shard"),
        (POLKClassifier(), [iter([])], {}, "no samples"),
        (POLKClassifier(), [3], {}, "shard 0 must be"),
        (POLKClassifier(gamma="scale"), shards(2), {}, "kernel of its own"),
        (AVMClassifier(), shards(2), {}, "can be merged"),
        (POLKClassifier(), shards(2), {"engine": "spark"}, "'local' or 'ray'"),
        (POLKClassifier(), shards(2), {"merge_every": 0}, "merge_every must be"),
        (POLKClassifier(), shards(2), {"max_points": 1.9}, "max_points must be"),
        (POLKClassifier(), [(np.zeros((3, 1)), None)], {}, "shard 0: y is missing"),
        (POLKClassifier(), [[np.zeros(3), [1, 2]]], {}, "shard 0: every batch .* must be a pair"),
        (POLKClassifier(), [(np.zeros((3, 1)), [1, 2])], {}, "shard 0: X has 3 rows, y has 2"),
        (POLKClassifier(), [*shards(2), (np.ones((9, 3)), [0, 1, 2] * 3)], {}, "features"),
    ],
)
def test_refusals(model, given, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_sharded(model, given, **settings)


def test_an_error_names_the_shard():
    given = shards(3)
    given[1][0][7, 0] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        fit_sharded(POLKClassifier(), given)
    assert caught.value.__notes__ == ["This happened in shard 1."]
