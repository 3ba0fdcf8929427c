"""The table of a run and its picture."""

import builtins

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from kernelstream.evaluation import Trace  # noqa: E402


def filled(records=5, metrics=("accuracy", "kappa")):
    trace = Trace(metrics, every=10)
    for i in range(1, records + 1):
        numbers = {name: 1.0 - 0.5 / i for name in metrics}
        windowed = {f"{name}_window": 1.0 - 0.4 / i for name in metrics}
        about = {"samples": 10 * i, "seconds": 0.001 * i, "model_order": 3 * i, "bytes": 900 * i}
        trace.append({**about, **numbers, **windowed, "majority_window": 0.3})
    return trace


def test_columns_there_and_back():
    trace = filled()
    columns = trace.to_columns()
    assert list(columns)[:6] == [
        "samples", "seconds", "model_order", "bytes", "error_spent", "accuracy",
    ]  # fmt: skip
    again = Trace.from_columns(columns)
    assert again.every == 10
    assert again.metrics == ("accuracy", "kappa")
    assert trace.frame.equals(again.frame)
    assert trace.frame["samples"].tolist() == [10, 20, 30, 40, 50]
    del columns["bytes"]
    with pytest.raises(ValueError, match="missing: bytes"):
        Trace.from_columns(columns)


def test_never_more_than_the_bound():
    trace = Trace(["mae"], every=3)
    samples = 0
    for _ in range(5000):
        samples += trace.every - samples % trace.every
        trace.append({"samples": samples})
        assert len(trace) <= 2000
    kept = trace.to_columns()["samples"]
    assert (np.diff(kept)[:-1] == trace.every).all()
    assert kept[0] == trace.every


def test_a_record_at_the_end_gives_way_when_the_run_goes_on():
    trace = Trace(["mae"], every=10)
    for samples in (10, 20, 27, 30, 34):
        trace.append({"samples": samples})
    assert trace.to_columns()["samples"].tolist() == [10, 20, 30, 34]


def test_the_last_record_survives_thinning():
    trace = Trace(["mae"], every=1)
    for samples in range(1, 2002):
        trace.append({"samples": samples})
    assert trace.to_columns()["samples"][-2:].tolist() == [2000, 2001]
    assert trace.every == 2


def test_summary():
    numbers = filled().summary()
    assert numbers["samples"] == 50
    assert numbers["accuracy"] == 0.9
    assert numbers["microseconds_per_sample"] == pytest.approx(100.0)
    assert "accuracy_fading" not in numbers


@pytest.mark.parametrize("records", [1, 50])
@pytest.mark.parametrize("metrics", [("accuracy",), ("mae", "rmse")])
def test_plot(tmp_path, records, metrics):
    figure = filled(records, metrics).plot(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 5000
    quality, size, speed, held = figure.axes
    labels = [text.get_text() for text in quality.get_legend().get_texts()]
    assert labels[1] == ("majority, window" if metrics == ("accuracy",) else "mean, window")
    assert quality.get_ylabel() == metrics[0]
    assert size.lines[0].get_ydata()[-1] == 3 * records
    assert held.lines[0].get_ydata()[-1] == 900 * records / 1024
    assert speed.lines[0].get_ydata()[-1] == pytest.approx(100.0)


def test_an_empty_trace_says_so():
    trace = Trace(["mae"], every=10)
    for ask in (trace.plot, trace.summary):
        with pytest.raises(ValueError, match="The trace is empty"):
            ask()
    assert len(trace.frame) == 0


def test_missing_pandas_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match=r"pip install 'kernelstream\[cli\]'"):
        _ = filled().frame
