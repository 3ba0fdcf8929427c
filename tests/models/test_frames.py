"""Data frames: columns of numbers are taken as such, others are refused by name."""

import datetime
from decimal import Decimal

import numpy as np
import pytest

from kernelstream import Coverage, POLKClassifier, POLKRegressor
from kernelstream.evaluation import prequential
from kernelstream.features import OnlineKernelFeatures
from tests.models.tools import ESTIMATORS, assert_refused, stream

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 200
DAYS = pd.date_range("2020-01-01", periods=N)
SINCE = DAYS - DAYS[0]
WORDS = ["a", "b"] * (N // 2)
NUMERALS = ["1", "2"] * (N // 2)

#: Columns that NumPy makes numbers of, or errors that do not name the column.
UNFIT = {
    "pandas": {
        "dates": DAYS,
        "dates with a zone": DAYS.tz_localize("UTC"),
        "dates with gaps": DAYS.where(np.arange(N) % 2 > 0),
        "durations": SINCE,
        "periods": DAYS.to_period("D"),
        "categories": pd.Categorical(WORDS),
        "categories of numbers": pd.Categorical([10, 20] * (N // 2)),
        "words": WORDS,
        "numerals": NUMERALS,
        "strings": pd.array(NUMERALS, dtype="string"),
        "objects of words": pd.Series(WORDS, dtype=object),
        "objects of numerals": pd.Series([1, "2"] * (N // 2), dtype=object),
        "objects of dates": pd.Series([day.date() for day in DAYS], dtype=object),
        "intervals": pd.interval_range(0, N),
        "Arrow's dates": pd.Series(DAYS).astype("timestamp[us][pyarrow]"),
    },
    "polars": {
        "dates": pl.Series([day.date() for day in DAYS]),
        "moments": pl.Series(DAYS.to_numpy()),
        "durations": pl.Series(SINCE.to_numpy()),
        "times": pl.Series([datetime.time(hour % 24) for hour in range(N)]),
        "words": WORDS,
        "numerals": NUMERALS,
        "categories": pl.Series(WORDS, dtype=pl.Categorical),
        "enums": pl.Series(WORDS, dtype=pl.Enum(["a", "b"])),
        "lists": pl.Series([[1.0]] * N),
        "bytes": pl.Series([b"1"] * N),
    },
    "arrow": {
        "dates": pa.array(DAYS.to_numpy()),
        "numerals": pa.array(NUMERALS),
        "categories": pa.array(NUMERALS).dictionary_encode(),
    },
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
unfit = pytest.mark.parametrize(
    ("library", "kind"), [(library, kind) for library, kinds in UNFIT.items() for kind in kinds]
)


@unfit
def test_columns_of_no_numbers_are_refused(library, kind):
    X, y = stream(POLKRegressor, n=N, features=1)
    column, make = UNFIT[library][kind], FRAMES[library]
    model = POLKRegressor(gamma=1.0).partial_fit(make({"x": X[:, 0]}), y)
    message = "column 'when' holds .*, not numbers. Convert it .* or leave it out"
    for frame in (make({"when": column}), make({"x": X[:, 0], "when": column})):
        for call in ("fit", "partial_fit"):
            for learner in (POLKRegressor(gamma=1.0), model):
                assert_refused(learner, lambda m, c=call, f=frame: getattr(m, c)(f, y), message)
        assert_refused(model, lambda m, f=frame: m.predict(f), message)


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_every_estimator_refuses_dates(estimator_class):
    y = stream(estimator_class, n=N)[1]
    frame = pd.DataFrame({"when": DAYS})
    assert_refused(estimator_class(), lambda m: m.fit(frame, y), "'when' .* days since a date")


def test_everything_else_refuses_dates():
    X, y = stream(POLKRegressor, n=N, features=1)
    frame, model = pd.DataFrame({"when": DAYS}), POLKRegressor(gamma=1.0)
    function = POLKRegressor(gamma=1.0).fit(X, y).expansion_
    for call in (
        lambda: OnlineKernelFeatures(2).fit(frame),
        lambda: Coverage("hypersphere", 1.0).fit(frame),
        lambda: function(frame),
        lambda: prequential(model, (frame, y), lag=2),
    ):
        with pytest.raises(ValueError, match="column 'when' holds datetime64"):
            call()
    with pytest.raises(ValueError, match="datetime64"):
        function(DAYS.to_numpy()[:, None])
    with pytest.raises(ValueError, match="X holds text"):
        model.fit(X.astype(str), y)


FIT = {
    "pandas": {
        "whole": np.arange(N), "truth": np.arange(N) % 2 > 0, "single": np.float32(np.arange(N)),
        "nullable": pd.array(range(N), dtype="Int64"), "objects": pd.Series([1, 2.5] * (N // 2),
        dtype=object), "decimals": pd.Series([Decimal(1)] * N, dtype=object),
        "Arrow's": pd.Series(range(N), dtype="int64[pyarrow]"),
        "Arrow's real": pd.Series(range(N), dtype="double[pyarrow]"),
    },
    "polars": {
        "whole": np.arange(N), "truth": np.arange(N) % 2 > 0, "single": np.float32(np.arange(N)),
        "decimals": pl.Series([1.5] * N).cast(pl.Decimal(10, 2)),
        "short": pl.Series([5] * N, dtype=pl.UInt8),
    },
    "arrow": {"whole": np.arange(N), "truth": np.arange(N) % 2 > 0},
}  # fmt: skip


@pytest.mark.parametrize(
    ("library", "kind"), [(library, kind) for library, kinds in FIT.items() for kind in kinds]
)
def test_columns_of_numbers_are_taken(library, kind):
    X, y = stream(POLKRegressor, n=N, features=1)
    column = FIT[library][kind]
    model = POLKRegressor(gamma=1.0, random_state=0)
    array = np.column_stack([X[:, 0], np.asarray(column, dtype=float)])
    expected = model.partial_fit(array, y).dual_coef_
    frame = FRAMES[library]({"x": X[:, 0], "n": column})
    model = POLKRegressor(gamma=1.0, random_state=0).partial_fit(frame, y)
    assert np.array_equal(model.dual_coef_, expected)


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"y": DAYS}), pl.Series(DAYS.to_numpy()), pl.DataFrame({"y": DAYS.to_numpy()}),
        pl.Series(SINCE.to_numpy()), np.array(NUMERALS), pd.Series(NUMERALS),
    ],
    ids=["pandas", "polars", "polars frame", "durations", "numerals", "pandas numerals"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_targets_and_weights_of_no_numbers_are_refused(y):
    X, good = stream(POLKRegressor, n=N, features=1)
    assert_refused(POLKRegressor(gamma=1.0), lambda m: m.fit(X, y), "numbers")
    weight = y if len(y.shape) == 1 else y["y"]
    assert_refused(POLKRegressor(gamma=1.0), lambda m: m.fit(X, good, weight), "numbers")


def test_labels_that_numpy_would_cut():
    X, _ = stream(POLKClassifier, n=N, features=1)
    labels = np.array(["a", "a\0"] * (N // 2), dtype=object)
    assert_refused(POLKClassifier(), lambda m: m.fit(X, labels), "a NUL character at row 1")
