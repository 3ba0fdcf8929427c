"""Raw columns into features: the same bits in any chunking, and finite whatever comes."""

import itertools
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse, vstack

from kernelstream import storage
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text
from tests.naive.preparation import standardised

SCHEMA = {"a": "number", "b": "number", "colour": "text", "when": "date", "shop": "text"}
N = 120
START = np.datetime64("2024-02-28T22:30", "us")


def numbers(**columns):
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    return Batch(arrays, lines=np.arange(len(next(iter(arrays.values())))) + 1)


def mixed(n=N, seed=0):
    """All kinds of columns, each with missing values."""
    random = np.random.default_rng(seed)
    a = random.normal(5.0, 3.0, n)
    b = random.normal(-1e4, 1.0, n)
    when = START + random.integers(0, 10**13, n).astype("timedelta64[us]")
    a[random.random(n) < 0.2] = np.nan
    when[random.random(n) < 0.2] = np.datetime64("NaT")
    b[n // 2] = np.nan  # late: shared
    columns = {
        "a": a,
        "b": b,
        "colour": Text(random.integers(-1, 3, n).astype(np.int32), ["red", "grün", ""]),
        "when": when,
        "shop": Text(random.integers(0, 40, n).astype(np.int32), [f"s{k}" for k in range(40)]),
    }
    return Batch(columns, lines=np.arange(n) + 2)


def cut(batch, first, end):
    columns = {
        name: Text(column.codes[first:end], column.values)
        if isinstance(column, Text)
        else column[first:end]
        for name, column in batch.columns.items()
    }
    matrix = None if batch.matrix is None else batch.matrix[first:end]
    return Batch(columns, matrix, batch.lines[first:end])


def in_pieces(batch, cuts):
    edges = [0, *sorted(set(cuts) - {0, len(batch)}), len(batch)]
    return [cut(batch, first, end) for first, end in itertools.pairwise(edges)]


def without_texts(batch):
    columns = {k: c for k, c in batch.columns.items() if not isinstance(c, Text)}
    return Batch(columns, batch.matrix, batch.lines)


def same(x, y):
    if issparse(x):
        parts = ("data", "indices", "indptr")
        return x.shape == y.shape and all(
            np.array_equal(getattr(x, part), getattr(y, part)) for part in parts
        )
    return x.tobytes() == y.tobytes() and x.shape == y.shape


def reload(preparation):
    header, arrays = preparation.to_document()
    document = storage.loads(storage.dumps("x", header, arrays))
    return Preparation.from_document(document.header, document.arrays)


MATRICES = {
    "none": lambda random: None,
    "dense": lambda random: np.where(random.random((N, 3)) < 0.1, np.nan, random.random((N, 3))),
    "sparse": lambda random: csr_array(random.random((N, 3)) * (random.random((N, 3)) < 0.4)),
}


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("units", ["moving", "frozen"])
@settings(max_examples=10)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=8), scale=st.booleans(), stop=st.booleans())
def test_any_chunking_gives_the_same_bits(units, texts, matrix, cuts, scale, stop):
    batch = mixed() if texts else without_texts(mixed())
    batch = Batch(batch.columns, MATRICES[matrix](np.random.default_rng(1)), batch.lines)
    schema = {name: SCHEMA[name] for name in batch.columns}
    width = None if matrix == "none" else 3

    def fresh():
        preparation = Preparation(
            schema, matrix_width=width, units=units, warm_up=50, buckets=16, standardise=scale
        )
        return preparation.start(cut(batch, 0, 20))

    whole = fresh()
    expected = whole.transform(batch, learn=True)
    assert issparse(expected) == (texts or matrix == "sparse")
    assert expected.shape == (N, whole.width) == (N, len(whole.feature_names_out))
    assert np.isfinite(expected.data if issparse(expected) else expected).all()
    pieces = fresh()
    got = []
    for piece in in_pieces(batch, cuts):
        if stop:
            pieces = reload(pieces)
        got.append(pieces.transform(piece, learn=True))
    assert same(vstack(got, format="csr") if issparse(expected) else np.concatenate(got), expected)
    again = [reload(pieces).transform(piece) for piece in in_pieces(batch, cuts[:2])]
    joined = vstack(again, format="csr") if issparse(expected) else np.concatenate(again)
    assert same(joined, whole.transform(batch))


values = st.one_of(
    st.none(),
    st.floats(-1e3, 1e3).filter(lambda v: v == 0.0 or abs(v) > 1e-100),  # squares do not underflow
    st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 1e9, 1e9 + 1.0, -1e30, 1e-5]),
)


@given(column=st.lists(values, min_size=1, max_size=40), warm_up=st.integers(1, 50))
def test_as_a_student_would_write_it(column, warm_up):
    # Welford's loop is as exact as the data: an ulp of the largest value in units of the deviation.
    present = [v for v in column if v is not None]
    batch = numbers(x=[np.nan if v is None else v for v in column])
    frozen = Preparation({"x": "number"}, units="frozen", warm_up=warm_up)
    got = frozen.transform(batch, learn=True)[:, 0]
    expected = np.array(standardised(column, warm_up))
    head = [v for v in column[:warm_up] if v is not None]
    if len(set(head)) > 1:
        gap = np.diff(np.unique(head)).min()
        slack = 1e-13 * max(abs(v) for v in present) / gap * (1.0 + np.abs(expected))
    else:
        slack = 0.0
    assert (np.abs(got - expected) <= 1e-9 * (1.0 + np.abs(expected)) + slack).all()


def test_extreme_columns_stay_finite():
    n = 200
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    late = np.zeros(n)
    late[150:] = -7.0
    jump = sign.copy()
    jump[150:] = 1e150
    batch = numbers(
        huge=1e150 * sign, tiny=1e-160 * sign, denormal=5e-324 * sign, constant=np.full(n, 0.1),
        close=1e9 + 1e-6 * sign, late=late, jump=jump, never=np.full(n, np.nan),
        only=np.where(np.arange(n) > 150, 3.0, np.nan),
    )  # fmt: skip
    schema = dict.fromkeys(batch.columns, "number")
    X = Preparation(schema, units="frozen", warm_up=100).transform(batch, learn=True)
    assert np.isfinite(X).all()
    column = dict(zip(schema, X.T, strict=False))
    assert np.abs(column["huge"]).max() < 10.0
    assert np.abs(column["huge"][100:]).min() > 0.9
    assert not column["constant"].any()
    assert not column["never"].any()
    assert set(column["late"]) == {0.0, -1.0}  # no unit to measure in
    assert set(column["jump"][150:]) == {1e6}
    assert set(column["only"]) == {0.0, 1.0}
    raw = Preparation(schema, warm_up=100, standardise=False).transform(batch, learn=True)
    assert np.array_equal(raw[:, 0], batch.columns["huge"])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e151])
def test_infinity_is_refused_by_line_and_column_and_changes_nothing(bad):
    preparation = Preparation({"x": "number", "y": "number"}, warm_up=100)
    preparation.transform(numbers(x=[1.0, 2.0], y=[0.0, 1.0]), learn=True)
    before = storage.dumps("x", *preparation.to_document())
    y = np.arange(50.0)
    y[30] = bad
    with pytest.raises(ValueError, match=r"line 31, column 'y'.*leave the row out"):
        preparation.transform(numbers(x=np.arange(50.0), y=y), learn=True)
    assert storage.dumps("x", *preparation.to_document()) == before
    with pytest.raises(ValueError, match="line 31"):
        Preparation({"x": "number", "y": "number"}).transform(numbers(x=y, y=y), learn=True)
    matrix = csr_array(np.diag([1.0, np.nan]))
    with pytest.raises(ValueError, match="line 6, feature 2 is NaN"):
        Preparation({}, matrix_width=2).start(Batch({}, matrix, np.array([5, 6])))
    dense = np.diag([1.0, np.inf])
    with pytest.raises(ValueError, match=r"line 6, matrix\[1\] is infinite"):
        Preparation({}, matrix_width=2).start(Batch({}, dense, np.array([5, 6])))


def test_missing_numbers_have_indicators_and_the_width_stays():
    preparation = Preparation({"x": "number", "y": "number"})
    first = preparation.transform(numbers(x=[1.0, np.nan], y=[1.0, 2.0]), learn=True)
    assert preparation.feature_names_out == ["x", "y", "x is missing", "missing elsewhere"]
    assert first[:, 2:].tolist() == [[0.0, 0.0], [1.0, 0.0]]
    late = preparation.transform(numbers(x=[1.0, np.nan], y=[np.nan, np.nan]), learn=True)
    assert late[:, 2:].tolist() == [[0.0, 1.0], [1.0, 1.0]]
    assert not late[:, 1].any()
    raw = Preparation({"x": "number"}, standardise=False)
    assert raw.transform(numbers(x=[4.0, np.nan, 8.0, np.nan]), learn=True)[:, 0].tolist() == [
        4.0, 4.0, 8.0, 6.0,
    ]  # fmt: skip


def test_hashed_texts_are_hashed_once_each_and_unseen_ones_too():
    """As files of version 0.1 have them."""

    def hashed(buckets):
        preparation = Preparation({"c": "text", "d": "text"}, buckets=buckets)
        preparation.start(row("a", "b"))
        header, arrays = preparation.to_document()
        return Preparation.from_document({**header, "texts": None}, arrays)

    def row(c, d):
        codes = [np.array([-1 if v is None else 0], np.int32) for v in (c, d)]
        columns = {"c": Text(codes[0], [c or "x"]), "d": Text(codes[1], [d or "x"])}
        return Batch(columns, lines=np.arange(1))

    preparation = hashed(1000)
    first = preparation.transform(row("red", "red"), learn=True)
    assert first.shape == (1, 1000)
    assert first.sum() == 2.0
    assert first.nnz == 2  # the column is part of the token
    unseen = preparation.transform(row("blue", "red"))
    assert (unseen.toarray() * first.toarray()).sum() == 1.0
    missing = preparation.transform(row(None, "red"))
    assert missing.nnz == 2
    assert not same(missing, unseen)
    assert preparation.transform(row("\ud800", "red")).nnz == 2  # half a character
    assert hashed(1).transform(row("a", "b"), learn=True).data.tolist() == [2.0]
    many = Text(np.arange(70_000, dtype=np.int32), [str(k) for k in range(70_000)])
    preparation.transform(Batch({"c": many, "d": many}, lines=np.arange(70_000)))
    assert len(preparation._categories._known) <= 2**16


def test_dates_lie_on_circles():
    when = np.array(["2024-01-01T06:00", "NaT", "1969-12-29T18:00", "0001-12-31"], "datetime64[us]")
    preparation = Preparation({"when": "date"}, units="frozen")
    X = preparation.transform(Batch({"when": when}, lines=np.arange(4)), learn=True)
    assert preparation.feature_names_out == [
        "missing elsewhere", "when sin hour", "when cos hour", "when sin weekday",
        "when cos weekday", "when sin day of year", "when cos day of year",
    ]  # fmt: skip
    assert X[1].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(X[0, 1:3], [1.0, 0.0], atol=1e-15)  # a quarter of the day
    np.testing.assert_allclose(X[2, 1:3], [-1.0, 0.0], atol=1e-15)
    assert X[0, 3:].tolist() == [0.0, 1.0, 0.0, 1.0]  # a Monday, the first day of the year
    assert X[2, 3:5].tolist() == [0.0, 1.0]  # a Monday before 1970
    np.testing.assert_allclose(X[3, 5:], [np.sin(2 * np.pi * 364 / 366), np.cos(4 * np.pi / 366)])
    spread = [START + np.timedelta64(k, "h") for k in range(9000)]
    Y = preparation.transform(Batch({"when": np.array(spread)}, lines=np.arange(9000)))
    for first in (1, 3, 5):
        np.testing.assert_allclose((Y[:, first : first + 2] ** 2).sum(axis=1), 1.0)


def test_the_matrix_is_standardised_if_dense_and_left_if_sparse():
    random = np.random.default_rng(0)
    dense = random.normal(7.0, 2.0, (60, 4))
    lines = np.arange(60)
    names = {f"x{j}": dense[:, j] for j in range(4)}
    by_name = Preparation(dict.fromkeys(names, "number")).transform(
        Batch(names, lines=lines), learn=True
    )
    preparation = Preparation({}, matrix_width=4)
    X = preparation.transform(Batch({}, dense, lines), learn=True)
    assert np.array_equal(X[:, 1:], by_name[:, :4])
    assert preparation.suggested_gamma == 0.25
    sparse = csr_array(dense * (random.random((60, 4)) < 0.5))
    preparation = Preparation({}, matrix_width=4)
    S = preparation.transform(Batch({}, sparse, lines), learn=True)
    assert np.array_equal(S.toarray(), sparse.toarray())
    assert preparation.suggested_gamma == pytest.approx(60.0 / (sparse.data**2).sum())
    with pytest.raises(ValueError, match="were sparse and are dense"):
        preparation.transform(Batch({}, dense, lines))
    with pytest.raises(ValueError, match=r"60 x 3, expected 60 rows of 4"):
        preparation.transform(Batch({}, sparse[:, :3], lines))
    with pytest.raises(ValueError, match="lacks the 4 features"):
        preparation.transform(Batch({}, None, lines))
    with pytest.raises(ValueError, match="give matrix_width"):
        Preparation({"x": "number"}).start(Batch({"x": dense[:, 0]}, dense, lines))
    empty = Preparation({}, matrix_width=2).start(Batch({}, csr_array((3, 2)), np.arange(3)))
    assert empty.suggested_gamma == 1.0


def test_gamma_counts_inputs_not_buckets():
    assert Preparation(SCHEMA, ignore=["a"]).start(mixed()).suggested_gamma == 0.25


def test_what_does_not_match_is_named():
    preparation = Preparation(SCHEMA, ignore=("b",))
    batch = mixed()
    with pytest.raises(ValueError, match="has not learned from any rows"):
        preparation.transform(batch)
    with pytest.raises(ValueError, match="has seen no rows"):
        _ = preparation.feature_names_out
    with pytest.raises(ValueError, match="no rows"):
        preparation.transform(cut(batch, 0, 0), learn=True)
    X = preparation.transform(batch, learn=True)
    with pytest.raises(ValueError, match="has been decided"):
        preparation.start(batch)
    columns = dict(batch.columns)
    del columns["b"]  # ignored: need not be there
    more = {**columns, "extra": np.zeros(N)}
    assert preparation.transform(Batch(more, lines=batch.lines)).shape == X.shape
    with pytest.raises(ValueError, match=r"no column 'when'.*as they were"):
        preparation.transform(
            Batch({k: c for k, c in columns.items() if k != "when"}, lines=batch.lines)
        )
    with pytest.raises(ValueError, match=r"'colour' holds numbers here, but texts.*schema"):
        preparation.transform(Batch({**columns, "colour": np.zeros(N)}, lines=batch.lines))
    with pytest.raises(ValueError, match="'a' has 3 rows, its batch 120"):
        preparation.transform(Batch({**columns, "a": np.zeros(3)}, lines=batch.lines))
    wild = Text(np.full(N, 5, np.int32), ["a"])
    with pytest.raises(ValueError, match="codes without a text"):
        preparation.transform(Batch({**columns, "shop": wild}, lines=batch.lines))
    with pytest.raises(ValueError, match="must hold numbers, dates or Text"):
        preparation.transform(Batch({**columns, "a": np.full(N, "x")}, lines=batch.lines))
    assert preparation.transform(cut(batch, 0, 0)).shape == (0, X.shape[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": {"x": "colour"}}, "not one of"),
        ({"schema": {"x": "number"}, "ignore": "x"}, "list of columns"),
        ({"schema": {"x": "number"}, "ignore": ["x"]}, "there is no column to learn from"),
        ({"schema": {"x": "number"}, "units": "running"}, "units must be one of"),
        ({"schema": {"x": "number"}, "warm_up": 0}, "warm_up must be a whole number"),
        ({"schema": {"x": "number"}, "buckets": 2.5}, "buckets must be a whole number"),
        ({"schema": {}, "matrix_width": 2**40}, "matrix_width must be a whole number"),
    ],
)
def test_unusable_arguments(arguments, message):
    schema = arguments.pop("schema")
    with pytest.raises(ValueError, match=message):
        Preparation(schema, **arguments)


def test_input_is_never_modified():
    batch = Batch(mixed().columns, MATRICES["sparse"](np.random.default_rng(0)), mixed().lines)
    unsorted = csr_array((np.ones(N), np.zeros(N, int), [0, 2, *range(3, N + 1), N]), shape=(N, 3))
    for one in (batch, Batch(batch.columns, unsorted, batch.lines)):
        arrays = [c.codes if isinstance(c, Text) else c for c in one.columns.values()]
        arrays += [one.matrix.data, one.matrix.indices, one.matrix.indptr]
        before = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        preparation = Preparation(SCHEMA, matrix_width=3, warm_up=20)
        X = preparation.transform(one, learn=True)
        preparation.transform(one)
        X.data[:] = 99.0  # and the result is the caller's own
        assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, before, strict=True))
        for array in arrays:
            array.flags.writeable = True


CHANGES = [
    ("schema", {"a": "number", "b": "code"}), ("schema", []), ("schema", None), ("ignore", "ab"),
    ("ignore", [1]), ("matrix_width", 10**12), ("matrix_width", -1), ("matrix_width", "x"),
    ("warm_up", 10**12), ("warm_up", True), ("buckets", 10**12), ("buckets", 0), ("buckets", None),
    ("indicators", ["nobody"]), ("indicators", None), ("indicators", ["a", "a"]),
    ("sparse", 1), ("sparse", True), ("square_norm", -1.0), ("square_norm", "1"), ("more", 1),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), CHANGES)
def test_malicious_headers(field, value):
    header, arrays = Preparation(SCHEMA).start(mixed()).to_document()
    header = {**json.loads(json.dumps(header)), field: value}
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"."):
        Preparation.from_document(header, arrays)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.array(10**9)), ("rows", np.array(-1)), ("rows", np.array([1])),
        ("rows", np.array(1001)), ("count", np.zeros(3)), ("count", np.full(2, 200.0)),
        ("count", np.full(2, 0.5)), ("mean", np.full(2, np.nan)), ("mean", np.full(2, 1e200)),
        ("squares", np.full(2, -1.0)), ("squares", np.full(2, np.inf)), ("squares", None),
        ("mean", np.zeros(2, np.int64)),
    ],
)  # fmt: skip
def test_malicious_arrays(name, value):
    preparation = Preparation(SCHEMA, units="frozen")
    preparation.transform(mixed(), learn=True)
    header, arrays = preparation.to_document()
    arrays = {**arrays, name: value}
    if value is None:
        del arrays[name]
    with pytest.raises(ValueError, match=r"running statistics|warm-up"):
        Preparation.from_document(header, arrays)


def test_missing_fields_are_refused():
    header, arrays = Preparation(SCHEMA).start(mixed()).to_document()
    for field in ("schema", "ignore", "indicators", "sparse", "square_norm"):
        with pytest.raises(ValueError, match="not a valid preparation"):
            Preparation.from_document({k: v for k, v in header.items() if k != field}, arrays)


def test_many_long_texts_fit_into_a_file(tmp_path):
    n = 30_000
    names = [f"{place:06d} " + "ä" * 180 for place in range(n // 3)]
    batch = Batch({"t": Text(np.tile(np.arange(n // 3, dtype=np.int32), 3), names)},
                  lines=np.arange(n))  # fmt: skip
    preparation = Preparation({"t": "text"}, buckets=8192)
    preparation.transform(batch, learn=True)
    header, arrays = preparation.to_document()
    storage.write(tmp_path / "p", "Preparation", header, arrays)  # its header has a limit
    document = storage.read(tmp_path / "p")
    again = Preparation.from_document(document.header, document.arrays)
    assert again.feature_names_out == preparation.feature_names_out
    assert again.same_as(preparation)
    damaged = {**document.arrays, "texts": document.arrays["texts"][:-1]}
    with pytest.raises(ValueError, match=r".*"):
        Preparation.from_document(document.header, damaged)
