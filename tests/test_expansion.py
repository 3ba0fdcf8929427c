"""Functions as values, against dense linear algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kernelstream import KernelExpansion, POLKClassifier, POLKRegressor, load
from kernelstream.kernels import Gaussian, Laplacian, Linear, Polynomial

KERNELS = [Gaussian(0.5), Laplacian(0.3), Polynomial(2, 0.5, 1.0) + Gaussian(2.0)]


@st.composite
def functions(draw, count=1):
    """Functions of one space: outputs, features and kernel are shared, some points too."""
    kernel = draw(st.sampled_from(KERNELS))
    features, outputs = draw(st.integers(1, 3)), draw(st.sampled_from([None, 1, 3]))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    pool = random.normal(size=(12, features))
    made = []
    for _ in range(count):
        points = pool[random.integers(12, size=draw(st.integers(0, 10)))]
        shape = (len(points),) if outputs is None else (len(points), outputs)
        made.append(KernelExpansion(kernel, points, random.normal(size=shape)))
    return made


def dense_inner(f, g):
    a, b = (h.weights.reshape(len(h), -1) if len(h) else np.zeros((0, 1)) for h in (f, g))
    if not (len(f) and len(g)):
        return 0.0
    return np.trace(a.T @ f.kernel(f.points, g.points) @ b)


@given(functions(2), st.floats(-10.0, 10.0))
def test_algebra(pair, factor):
    f, g = pair
    X = np.random.default_rng(0).normal(size=(5, f.points.shape[1]))
    expected = f.kernel(X, f.points) @ f.weights
    assert np.allclose(f(X), expected, atol=1e-12)
    assert np.allclose(f(csr_array(X)), expected, atol=1e-12)
    assert np.allclose((f + g)(X), f(X) + g(X), atol=1e-10)
    assert np.allclose((f - g)(X), f(X) - g(X), atol=1e-10)
    assert np.allclose((factor * f)(X), factor * f(X), atol=1e-10)
    assert np.allclose((-f)(X), -f(X))
    assert f.inner(g) == pytest.approx(dense_inner(f, g), abs=1e-9)
    assert f.norm() ** 2 == pytest.approx(max(dense_inner(f, f), 0.0), abs=1e-6)
    square = dense_inner(f, f) - 2.0 * dense_inner(f, g) + dense_inner(g, g)
    assert f.distance(g) ** 2 == pytest.approx(max(square, 0.0), abs=1e-6)


@given(functions(), st.floats(0.0, 3.0))
def test_compress_keeps_the_distance(made, error):
    f = made[0]
    g = f.compress(error)
    assert len(g) <= len(np.unique(f.points, axis=0))
    merged = 1e-4 * np.abs(f.weights).sum()  # points that others span to eight digits
    assert f.distance(g) <= error * (1.0 + 1e-9) + merged + 1e-6
    assert {*map(tuple, g.points)} <= {*map(tuple, f.points)}


@given(functions(), st.integers(0, 10))
def test_compress_to_a_number_of_points(made, most):
    f = made[0]
    g = f.compress(max_points=most)
    assert len(g) <= most
    if len(g):  # what remains is the projection: the rest is orthogonal to every point kept
        assert np.allclose((f - g)(g.points), 0.0, atol=1e-4 * (1.0 + f.norm()))


@given(functions(3), st.lists(st.floats(0.0, 5.0), min_size=3, max_size=3))
@settings(max_examples=50)
def test_merge_is_the_weighted_mean(three, weights):
    if sum(weights) == 0.0:
        weights = None
    shares = np.ones(3) / 3.0 if weights is None else np.array(weights) / sum(weights)
    mean = sum((share * f for share, f in zip(shares[1:], three[1:], strict=True)),
               shares[0] * three[0])  # fmt: skip
    merged = KernelExpansion.merge(three, weights)
    assert merged.distance(mean) < 1e-3 * (1.0 + mean.norm())  # dependent points are merged
    assert len(KernelExpansion.merge(three, weights, max_points=2)) <= 2


@given(functions())
@settings(max_examples=20)
def test_round_trip(tmp_path_factory, made):
    f, path = made[0], tmp_path_factory.mktemp("f") / "f"
    f.save(path)
    for again in (KernelExpansion.load(path), load(path)):
        assert again.kernel == f.kernel
        assert np.array_equal(again.points, f.points)
        assert np.array_equal(again.weights, f.weights)


def test_a_model_is_no_expansion(tmp_path):
    POLKRegressor().partial_fit([[0.0]], [1.0]).save(tmp_path / "model")
    with pytest.raises(ValueError, match="POLKRegressor"):
        KernelExpansion.load(tmp_path / "model")


def test_blocks_do_not_show():
    random = np.random.default_rng(0)
    f = KernelExpansion(Gaussian(1.0), random.normal(size=(300, 2)), random.normal(size=(300, 2)))
    X = random.normal(size=(3000, 2))
    expected = f.kernel(X, f.points) @ f.weights
    assert np.allclose(f(X), expected, atol=1e-10)
    assert np.allclose(f(csr_array(X)), expected, atol=1e-10)


def test_a_model_is_its_expansion():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    classifier = POLKClassifier(average=True).partial_fit(X, y)
    assert np.allclose(classifier.expansion_(X), classifier.decision_function(X), atol=1e-12)
    regressor = POLKRegressor().partial_fit(X, y)
    assert np.allclose(regressor.expansion_(X), regressor.predict(X), atol=1e-12)


def test_immutable_and_independent():
    points, weights = np.zeros((2, 1)), np.ones(2)
    f = KernelExpansion(Gaussian(1.0), points, weights)
    points[:], weights[:] = 7.0, 7.0
    assert f([[0.0]]).tolist() == [2.0]
    for array in (f.points, f.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


ONE = KernelExpansion(Gaussian(1.0), [[0.0, 1.0]], [2.0])


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda: KernelExpansion("rbf", [[0.0]], [1.0]), TypeError, "Gaussian"),
        (lambda: KernelExpansion(Linear(), [0.0], [1.0]), ValueError, "shape"),
        (lambda: KernelExpansion(Linear(), [[0.0]], [1.0, 2.0]), ValueError, "1 points but 2"),
        (lambda: KernelExpansion(Linear(), [[np.nan]], [1.0]), ValueError, "finite"),
        (lambda: KernelExpansion(Linear(), [[0.0]], [np.inf]), ValueError, "finite"),
        (lambda: KernelExpansion(Linear(), [[1j]], [1.0]), ValueError, "real"),
        (lambda: ONE([[0.0]]), ValueError, "2 columns"),
        (lambda: ONE([0.0, 1.0]), ValueError, "one row per sample"),
        (lambda: ONE([[0.0, np.nan]]), ValueError, "row 0, column 1"),
        (lambda: ONE(csr_array([[0.0, np.inf]])), ValueError, "row 0, column 1"),
        (lambda: ONE + KernelExpansion(Gaussian(2.0), [[0.0, 1.0]], [1.0]), ValueError, "spaces"),
        (lambda: ONE + KernelExpansion(Gaussian(1.0), [[0.0]], [1.0]), ValueError, "features"),
        (
            lambda: ONE - KernelExpansion(Gaussian(1.0), [[0.0, 1.0]], [[1.0]]),
            ValueError,
            "outputs",
        ),
        (lambda: ONE + 1.0, TypeError, "unsupported"),
        (lambda: ONE * "2", TypeError, ""),
        (lambda: ONE.inner(3.0), TypeError, "KernelExpansion"),
        (lambda: ONE * np.inf, ValueError, "finite"),
        (lambda: ONE.compress(-1.0), ValueError, "error must be"),
        (lambda: ONE.compress(np.nan), ValueError, "error must be"),
        (lambda: ONE.compress(max_points=-1), ValueError, "max_points must be"),
        (lambda: ONE.compress(max_points=1.5), ValueError, "max_points must be"),
        (lambda: KernelExpansion.merge([]), ValueError, "at least one"),
        (lambda: KernelExpansion.merge([ONE], [-1.0]), ValueError, ">= 0"),
        (lambda: KernelExpansion.merge([ONE, ONE], [0.0, 0.0]), ValueError, "not all zero"),
        (lambda: KernelExpansion.merge([ONE, ONE], [1.0]), ValueError, "2 numbers"),
    ],
)
def test_errors(wrong, error, match):
    with pytest.raises(error, match=match or None):
        wrong()
