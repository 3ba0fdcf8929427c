"""Bad input changes nothing: the error says where, the model is what it was."""

import re

import numpy as np
import pytest
from scipy.sparse import random_array

from kernelstream import (
    POLKClassifier,
    POLKRegressor,
)
from tests.models.tools import (
    CLASSIFIERS,
    FORMS,
    assert_refused,
    every,
    having,
    stream,
    waiting,
    with_factor,
)


def put(value):
    def damage(X, y):
        X[500, 1] = value
        return X, y

    return damage


def put_in_target(value):
    def damage(X, y):
        y = y.astype(object if value is None else float)
        y[500] = value
        return X, y

    return damage


PLACE = "row 500, column 1"


DAMAGES = {
    "NaN": (put(np.nan), f"NaN at {PLACE}.*Imputer"),
    "infinity": (put(-np.inf), f"infinity at {PLACE}"),
    "huge": (put(1e200), rf"too large, 1e\+200 at {PLACE}.*StandardScaler"),
    "wider": (lambda X, y: (np.hstack([X, X]), y), "6 features.*expecting 3"),
    "complex": (lambda X, y: (X + 1j, y), "[Cc]omplex"),
    "one-dimensional": (lambda X, y: (X[:, 0], y), "2D array"),
    "empty": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "short y": (lambda X, y: (X, y[:-1]), r"1000, 999"),
    "NaN in y": (put_in_target(np.nan), "(?i)nan at row 500"),
    "infinity in y": (put_in_target(np.inf), "inf.* at row 500"),
    "None in y": (put_in_target(None), "row 500|numbers"),
    "y of two columns": (
        lambda X, y: (X, np.column_stack([y, y])),
        "1d array|2 numbers per sample",
    ),
    "complex y": (lambda X, y: (X, y + 1j), "[Cc]omplex"),
}


DENSE_DAMAGES = {
    "strings": (lambda X, y: (X.astype(str).astype(object) + "x", y), "could not convert|numeric"),
    "objects": (lambda X, y: (np.full(X.shape, object()), y), "float|number"),
}


@every
@pytest.mark.parametrize("form", FORMS)
def test_bad_input_changes_nothing(estimator_class, form):
    X, y = stream(estimator_class, n=1000)
    model = estimator_class(random_state=0, **waiting(estimator_class, 3))
    model.partial_fit(X[:100], y[:100])
    vectors = model.__sklearn_tags__().target_tags.multi_output
    for name, (damage, message) in (DAMAGES | (DENSE_DAMAGES if form == "dense" else {})).items():
        bad_X, bad_y = damage(X.copy(), y.copy())
        if bad_X.ndim == 2 and bad_X.dtype != object:
            bad_X = FORMS[form](bad_X)

        def refuse(model, call, message=message, bad=(bad_X, bad_y)):
            assert_refused(model, lambda model: getattr(model, call)(*bad), message)

        refuse(model, "partial_fit")
        if name == "wider" or (name == "y of two columns" and vectors):
            continue  # a new model takes what an old one does not fit
        refuse(model, "fit")
        for call in ("fit", "partial_fit"):
            refuse(estimator_class(), call, None)


@every
def test_bad_input_is_not_predicted(estimator_class):
    X, y = stream(estimator_class, n=1000)
    model = estimator_class().partial_fit(X, y)
    for name in ("NaN", "infinity", "huge", "wider", "complex"):
        damage, message = DAMAGES[name]
        for form in FORMS.values():
            bad_X = form(damage(X.copy(), y)[0])
            assert_refused(model, lambda model, X=bad_X: model.predict(X), message)


@every
def test_bad_sample_weight_changes_nothing(estimator_class):
    X, y = stream(estimator_class, n=1000)
    model = estimator_class(random_state=0).partial_fit(X, y)
    for value in (np.nan, -1.0, np.inf, 1e300):
        weight = np.ones(1000)
        weight[500] = value
        for new in (model, estimator_class()):
            message = rf"numbers from 0 to 1e\+150, got {re.escape(str(value))} at row 500"
            for bad, says in ((weight, message), (weight[1:], "shape")):
                assert_refused(new, lambda m, w=bad: m.partial_fit(X, y, sample_weight=w), says)


@pytest.mark.parametrize("estimator_class", CLASSIFIERS)
def test_an_unseen_class_changes_nothing_where_classes_are_fixed(estimator_class):
    X, y = stream(estimator_class, n=1000)
    model = estimator_class().partial_fit(X, y, classes=[0, 1])
    y[500] = 7
    assert_refused(model, lambda m: m.partial_fit(X, y), "label .*7.* at row 500")
    assert_refused(
        model, lambda m: m.partial_fit(X, y, classes=[0, 1, 7]), "classes .*7.* at row 2"
    )
    assert_refused(estimator_class(), lambda m: m.partial_fit(X, y, classes=[0, 1]), "at row 500")
    assert_refused(estimator_class(), lambda m: m.partial_fit(X, y, classes=[0, np.nan]), "nan")
    assert_refused(model, lambda m: m.partial_fit(X, y.astype(str)), "type")


@pytest.mark.parametrize("estimator_class", CLASSIFIERS)
def test_classes_given_later_are_added_and_then_no_others_are_accepted(estimator_class):
    X, y = stream(estimator_class, n=40)
    model = estimator_class().partial_fit(X, y)
    for words in (["a", "b"], [0, "b"]):
        assert_refused(model, lambda m, words=words: m.partial_fit(X, y, classes=words), "type")
    assert_refused(model, lambda m: m.partial_fit(X, y + 2, classes=[2]), "label 3 at row .* given")
    model.partial_fit(X, y, classes=[2, 3])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    model.partial_fit(X, y + 2, classes=[2, 3])  # the same again
    assert_refused(model, lambda m: m.partial_fit(X, y + 4), "label .* is not among the known")
    assert_refused(model, lambda m: m.partial_fit(X, y, classes=[3, 4]), "classes .* label 4 at")


@with_factor
def test_what_only_the_kernel_refuses_changes_nothing(estimator_class):
    X, y = stream(estimator_class, n=100)
    model = estimator_class(kernel="poly").partial_fit(X, y)
    other = np.arange(100) % 4
    for call in ("partial_fit", "fit"):
        for new in (model, estimator_class(kernel="poly")):
            assert_refused(new, lambda m, c=call: getattr(m, c)(X * 1e40, other), r"k\(x, x\)")


@every
def test_what_only_the_memory_refuses_changes_nothing(estimator_class):
    X, y = stream(estimator_class, n=100)
    small = estimator_class(max_bytes=10)
    assert_refused(small, lambda m: m.partial_fit(X, y), "max_bytes=10 does not hold")


def test_bad_feature_names_change_nothing():
    pd = pytest.importorskip("pandas")
    X, y = stream(POLKClassifier)
    frame = pd.DataFrame(X, columns=["a", 1, "c"])
    assert_refused(POLKClassifier(), lambda model: model.partial_fit(frame, y), "names")


@every
def test_learn_one_refuses_bad_samples(estimator_class):
    X, y = stream(estimator_class)
    last = having(estimator_class, kernel="linear", delta=0.5)
    for parameters in ({}, waiting(estimator_class, 3), last):
        model = estimator_class(**parameters).partial_fit(X, y)
        model.learn_one(X[0], y[0])
        for bad in (np.array([0.0, np.nan, 0.0]), np.array([np.inf, 0.0, 0.0]), X[0, :2],
                    np.array([1e200, 0.0, 0.0])):  # fmt: skip
            assert_refused(model, lambda m, x=bad: m.learn_one(x, y[0]))
        assert_refused(model, lambda m: m.learn_one(X[0], np.nan))


@pytest.mark.parametrize("index", [25, -5, 10**8])
def test_a_sparse_index_out_of_range_is_refused(index):
    X = random_array((50, 20), density=0.3, format="csr", random_state=0)
    y = np.arange(50.0)
    model = POLKRegressor().partial_fit(X, y)
    before = model.fingerprint()
    X.indices[3] = index
    with pytest.raises(ValueError, match="ind"):
        model.partial_fit(X, y)
    assert model.fingerprint() == before


def test_masked_arrays_and_dates_are_refused():
    X, y = stream(POLKRegressor, n=20)
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, bool))
    for bad, target in (
        (masked, y),
        (X, np.ma.masked_array(y)),
        (X.astype("datetime64[s]"), y),
    ):
        with pytest.raises(ValueError, match=r"masked|dates"):
            POLKRegressor().partial_fit(bad, target)
