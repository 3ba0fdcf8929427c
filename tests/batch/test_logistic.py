"""Batch references of logistic regression and LIBSVM, against their definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.svm import SVC

from kernelstream.batch import ImportVectorMachine, KernelLogisticRegression, LibSVMClassifier
from kernelstream.kernels import Gaussian
from kernelstream.streams import make_multidist

GAMMA, ALPHA = 1.0, 1e-2


def samples(n, classes, seed=0):
    X, y, *_ = make_multidist(3 * n, n_test=1, random_state=seed)
    used = np.flatnonzero(y < classes)[:n]
    return X[used], y[used]


@pytest.mark.parametrize("classes", [2, 4])
def test_the_gradient_of_the_whole_problem_is_zero(classes):
    """alpha f = -(1/n) sum_i (p_i - e_i) k(x_i, .): the function is not only least on its points,
    but in the whole space, wherever it is looked at."""
    X, y = samples(150, classes)
    X = np.concatenate([X, X[:5]])  # a singular kernel matrix
    y = np.concatenate([y, y[:5]])
    model = KernelLogisticRegression(gamma=GAMMA, alpha=ALPHA).fit(X, y)
    anywhere = np.random.default_rng(1).normal(size=(40, 2))
    errors = model.predict_proba(X) - np.eye(classes)[np.searchsorted(model.classes_, y)]
    stationary = -Gaussian(GAMMA)(anywhere, X) @ errors / (len(y) * ALPHA)
    assert np.allclose(model.expansion_(anywhere), stationary, atol=1e-4)
    assert model.model_order_ < len(y) - 4


def objective(K_all, K_points, codes, classes, flat):
    W = flat.reshape(-1, classes)
    f = K_all @ W
    risk = -log_softmax(f, axis=1)[np.arange(len(codes)), codes].mean()
    value = risk + 0.5 * ALPHA * np.trace(W.T @ K_points @ W)
    slope = K_all.T @ (softmax(f, axis=1) - np.eye(classes)[codes]) / len(codes)
    return value, (slope + ALPHA * K_points @ W).ravel()


def least(K, chosen, codes, classes):
    """The least objective on these points, in the plain weights and by another solver."""
    start = np.zeros(len(chosen) * classes)
    found = minimize(
        lambda flat: objective(
            K[:, chosen], K[np.ix_(chosen, chosen)], codes, classes, flat
        ),
        start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000},
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize("classes", [2, 3])
def test_import_vectors_are_those_of_an_exhaustive_search(classes):
    X, y = samples(24, classes)
    codes = np.searchsorted(np.unique(y), y)
    model = ImportVectorMachine(gamma=GAMMA, alpha=ALPHA, max_points=4, search="exact").fit(X, y)
    K, chosen, path = Gaussian(GAMMA)(X), [], []
    for _ in range(4):
        rest = [i for i in range(len(y)) if i not in chosen]
        values = [least(K, [*chosen, i], codes, len(np.unique(y))) for i in rest]
        chosen.append(rest[int(np.argmin(values))])
        path.append(min(values))
    assert model.support_.tolist() == chosen
    assert np.allclose(model.path_, path, rtol=1e-6)


def test_the_short_search_is_nearly_as_good_and_falls():
    X, y = samples(120, 4)
    common = {"gamma": GAMMA, "alpha": ALPHA, "max_points": 8, "random_state": 0}
    exact = ImportVectorMachine(search="exact", candidates=20, **common).fit(X, y)
    short = ImportVectorMachine(**common).fit(X, y)
    assert (np.diff(short.path_) < 0.0).all()
    assert short.objective_ < 1.02 * exact.objective_
    full = KernelLogisticRegression(gamma=GAMMA, alpha=ALPHA).fit(X, y)
    assert full.objective_ < short.objective_ < 1.2 * full.objective_


def test_the_weights_are_those_of_the_objective():
    X, y = samples(60, 3)
    model = ImportVectorMachine(gamma=GAMMA, alpha=ALPHA, max_points=5).fit(X, y)
    K = Gaussian(GAMMA)(X)
    codes, chosen = np.searchsorted(model.classes_, y), model.support_
    value, slope = objective(
        K[:, chosen], K[np.ix_(chosen, chosen)], codes, 3, model.weights_.ravel()
    )
    assert value == pytest.approx(model.objective_)
    assert abs(slope).max() < 1e-5


def test_points_end_where_no_sample_is_new():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    model = ImportVectorMachine(gamma=1.0, max_points=10).fit(X, ["a", "b", "a", "b"])
    assert model.model_order_ == 2
    assert model.predict(X).tolist() == ["a", "b", "a", "b"]


@pytest.mark.parametrize("kind", [KernelLogisticRegression, ImportVectorMachine])
def test_one_class_is_refused(kind):
    with pytest.raises(ValueError, match="two at least"):
        kind().fit(np.zeros((3, 1)), [1, 1, 1])


def test_libsvm_is_libsvm():
    X, y = samples(200, 4)
    ours, theirs = LibSVMClassifier(gamma=GAMMA).fit(X, y), SVC(gamma=GAMMA).fit(X, y)
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert ours.model_order_ == len(theirs.support_)
