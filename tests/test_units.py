"""Units that move with the stream: as written down, in any chunking, in files old and new."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kernelstream import Run, storage
from kernelstream.preparation import Preparation
from kernelstream.runs._checkpoints import differences
from kernelstream.runs._reading import in_python
from kernelstream.streams.batch import Batch
from tests.cli.tools import Tool
from tests.naive.units import moving
from tests.test_preparation import SCHEMA, cut, in_pieces, mixed, numbers, reload, same


@pytest.fixture
def tool(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return Tool(monkeypatch, capsys)


values = st.one_of(
    st.none(),
    st.floats(-1e3, 1e3).filter(lambda v: v == 0.0 or abs(v) > 1e-3),
    st.sampled_from([0.0, 0.0, 1.0, 1e6]),
)


@settings(max_examples=60)
@given(column=st.lists(values, min_size=1, max_size=40))
def test_as_a_student_would_write_it(column):
    batch = numbers(x=[np.nan if v is None else v for v in column])
    got = Preparation({"x": "number"}).transform(batch, learn=True)[:, 0]
    np.testing.assert_allclose(got, moving(column), rtol=1e-6, atol=1e-6)


def test_a_counter_may_run_on_and_frozen_units_are_left_behind():
    count = np.arange(30_000.0)
    batch = numbers(count=count, price=np.sin(count) + count / 1000.0)
    got = Preparation({"count": "number", "price": "number"}).transform(batch, learn=True)
    np.testing.assert_allclose(got[:, 0], moving(count.tolist()), rtol=1e-6)
    assert np.abs(got).max() < 5.0
    frozen = Preparation({"count": "number", "price": "number"}, units="frozen")
    assert frozen.transform(batch, learn=True)[-1, 0] > 90.0
    assert frozen.frozen


def test_extreme_columns_stay_finite():
    n = 200
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    jump = sign.copy()
    jump[150:] = 1e150
    batch = numbers(
        huge=1e150 * sign, tiny=1e-160 * sign, denormal=5e-324 * sign, constant=np.full(n, 0.1),
        close=1e9 + 1e-6 * sign, jump=jump, never=np.full(n, np.nan),
        only=np.where(np.arange(n) > 150, 3.0, np.nan),
    )  # fmt: skip
    schema = dict.fromkeys(batch.columns, "number")
    preparation = Preparation(schema)
    column = dict(zip(schema, preparation.transform(batch, learn=True).T, strict=False))
    assert all(np.isfinite(each).all() and np.abs(each).max() < 16.0 for each in column.values())
    assert np.abs(column["huge"][100:]).min() > 0.9
    for name in ("constant", "never", "only"):
        assert not column[name].any()
    far = numbers(**dict.fromkeys(schema, np.array([1e150, -1e150])))
    assert np.abs(reload(preparation).transform(far)).max() < 1000.0


def test_predicting_moves_nothing():
    preparation = Preparation(SCHEMA)
    preparation.transform(mixed(), learn=True)
    before = storage.dumps("x", *preparation.to_document())
    once = preparation.transform(mixed(seed=1))
    assert same(preparation.transform(mixed(seed=1)), once)
    assert storage.dumps("x", *preparation.to_document()) == before


def test_a_constant_column_and_one_with_two_values():
    x = np.full(2000, 3.0)
    flag = (np.arange(2000) % 100 == 0).astype(float)
    batch = numbers(constant=x, rare=flag, two=flag + 5.0)
    schema = dict.fromkeys(batch.columns, "number")
    got = Preparation(schema).transform(batch, learn=True)
    assert not got[:, 0].any()
    assert set(got[2:, 1]) == {0.0, 2.0}  # zeros stay zeros, the unit is half of what is rare
    assert np.abs(got[1000:, 2]).max() < 2.5  # not the 10 deviations that it is from the mean


def test_units_without_standardising_fill_in_a_mean_that_moves():
    x = np.append(np.arange(20_000.0), np.nan)
    moved, frozen = (
        Preparation({"x": "number"}, standardise=False, units=units).transform(
            numbers(x=x), learn=True
        )
        for units in ("moving", "frozen")
    )
    assert np.array_equal(moved[:-1, 0], x[:-1])
    assert moved[-1, 0] > 15_000.0
    assert frozen[-1, 0] == 499.5


def test_dates_are_also_a_number_where_units_move():
    when = np.datetime64("2024-01-01", "us") + np.arange(5000).astype("timedelta64[h]")
    when[7] = np.datetime64("NaT")
    batch = Batch({"when": when}, lines=np.arange(5000))
    preparation = Preparation({"when": "date"})
    X = preparation.transform(batch, learn=True)
    assert preparation.feature_names_out[:3] == ["when", "missing elsewhere", "when sin hour"]
    assert X.shape[1] == preparation.width == 8
    hours = [None if np.isnat(each) else k / 24.0 for k, each in enumerate(when)]
    np.testing.assert_allclose(X[:, 0], moving(hours), rtol=1e-4, atol=1e-7)
    assert X[7].tolist() == [0.0, 1.0, *[0.0] * 6]
    for other in ({"units": "frozen"}, {"standardise": False}):  # it would run away
        assert Preparation({"when": "date"}, **other).transform(batch, learn=True).shape[1] == 7


@pytest.mark.parametrize("units", ["moving", "frozen"])
def test_a_frozen_copy_gives_the_same_features_for_ever(units):
    first = Preparation(SCHEMA, units=units, warm_up=50, buckets=8)
    first.transform(mixed(), learn=True)
    copy = first.frozen_copy()
    assert copy.frozen
    assert first.same_as(copy)
    assert first.same_as(reload(copy))
    later = mixed(seed=1)
    expected = first.transform(later)
    assert same(reload(copy).transform(later, learn=True), expected)
    assert same(copy.transform(later, learn=True), expected)
    assert copy.same_as(first)
    if units == "moving":
        first.transform(cut(later, 0, 1), learn=True)
        assert not copy.same_as(first)
    assert not first.same_as(Preparation(SCHEMA, units="frozen").start(mixed()))


def test_files_of_version_0_1_have_frozen_units_and_hashed_texts():
    header, arrays = Preparation(SCHEMA, units="frozen", buckets=16).start(mixed()).to_document()
    old = {name: header[name] for name in header if name not in ("units", "held", "texts")}
    preparation = Preparation.from_document(json.loads(json.dumps(old)), arrays)
    assert preparation.units == "frozen"
    assert preparation.feature_names_out[-1] == "text[15]"
    X = preparation.transform(mixed(), learn=True)
    assert same(X[:, -16:], reload(preparation).transform(mixed())[:, -16:])  # texts stay
    assert reload(preparation).feature_names_out == preparation.feature_names_out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.array(-1)), ("rows", np.array([1])), ("values", np.zeros(2)),
        ("values", np.full(3, 200.0)), ("values", np.full(3, 0.5)), ("mean", np.full(3, np.nan)),
        ("mean", np.full(3, 1e200)), ("variance", np.full(3, -1.0)), ("power", np.full(3, np.inf)),
        ("filled", np.full(3, 1.5)), ("high", np.zeros(3, np.int64)), ("low", None),
    ],
)  # fmt: skip
def test_malicious_arrays(name, value):
    preparation = Preparation(SCHEMA)
    preparation.transform(mixed(), learn=True)
    header, arrays = preparation.to_document()
    arrays = {**arrays, name: value}
    if value is None:
        del arrays[name]
    with pytest.raises(ValueError, match="running statistics"):
        Preparation.from_document(header, arrays)


@pytest.mark.parametrize(("field", "value"), [("units", "other"), ("held", 1), ("texts", [])])
def test_malicious_headers(field, value):
    header, arrays = Preparation(SCHEMA).start(mixed()).to_document()
    with pytest.raises(ValueError, match=r"unit|texts"):
        Preparation.from_document({**header, field: value}, arrays)


def test_units_are_the_same_after_any_stop():
    batch = numbers(x=np.random.default_rng(0).normal(size=9000).cumsum())
    whole = Preparation({"x": "number"})
    expected = whole.transform(batch, learn=True)
    pieces = Preparation({"x": "number"})
    got = []
    for piece in in_pieces(batch, [1, 2, 3999, 4000, 4001, 8999]):
        got.append(pieces.transform(piece, learn=True))
        pieces = reload(pieces)
    assert same(np.concatenate(got), expected)


def test_the_automatic_model_gets_rows_in_units():
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    table = {"model": "auto", "parameters": {}}

    def standardizes(source, **settings):
        with Run(source, **{**table, **settings}) as run:
            return run.model.model.standardize

    assert not standardizes((X, y))
    assert standardizes((X, y), units="frozen")
    assert standardizes((X, y), standardise=False)
    assert standardizes((X, y), parameters={"standardize": True})
    assert standardizes((csr_array(X), y))  # left as they are by the preparation


def test_checkpoints_of_version_0_1_go_on_with_what_were_their_defaults():
    now = {"method": "polk", "parameters": {}, "units": "moving", "buckets": None, "every": 10}
    old = {"method": "polk", "parameters": {}, "buckets": 256, "every": 10}
    assert not differences(now, old, in_python)
    assert not differences({**now, "units": "frozen"}, old, in_python)
    assert not differences({**now, "buckets": 8}, {**old, "buckets": 8}, in_python)
    assert "buckets (8 then, None now)" in differences(now, {**old, "buckets": 8}, in_python)
    assert not differences(now, {**now, "buckets": 128}, in_python)  # a default in between
    assert differences(now, {**now, "buckets": 256}, in_python)
    frozen = {**now, "units": "frozen"}
    assert "units (frozen then, moving now)" in differences(now, frozen, in_python)


def test_models_to_be_merged_share_units_that_stay(tool, tmp_path):
    random = np.random.default_rng(0)
    for name in ("one", "two"):
        count = np.arange(600.0)
        word = np.array(["up", "down", "seldom"])[random.choice(3, 600, p=[0.5, 0.497, 0.003])]
        label = np.where((word == "up") ^ (random.random(600) < 0.05), "a", "b")
        table = pd.DataFrame({"count": count, "word": word, "label": label})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    words = ("--target", "label", "--model", "polk", "--buckets", 8, "--out")
    tool("learn", "one.csv", *words, "one.ks")
    tool("learn", "two.csv", *words, "apart.ks")
    assert "--like one.ks" in tool("merge", "one.ks", "apart.ks", "--out", "m.ks", code=2).err
    tool("learn", "two.csv", *words, "two.ks", "--like", "one.ks")
    tool("merge", "one.ks", "two.ks", "--out", "m.ks")
    assert json.loads(tool("evaluate", "m.ks", "two.csv", "--json").out)["accuracy"] > 0.9
    one, two = (json.loads(tool("inspect", f"{k}.ks", "--json").out) for k in ("one", "two"))
    assert (one["units"], two["units"]) == ("moving", "frozen")
    assert one["other_texts"] == two["other_texts"]
    assert "word=up" in " ".join(tool("inspect", "one.ks").out.split())
