"""Runs in Python: the command line's models, step by step, stopped, killed and resumed."""

import re
import threading

import numpy as np
import pandas as pd
import pytest

from kernelstream import COLKRegressor, POLKClassifier, Run, load, registry, storage
from kernelstream.cli.methods import make_estimator
from kernelstream.runs import FeatureRun, RunError, _methods
from kernelstream.streams import (
    StreamError,
    make_multidist,
    make_turning_ellipsoid,
    open_stream,
)
from tests.cli.tools import Tool, write_rows

METHODS = registry.models()
CLASSES_ONLY = [name for name, method in METHODS.items() if method.regressor is None]
ABLE = ", ".join(name for name in METHODS if name not in CLASSES_ONLY)
TARGETS = {False: "label", True: "height"}
PARAMETERS = {"eta0": 0.5, "compression_error": 0.1, "max_points": 40}
OPTIONS = ("--eta0", "0.5", "--compression-error", "0.1", "--max-points", "40")
numbers_or_not = pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])


@pytest.fixture
def tool(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return Tool(monkeypatch, capsys)


def begun(path, numbers=False, **settings):
    settings = {"model": "polk", "parameters": PARAMETERS, "batch_rows": 500, **settings}
    return Run(path, TARGETS[numbers], **settings)


def spoil(path, lines):
    text = path.read_text().splitlines()
    for line in lines:
        text[line - 1] = "1,oops,Ulm,1,1"
    path.write_text("\n".join(text) + "\n")


@pytest.mark.parametrize(
    ("method", "numbers"),
    [
        (name, numbers)
        for name, method in METHODS.items()
        for numbers, kind in enumerate((method.classifier, method.regressor))
        if kind is not None
    ],
)
def test_it_is_the_model_of_the_command_line(tool, tmp_path, numbers, method):
    path = write_rows(tmp_path / "rows.csv", 2500, numbers=numbers)
    tool("learn", path, "--target", TARGETS[numbers], "--model", method, "--out", "a.ks")
    run = Run(path, TARGETS[numbers], method)
    result = run.run()
    assert result.model.fingerprint() == load("a.ks").fingerprint()
    assert (run.over, result.samples, result.stopped_by) == (True, 2500, None)
    assert len(result.trace) == 3
    assert set(result.baselines) == {
        "no_change", "no_change_window", "majority", "majority_window"
    }  # fmt: skip
    assert set(result.metrics) > ({"mae", "mae_window"} if numbers else {"kappa"})


def test_the_command_line_takes_the_same_where_nothing_is_given():
    for name, method in METHODS.items():
        kinds = {"classification": method.classifier, "regression": method.regressor}
        for task, kind in kinds.items():
            if kind is not None:
                made = [make(name, task, {}) for make in (make_estimator, _methods.make_estimator)]
                assert {type(estimator) for estimator in made} == {kind}
                assert made[0].get_params() == made[1].get_params()


@pytest.mark.parametrize("method", CLASSES_ONLY)
@pytest.mark.parametrize("given", [{}, {"task": "regression"}], ids=["guessed", "given"])
def test_a_method_without_a_regressor_refuses_a_target_of_numbers(tool, tmp_path, method, given):
    path = write_rows(tmp_path / "rows.csv", 60, numbers=True)
    with pytest.raises(RunError) as refused:
        Run(path, "height", method, **given)
    assert str(refused.value) == (
        f"model={method!r} does not learn regression; take another model ({ABLE}), or "
        "task='classification' if the target's values are classes"
    )
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    told = tool("learn", path, "--target", "height", "--model", method, *words, code=2).err
    assert told == (
        f"kernelstream: --model {method} does not learn regression; take another --model "
        f"({ABLE}), or --task classification if the target's values are classes\n"
    )


@numbers_or_not
def test_steps_show_where_it_stands(tmp_path, numbers):
    run = begun(write_rows(tmp_path / "rows.csv", 2600, numbers=numbers), numbers, batch_rows=2000)
    seen = [(run.samples, run.over) for _ in run]
    assert seen == [(1024, False), (2000, False), (2600, False)]
    assert run.over
    assert list(run) == []
    whole = begun(tmp_path / "rows.csv", numbers).run()
    assert whole.model.fingerprint() == run.model.fingerprint()


@numbers_or_not
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_killed_in_the_middle_it_goes_on(tmp_path, numbers, steps):
    path = write_rows(tmp_path / "rows.csv", 3000, numbers=numbers)
    spoil(path, [700, 1900, 2800])
    aside = {"on_bad": "quarantine", "quarantine": tmp_path / "aside.csv"}
    whole = begun(path, numbers, **aside).run()
    expected = whole.model.fingerprint(), (tmp_path / "aside.csv").read_text()
    assert expected[1].count("oops") == 3

    places = {"checkpoint": tmp_path / "place", "checkpoint_seconds": 0.0, **aside}
    killed = begun(path, numbers, **places)
    for _ in range(steps):
        next(killed)
    del killed  # no goodbye
    again = begun(path, numbers, **places, resume=True)
    assert again.samples == 500 * steps - (steps >= 2) - (steps >= 4)
    result = again.run()
    assert (result.model.fingerprint(), (tmp_path / "aside.csv").read_text()) == expected
    for name in ("mae", "mae_window") if numbers else ("kappa", "accuracy_window"):
        assert result.metrics[name] == whole.metrics[name]
    told = [note for note in result.notes if "refused" in note]
    assert told == [note for note in whole.notes if "refused" in note]
    assert "3 rows refused (quarantine), the first on line 700" in told[0]


@numbers_or_not
def test_stopped_after_the_batch_and_resumed(tmp_path, numbers):
    path = write_rows(tmp_path / "rows.csv", 6000, numbers=numbers)
    expected = begun(path, numbers).run().model.fingerprint()
    place = {"checkpoint": tmp_path / "place", "batch_rows": 2500}
    run = begun(path, numbers, **place)
    next(run)
    assert run.samples == 1024
    run.stop()
    assert [run.samples for _ in run] == [2048, 2500]  # the batch is finished
    result = run.result()
    assert (result.samples, result.stopped_by) == (2500, "stop()")
    assert result.model.fingerprint() != expected
    with pytest.raises(RunError, match="holds a checkpoint already; go on with resume=True"):
        begun(path, numbers, **place)
    again = begun(path, numbers, **place, resume=True)
    assert again.run().model.fingerprint() == expected


def test_stopped_from_another_thread(tmp_path):
    run = begun(write_rows(tmp_path / "rows.csv", 6000))
    thread = threading.Thread(target=run.stop, args=("the server",))
    next(run)
    thread.start()
    thread.join()
    assert list(run) == []
    assert (run.samples, run.stopped_by) == (500, "the server")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("position",), -0.0),
        (("position",), 2**62),
        (("position", "bad"), [[1]]),
        (("position", "bad", "first"), 10**30),
        ("score:baselines/majority_sums", -1.0),
        ("score:baselines/numbers", -1.0),
    ],
)
def test_a_checkpoint_that_cannot_be_is_refused(tmp_path, path, value):
    """The checksum is right, but somebody else wrote it."""
    X, _ = make_multidist(300, random_state=0)
    rows = tmp_path / "rows.csv"
    rows.write_text("\n".join(["a,target", *(f"{a},{b}" for a, b in X.tolist())]))
    settings = {"model": "polk", "checkpoint": tmp_path / "place", "resume": True}
    Run(rows, **settings).run()
    place = tmp_path / "place" / "checkpoint.ks"
    kind, header, arrays = storage.read(place)
    if isinstance(path, str):
        assert path in arrays
        arrays[path][...] = value
    else:
        holder = header
        for name in path[:-1]:
            holder = holder[name]
        assert path[-1] in holder
        holder[path[-1]] = value
    storage.write(place, kind, header, arrays)
    with pytest.raises((RunError, StreamError), match="start again"):
        Run(rows, **settings)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    path = write_rows(tmp_path / "rows.csv", 600)
    place = {"checkpoint": tmp_path / "place"}
    begun(path, **place).run()
    changed = {**PARAMETERS, "eta0": 0.25}
    with pytest.raises(RunError, match=r"window \(1000 then, 7 now\), eta0 \(0.5 then, 0.25 now\)"):
        begun(path, **place, parameters=changed, window=7, resume=True)
    (tmp_path / "place" / "checkpoint.ks").write_bytes(b"nonsense")
    with pytest.raises(RunError, match="delete it"):
        begun(path, **place, resume=True)


#: The same settings, typed and in Python.
SPELLINGS = [
    (OPTIONS, PARAMETERS),
    (("--eta0", ".50", "--average", "yes"), {"eta0": 0.5, "average": True}),
    (("--max-points", "none", "--max-bytes", "64K"), {"max_points": None, "max_bytes": 65536}),
    (("--loss", "log_loss", "--alpha", "1e-3"), {"loss": "log_loss", "alpha": np.float64(0.001)}),
]


@pytest.mark.parametrize(
    ("typed", "parameters"), SPELLINGS, ids=["numbers", "flag", "none", "word"]
)
@pytest.mark.parametrize("first", ["tool", "Python"])
def test_the_command_line_and_python_share_checkpoints(tool, tmp_path, typed, parameters, first):
    path = write_rows(tmp_path / "rows.csv", 1500)
    whole = path.read_bytes()
    words = ("learn", path, "--target", "label", "--model", "polk", *typed, "--batch-rows", 500)
    settings = {"model": "polk", "parameters": parameters, "batch_rows": 500}
    expected = Run(path, "label", **settings).run().model.fingerprint()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:801]))
    place = {"checkpoint": "place", "resume": True}
    if first == "tool":
        tool(*words, "--checkpoint", "place")
        path.write_bytes(whole)
        run = Run(path, "label", **settings, **place)
        assert run.samples == 800
        result = run.run().model
    else:
        Run(path, "label", **settings, **place).run()
        path.write_bytes(whole)
        tool(*words, "--checkpoint", "place", "--resume", "--out", "m.ks")
        result = load("m.ks")
    assert result.fingerprint() == expected


def test_none_is_not_the_same_as_not_given(tool, tmp_path):
    path = write_rows(tmp_path / "rows.csv", 400)
    tool("learn", path, "--target", "label", "--checkpoint", "place")
    with pytest.raises(RunError, match=r"max_points \(None then, none now\)"):
        Run(path, "label", parameters={"max_points": None}, checkpoint="place", resume=True)


def test_bad_rows(tmp_path):
    path = write_rows(tmp_path / "rows.csv", 1500)
    spoil(path, [800])
    run = begun(path, checkpoint=tmp_path / "place", checkpoint_seconds=0.0)
    next(run)
    with pytest.raises(StreamError, match="line 800"):
        next(run)
    assert run.over
    assert list(run) == []  # an error ends it; the checkpoint stays
    skipping = begun(path, on_bad="skip").run()
    assert skipping.samples == 1499
    assert any("1 row refused (skip), the first on line 800" in note for note in skipping.notes)


def test_an_estimator_arrays_and_frames(tmp_path):
    X, y = make_multidist(1500, random_state=0)
    estimator = POLKClassifier(gamma=0.5, random_state=0)
    first = Run((X, y), model=estimator, standardise=False).run()
    assert not hasattr(estimator, "classes_")  # a copy learned
    by_hand = POLKClassifier(gamma=0.5, random_state=0).partial_fit(X, y)
    points = first.model.model.dictionary_  # the first feature: whether something is missing
    assert np.array_equal(points[:, 1:], by_hand.dictionary_)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y})
    framed = Run(table, "label", estimator, standardise=False).run()
    assert np.array_equal(framed.model.model.dictionary_[:, :2], by_hand.dictionary_)
    with pytest.raises(ValueError, match="give them to the estimator"):
        Run((X, y), model=estimator, parameters={"eta0": 1.0})


def test_a_report_and_notes_in_words_of_python(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.normal(size=3000), "y": random.normal(size=3000)})
    table["x"] += np.where(np.arange(3000) > 1500, 1e4, 0.0)
    table.to_csv(tmp_path / "rows.csv", index=False)
    frozen = {"units": "frozen", "report": tmp_path / "page.html"}
    run = Run(tmp_path / "rows.csv", "y", "colk", **frozen)
    notes = run.run().notes
    assert any("try another gamma, eta0 or model" in note for note in notes)
    assert any("leave it out (drop=['x']) or let more rows" in note for note in notes)
    assert not any("--" in note for note in notes)
    page = (tmp_path / "page.html").read_text()
    assert "the same without risk (polk)" in page
    assert "y from rows.csv" in page
    alike = Run(tmp_path / "rows.csv", "y", COLKRegressor(), report=tmp_path / "own.html").run()
    assert any("try another gamma, eta0 or model" in note for note in alike.notes)
    assert "the same without risk (polk)" in (tmp_path / "own.html").read_text()


def test_an_estimator_of_no_method_is_advised_too(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "method_of", lambda kind: None)
    random = np.random.default_rng(0)
    run = Run((random.normal(size=(1500, 2)), random.normal(size=1500)), model=COLKRegressor())
    assert any("try another model" in note for note in run.run().notes)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"model": "svm"}, re.escape(f"one of {', '.join(METHODS)}: 'svm'")),
        ({"target": "nothing"}, "no column 'nothing'"),
        ({"schema": {"nothing": "text"}}, "no column 'nothing'"),
        ({"delimter": ";"}, "Run has no parameter 'delimter'"),
        ({"metrics": ["beauty"]}, "beauty"),
        ({"target": "empty"}, "say which task it is; use task or another target"),
        ({"target": "empty", "task": "regression"}, "no row of .* has a value of 'empty'"),
    ],
)
def test_mistakes(tmp_path, settings, problem):
    table = pd.read_csv(write_rows(tmp_path / "rows.csv", 60))
    table.assign(empty=np.nan).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises((ValueError, TypeError), match=problem):
        Run(tmp_path / "rows.csv", **{"target": "label", **settings}).run()


@numbers_or_not
@pytest.mark.parametrize("method", ["auto", "polk"])
def test_the_saved_model_is_measured_on_rows_it_has_not_seen(tmp_path, numbers, method):
    path = write_rows(tmp_path / "rows.csv", 1700, numbers=numbers)
    settings = {"window": 300, "warm_up": 100, "batch_rows": 450}
    run = Run(path, TARGETS[numbers], method, **settings)
    assert run.frozen is None
    result = run.run()
    assert result.frozen["rows"] == 1700 - 1200  # a window at least, two at most
    table = pd.read_csv(path)
    table[:1200].to_csv(tmp_path / "first.csv", index=False)
    saved = Run(tmp_path / "first.csv", TARGETS[numbers], method, **settings).run().model
    rest = next(open_stream(path, target=TARGETS[numbers], batch_rows=2000))
    true, predicted = saved.targets_of(rest)[0][1200:], saved.predict(rest)[1200:]
    if numbers and method == "auto":
        low, high = saved.predict_interval(rest)[1200:].T
        inside = (low <= true) & (true <= high)
        assert result.frozen["interval_coverage"] == pytest.approx(inside.mean())
    if numbers:
        assert result.frozen["mae"] == pytest.approx(np.abs(predicted - true).mean())
        assert ("interval_coverage" in result.frozen) == (method == "auto")
    else:
        assert result.frozen["accuracy"] == pytest.approx((predicted == true).mean())


@pytest.mark.parametrize(("steps", "known"), [(1, True), (3, False)])
def test_the_saved_model_after_going_on(tmp_path, steps, known):
    """What a resumed run has not seen it does not measure; what it measures is the same."""
    path = write_rows(tmp_path / "rows.csv", 1700)
    settings = {"window": 300, "batch_rows": 450}
    expected = begun(path, **settings).run().frozen
    place = {"checkpoint": tmp_path / "place", "checkpoint_seconds": 0.0, **settings}
    killed = begun(path, **place)
    for _ in range(steps):
        next(killed)
    result = begun(path, **place, resume=True).run()
    assert result.frozen == (expected if known else None)


def test_a_saved_model_that_no_change_would_beat(tmp_path):
    random, t = np.random.default_rng(0), np.arange(1500)
    X = np.column_stack([3.0 * np.sin(t / 40.0), random.normal(size=1500)])
    y = X[:, 0] + t // 250 % 2 + 0.1 * X[:, 1]
    result = Run((X, y), model="krlst", window=250).run()
    assert result.baselines["no_change_window"] < result.frozen["mae"]
    assert result.frozen["mae"] < result.baselines["majority_window"]
    assert any("once it no longer learns, no change would have done" in n for n in result.notes)
    assert result.frozen["interval_coverage"] < 0.8
    assert any(
        "intervals of 90% of the saved model contained the target" in n for n in result.notes
    )


def test_a_saved_model_by_a_metric_that_baselines_do_not_have():
    X = np.random.default_rng(0).normal(size=(600, 2))
    run = Run((X, (X[:, 0] > 0.0).astype(int)), model="polk", window=200, metrics=["log_loss"])
    result = run.run()
    assert result.frozen["log_loss"] > 0.0
    assert not any("saved model" in note or "no longer learns" in note for note in result.notes)


@pytest.mark.parametrize("lag", [0, 20])
def test_labels_that_come_late_are_not_inputs(tmp_path, lag):
    path = write_rows(tmp_path / "rows.csv", 400)
    run = Run(path, TARGETS[False], "auto", lag=lag)
    assert run.run().samples == 400
    assert run.model.model.labels_delayed == (lag > 0)
    assert any("last" in name for name in run.model.model.experts_) == (lag == 0)


def test_a_short_stream_measures_no_saved_model(tmp_path):
    path = write_rows(tmp_path / "rows.csv", 500)
    assert begun(path, window=500).run().frozen is None
    assert begun(path, window=400).run().frozen["rows"] == 100


def test_features_in_python(tool, tmp_path):
    X, y = make_turning_ellipsoid(1200, random_state=0)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(turned=y)
    table.to_csv(tmp_path / "rows.csv", index=False)
    tool("features", "rows.csv", "--target", "turned", "--out", "z.parquet", "--save", "f.ks")
    run = FeatureRun(tmp_path / "rows.csv", target="turned", batch_rows=250)
    pieces = pd.concat([pd.DataFrame(piece) for piece in run.tables()], ignore_index=True)
    expected = pd.read_parquet("z.parquet")
    pd.testing.assert_frame_equal(pieces, expected, check_exact=True)
    assert run.stream.fingerprint() == load("f.ks").fingerprint()
    applied = FeatureRun(tmp_path / "rows.csv", load("f.ks"), target="turned", batch_rows=500)
    for _ in applied.tables():
        applied.stop()
    assert (applied.summary()["samples"], applied.stopped_by) == (500, "stop()")
    assert applied.stream.fingerprint() == load("f.ks").fingerprint()


@pytest.mark.parametrize("numbers", [True, False])
def test_a_target_alone(tool, tmp_path, numbers):
    """A file of one column: the automatic model learns from earlier targets, also after a stop."""
    random, n = np.random.default_rng(0), 1500
    season = np.sin(np.arange(n) * np.pi / 12.0) + 0.1 * random.normal(size=n)
    y = season.round(4) if numbers else np.arange(n) % 3
    pd.DataFrame({"y": y}).to_csv(tmp_path / "series.csv", index=False)
    said = tool("learn", "series.csv", "--target", "y", "--out", "a.ks")
    assert "none: it learns from earlier targets alone" in " ".join(said.out.split())
    places = {"checkpoint": tmp_path / "c", "checkpoint_seconds": 0.0, "batch_rows": 500}
    next(Run(tmp_path / "series.csv", "y", **places))
    again = Run(tmp_path / "series.csv", "y", **places, resume=True)
    metrics = again.run().metrics
    if numbers:
        assert metrics["rmse"] < 0.8 * np.sqrt(np.square(np.diff(y)).mean())
    else:
        assert metrics["accuracy"] > 0.95
    saved = load(tmp_path / "a.ks")
    assert saved.model.fingerprint() == again.model.model.fingerprint()
    assert saved.preparation.inputs == {}
    frames = pd.DataFrame({"y": y[:3]}), pd.DataFrame(index=range(3)), [{}, {}, {}]
    assert [len(saved.predict(rows)) for rows in frames] == [3, 3, 3]
    assert saved.predict_one({}) == saved.predict(frames[0])[0]
    assert "earlier targets alone" in tool("export", "a.ks", "--to", "c", code=2).err
