"""What the feature learners promise whatever the input: see each section's first line."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from kernelstream import DivergenceError, ModelFileError, load, storage
from kernelstream.features import OnlineKernelFeatureClassifier, OnlineKernelFeatures
from tests.core.tools import size
from tests.features.tools import (
    ESTIMATORS,
    FORMS,
    VARIANTS,
    feature_bytes,
    in_pieces,
    look,
    small,
    stream,
)

every = pytest.mark.parametrize("estimator_class", ESTIMATORS)
variants = pytest.mark.parametrize("variant", VARIANTS)

# Bad input changes nothing: the error says where, the model is what it was.

BAD = {
    "NaN": (np.nan, "NaN at row 50, column 1"),
    "infinity": (np.inf, "infinity at row 50, column 1"),
    "huge": (1e200, "too large"),
}


@every
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(estimator_class, form, name):
    X, y = stream(estimator_class)
    value, message = BAD[name]
    bad = X.copy()
    bad[50, 1] = value
    model = small(estimator_class).partial_fit(X, y)
    before = model.fingerprint()
    for call in (
        lambda: model.partial_fit(FORMS[form](bad), y),
        lambda: model.fit(FORMS[form](bad), y),
        lambda: look(model, FORMS[form](bad)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        assert model.fingerprint() == before
    fresh = small(estimator_class)
    with pytest.raises(ValueError, match=message):
        fresh.partial_fit(bad, y)
    assert not hasattr(fresh, "n_features_in_")


@every
def test_other_bad_input(estimator_class):
    X, y = stream(estimator_class)
    model = small(estimator_class, kernel="poly").partial_fit(X, y)
    before = model.fingerprint()
    for bad, message in (
        (np.hstack([X, X]), "features"),
        (X + 1j, "[Cc]omplex"),
        (X[:, 0], "2D"),
        (X[:0], "0 sample"),
        (1e40 * X, r"k\(x, x\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad, y[: len(bad)])
        assert model.fingerprint() == before


# Finite stays finite, or is refused.

magnitudes = st.sampled_from([0.0, 1e-300, 1e-20, 1e-3, 1.0, 30.0, 1e4, 1e50, 1e150])


@given(data=st.data())
@settings(max_examples=60)
def test_finite_stays_finite(data):
    estimator_class = data.draw(st.sampled_from(ESTIMATORS))
    parameters = {
        "kernel": data.draw(st.sampled_from(["rbf", "laplacian", "linear", "poly"])),
        "gamma": data.draw(st.sampled_from(["auto", "scale", 1e-8, 1.0, 1e8])),
        "alpha": data.draw(st.sampled_from([0.0, 1e-300, 1e-3, 1.0, 1e100])),
        "solver": data.draw(st.sampled_from(["parametric", "nonparametric"])),
        "basis": data.draw(st.sampled_from(["orthonormal", "printed"])),
        "step_size": data.draw(
            st.sampled_from(["inverse", "inverse_square", "tracking", "tracking_square"])
        ),
        "max_points": data.draw(st.sampled_from([None, 5, 9])),
        "removal": data.draw(st.sampled_from(["greedy", "exact", "fifo"])),
        "censoring": data.draw(st.sampled_from([None, "auto", 0.1, "rate:0.5"])),
    }
    if estimator_class is OnlineKernelFeatures:
        parameters["align"] = data.draw(st.booleans())
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    features = data.draw(st.integers(1, 3))
    scales = [data.draw(magnitudes) for _ in range(features)]
    spread = data.draw(st.sampled_from([0.0, 1.0, 20.0]))
    sizes = np.clip(scales * 10.0 ** (spread * random.normal(size=(40, features))), 0.0, 1e150)
    X = random.uniform(-1.0, 1.0, (40, features)) * sizes
    X[random.integers(40, size=10)] = X[0]
    y = random.uniform(-1.0, 1.0, 40) * data.draw(magnitudes)
    if "Classifier" in estimator_class.__name__:
        y = random.integers(3, size=40)
    model = small(estimator_class, **parameters)
    try:
        in_pieces(model, FORMS[data.draw(st.sampled_from(sorted(FORMS)))](X), y, 10)
    except (DivergenceError, ValueError):
        if not hasattr(model, "n_features_in_"):
            return
    model.fingerprint()  # JSON without NaN: every number of the status is finite
    assert all(np.isfinite(part).all() for part in model._state[:-1])
    assert np.isfinite(model.factor_).all()
    for sample in X:
        try:
            assert np.isfinite(look(model, sample[None])).all()
        except ValueError:
            continue


def test_a_function_that_is_lost_has_cost_what_it_was():
    """Rounding leaves nothing of it: the sum of what projections cost stays a number."""
    random = np.random.default_rng(2)
    X = 1e-20 * 10.0 ** random.normal(size=(40, 2)) * random.uniform(-1.0, 1.0, (40, 2))
    X[random.integers(40, size=10)] = X[0]
    model = small(
        OnlineKernelFeatureClassifier, gamma="scale", alpha=0.0, max_points=5,
        step_size="tracking_square",
    )  # fmt: skip
    in_pieces(model, X, random.integers(3, size=40), 10)
    assert 0.0 < model.error_spent_ < np.inf


def test_inner_products_survive_samples_that_were_large():
    """What is left when they have gone is small beside the rounding of what was."""
    random = np.random.default_rng(0)
    X = [1e-3, 1.0] * 10.0 ** random.normal(size=(40, 2)) * random.uniform(-1.0, 1.0, (40, 2))
    X[random.integers(40, size=10)] = X[0]
    model = small(
        OnlineKernelFeatures, kernel="poly", alpha=0.0, basis="printed", max_points=5,
        removal="fifo", solver="parametric",
    )  # fmt: skip
    in_pieces(model, X, np.zeros(40), 10)
    assert np.isfinite(model.transform(X)).all()
    rank, order = (model._state.status[0][name] for name in ("rank", "order"))
    factor, stored = model._state.factor[:order, :rank], model._state.points[:, :order].T
    inner = factor.T @ model.kernel_(stored, stored) @ factor
    assert np.allclose(model._state.inner[:rank, :rank], inner, atol=1e-3 * np.trace(inner))


# Memory is a contract: the closed form of the docstring, after every call.


@every
@variants
def test_memory_is_a_contract(estimator_class, variant):
    X, y = stream(estimator_class, n=120)
    model = small(estimator_class, **VARIANTS[variant])
    for first in range(0, 120, 10):
        model.partial_fit(X[first : first + 10], y[first : first + 10])
        capacity = max(16, 2 * (model.model_order_ + 1))
        if model.max_points is not None:
            assert model.model_order_ <= model.max_points
            capacity = min(capacity, model.max_points + 1)
        form = (capacity, 3, 5, model._outputs, model._keeps_gram)
        assert model.nbytes_ <= feature_bytes(*form)
        assert len(pickle.dumps(model)) <= model.nbytes_ + 8000


# Chunking does not matter, nor does resuming from a file; the same bits.


@every
@variants
@pytest.mark.parametrize("form", FORMS)
def test_chunking_does_not_matter(estimator_class, variant, form):
    X, y = stream(estimator_class, n=size(203, 90))
    if "Classifier" in estimator_class.__name__:
        y[60:] += 3 * (np.arange(len(y) - 60) % 5 == 0)
    X = FORMS[form](X)
    parameters = VARIANTS[variant]
    if estimator_class is OnlineKernelFeatures:
        parameters = {**parameters, "align": True}
    prints = {
        in_pieces(small(estimator_class, **parameters), X, y, pieces).fingerprint()
        for pieces in (1, 7, 1000)
    }
    assert len(prints) == 1


@every
@variants
def test_resume_equals_never_having_stopped(estimator_class, variant, tmp_path):
    X, y = stream(estimator_class)
    straight = small(estimator_class, **VARIANTS[variant]).partial_fit(X, y)
    model = small(estimator_class, **VARIANTS[variant])
    for first, end in ((0, 3), (3, 60), (60, 161), (161, 200)):
        model.partial_fit(X[first:end], y[first:end]).save(tmp_path / "model")
        model = load(tmp_path / "model")
        assert type(model) is estimator_class
    assert model.fingerprint() == straight.fingerprint()
    assert np.array_equal(look(model, X), look(straight, X))


def test_a_rate_as_a_tuple_survives_the_file(tmp_path):
    X, _ = stream(OnlineKernelFeatures)
    model = small(OnlineKernelFeatures, censoring=("rate", 0.3)).partial_fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.partial_fit(X).fingerprint() == model.partial_fit(X).fingerprint()


def test_a_stream_of_nothing_resumes(tmp_path):
    """Samples without a direction: nothing is stored yet."""
    model = small(OnlineKernelFeatures, kernel="linear").partial_fit(np.zeros((5, 3)))
    assert (model.rank_, model.n_seen_, model.model_order_) == (0, 5, 0)
    assert np.array_equal(model.transform(np.ones((2, 3))), np.zeros((2, 5)))
    model.save(tmp_path / "model")
    X, _ = stream(OnlineKernelFeatures)
    again = load(tmp_path / "model").partial_fit(X)
    assert again.fingerprint() == model.partial_fit(X).fingerprint()


@every
def test_pickle_joblib_and_copies(estimator_class, tmp_path):
    X, y = stream(estimator_class)
    model = small(estimator_class).partial_fit(X[:100], y[:100])
    before = model.fingerprint()
    joblib.dump(model, tmp_path / "model")
    copies = [
        pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model),
        joblib.load(tmp_path / "model", mmap_mode="r"),
    ]  # fmt: skip
    ends = {other.partial_fit(X[100:], y[100:]).fingerprint() for other in copies}
    assert model.fingerprint() == before
    assert ends == {model.partial_fit(X[100:], y[100:]).fingerprint()}
    with pytest.raises(AttributeError, match="not fitted"):
        clone(model).fingerprint()


# Input is never modified or kept; looking changes nothing.


@every
@pytest.mark.parametrize("form", FORMS)
def test_input_is_neither_modified_nor_kept(estimator_class, form):
    X, y = stream(estimator_class)
    X = FORMS[form](X)
    given = [X.data, X.indices, X.indptr, y] if form == "csr" else [X, y]
    originals = [array.copy() for array in given]
    model = small(estimator_class).partial_fit(X, y)
    look(model, X)
    assert all(np.array_equal(a, b) for a, b in zip(given, originals, strict=True))
    before = model.fingerprint()
    for array in given:
        array[...] = 0
    for name in ("dictionary_", "factor_", "fit_errors_", "fit_error_numbers_"):
        getattr(model, name)[...] = 0
    assert model.fingerprint() == before


# Model files are data: nonsense with a right checksum is refused.

NONSENSE = {
    "another version": lambda header, arrays: header["status"].pop("rank"),
    "rank": lambda header, arrays: header["status"].update(rank=99),
    "order": lambda header, arrays: header["status"].update(order=2),
    "negative": lambda header, arrays: header["status"].update(seen=-1),
    "fraction": lambda header, arrays: header["status"].update(seen=0.5),
    "too many": lambda header, arrays: header["status"].update(censored=10**6),
    "ridge": lambda header, arrays: header["status"].update(ridge=-1.0),
    "NaN": lambda header, arrays: arrays["factor"].__setitem__((0, 0), np.nan),
    "shape": lambda header, arrays: arrays.update(inner=np.eye(7)),
    "norms": lambda header, arrays: arrays["square_norms"].__setitem__(0, 7.0),
    "missing": lambda header, arrays: arrays.pop("gram"),
    "flat": lambda header, arrays: arrays.update(points=arrays["points"][0]),
    "triangle": lambda header, arrays: arrays["solver"].__setitem__((0, 4), 1.0),
    "components": lambda header, arrays: header["parameters"].update(n_components=4),
    "censoring": lambda header, arrays: header["parameters"].update(censoring="x"),
    "no matrix": lambda header, arrays: arrays.update(gram=np.zeros((0, 0))),
    "inner": lambda header, arrays: arrays["inner"].__imul__(2.0),
    "factor": lambda header, arrays: arrays["factor"].__imul__(2.0),
    "root": lambda header, arrays: arrays["root"].fill(0.0),
    "rotation": lambda header, arrays: arrays["rotation"].__imul__(2.0),
    "large ridge": lambda header, arrays: header["status"].update(ridge=1.0),
    "kernel values": lambda header, arrays: arrays["gram"].__setitem__((0, 1), 0.5),
    "over budget": lambda header, arrays: header["parameters"].update(max_points=7),
    # Arrays without a byte, for which there would not be enough memory.
    "endless components": lambda header, arrays: arrays.update(weights=np.zeros((10**7, 0))),
    "endless features": lambda header, arrays: arrays.update(points=np.zeros((2**40, 0))),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(name, tmp_path):
    X, _ = stream(OnlineKernelFeatures)
    header, arrays = small(OnlineKernelFeatures).partial_fit(X)._document()
    storage.write(tmp_path / "good", "OnlineKernelFeatures", header, arrays)
    load(tmp_path / "good")
    NONSENSE[name](header, arrays)
    storage.write(tmp_path / "bad", "OnlineKernelFeatures", header, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "bad")
