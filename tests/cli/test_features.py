"""``kernelstream features``."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

from kernelstream.feature_stream import StreamFeatures
from kernelstream.streams import make_turning_ellipsoid
from tests.cli.tools import start, wait_until, write_rows

FEATURES = ("features", "rows.csv", "--target", "label", "--n-components", "4")


@pytest.fixture
def ellipsoid(tmp_path):
    X, y = make_turning_ellipsoid(2000, random_state=0)
    path = tmp_path / "ellipsoid.csv"
    table = np.column_stack([X, y])
    np.savetxt(path, table, delimiter=",", header="a,b,c,turned", comments="", fmt="%.9g")
    return path


def test_features_of_rows_with_texts_and_gaps(tool, rows, tmp_path):
    shown = tool(*FEATURES, "--out", "z.parquet").out
    assert "fit error" in shown
    table = pd.read_parquet(tmp_path / "z.parquet")
    assert list(table) == ["line", "z0", "z1", "z2", "z3", "fit_error", "label"]
    assert table["line"].tolist() == list(range(2, 402))
    assert set(table["label"]) == {"yes", "no"}
    assert np.isfinite(table.filter(like="z")).all(axis=None)
    # The products of the features approximate a kernel with k(x, x) = 1.
    lengths = (table.filter(regex=r"^z\d") ** 2).sum(axis=1)
    assert lengths.max() < 1.0 + 1e-6
    assert lengths[300:].mean() > 0.2


def test_features_to_standard_output(tool, rows, tmp_path):
    """The table alone: messages go elsewhere, so that it can be piped on."""
    result = tool(*FEATURES, "--out", "-", "--save", "features.ks")
    tool(*FEATURES, "--out", "z.csv")
    assert result.out == (tmp_path / "z.csv").read_text()
    assert "standard output (4 for each row)" in result.err
    assert "features.ks" in result.err
    applied = tool(*FEATURES[:4], "--apply", "features.ks", "--out", "-")
    assert len(applied.out.splitlines()) == 401
    assert not (tmp_path / "-").exists()


def test_batches_do_not_matter(tool, rows, tmp_path):
    for name, size in (("a", 8192), ("b", 37), ("c", 150)):
        tool(*FEATURES, "--out", f"{name}.csv", "--batch-rows", size)
    first = (tmp_path / "a.csv").read_text()
    # The layout is decided by the first batch: gaps must be in all of them.
    assert (tmp_path / "b.csv").read_text() == first
    assert (tmp_path / "c.csv").read_text() == first


def test_every_option_reaches_the_extractor(tool, rows, tmp_path):
    tool(
        *FEATURES, "--max-points", 9, "--kernel", "laplacian", "--gamma", 0.3, "--alpha", 0.01,
        "--solver", "nonparametric", "--step-size", "tracking", "--censoring", "rate:0.5",
        "--removal", "recency", "--forgetting", 0.9, "--no-align", "--random-state", 3,
        "--basis", "orthonormal",
        "--out", "z.parquet", "--save", "features.ks",
    )  # fmt: skip
    given = StreamFeatures.load(tmp_path / "features.ks").extractor.get_params()
    expected = {
        "n_components": 4, "max_points": 9, "kernel": "laplacian", "gamma": 0.3, "alpha": 0.01,
        "solver": "nonparametric", "step_size": "tracking", "censoring": "rate:0.5",
        "removal": "recency", "forgetting": 0.9, "align": False, "random_state": 3,
        "basis": "orthonormal",
    }  # fmt: skip
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("steps", "solver", "basis"),
    [("tracking", "parametric", "printed"), ("inverse", "nonparametric", "orthonormal")],
)
def test_solver_and_basis_follow_the_steps(tool, rows, tmp_path, steps, solver, basis):
    given = () if steps == "tracking" else ("--step-size", steps)  # what is taken by default
    tool(*FEATURES, *given, "--out", "a.csv")
    tool(*FEATURES, "--step-size", steps, "--solver", solver, "--basis", basis, "--out", "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_defaults_keep_the_memory_bounded(tool, rows, tmp_path):
    result = json.loads(tool(*FEATURES, "--out", "z.parquet", "--json").out)
    assert result["samples"] == 400
    assert result["stored"] == 20


def test_a_change_of_the_stream_is_noticed(tool, ellipsoid, tmp_path):
    words = (
        "features", ellipsoid, "--target", "turned", "--gamma", 0.5, "--no-standardise",
        "--step-size", "tracking", "--out", "z.parquet",
    )  # fmt: skip
    result = json.loads(tool(*words, "--report", "report.html", "--json").out)
    assert [1000 < change["sample"] <= 1200 for change in result["changes"]] == [True]
    page = (tmp_path / "report.html").read_text()
    assert page.count('class="mark"') == 1
    assert "change noticed" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "had risen from" in tool(*words).out


def test_saved_and_applied(tool, rows, tmp_path):
    tool(*FEATURES, "--out", "z.parquet", "--save", "features.ks")
    before = StreamFeatures.load(tmp_path / "features.ks").fingerprint()
    write_rows(tmp_path / "new.csv", 50, seed=9)
    tool(
        "features",
        "new.csv",
        "--target",
        "label",
        "--apply",
        "features.ks",
        "--out",
        "new.csv.z.csv",
    )
    table = pd.read_csv(tmp_path / "new.csv.z.csv")
    assert len(table) == 50
    assert np.isfinite(table["fit_error"]).all()
    assert StreamFeatures.load(tmp_path / "features.ks").fingerprint() == before


def test_sources_without_column_names(tool, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 5))
    np.savez(tmp_path / "rows.npz", X=X, y=np.arange(300) % 2)
    tool("features", "rows.npz", "--n-components", 3, "--out", "z.csv")
    table = pd.read_csv(tmp_path / "z.csv")
    assert list(table) == ["line", "z0", "z1", "z2", "fit_error", "target"]
    lines = [f"{i % 2} 1:{x[0]:.3f} 4:{x[1]:.3f}" for i, x in enumerate(X)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    tool("features", "rows.svm", "--n-components", 3, "--out", "z.csv")
    assert len(pd.read_csv(tmp_path / "z.csv")) == 300


@pytest.mark.parametrize("name", ["z0", "line", "fit_error"])
def test_a_target_with_a_name_of_ours_replaces_nothing(tool, ellipsoid, tmp_path, name):
    ellipsoid.write_text(ellipsoid.read_text().replace("turned", name, 1))
    tool("features", ellipsoid, "--target", name, "--n-components", 2, "--out", "z.csv")
    table = pd.read_csv(tmp_path / "z.csv")
    assert list(table) == ["line", "z0", "z1", "fit_error", f"{name}_"]
    assert table["z0"].nunique() > 1000
    assert set(table[f"{name}_"]) == {0, 1}


def test_stopped_on_the_way_keeps_what_is_there(tmp_path):
    """A pipe that nobody closes: SIGTERM ends the waiting, and the rows so far are written."""
    rows = write_rows(tmp_path / "rows.csv", 2000).read_text().encode()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = start(tmp_path, "features", "-", "--target", "label", "--batch-rows", 500, "--out",
                  "z.csv", stdin=pipe)  # fmt: skip
    with pipe.open("wb") as end:
        end.write(rows)
        end.flush()
        wait_until(lambda: any(path.stat().st_size for path in tmp_path.glob(".kernelstream-*")))
        result = child.kill(signal.SIGTERM)
    assert result.code == 128 + signal.SIGTERM, result
    assert len(pd.read_csv(tmp_path / "z.csv")) >= 500
    assert not list(tmp_path.glob(".kernelstream-*"))


MISTAKES = {
    "suffix": (("--out", "z.npz"), "use .parquet, .csv or .tsv"),
    "folder": (("--out", "none/z.csv"), "make it first"),
    "two things to standard output": (("--out", "-", "--json"), "would both write to standard"),
    "source": (("--out", "rows.csv"), "would replace"),
    "removal": (
        ("--out", "z.csv", "--removal", "oldest"),
        "--removal oldest is not accepted; use one of: exact, fifo, greedy, recency",
    ),
    "step size": (
        ("--out", "z.csv", "--step-size", "track"),
        "--step-size track is not accepted; did you mean tracking? Use one of: inverse, inv",
    ),
    "max_points": (
        ("--out", "z.csv", "--max-points", 10**7),
        "--max-points 10000000 is not accepted; use one of: auto, none, a whole number of at least "
        "1 and at most 1000000",
    ),
    "gamma": (("--out", "z.csv", "--gamma", "scale"), "depends on how the stream is cut"),
    "components": (("--out", "z.csv", "--n-components", "x"), "use a whole number of at least 1"),
    "censoring": (("--out", "z.csv", "--censoring", "much"), "censoring must be None, 'auto'"),
    "on bad": (("--out", "z.csv", "--on-bad", "quarantine"), "use one of: raise, skip"),
    "nothing to apply": (("--out", "z.csv", "--apply", "none.ks"), "there is no file none.ks"),
    "not an extractor": (("--out", "z.csv", "--apply", "rows.csv"), "features --save"),
    "apply and learn": (("--out", "z.csv", "--apply", "a.ks", "--save", "b.ks"), "learns nothing"),
    "apply and align": (("--out", "z.csv", "--apply", "a.ks", "--no-align"), "--no-align is for"),
    "apply and prepare": (
        ("--out", "z.csv", "--apply", "a.ks", "--warm-up", 9),
        "--warm-up is for",
    ),
    "kind": (("--out", "z.csv", "--column", "x=word"), "NAME=KIND"),
}


@pytest.mark.parametrize(("words", "line"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line(tool, rows, tmp_path, words, line):
    command = FEATURES if "--apply" not in words else FEATURES[:4]
    result = tool(*command, *words, code=2)
    assert line in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "z.csv").exists()


def test_a_bad_row_leaves_the_old_file(tool, rows, tmp_path):
    (tmp_path / "z.csv").write_text("old")
    text = rows.read_text().splitlines()
    text[350] = "inf,1,Ulm,1,yes"
    rows.write_text("\n".join(text))
    stopped = tool(*FEATURES, "--out", "z.csv", "--batch-rows", 100, code=2)
    assert "Use --on-bad skip to go on" in stopped.err
    assert (tmp_path / "z.csv").read_text() == "old"
    tool(*FEATURES, "--out", "z.csv", "--batch-rows", 100, "--on-bad", "skip")
    assert len(pd.read_csv(tmp_path / "z.csv")) == 399
