"""AVM's cells: how large they are, delta from the first samples, caps and memory."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    CapWarning,
    Coverage,
)
from tests.models.tools import AVM, stream

both = pytest.mark.parametrize("estimator_class", AVM)


@both
def test_cells_bound_the_distance_of_stored_points(estimator_class):
    X, y = stream(estimator_class, n=1000)
    model = estimator_class(delta=1.0).partial_fit(X, y)
    points = model.dictionary_
    distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    assert distances[np.triu_indices(len(points), 1)].min() >= 0.5
    boxes = estimator_class(delta=1.0, coverage="hyperrectangle").partial_fit(X, y).dictionary_
    sides = np.abs(boxes[:, None] - boxes[None]).max(axis=2)
    assert sides[np.triu_indices(len(boxes), 1)].min() >= 1.0 / math.sqrt(3.0)


def test_larger_cells_are_fewer():
    X, y = stream(AVMRegressor, n=2000)
    orders = [AVMRegressor(delta=d).partial_fit(X, y).model_order_ for d in (0.5, 1.0, 2.0, 50.0)]
    assert orders == sorted(orders, reverse=True)
    assert orders[-1] == 1


@both
@pytest.mark.parametrize("shape", ["hypersphere", "hyperrectangle"])
def test_a_coverage_in_advance_is_where_learning_begins(estimator_class, shape):
    X, y = stream(estimator_class, n=500)
    coverage = Coverage(shape, 1.3).fit(X)
    model = estimator_class(coverage=coverage, alpha=0.05).partial_fit(X, y)
    assert model.delta_ == 1.3
    assert np.array_equal(model.dictionary_, coverage.core_points_)
    assert model.score(X, y) > 0.2
    far = model.partial_fit(X[:5] + 100.0, y[:5] + 1).model_order_
    assert far > len(coverage.core_points_)
    sparse = Coverage(shape, 1.3).fit(csr_array(X))
    assert np.array_equal(sparse.core_points_, coverage.core_points_)
    assert repr(coverage) == f"Coverage({shape!r}, 1.3) of {len(coverage.core_points_)} cells"
    assert repr(Coverage(shape).fit(X[:1])) == f"Coverage({shape!r}, 'auto') of 1 cell"
    assert repr(Coverage(shape)) == f"Coverage({shape!r}, 'auto')"


def test_how_large_cells_are():
    """A ball is delta across; a box has sides of 2 delta / sqrt(features)."""
    inside, outside = 0.999, 1.001
    for shape, reach in (("hypersphere", 0.5), ("hyperrectangle", 1.0 / math.sqrt(2.0))):
        for share, cells in ((inside, 1), (outside, 2)):
            coverage = Coverage(shape, 1.0).fit([[0.0, 0.0], [share * reach, 0.0]])
            assert len(coverage.core_points_) == cells


def test_a_coverage_equals_the_twin():
    random = np.random.default_rng(0)
    for width in (2, 20):
        X = random.integers(-2, 3, (300, width)) / 2.0
        cores, delta = [], 1.0 * math.sqrt(width)
        for x in X:
            squares = [float(((x - c) ** 2).sum()) for c in cores]
            if not squares or min(squares) >= (delta / 2.0) ** 2:
                cores.append(x)
        assert np.array_equal(Coverage(delta=delta).fit(X).core_points_, cores)


def test_an_unfitted_or_strange_coverage_is_refused():
    X, y = stream(AVMClassifier)
    with pytest.raises(ValueError, match="call its fit"):
        AVMClassifier(coverage=Coverage()).fit(X, y)
    with pytest.raises(ValueError, match="2 features"):
        AVMClassifier(coverage=Coverage().fit(X[:, :2])).fit(X, y)
    with pytest.raises(ValueError, match="no more than 3"):
        AVMClassifier(coverage=Coverage(delta=0.1).fit(X), max_points=3).fit(X, y)
    for arguments in (("cube", 1.0), ("hypersphere", 0.0), ("hypersphere", "wide")):
        with pytest.raises(ValueError, match="must be"):
            Coverage(*arguments)


# delta="auto"


@both
def test_delta_comes_from_the_first_samples_and_stays(estimator_class):
    X, y = stream(estimator_class, n=600)
    model, first = estimator_class(), 0
    for n, deciding in ((1, 1), (2, 2), (3, 2), (4, 4), (127, 64), (199, 128), (200, 200)):
        model.partial_fit(X[first:n], y[first:n])
        first = n
        if estimator_class is AVMRegressor and n < 200:
            assert (model.n_seen_, model.n_waiting_, model.model_order_) == (0, n, 0)
            assert not model.predict(X[:3]).any()
            continue
        delta = 1.0 if n == 1 else _suggested(X[:deciding])
        assert model.delta_ == pytest.approx(delta)
        given = estimator_class(delta=model.delta_).partial_fit(X[:n], y[:n])
        assert (model.n_seen_, model.n_waiting_) == (n, 0)
        assert np.array_equal(model.dictionary_, given.dictionary_)
        assert np.array_equal(model.dual_coef_, given.dual_coef_)
        assert (model.nbytes_ > given.nbytes_) == (n < 200)  # the samples are still held
    assert model.partial_fit(10.0 * X, y).delta_ == pytest.approx(_suggested(X[:200]))


def _suggested(X):
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    pairs = distances[np.triu_indices(len(X), 1)]
    return max(pairs.mean() - pairs.std(), 0.25 * pairs.mean())


def test_predictions_while_delta_is_decided():
    """Each with what was known before: delta of the last power of two, all samples so far."""
    X, y = stream(AVMClassifier, n=230)
    said = AVMClassifier().predict_then_learn(X, y, classes=[0, 1])
    for t in (1, 2, 3, 7, 8, 100, 130, 199, 200, 229):
        deciding = 200 if t >= 200 else 2 ** int(math.log2(t))
        delta = 1.0 if t == 1 else _suggested(X[:deciding])
        model = AVMClassifier(delta=delta).partial_fit(X[:t], y[:t], classes=[0, 1])
        assert said[t] == model.predict(X[t : t + 1])[0]


@both
def test_flush_decides_delta_at_once(estimator_class):
    X, y = stream(estimator_class, n=60)
    model = estimator_class().partial_fit(X[:30], y[:30]).flush()
    assert model.n_seen_ == 30
    assert model.delta_ == pytest.approx(_suggested(X[:30]))
    assert model.partial_fit(X, y).delta_ == pytest.approx(_suggested(X[:30]))
    assert model.fit(X[:1], y[:1]).delta_ == 1.0  # nothing to measure


@pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
@both
def test_few_bytes_hold_fewer_samples(estimator_class):
    X, y = stream(estimator_class, n=300, features=10)
    model = estimator_class(max_bytes=8000)
    for first in range(300):
        model.partial_fit(X[first : first + 1], y[first : first + 1])
        assert model.nbytes_ <= 8000
    # Half of the bytes, at 12 for each feature and 24 for a sample.
    assert model.delta_ == pytest.approx(_suggested(X[: 4000 // 144]))
    with pytest.raises(ValueError, match="give delta, or allow") as error:
        estimator_class(max_bytes=600).partial_fit(X, y)
    least = int(re.search("allow ([0-9]+) bytes", str(error.value))[1])
    model = estimator_class(max_bytes=least).partial_fit(X, y)
    assert model.delta_ == pytest.approx(_suggested(X[: least // 2 // 144]))
    assert model.nbytes_ <= least
    with pytest.raises(ValueError, match="give delta"):
        estimator_class(max_bytes=least - 1).partial_fit(X, y)


@pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
def test_few_bytes_and_classes_that_come_later():
    """However the stream is cut; and the number that an error names is enough."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    late = np.concatenate([random.integers(0, 2, 280), np.arange(20)])
    early = random.integers(0, 20, 300)
    for y in (late, early):
        with pytest.raises(ValueError, match="it must be") as error:
            AVMClassifier(max_bytes=1000, random_state=0).partial_fit(X, y)
        least = int(re.search("must be ([0-9]+) at least", str(error.value))[1])
        models = []
        for size in (300, 100, 7, 1):
            model = AVMClassifier(max_bytes=least, random_state=0)
            for first in range(0, 300, size):
                part = slice(first, first + size)
                model.partial_fit(X[part], y[part])
                model.partial_fit(X[:1], y[part][:1], sample_weight=[0.0])
                assert model.nbytes_ <= least
            models.append(model)
        assert len({model.fingerprint() for model in models}) == 1


@both
def test_flush_refuses_what_every_call_refuses(estimator_class):
    X, y = stream(estimator_class, n=50)
    for change in ({"alpha": -1.0}, {"max_bytes": 100}, {"coverage": "hyperrectangle"}):
        model = estimator_class(random_state=0).partial_fit(X, y)
        before = model.fingerprint()
        with pytest.raises(ValueError, match=r"must be|cannot change"):
            model.set_params(**change).flush()
        model.set_params(**{name: estimator_class().get_params()[name] for name in change})
        assert model.fingerprint() == before
        assert model.partial_fit(X, y).flush().n_seen_ == 100


@both
def test_epochs_of_few_samples_do_not_decide_delta(estimator_class):
    X, y = stream(estimator_class, n=30)
    assert estimator_class().fit(X, y).delta_ == pytest.approx(_suggested(X))


# Caps


@both
def test_the_cap_warns_once_and_counts(estimator_class):
    X, y = stream(estimator_class, n=300)
    model = estimator_class(delta=0.5, max_points=10)
    with pytest.warns(CapWarning, match="max_points=10 .* nearest core point") as warned:
        model.partial_fit(X, y)
    assert warned[0].filename == __file__  # the line to look at is ours, not one of the package
    assert model.model_order_ == 10
    forced = model.n_forced_
    assert forced > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, y)
    assert model.n_forced_ > forced


def test_memory_grows_with_the_points_not_with_their_square():
    X, y = stream(AVMClassifier, n=3000, features=5)
    model = AVMClassifier("log_loss", delta=0.01, max_points=None, average=False)
    model.partial_fit(X, y)
    assert model.model_order_ > 2000
    assert model.nbytes_ < 8 * 2 * model.model_order_ * (5 + 1 + 4) + 1000


@pytest.mark.parametrize("shape", ["hypersphere", "hyperrectangle"])
def test_duplicates_are_one_point_however_small_the_cells(shape):
    X, y = np.ones((50, 3)), np.arange(50) % 2
    model = AVMClassifier(delta=1e-200, coverage=shape).partial_fit(X, y)
    assert model.model_order_ == 1


def test_a_diameter_whose_square_is_none():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert len(Coverage(delta=1e-170).fit(np.vstack([X, X])).core_points_) == 50
