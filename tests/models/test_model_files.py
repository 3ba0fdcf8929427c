"""Model files are data, saving is atomic, and resuming equals never having stopped."""

import hashlib
import os
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelstream import (
    AutoClassifier,
    AVMClassifier,
    Coverage,
    FOGDClassifier,
    KernelExpansion,
    KernelPerceptronClassifier,
    ModelFileError,
    NOGDClassifier,
    POLKClassifier,
    POLKRegressor,
    load,
    storage,
)
from kernelstream.features import OnlineKernelFeatures
from kernelstream.kernels import Gaussian
from tests.models.tools import (
    CLASSIFIERS,
    ESTIMATORS,
    FORMS,
    REGRESSORS,
    drawn,
    having,
    in_pieces,
    stream,
    waiting,
)

capped = pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_round_trip(estimator_class, form, average, batch_size, tmp_path):
    X, y = stream(estimator_class, n=190, classes=3)
    X = FORMS[form](X)
    model = estimator_class(
        random_state=np.random.RandomState(0), **having(estimator_class, average=average),
        **waiting(estimator_class, batch_size),
    )  # fmt: skip
    model.partial_fit(X, y).save(tmp_path / "model")
    again = estimator_class.load(tmp_path / "model")
    assert again.fingerprint() == model.fingerprint()
    assert np.array_equal(again.predict(X), model.predict(X))
    assert type(load(tmp_path / "model")) is estimator_class
    other = ESTIMATORS[(ESTIMATORS.index(estimator_class) + 1) % len(ESTIMATORS)]
    with pytest.raises(ModelFileError, match=f"holds a {estimator_class.__name__}"):
        other.load(tmp_path / "model")


@pytest.mark.parametrize("kind", [*np.typecodes["AllInteger"], "?", "e", "f", "d", ">i4", ">u8"])
def test_labels_of_every_type_come_back(kind, tmp_path):
    X, y = stream(POLKClassifier)
    model = POLKClassifier().partial_fit(X, y.astype(kind))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.fingerprint() == model.fingerprint()


def test_labels_and_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = stream(POLKClassifier, classes=3)
    for labels in (np.array(["a", "bb", "ccc"]), np.array(["a", "b", "c"], object),
                   np.array([3, 5, 8], np.uint8), np.array([-1.0, 0.0, 2.0])):  # fmt: skip
        model = POLKClassifier().partial_fit(pd.DataFrame(X, columns=list("pqr")), labels[y])
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.classes_.dtype == model.classes_.dtype
        assert list(again.classes_) == list(labels)
        assert list(again.feature_names_in_) == ["p", "q", "r"]


@capped
@pytest.mark.parametrize("estimator_class", REGRESSORS)
def test_a_model_whose_cap_was_lowered_can_be_loaded(estimator_class, tmp_path):
    X, y = stream(estimator_class)
    many = having(estimator_class, compression_error=0.0, gamma=5.0, delta=0.5)
    model = estimator_class(**many).partial_fit(X, y).set_params(max_points=5)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint() == model.fingerprint()
    assert again.partial_fit(X[:2], y[:2]).model_order_ <= 5


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    X, y = stream(POLKRegressor)
    model = POLKRegressor().partial_fit(X[:50], y[:50])
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    model.partial_fit(X[50:], y[50:])

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "model"
    POLKClassifier(batch_size=2).partial_fit([[0.0], [1.0], [3.0]], ["a", "b", "a"]).save(path)
    original = path.read_bytes()
    for place in range(len(original)):
        damaged = bytearray(original)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            load(path)
    for length in range(0, len(original), 7):
        path.write_bytes(original[:length])
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            load(path)


# Files with a right checksum and nonsense in them.


def nested(depth):
    config = Gaussian(1.0).to_config()
    for _ in range(depth):
        config = {"name": "Scaled", "kernel": config, "factor": 1.0}
    return config


def header(**changes):
    return lambda h, arrays: h.update(changes)


def status(**changes):
    return lambda h, arrays: h["status"].update(changes)


def parameter(**changes):
    return lambda h, arrays: h["parameters"].update(changes)


def array(name, change):
    def craft(h, arrays):
        arrays[name] = change(arrays[name].copy())

    return craft


def fill(value):
    def change(array):
        array[...] = value
        return array

    return change


NONSENSE = {
    "order beyond the arrays": status(order=1000),
    "negative order": status(order=-1),
    "order as text": status(order="many"),
    "scale above one": status(scale=2.0),
    "scale zero": status(scale=0.0),
    "status is a list": header(status=[1, 2]),
    "status lacks a number": lambda h, a: h["status"].pop("steps"),
    "status out of range": status(steps=2**70),
    "NaN weights": array("weights", fill(np.nan)),
    "huge weights": array("weights", fill(1e300)),
    "huge points": array("points", fill(1e300)),
    "a weight too few": array("weights", lambda w: w[1:]),
    "weights of another type": array("weights", lambda w: w.astype(np.float32)),
    "one-dimensional points": array("points", lambda x: x.ravel()),
    "no factor": lambda h, a: a.pop("factor"),
    "another width": header(features=7),
    "width as text": header(features="2"),
    "too many classes": header(classes=["a", "b", "c", "d"]),
    "no class": header(classes=[]),
    "classes as text": header(classes="abc"),
    "equal classes": header(classes=["a", "a", "c"]),
    "unsorted classes": header(classes=["c", "b", "a"]),
    "nested classes": header(classes=[["a"], ["b"], ["c"]], dtype="O"),
    "classes of no type": header(dtype="nothing"),
    "classes of a record type": header(dtype="f8,f8"),
    "classes of a gigantic type": header(dtype="<U100000000"),
    "classes of a type to be parsed": header(dtype=",i8"),
    "classes of dates": header(dtype="<M8[s]"),
    "classes of a type in a list": header(dtype=["<i8"]),
    "names that are none": header(names=5),
    "names that are letters": header(names="ab"),
    "too few names": header(names=["a"]),
    "names of numbers": header(names=[1, 2]),
    "pending labels out of range": array("pending_targets", fill(3.0)),
    "pending labels in between": array("pending_targets", fill(0.5)),
    "pending NaN": array("pending_dense", fill(np.nan)),
    "pending weights negative": array("pending_weights", fill(-1.0)),
    "pending of another width": array("pending_dense", lambda x: x[:, 1:]),
    "pending of another shape": array("pending_dense", lambda x: x[:, 0]),
    "pending of float32": array("pending_dense", lambda x: x.astype(np.float32)),
    "pending targets missing": lambda h, a: a.pop("pending_targets"),
    "pending sparse without an indptr": lambda h, a: (
        h.update(pending={"sparse": True}), a.update(pending_indptr=np.empty(0, np.int64))
    ),
    "pending sparse out of bounds": lambda h, a: (
        h.update(pending={"sparse": True}),
        a.update(pending_indptr=np.array([0, 1]), pending_data=np.ones(1),
                 pending_indices=np.array([99], np.int32), pending_dense=np.empty((0, 2))),
    ),
    "unknown kernel": header(kernel={"name": "Magic"}),
    "kernel is a number": header(kernel=3),
    "kernel of a bad number": header(kernel={"name": "Gaussian", "gamma": -1.0}),
    "kernel of an endless number": header(kernel={"name": "Gaussian", "gamma": 10**400}),
    "kernel of huge degree": header(
        kernel={"name": "Polynomial", "degree": 10**9, "gamma": 1.0, "coef0": 1.0}
    ),
    "kernel with more numbers": header(kernel={"name": "Linear", "gamma": 1.0}),
    "sum without a second": header(kernel={"name": "Sum", "first": {"name": "Linear"}}),
    "sum of a number": header(kernel={"name": "Sum", "first": {"name": "Linear"}, "second": 1}),
    "parameters are a list": header(parameters=[1]),
    "unknown parameter": parameter(magic=1),
    "parameter of the wrong type": parameter(max_points="many"),
    "parameter out of range": parameter(eta0=-1.0),
    "parameter without end": parameter(alpha=10**400),
    "unknown loss": parameter(loss={"loss": ["magic", 1.0]}),
    "loss of too much": parameter(loss={"loss": ["huber", 1.0, 2.0]}),
    "loss for numbers": parameter(loss="huber"),
    "parameter is a dict": parameter(eta0={"what": 1}),
    "average switched": parameter(average=True),
    "another kernel": header(kernel={"name": "Gaussian", "gamma": 7.0}),
    "kernel values of another": array("self_kernels", fill(0.5)),
    "points mirrored": array("points", lambda x: x * np.where(np.arange(x.shape[1]) % 2, 1, -1)),
    "no kernel": lambda h, a: h.pop("kernel"),
    "no parameters": lambda h, a: h.pop("parameters"),
    "no classes": lambda h, a: h.pop("classes"),
}  # fmt: skip


def refuse(path):
    """The file is refused as a file, without much memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def craft(estimator_class, **parameters):
    """The parts of a model with three classes."""
    X, y = stream(estimator_class, n=46, features=2, classes=3)
    model = estimator_class(random_state=0, **parameters)
    return model.partial_fit(X, np.array(["a", "b", "c"])[y])._document()


@pytest.fixture
def crafted():
    """Of a model with an unfinished batch."""
    return lambda: craft(POLKClassifier, batch_size=5)


def assert_nonsense(estimator_class, head, arrays, spoil, path):
    storage.write(path, estimator_class.__name__, head, arrays)
    load(path)
    spoil(head, arrays)
    storage.write(path, estimator_class.__name__, head, arrays)
    refuse(path)


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(name, crafted, tmp_path):
    assert_nonsense(POLKClassifier, *crafted(), NONSENSE[name], tmp_path / "model")


#: What only the factor tells.
FACTORED = ("another kernel", "points mirrored")
AVM_NONSENSE = {
    **{
        name: spoil
        for name, spoil in NONSENSE.items()
        if not name.startswith("pending") and name not in FACTORED
    },
    "delta is text": header(delta="wide"),
    "delta is negative": header(delta=-1.0),
    "delta is not known": header(delta=None),
    "delta is endless": header(delta=10**400),
    "more cells than points": status(cells=1000),
    "a factor": array("factor", lambda factor: np.eye(5)),
    "a diagonal": array("diagonal", fill(1.0)),
    "negative norm": status(square_norm=-1.0),
    "coverage of no shape": parameter(coverage={"coverage": {"shape": "magic", "delta": 1.0}}),
    "coverage of no size": parameter(coverage={"coverage": {"shape": "hypersphere"}}),
    "coverage without cells": parameter(
        coverage={"coverage": {"shape": "hypersphere", "delta": 1.0}}
    ),
    "coverage of text": parameter(
        coverage={
            "coverage": {"shape": "hypersphere", "delta": 1.0, "used": 1.0, "points": [["a", "b"]]}
        }
    ),
    "another kernel": header(kernel={"name": "Linear"}),
}


@pytest.mark.parametrize("name", AVM_NONSENSE)
def test_nonsense_is_refused_by_avm(name, tmp_path):
    head, arrays = craft(AVMClassifier, delta=1.0)
    assert_nonsense(AVMClassifier, head, arrays, AVM_NONSENSE[name], tmp_path / "model")


PENDING = [name for name in NONSENSE if name.startswith("pending")]


@pytest.mark.parametrize("name", PENDING)
def test_nonsense_that_waits_is_refused_by_avm(name, tmp_path):
    assert_nonsense(AVMClassifier, *craft(AVMClassifier), NONSENSE[name], tmp_path / "model")


#: What only some methods hold: a method, its parameters, and how its file is spoiled.
OTHER_NONSENSE = {
    "calibration of whole numbers": (
        AVMClassifier, {"delta": 1.0}, array("calibration", lambda x: x.astype(np.uint64)),
    ),
    "a probe that nobody does": (KernelPerceptronClassifier, {}, status(changes=10**18)),
    "frequencies beyond all": (FOGDClassifier, {"max_points": 5}, array("points", fill(1e200))),
    "a map that overflows": (NOGDClassifier, {"max_points": 5}, array("projection", fill(1e308))),
    "negative slopes": (AutoClassifier, {}, array("group0_slopes", np.negative)),
}  # fmt: skip


@capped
@pytest.mark.parametrize("name", OTHER_NONSENSE)
def test_nonsense_is_refused_by_other_methods(name, tmp_path):
    estimator_class, parameters, spoil = OTHER_NONSENSE[name]
    head, arrays = craft(estimator_class, **parameters)
    assert_nonsense(estimator_class, head, arrays, spoil, tmp_path / "model")


def test_features_whose_basis_has_no_inverse_are_refused(tmp_path):
    X, _ = stream(POLKClassifier, n=46, features=2)
    model = OnlineKernelFeatures(3, max_points=9, align=True, random_state=0).partial_fit(X)
    spoil = array("root", fill(5e-324))
    assert_nonsense(OnlineKernelFeatures, *model._document(), spoil, tmp_path / "model")


def test_room_for_more_than_there_is(tmp_path):
    X, y = stream(AVMClassifier)
    model = AVMClassifier(delta=1.0, max_bytes=10**30).partial_fit(X, y)  # and does not take ages
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").max_bytes == 10**30


def test_a_coverage_comes_back(tmp_path):
    X, y = stream(AVMClassifier)
    coverage = Coverage("hyperrectangle", 1.5).fit(X[:50])
    model = AVMClassifier(coverage=coverage, random_state=0).partial_fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint() == model.fingerprint()
    assert np.array_equal(again.coverage.core_points_, coverage.core_points_)
    assert again.fit(X, y).fingerprint() == model.fit(X, y).fingerprint()


OPEN = {
    "negative steps": status(steps=-5),
    "negative count": status(seen=-1),
    "fractional steps": status(steps=1.5),
    "NaN as text": status(error_spent="nan"),
    "negative diagonal": array("diagonal", fill(-1.0)),
}


@pytest.mark.parametrize("name", OPEN)
def test_nonsense_in_the_record_is_refused(name, crafted, tmp_path):
    head, arrays = crafted()
    OPEN[name](head, arrays)
    storage.write(tmp_path / "model", "POLKClassifier", head, arrays)
    refuse(tmp_path / "model")


@pytest.mark.parametrize("kind", ["Magic", "KernelClassifier", "_POLK", "_AVM", "", "os.system"])
def test_an_unknown_kind_is_refused(kind, crafted, tmp_path):
    storage.write(tmp_path / "model", kind, *crafted())
    refuse(tmp_path / "model")


@pytest.mark.parametrize("depth", [60, 10_000])
def test_a_kernel_nested_too_deeply_is_refused(depth, crafted, tmp_path):
    head, arrays = crafted()
    head["kernel"] = "HERE"
    data = storage.dumps("POLKClassifier", head, arrays)
    start = len(storage.MAGIC) + storage.LENGTH_BYTES
    length = int.from_bytes(data[len(storage.MAGIC) : start], "little")
    deep = b'{"name":"Scaled","factor":1.0,"kernel":' * depth + b"0" + b"}" * depth
    text = data[start : start + length].replace(b'"HERE"', deep)
    body = storage.MAGIC + len(text).to_bytes(storage.LENGTH_BYTES, "little") + text
    body += data[start + length : -storage.DIGEST_BYTES]
    (tmp_path / "model").write_bytes(body + hashlib.sha256(body).digest())
    refuse(tmp_path / "model")


@pytest.mark.parametrize(
    ("head", "arrays"),
    [
        ({}, {}),
        ({"kernel": nested(1)}, {"points": np.zeros((2, 1)), "weights": np.zeros(3)}),
        ({"kernel": nested(1)}, {"points": np.full((2, 1), np.nan), "weights": np.zeros(2)}),
        ({"kernel": 5}, {"points": np.zeros((2, 1)), "weights": np.zeros(2)}),
        ({"kernel": nested(1)}, {"points": np.full((2, 1), 1e308), "weights": np.zeros(2)}),
        (
            {"kernel": {"name": "Gaussian", "gamma": 10**400}},
            {"points": np.zeros((2, 1)), "weights": np.zeros(2)},
        ),
    ],
)
def test_nonsense_expansions_are_refused(head, arrays, tmp_path):
    storage.write(tmp_path / "f", "KernelExpansion", head, arrays)
    refuse(tmp_path / "f")
    with pytest.raises(ModelFileError, match=re.escape(str(tmp_path))):
        KernelExpansion.load(tmp_path / "f")


# Resume equals never having stopped.


RESUMED = {
    "batch_size": [1, 2, 6, 32],
    "average": [False, True],
    "average_horizon": [None, 50, 0.3],
    "projection": ["greedy", "random"],
    "risk": ["variance", "moments", "cvar"],
    "tracking": ["momentum", "average"],
    "delta": ["auto", 0.7],
    "exact_probability": [0.0, 0.05, 5.0],
    "tracking_rate": [0.05, 0.5],
    "max_points": [None, 12],
}


@capped
@given(data=st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_resume_equals_never_having_stopped(data, tmp_path):
    estimator_class = data.draw(st.sampled_from(ESTIMATORS))
    parameters = drawn(data.draw, estimator_class, RESUMED) | {"random_state": 0}
    X, y = stream(estimator_class, n=300)
    if estimator_class in CLASSIFIERS:
        y[150:] += 2 * (np.arange(150) % 3 == 0)  # a third class, and a fourth
    X = FORMS[data.draw(st.sampled_from(sorted(FORMS)))](X)
    straight = in_pieces(estimator_class(**parameters), X, y, 300)
    stops = sorted(data.draw(st.lists(st.integers(1, 299) | st.just(150), min_size=1, max_size=3)))
    model, first = estimator_class(**parameters), 0
    for stop in [*stops, 300]:
        if first < stop:
            model.partial_fit(X[first:stop], y[first:stop])
        model.save(tmp_path / "model")
        model, first = load(tmp_path / "model"), stop
    assert model.fingerprint() == straight.fingerprint()
