"""`datasets`: rows generated, converted and listed."""

import numpy as np

from tests.cli.tools import as_stdin


def test_what_comes_from_a_pipe_is_converted(tool, tmp_path, monkeypatch):
    """It cannot be looked at beforehand: its width and its columns are said."""
    as_stdin(monkeypatch, b"1 1:2 3:4\n0 2:5\n")
    words = ("datasets", "convert", "-", "--out", "m.csv", "--format", "libsvm")
    assert "needs --n-features" in tool(*words, code=2).err
    as_stdin(monkeypatch, b"1 1:2 3:4\n0 2:5\n")
    tool(*words, "--n-features", 3)
    assert (tmp_path / "m.csv").read_text() == ('"f0","f1","f2","target"\n2,0,4,1\n0,5,0,0\n')
    as_stdin(monkeypatch, b"1;2\n3;4\n")
    tool("datasets", "convert", "-", "--out", "n.csv", "--delimiter", ";", "--no-header")
    assert (tmp_path / "n.csv").read_text() == '"c0","c1"\n1,2\n3,4\n'


def test_generated_rows_do_not_depend_on_how_many(tool):
    for name in ("multidist", "outliers"):
        short = tool("datasets", "generate", name, "--rows", 50, "--seed", 3, "--out", "-").out
        long = tool("datasets", "generate", name, "--rows", 100_010, "--seed", 3, "--out", "-").out
        assert long.startswith(short)
        assert long.count("\n") == 100_011
        assert len(set(long.splitlines())) > 100_000  # the second block is not the first again


def test_convert_back_and_forth(tool, tmp_path):
    tool("datasets", "generate", "market", "--rows", 20_000, "--out", "a.csv")
    tool("datasets", "convert", "a.csv", "--out", "b.parquet")
    tool("datasets", "convert", "b.parquet", "--out", "c.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()


def test_convert_does_not_guess_types_from_a_batch(tool, tmp_path):
    lines = [f"{i},,{i}" for i in range(20_000)] + ["0.5,1,7"]
    (tmp_path / "a.csv").write_text('"x","gap","t"\n' + "\n".join(lines) + "\n")
    for name in ("b.parquet", "c.csv"):
        tool("datasets", "convert", "a.csv", "--out", name)
    assert (tmp_path / "c.csv").read_text() == (tmp_path / "a.csv").read_text()


def test_bad_rows_are_skipped_on_the_way(tool, tmp_path):
    rows = "\n".join(f"{i % 7},{i % 2}" for i in range(60))
    (tmp_path / "a.csv").write_text(f"x,target\n1,0\n1,2,3\n{rows}\n")
    for words in (("datasets", "convert", "a.csv", "--out", "b.csv"), ("diameter", "a.csv")):
        result = tool(*words, "--on-bad", "skip")
        assert "1 row refused, the first on line 3" in result.err
    assert (tmp_path / "b.csv").read_text().count("\n") == 62


def test_list(tool, tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", X=np.zeros((3, 1)), y=np.zeros(3))
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path))
    shown = tool("datasets", "list").out
    assert "multidist" in shown
    assert "mine" in shown
