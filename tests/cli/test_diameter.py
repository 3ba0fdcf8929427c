"""``kernelstream diameter``."""

import json

import numpy as np
import pytest

pytest.importorskip("typer")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from typer.testing import CliRunner  # noqa: E402

from kernelstream import make_multidist  # noqa: E402
from kernelstream.cli.app import app  # noqa: E402
from kernelstream.cli.errors import UserError  # noqa: E402
from kernelstream.streams import StreamError  # noqa: E402


@pytest.fixture
def stream(tmp_path):
    X, y = make_multidist(1200, random_state=1)
    file = tmp_path / "stream.csv"
    table = np.column_stack([X, y, np.sin(X[:, 0])])
    np.savetxt(file, table, delimiter=",", header="a,b,label,height", comments="", fmt="%.6g")
    return file


def run(*words):
    result = CliRunner().invoke(app, ["diameter", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_table_and_picture(stream, tmp_path):
    picture = tmp_path / "delta.png"
    output = run(stream, "--target", "label", "--rows", "500", "--out", picture)
    assert "first 500 rows" in output
    assert "mistake rate" in output
    assert picture.stat().st_size > 1000


def test_json_and_regression(stream):
    columns = json.loads(run(stream, "--target", "height", "--json"))
    assert len(columns["delta"]) == len(columns["RMSE"]) == 9
    assert columns["points"][0] > columns["points"][-1]
    assert min(columns["RMSE"]) < 1.0


def test_too_short(tmp_path):
    file = tmp_path / "short.csv"
    file.write_text("a,target\n1,0\n")
    with pytest.raises(UserError, match="fewer than two rows"):
        run(file)


@pytest.mark.filterwarnings("ignore:kernel='laplacian' depends on the l1 distance")
def test_the_model_that_learn_would_run(stream):
    """The error of learn, and its points: the options mean the same in both."""
    options = ["--target", "label", "--drop", "height", "--no-standardise", "--column", "b=text"]
    options += ["--buckets", "16", "--alpha", "1e-3", "--gamma", "0.5", "--max-points", "40"]
    options += ["--loss", "log_loss", "--kernel", "laplacian", "--exact-probability", "1"]
    options += ["--average", "true", "--average-horizon", "0.5"]
    options += ["--coverage", "hyperrectangle", "--json"]
    told = json.loads(run(stream, *options, "--deltas", "1.5"))
    words = ["learn", str(stream), "--model", "avm", *options, "--delta", "1.5", "--quiet"]
    learned = json.loads(CliRunner().invoke(app, words).stdout)
    assert told["points"] == [learned["points"]]
    assert 1.0 - told["mistake rate"][0] == pytest.approx(learned["accuracy"], abs=1e-9)
    plain = json.loads(run(stream, "--target", "label", "--drop", "height", "--json"))
    assert told["mistake rate"][0] not in plain["mistake rate"]


def test_the_first_diameter_is_that_of_auto(stream):
    words = (stream, "--target", "label", "--no-standardise", "--json")
    learn = ["learn", *map(str, words), "--model", "avm", "--quiet"]
    learned = json.loads(CliRunner().invoke(app, learn).stdout)
    assert json.loads(run(*words))["delta"][0] == learned["delta"]


def test_what_learn_refuses_is_refused(stream):
    for words, problem in (
        (("--task", "ranking"), "--task ranking is not accepted"),
        (("--kernel", "linear"), "it takes a kernel that depends on the distance alone"),
        (("--column", "z=text"), "no column 'z'"),
        (("--column", "a=words"), "does not say what a column is"),
        (("--loss", "huber"), "--loss huber is not accepted"),
    ):
        with pytest.raises((UserError, StreamError), match=problem):
            run(stream, "--target", "label", *words)
    told = json.loads(run(stream, "--target", "label", "--task", "regression", "--json"))
    assert "RMSE" in told


def test_columns_left_out_and_diameters_given(stream):
    words = (stream, "--target", "label", "--rows", "300", "--drop", "height", "--json")
    result = json.loads(run(*words, "--deltas", "0.5,2"))
    assert result["delta"] == [0.5, 2.0]
    for wrong in ("", "1,x", "0", "-1", "inf"):
        with pytest.raises(UserError, match="no diameters"):
            run(*words, "--deltas", wrong)


def test_a_file_that_does_not_say_what_it_is(stream, tmp_path):
    other = tmp_path / "rows.txt"
    lines = stream.read_text().splitlines()
    other.write_text("\n".join(line.replace(",", ";") for line in lines[1:]))
    words = ("--rows", "300", "--deltas", "1", "--json")
    named = json.loads(run(stream, "--target", "label", *words))
    plain = json.loads(
        run(other, "--target", "c2", *words, "--format", "csv", "--delimiter", ";", "--no-header")
    )
    for name in ("delta", "points", "mistake rate"):
        assert plain[name] == named[name]


def test_the_start_of_a_regression_does_not_decide(stream):
    """The first steps with a squared loss are large, whatever delta is."""
    told = json.loads(run(stream, "--target", "height", "--deltas", "0.6", "--json"))
    assert told["RMSE"][0] < 0.2  # with the first steps nearly 1


def test_sparse_rows_from_standard_input(tmp_path):
    X, y = make_multidist(300, random_state=1)
    lines = [f"{int(label)} 1:{a:.6g} 2:{b:.6g}" for (a, b), label in zip(X, y, strict=True)]
    words = ["diameter", "-", "--format", "libsvm", "--n-features", "2", "--deltas", "1", "--json"]
    result = CliRunner().invoke(app, words, input="\n".join(lines))
    assert json.loads(result.output)["delta"] == [1.0]
