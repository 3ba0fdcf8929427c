"""KernelFeatures against the paper's Algorithm 1, and as scikit-learn uses it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelstream
from kernelstream import storage
from kernelstream.features import KernelFeatures
from kernelstream.kernels import Gaussian, Linear
from kernelstream.streams import make_spheres
from tests.naive import features as naive
from tests.naive import kernels


@parametrize_with_checks([KernelFeatures(n_components=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def samples(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def fitted(n=60, rank=4, **parameters):
    X = samples(n)
    return X, KernelFeatures(rank, gamma=0.3, random_state=0, **parameters).fit(X)


class TestAlgorithm:
    @pytest.mark.parametrize(
        ("kernel", "twin"),
        [
            (Gaussian(0.3), kernels.gaussian(0.3)),
            (Linear(), kernels.linear()),
            (Gaussian(0.2) + Linear(), kernels.add(kernels.gaussian(0.2), kernels.linear())),
        ],
    )
    def test_same_as_the_twin(self, kernel, twin):
        X, first = samples(40), samples(40, 3, seed=1)
        model = KernelFeatures(3, kernel=kernel, init=first, max_iter=6, tol=0.0).fit(X)
        expected = naive.batch(twin, X, first, iterations=6)
        assert np.allclose(model.factor_, expected.factor, atol=1e-8)
        assert np.allclose(model.objective_, expected.objective, rtol=1e-9)
        new = samples(9, seed=2)
        Z = naive.features(twin, X, expected.factor, new, 1e-3)
        assert np.allclose(model.transform(new), Z, atol=1e-7)
        errors = naive.fit_errors(twin, X, expected.factor, new, 1e-3)
        assert np.allclose(model.inverse_fit_error(new), errors, atol=1e-8)
        assert np.allclose(model.kernel_approximation(new), Z @ Z.T, atol=1e-7)
        assert np.allclose(model.kernel_approximation(new, X[:5]), Z @ model.transform(X[:5]).T)

    @settings(max_examples=40, deadline=None)
    @given(
        st.integers(1, 25),
        st.integers(1, 8),
        st.sampled_from([1e-8, 1e-3, 1.0, 100.0]),
        st.sampled_from(["plain", "constant", "duplicates", "collinear", "huge", "tiny"]),
        st.integers(0, 99),
    )
    def test_objective_never_increases(self, n, rank, alpha, kind, seed):
        """Proposition 1, also where the kernel matrix is singular."""
        X = samples(n, seed=seed)
        X = {
            "plain": X,
            "constant": np.ones_like(X),
            "duplicates": X[np.arange(n) // 3],
            "collinear": X[:, :1] * np.ones(3),
            "huge": 9e149 / np.abs(X).max() * X,
            "tiny": 1e-200 * X,
        }[kind]
        model = KernelFeatures(rank, alpha=alpha, max_iter=15, tol=0.0, random_state=seed).fit(X)
        history = model.objective_
        assert (np.diff(history) <= 1e-14).all()  # rounding of sums of kernel values of 1
        assert np.isfinite(model.transform(X)).all()

    def test_close_to_principal_components(self):
        """The best subspace for the linear kernel is that of PCA, without centering."""
        X = samples(200, p=6) * [5.0, 3.0, 2.0, 1.0, 0.5, 0.1]
        X -= X.mean(axis=0)
        model = KernelFeatures(2, kernel="linear", alpha=1e-6, max_iter=200, tol=0.0).fit(X)
        projected = PCA(2).fit_transform(X)
        approximation = model.kernel_approximation(X)
        assert np.allclose(approximation, projected @ projected.T, atol=1e-3)

    def test_stops_when_nothing_is_gained(self):
        _, model = fitted(tol=1e-3)
        assert model.n_iter_ < 50
        assert len(model.objective_) == 2 * model.n_iter_

    def test_blocks_give_the_same(self, monkeypatch):
        X, model = fitted()
        monkeypatch.setattr("kernelstream.features.batch._BLOCK_VALUES", 7 * len(X))
        _, in_blocks = fitted(cache_size=0)
        assert np.allclose(in_blocks.factor_, model.factor_, atol=1e-9)
        assert np.allclose(in_blocks.transform(X), model.transform(X), atol=1e-9)

    def test_spheres_can_be_separated(self):
        X, y = make_spheres(600, random_state=0)
        linear = make_pipeline(StandardScaler(), LinearSVC()).fit(X[:400], y[:400])
        lifted = make_pipeline(KernelFeatures(10, gamma=0.5, random_state=0), LinearSVC())
        assert linear.score(X[400:], y[400:]) < 0.65
        assert lifted.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.95


class TestUse:
    def test_names_of_the_features(self):
        _, model = fitted()
        assert list(model.get_feature_names_out()) == [f"kernelfeatures{i}" for i in range(4)]

    def test_bytes(self):
        X, model = fitted()
        n, r = len(X), model.n_components
        assert model.nbytes_ == 8 * (X.size + n * r + 3 * r * r + len(model.objective_))
        with pytest.raises(NotFittedError):
            KernelFeatures().nbytes_  # noqa: B018

    def test_sparse_as_dense(self):
        X = samples(30) * (samples(30, seed=1) > 0.0)
        dense = KernelFeatures(3, random_state=0, gamma="scale").fit(X)
        sparse = KernelFeatures(3, random_state=0, gamma="scale").fit(csr_array(X))
        assert np.allclose(dense.transform(X), sparse.transform(csr_array(X)), atol=1e-8)
        errors = sparse.inverse_fit_error(csr_array(X))
        assert np.allclose(dense.inverse_fit_error(X), errors, atol=1e-8)

    def test_input_is_neither_changed_nor_kept(self):
        X = samples(30)
        before = X.copy()
        model = KernelFeatures(3, random_state=0).fit(X)
        assert np.array_equal(X, before)
        Z = model.transform(before)
        X[:] = 0.0
        assert np.array_equal(model.transform(before), Z)

    def test_file_and_back(self, tmp_path):
        X, model = fitted()
        model.save(tmp_path / "features.ks")
        for again in (
            KernelFeatures.load(tmp_path / "features.ks"),
            kernelstream.load(tmp_path / "features.ks"),
        ):
            assert again.fingerprint() == model.fingerprint()
            assert np.array_equal(again.transform(X), model.transform(X))

    def test_file_of_a_given_start(self, tmp_path):
        X = samples(20)
        model = KernelFeatures(2, init=samples(20, 2)).fit(X)
        model.save(tmp_path / "features.ks")
        again = KernelFeatures.load(tmp_path / "features.ks")
        assert np.array_equal(again.transform(X), model.transform(X))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda header, arrays: arrays.update(factor=arrays["factor"][:-1]), "contradicts"),
            (lambda header, arrays: arrays["factor"].fill(np.nan), "not finite"),
            (lambda header, arrays: arrays["dictionary"].fill(np.inf), "infinity"),
            (lambda header, arrays: arrays.update(objective=arrays["factor"]), "shapes"),
            (lambda header, arrays: header.update(names=[1, 2, 3]), "names"),
            (lambda header, arrays: header.pop("kernel"), "kernel"),
        ],
    )
    def test_files_that_contradict_themselves(self, change, message, tmp_path):
        _, model = fitted()
        header, arrays = model._document()
        arrays = {name: array.copy() for name, array in arrays.items()}
        change(header, arrays)
        storage.write(tmp_path / "bad.ks", "KernelFeatures", header, arrays)
        with pytest.raises(storage.ModelFileError, match=message):
            KernelFeatures.load(tmp_path / "bad.ks")

    def test_errors_say_what_to_do(self):
        X = samples(20)
        with pytest.raises(NotFittedError):
            KernelFeatures().transform(X)
        with pytest.raises(ValueError, match=r"shape \(20, 2\)"):
            KernelFeatures(2, init=np.zeros((3, 2))).fit(X)
        with pytest.raises(ValueError, match="alpha"):
            KernelFeatures(2, alpha=0.0).fit(X)
        model = KernelFeatures(2).fit(X)
        with pytest.raises(ValueError, match="row 3, column 1"):
            model.transform(np.where(np.arange(60).reshape(20, 3) == 10, np.nan, X))


@pytest.mark.parametrize("alpha", [1e-100, 1e-16, 1e-3])
def test_more_components_than_directions(alpha):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelFeatures(10, kernel="linear", alpha=alpha, random_state=0).fit(X)
    assert np.allclose(model.kernel_approximation(X), X @ X.T, atol=1e-2)
    assert model.inverse_fit_error(X).max() < 1e-4


def test_a_fit_that_fails_leaves_the_model_as_it_was(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelFeatures(3, random_state=0).fit(X)
    before = model.transform(X)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(KernelFeatures, "_prepare", fail)
    with pytest.raises(MemoryError):
        model.fit(np.hstack([X, X]))
    assert np.array_equal(model.transform(X), before)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=1e300).fit(X)
