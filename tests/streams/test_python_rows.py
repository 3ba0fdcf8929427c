"""Rows as Python has them give the same batch, whatever holds them; what cannot be is refused."""

import datetime
from decimal import Decimal

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream.streams import StreamError
from kernelstream.streams.batch import Text, plain
from kernelstream.streams.python_rows import as_batch

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

UTC = datetime.UTC
COLUMNS = {
    "load": [1.5, None, 3.0],
    "count": [1, 2, 3],
    "city": ["Ulm", None, "Bonn"],
    "on": [True, False, True],
    "when": [datetime.datetime(2024, 3, 1, 8), None, datetime.datetime(2024, 3, 2)],
}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
SAME = {
    "columns": COLUMNS,
    "rows": ROWS,
    "generator": None,  # made in the test: it is used up
    "pandas": pd.DataFrame(COLUMNS),
    "pandas objects": pd.DataFrame(COLUMNS, dtype=object),
    "pandas types of its own": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas of Arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
}
KINDS = {"load": "number", "count": "number", "city": "text", "on": "number", "when": "date"}


def values(batch, name):
    return [None if value is None or value != value else value
            for value in plain(batch.columns[name]).tolist()]  # fmt: skip


@pytest.mark.parametrize("form", SAME)
def test_whatever_holds_the_rows(form):
    rows = (row for row in ROWS) if form == "generator" else SAME[form]
    batch, kinds = as_batch(rows)
    assert kinds == KINDS
    assert batch.truths == {"on"}
    assert len(batch) == 3
    expected = {**COLUMNS, "on": [1.0, 0.0, 1.0]}
    assert {name: values(batch, name) for name in kinds} == expected
    assert batch.columns["load"].dtype == np.float64
    assert batch.columns["when"].dtype == np.dtype("M8[us]")


@pytest.mark.parametrize("form", ["dict", "pandas"])
def test_one_row(form):
    row = ROWS[0] if form == "dict" else pd.Series(ROWS[0])
    batch, kinds = as_batch(row)
    assert len(batch) == 1
    assert kinds == KINDS
    assert batch.columns["city"].values == ["Ulm"]


def test_columns_are_found_by_name():
    batch, kinds = as_batch(
        {"b": [1.0], "more": [object()], "a": ["x"]}, {"a": "text", "b": "number"}
    )
    assert list(batch.columns) == ["a", "b"] == list(kinds)


def test_a_key_that_some_rows_lack_is_a_missing_value():
    batch, _ = as_batch([{"a": 1.0}, {"b": "x"}, {"a": 2.0, "b": "y"}])
    assert values(batch, "a") == [1.0, None, 2.0]
    assert batch.columns["b"].codes.tolist() == [-1, 0, 1]


def test_values_become_what_the_column_held():
    # csv.DictReader gives texts; pandas writes 3.0 where a column of whole numbers has a gap.
    batch, _ = as_batch({"n": ["1.5", "", "7"]}, {"n": "number"})
    assert values(batch, "n") == [1.5, None, 7.0]
    batch, _ = as_batch({"code": [3.0, None, 4]}, {"code": "text"})
    assert batch.columns["code"].values == ["3", "4"]
    batch, _ = as_batch({"d": ["2024-03-01", "2024-03-01T08:00+02:00", ""]}, {"d": "date"})
    assert values(batch, "d")[1] == datetime.datetime(2024, 3, 1, 6)
    zoned = datetime.datetime(2024, 3, 1, 8, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    for rows in ({"d": [zoned]}, pd.DataFrame({"d": [zoned]}), pl.DataFrame({"d": [zoned]})):
        assert values(as_batch(rows)[0], "d") == [datetime.datetime(2024, 3, 1, 6)]
    assert values(as_batch({"n": [Decimal("2.5"), np.float32(1.0)]})[0], "n") == [2.5, 1.0]
    categories = pd.DataFrame({"c": pd.Categorical(["a", None, "a"])})
    assert isinstance(as_batch(categories)[0].columns["c"], Text)


def test_features_without_names():
    X = np.arange(6.0).reshape(3, 2)
    for matrix in (X, csr_array(X)):
        batch, kinds = as_batch((matrix, np.array([True, False, True])), unnamed=True)
        assert kinds == {"target": "number"}
        assert batch.truths == {"target"}
        assert batch.matrix.shape == (3, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"lode": 1.0, "city": "Ulm"}, "no column 'load'.* Did you mean 'lode'.* with None where"),
        ({"LOAD": 1.0, "city": "Ulm"}, "no column 'load'.* Did you mean 'LOAD'"),
        ([{"city": "Ulm"}], "no column 'load', which the model looks at. They have: city."),
        ({"load": ["x"], "city": ["Ulm"]}, "row 0: column 'load' holds 'x', and it holds numbers"),
        ({"load": [1.0], "city": "Ulm"}, "column 'city' is the single value 'Ulm'"),
        ({"load": [1.0, 2.0], "city": ["Ulm"]}, "'city' has 1 rows, 'load' 2: give one value"),
        ([1.0, 2.0], "row 0 is a float, not a dict: give a data frame, a dict"),
        (7, "not a int"),
        (np.ones((2, 2)), "columns have names, and an array has none: .*zip"),
        ({"load": np.ones((2, 1)), "city": ["a", "b"]}, r"'load' is an array of shape \(2, 1\)"),
        ({"load": Decimal("sNaN"), "city": "Ulm"}, r"'load' holds Decimal\('sNaN'\)"),
        (pd.DataFrame({"load": [1.0], 1: [1.0], "1": [2.0]}), "1 and .1. have the same name"),
        ([{"load": 1.0, "city": "a", 1: 1.0}, {"1": 2.0}], "1 and '1' have the same name as texts"),
        (pl.LazyFrame({"load": [1.0], "city": ["Ulm"]}), r"collect\(\) it first"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_a_cure(rows, message):
    with pytest.raises(StreamError, match=message):
        as_batch(rows, {"load": "number", "city": "text"})


@pytest.mark.parametrize("odd", [[1.0, "x"], [b"x"], [[1.0], [2.0]], [1j]])
def test_columns_of_no_kind_are_refused(odd):
    with pytest.raises(StreamError, match=r"column 'odd' holds .*convert it, or leave it out"):
        as_batch({"odd": odd})


def test_an_array_where_names_are_missing():
    with pytest.raises(StreamError, match="the features have no names: give an array"):
        as_batch({"a": [1.0]}, {}, unnamed=True)


def test_dates_with_dots_or_slashes():
    given = ["1.3.2024 08:00", "31.12.2023", "2024/3/1", "2024/03/01 08:00"]
    batch, _ = as_batch([{"t": text} for text in given], {"t": "date"})
    dates = ["2024-03-01T08:00", "2023-12-31", "2024-03-01", "2024-03-01T08:00"]
    expected = np.array(dates, "M8[us]")
    assert np.array_equal(batch.columns["t"], expected)


def test_masked_values_are_missing_and_arrays_without_dimension_are_values():
    batch, _ = as_batch({"a": np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])})
    assert values(batch, "a") == [1.0, None, 3.0]
    batch, kinds = as_batch({"a": np.array(1.5), "b": np.array("x")})
    assert values(batch, "a") == [1.5]
    assert kinds == {"a": "number", "b": "text"}
