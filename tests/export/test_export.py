"""Exported models predict what the models do that they came from."""

import datetime
import json
import subprocess

import numpy as np
import pandas as pd
import pytest

from benchmarks import export as tools
from kernelstream import (
    AutoClassifier,
    AutoRegressor,
    KRLSTRegressor,
    POLKClassifier,
    POLKRegressor,
)
from kernelstream.export import describe, export, write_c, write_numpy, write_onnx
from kernelstream.export.program import Input, Program
from kernelstream.kernels import Gaussian, Laplacian, Linear, Matern32, Matern52, Polynomial
from kernelstream.models.in_units import InUnits
from kernelstream.pipeline import StreamModel
from kernelstream.streams import make_robot_arm
from kernelstream.streams.batch import Batch, Text

needs_compiler = pytest.mark.skipif(tools.COMPILER is None, reason="needs a C compiler")
ROWS = {classes: tools.raw_rows(300, classes, 2) for classes in (0, 2, 4)}

CASES = [
    ("POLK", 2, {"max_points": 30}),
    ("POLK", 4, {"max_points": 30, "loss": "log_loss", "units": "frozen"}),
    ("POLK", 0, {"max_points": 30, "standardise": False}),
    ("AVM", 4, {"max_points": 30}),
    ("COLK", 0, {"max_points": 30}),
    ("KRLST", 2, {"max_points": 30}),
    ("KRLST", 0, {"max_points": 30}),
    ("Auto", 2, {}),
    ("Auto", 4, {}),
    ("Auto", 0, {"standardize": False}),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    """A model of raw rows, and others to predict."""
    method, classes, parameters = request.param
    n = 2300 if method == "Auto" and classes else 600  # after 2048 rows one may get a full metric
    model = tools.learned_model(method, classes, tools.raw_rows(n, classes, 1), **parameters)
    return model, ROWS[classes]


def check(model, rows, values, labels, tolerance):
    assert tools.apart(values, model, rows) <= tolerance
    if labels is not None and hasattr(model, "classes_"):
        assert np.array_equal(labels, model.predict(rows))


def test_numpy(case):
    check(*case, *tools.run_numpy(*case), 1e-9)


def test_onnx(case):
    pytest.importorskip("onnxruntime")
    check(*case, *tools.run_onnx(*case), 1e-12)


@needs_compiler
def test_c(case, tmp_path):
    model, rows = case
    check(model, rows, *tools.Compiled(model, tmp_path)(rows), 1e-12)


@needs_compiler
def test_c_in_float(case, tmp_path):
    model, rows = case
    values, _ = tools.Compiled(model, tmp_path, "float")(rows)
    assert tools.apart(values, model, rows) < 0.02


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.5), Laplacian(0.5), Matern32(0.5), Matern52(0.5), Polynomial(3, 0.2, 1.0),
     0.5 * Gaussian(1.0) * Linear() + Polynomial(2)],
    ids=lambda kernel: type(kernel).__name__,
)  # fmt: skip
def test_kernels(kernel, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3)) + 5.0
    y = np.where(X[:, 0] > X[:, 1], "ja", "nein")
    model = POLKClassifier(kernel=kernel, max_points=20, eta0=0.1).partial_fit(X, y)
    check(model, X, *tools.run_numpy(model, X), 1e-9)
    if tools.COMPILER:
        check(model, X, *tools.Compiled(model, tmp_path)(X), 1e-9)
    pytest.importorskip("onnxruntime")
    check(model, X, *tools.run_onnx(model, X), 1e-9)


@pytest.mark.parametrize("kind", [POLKRegressor, KRLSTRegressor, AutoRegressor])
def test_several_numbers(kind, tmp_path):
    X, Y = make_robot_arm(200, random_state=0)
    kernel = {} if kind is AutoRegressor else {"gamma": 0.5}
    model = kind(max_points=20, **kernel).partial_fit(X, Y * [1.0, 1e3, 1e-3] + 5.0)
    predicted = model.predict(X)

    def same(values):
        assert values.shape == (200, 3)
        np.testing.assert_allclose(values, predicted, rtol=1e-9)

    same(tools.run_numpy(model, X)[0])
    if tools.COMPILER:
        same(tools.Compiled(model, tmp_path)(X)[0])
    pytest.importorskip("onnxruntime")
    same(tools.run_onnx(model, X)[0])


@pytest.mark.parametrize("known", [2, 300])
def test_numbers_of_rows_far_out_stay_near_the_targets(known):
    """As in `predict`, once there were targets enough to know where they are."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = AutoRegressor(random_state=0).partial_fit(X[:known], X[:known] @ [1.0, 2.0, 0.0])
    far = np.concatenate([X, 40.0 * X])
    values = tools.run_numpy(model, far)[0]
    np.testing.assert_allclose(values, model.predict(far), rtol=1e-9)


def test_many_features_are_folded():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 600)) * (random.random((150, 600)) < 0.1)
    model = AutoClassifier(random_state=0).partial_fit(X, (X[:, 0] > 0.0).astype(int))
    check(model, X, *tools.run_numpy(model, X), 1e-9)


def test_times_and_columns_that_name_their_rows(tmp_path):
    random, n = np.random.default_rng(0), 400
    hours = random.uniform(0.0, 24.0, n)
    at = (hours * 3.6e9).astype(np.int64).view("M8[us]")
    columns = {
        "id": Text(np.arange(n, dtype=np.int32), [f"order {k}" for k in range(n)]),
        "city": Text(random.integers(0, 3, n).astype(np.int32), ["Ulm", "Bonn", "Kiel"]),
        "at": at,
    }
    target = Text((np.sin(hours / 4.0) > 0.0).astype(np.int32), ["no", "yes"])
    batch = Batch({**columns, "y": target}, lines=np.arange(n))
    from kernelstream.preparation import Preparation

    kinds = {"id": "text", "city": "text", "at": "date", "y": "text"}
    preparation = Preparation(kinds, ignore=["y"])
    model = StreamModel(POLKClassifier(gamma=0.3), preparation, "y", "classification").learn(batch)
    assert preparation.naming_columns == ["id"]
    check(model, batch, *tools.run_numpy(model, batch), 1e-12)
    if tools.COMPILER:
        check(model, batch, *tools.Compiled(model, tmp_path)(batch), 1e-12)
    pytest.importorskip("onnxruntime")
    check(model, batch, *tools.run_onnx(model, batch), 1e-12)


def test_the_numpy_file_reads_dates_as_the_model_does():
    random, n = np.random.default_rng(0), 300
    at = random.integers(0, 2 * 10**15, n).view("M8[us]")
    rows = {"at": at, "x": random.normal(size=n)}
    rows["y"] = np.sin(at.astype(np.int64) / 1e14) + rows["x"]
    model = StreamModel.for_rows(rows, "y", "krlst").learn(rows)
    zone = datetime.timezone(datetime.timedelta(hours=-3))
    columns = [
        ["05:05", "9:05 PM", "12:00 am", "11:38:36.5", None, ""],
        ["2012/01/01", "2012/1/2 08:00", "1.3.2024", "01.03.2024 08:00", "2012-01-01", None],
        ["2012/1/2 8:00", "1.3.2024 8:00", "2024-03-01 8:00:30", "2024-03-01T8:00"],
        [datetime.time(5, 5), datetime.time(23), None, np.nan],
        [datetime.date(2012, 1, 1), None],
        [datetime.datetime(2012, 1, 1, 23, tzinfo=zone), datetime.datetime(2012, 1, 1), pd.NaT],
        pd.Series(["2012-01-01", None], dtype="string"),
        pd.Series(pd.to_datetime(["2012-01-01 23:00"])).dt.tz_localize("America/New_York"),
        np.array(["2012-01-01", "NaT"], "M8[D]"),
    ]
    written = {}
    exec(write_numpy(describe(model)), written)
    for column in columns:
        given = {"at": column, "x": np.zeros(len(column))}
        assert written["predict"](given) == pytest.approx(model.predict(given), abs=1e-9)
    whole = {"at": at[:5].view(np.int64), "x": np.zeros(5)}
    expected = model.predict({"at": at[:5], "x": np.zeros(5)})
    assert written["predict"](whole) == pytest.approx(expected, abs=1e-9)
    for odd in ("13:05 PM", "9:05:07.25 PM", "soon", datetime.time(5, tzinfo=zone)):
        with pytest.raises(ValueError, match=r"soon|13:05|9:05|tzinfo"):
            written["predict"]({"at": [odd], "x": [0.0]})


def test_one_file_with_numpy_alone(tmp_path):
    # Long texts are shortened as the model does it; labels that are texts come back as such.
    texts = [f"{letter * 300} {k}" for k in range(5) for letter in "ab"]
    codes = np.arange(400, dtype=np.int32) % 10
    target = Text((codes % 2).astype(np.int32), ["one", "two"])
    batch = Batch({"city": Text(codes, texts), "y": target}, lines=np.arange(400))
    from kernelstream.preparation import Preparation

    preparation = Preparation({"city": "text", "y": "text"}, ignore=["y"])
    model = StreamModel(POLKClassifier(gamma=1.0), preparation, "y", "classification").learn(batch)
    check(model, batch, *tools.run_numpy(model, batch), 1e-12)
    text = write_numpy(describe(model))
    imports = {line for line in text.splitlines() if line.startswith(("import", "from"))}
    assert imports == {"import base64", "import hashlib", "import numpy as np"}


def test_the_suffix_says_what_is_written(tmp_path):
    model = POLKRegressor().partial_fit([[0.0], [1.0]], [0.0, 1.0])
    export(model, tmp_path / "m.h", name="2 wells")
    assert "_2_wells_predict(const _2_wells_row *row" in (tmp_path / "m.h").read_text()
    with pytest.raises(ValueError, match=r"suffix '.txt' is none of .onnx, .h, .py"):
        export(model, tmp_path / "m.txt")
    with pytest.raises(ValueError, match="to must be one of"):
        export(model, tmp_path / "m.txt", to="java")


def test_what_cannot_be_exported():
    with pytest.raises(TypeError, match="a dict cannot be exported"):
        describe({})
    with pytest.raises(ValueError, match="one class only"):
        describe(POLKClassifier().partial_fit([[0.0]], [1]))
    rows = tools.raw_rows(50, 0, 1)
    model = tools.learned_model("POLK", 0, rows)
    model.estimator = InUnits(model.model, 100).partial_fit(
        model.preparation.transform(rows), rows.columns["y"]
    )
    with pytest.raises(ValueError, match="call flush"):
        describe(model)


def test_names_in_c():
    # Keywords, signs and names that become the same stay apart.
    columns = {name: np.arange(5.0) for name in ("int", "a b", "a_b", "*/")}
    from kernelstream.pipeline import StreamModel
    from kernelstream.preparation import Preparation

    preparation = Preparation(dict.fromkeys(columns, "number") | {"y": "number"}, ignore=["y"])
    model = StreamModel(POLKRegressor(gamma=1.0), preparation, "y", "regression")
    model.learn(Batch({**columns, "y": np.arange(5.0)}, lines=np.arange(5))).flush()
    text = write_c(describe(model))
    for member in ("int_;", "a_b;", "a_b_;", "__;"):
        assert f"ks_real {member}" in text
    assert "* /: NAN" in text


ODD = ["v0", "_c0", "__v1", "label", "probabilities", "y=1", 'a"b\\', "a\nb", "größe", "??/", " "]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_names_that_the_files_use_themselves_and_any_number_of_rows(n, tmp_path):
    columns = {name: np.linspace(-1.0, 1.0, 40) ** k for k, name in enumerate(ODD, 1)}
    rows = {**columns, "y": np.where(columns["v0"] > 0.2, 'yes "\\', "no")}
    model = StreamModel.for_rows(rows, "y", POLKClassifier(gamma=0.1, max_points=9)).learn(rows)
    some = Batch({name: column[:n] for name, column in columns.items()}, lines=np.arange(n))
    check(model, some, *tools.run_numpy(model, some), 1e-12)
    if n and tools.COMPILER:
        check(model, some, *tools.Compiled(model, tmp_path)(some), 1e-12)
    pytest.importorskip("onnxruntime")
    check(model, some, *tools.run_onnx(model, some), 1e-12)


def test_numbers_that_are_almost_0_or_1_are_not_left_out():
    runtime = pytest.importorskip("onnxruntime")
    x = np.linspace(-2.0, 2.0, 9)[:, None]
    for number in (1e-9, -3e-8, 1.0 + 1e-9, 1.0 - 1e-6, 0.0, 1.0):
        program = Program()
        program.inputs.append(Input("features", "number", 1))
        given = program.add("read", 1, (), program.inputs[0])
        program.values = program.concat(
            given + number, given - number, given * number, given / (number or 1.0)
        )
        program.labels, program.place = np.arange(4), program.values.argmax()
        session = runtime.InferenceSession(write_onnx(program))
        found = session.run(None, {"features": x})[0]
        expected = [x + number, x - number, x * number, x / (number or 1.0)]
        assert np.abs(found - np.hstack(expected)).max() < 1e-15


def test_one_point_and_one_feature(tmp_path):
    model = POLKRegressor().partial_fit([[0.5]], [1.0])
    X = np.array([[0.0], [0.5]])
    check(model, X, *tools.run_numpy(model, X), 1e-12)
    if tools.COMPILER:
        check(model, X, *tools.Compiled(model, tmp_path)(X), 1e-12)
    pytest.importorskip("onnxruntime")
    check(model, X, *tools.run_onnx(model, X), 1e-12)


@needs_compiler
@pytest.mark.parametrize("labels", [["n", "p"], [False, True], [-7, 2**40], None, "several"])
def test_the_comment_of_a_header_prints_the_prediction(labels, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    numbers = labels in (None, "several")
    if numbers:
        model = POLKRegressor(gamma=1.0).partial_fit(X, X if labels else X[:, 0])
    else:
        y = np.where(X[:, 0] > 0.0, labels[1], labels[0])
        model = POLKClassifier(gamma=1.0).partial_fit(X, y)
    export(model, tmp_path / "m.h")
    comment = (tmp_path / "m.h").read_text().partition("*/")[0].splitlines()
    lines = [line.removeprefix(" *").strip() for line in comment if line.endswith(";")]
    row = ", ".join(map(repr, X[0].tolist()))
    begin = ["#include <stdio.h>", '#include "m.h"', "int main(void) {"]
    begin += [f"const double x[] = {{{row}}};", "model_row row = {x};"]
    program = [*begin, *(line for line in lines if "{...}" not in line), "return 0; }"]
    (tmp_path / "main.c").write_text("\n".join(program))
    words = [tools.COMPILER, "-std=c99", "-Wall", "-Werror=format", "main.c", "-o", "m", "-lm"]
    subprocess.run(words, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "m"], capture_output=True, text=True, check=True).stdout
    found = model.predict(X[:1])[0]
    if numbers:
        assert float(said) == pytest.approx(found[0] if labels else found, rel=1e-4)
    else:
        assert said.split()[0] == (str(int(found)) if labels[0] is False else str(found))


@pytest.mark.parametrize("to", ["numpy", "c"])
def test_the_command(tool, rows, tmp_path, to):
    tool("learn", rows, "--target", "label", "--model", "polk", "--out", "m.ks")
    told = json.loads(tool("export", "m.ks", "--to", to, "--json").out)
    written = tmp_path / told["out"]
    assert written.stat().st_size == told["bytes"]
    assert "label" not in told["inputs"]
    assert str(told["out"]) in tool("export", "m.ks", "--to", to, "-o", told["out"]).out
    assert "java" in tool("export", "m.ks", "--to", "java", code=2).err
