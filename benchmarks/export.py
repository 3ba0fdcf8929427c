"""Exported models beside the ones they came from: differences, sizes, time of a prediction."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import kernelstream
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import CapWarning
from kernelstream.export import describe, write_c, write_numpy, write_onnx
from kernelstream.export.c_header import _members
from kernelstream.pipeline import StreamModel
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text, plain

SCHEMA = {
    "height": "number", "w 2": "number", "const": "number", "count": "number", "city": "text",
    "street": "text", "day": "date", "y": "number",
}  # fmt: skip
METHODS = ("POLK", "AVM", "COLK", "KRLST", "Auto")
TASKS = {"two classes": 2, "four classes": 4, "numbers": 0}
COMPILER = shutil.which("cc") or shutil.which("gcc")
_DAY = 86_400_000_000


def raw_rows(n: int, classes: int, seed: int) -> Batch:
    """Numbers with gaps, texts with few and with many values, dates; the target is ``y``."""
    random = np.random.default_rng(seed)
    height, w = random.normal(170.0, 10.0, n), random.exponential(3.0, n)
    count = np.where(random.random(n) < 0.7, 0.0, random.integers(1, 5, n))
    city = np.minimum(random.integers(0, 60, n), random.integers(0, 60, n)).astype(np.int32)
    street = random.integers(0, 4000, n).astype(np.int32)
    day = random.integers(-70 * 365 * _DAY, 130 * 365 * _DAY, n).view("datetime64[us]")
    season = (day.astype("datetime64[D]") - day.astype("datetime64[Y]")).astype(float) / 58.0
    city[random.random(n) < 0.05] = -1
    height[random.random(n) < 0.1], w[random.random(n) < 0.05] = np.nan, np.nan
    f = np.nan_to_num((height - 170.0) / 10.0 + np.sin(w)) + city % 3 + np.sin(season) + count
    day[random.random(n) < 0.05] = np.datetime64("NaT")
    y = np.clip(np.floor(f), 0.0, classes - 1.0) if classes else 100.0 * f + 3.0
    cities = [f'"city" \\{k}?' for k in range(60)]
    streets = [f"Straße {k}" for k in range(4000)]
    columns = {
        "height": height, "w 2": w, "const": np.full(n, 5.0), "count": count,
        "city": Text(city, cities), "street": Text(street, streets), "day": day, "y": y,
    }  # fmt: skip
    return Batch(columns, lines=np.arange(n))


def learned_model(method: str, classes: int, rows: Batch, **parameters: Any) -> StreamModel:
    """A model of raw rows."""
    kind = getattr(kernelstream, f"{method}{'Classifier' if classes else 'Regressor'}")
    of_preparation = {k: parameters.pop(k) for k in ("units", "standardise") if k in parameters}
    preparation = Preparation(SCHEMA, ignore=["y"], **of_preparation).start(rows)
    if method not in ("KRLST", "Auto"):
        parameters["gamma"] = preparation.suggested_gamma
    estimator = kind(random_state=0, **parameters)
    task = "classification" if classes else "regression"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)
        return StreamModel(estimator, preparation, "y", task).learn(rows).flush()


def own_values(model: Any, rows: Any) -> Any:
    """(n, outputs): probabilities, or numbers."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    return model.predict(rows)[:, None]


def apart(values: Any, model: Any, rows: Any) -> float:
    """The largest difference from a model's own values, of numbers per largest number."""
    own = own_values(model, rows)
    unit = 1.0 if hasattr(model, "classes_") else np.abs(own).max()
    return float(np.abs(values.reshape(own.shape) - own).max(initial=0.0) / unit)


def run_numpy(model: Any, rows: Any) -> Any:
    """Values from the file that needs NumPy alone."""
    names: dict[str, Any] = {}
    exec(compile(write_numpy(describe(model)), "model.py", "exec"), names)
    if isinstance(rows, Batch):
        rows = {name: plain(column) for name, column in rows.columns.items()}
    return names.get("predict_proba", names["predict"])(rows), names["predict"](rows)


def onnx_inputs(rows: Any, names: list[str]) -> dict[str, Any]:
    """Columns as the graph takes them."""
    if not isinstance(rows, Batch):
        return {"features": rows}
    found = {}
    for name in names:
        column = plain(rows.columns[name])
        if column.dtype == object:
            column = np.array([text or "" for text in column], dtype=object)
        found[name] = column.view(np.int64) if column.dtype.kind == "M" else column
    return found


def run_onnx(model: Any, rows: Any) -> tuple[Any, Any]:
    """Values and labels from onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(write_onnx(describe(model)))
    names = [given.name for given in session.get_inputs()]
    outputs = session.run(None, onnx_inputs(rows, names))
    return outputs[0], outputs[-1]


class Compiled:
    """A header, compiled."""

    def __init__(self, model: Any, folder: Path, real: str = "double") -> None:
        self.program = describe(model)
        self.real = np.dtype(np.float32 if real == "float" else np.float64)
        header = folder / "model.h"
        header.write_text(write_c(self.program))
        source = folder / "model.c"
        source.write_text(
            '#include "model.h"\n'
            "void run(const model_row *rows, model_result *out, int n) {\n"
            "    int i;\n"
            "    for (i = 0; i < n; i++) model_predict(rows + i, out + i);\n"
            "}\n"
        )
        library = folder / f"model-{real}.so"
        flags = ["-std=c99", "-O2", "-ftree-vectorize", "-Wall", "-Wextra", "-Werror", "-pedantic",
                 "-Wno-unused-const-variable", "-Wno-unused-variable"]  # fmt: skip
        if real == "float":
            flags.append("-DKERNELSTREAM_FLOAT")
        subprocess.run(
            [COMPILER or "cc", *flags, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True
        )
        self.header_bytes, self.code_bytes = header.stat().st_size, library.stat().st_size
        self._run = ctypes.CDLL(str(library)).run

    def __call__(self, rows: Any) -> tuple[Any, Any]:
        """Values and labels."""
        number = ctypes.c_double if self.real.itemsize == 8 else ctypes.c_float
        held: list[Any] = []  # what rows point to
        columns, fields = [], []
        for given, member in _members(self.program.inputs).items():
            kind = next(each for each in self.program.inputs if each.name == given)
            if kind.width:
                matrix = np.ascontiguousarray(rows, self.real)
                held.append(matrix)
                pointer, step = matrix.ctypes.data, matrix.strides[0]
                columns.append([pointer + step * k for k in range(len(matrix))])
                fields.append((member, ctypes.c_void_p))
                continue
            column = plain(rows.columns[given])
            if kind.kind == "text":
                columns.append([None if text is None else text.encode() for text in column])
                fields.append((member, ctypes.c_char_p))
            elif kind.kind == "date":
                columns.append(column.view(np.int64).tolist())
                fields.append((member, ctypes.c_int64))
            else:
                columns.append(column.tolist())
                fields.append((member, number))
        row = type("Row", (ctypes.Structure,), {"_fields_": fields})
        table = (row * len(rows))(*zip(*columns, strict=True))
        labels, width = self.program.labels, self.program.values.width
        parts = [("values", self.real, (width,))]
        if labels is not None:
            parts.insert(0, ("place", np.int32))
        out = np.zeros(len(rows), np.dtype(parts, align=True))
        start = time.perf_counter()
        self._run(table, out.ctypes.data_as(ctypes.c_void_p), len(rows))
        self.seconds = time.perf_counter() - start
        return out["values"], None if labels is None else labels[out["place"]]


def main() -> None:
    """Differences on 10,000 rows, sizes, and microseconds of a prediction."""
    n = max(200, int(share() * 10_000))

    def lines() -> Iterator[list[Any]]:
        for method in METHODS:
            for task, classes in TASKS.items():
                caps = {} if method == "Auto" else {"max_points": 100}
                model = learned_model(method, classes, raw_rows(5000, classes, 1), **caps)
                rows = raw_rows(n, classes, 2)
                yield [method, task, *_measured(model, rows)]

    show(
        "Exported models of rows with numbers, texts, dates and gaps: largest differences on "
        f"{n:,} rows (of numbers per largest number), sizes and time",
        ("model", "target", "ONNX", "NumPy", "C, double", "C, float", "header, KB",
         "compiled, KB", "C: us per row", "Python: us per row"),
        lines(),
    )  # fmt: skip


def _measured(model: StreamModel, rows: Batch) -> list[Any]:
    start = time.perf_counter()
    own_values(model, rows)
    own = time.perf_counter() - start
    found: list[Any] = [apart(run(model, rows)[0], model, rows) for run in (run_onnx, run_numpy)]
    if COMPILER is None:
        return [*(f"{value:.1e}" for value in found), *["no compiler"] * 5, 1e6 * own / len(rows)]
    with tempfile.TemporaryDirectory() as folder:
        double = Compiled(model, Path(folder))
        single = Compiled(model, Path(folder), "float")
        found += [apart(run(rows)[0], model, rows) for run in (double, single)]
    each = [1e6 * seconds / len(rows) for seconds in (double.seconds, own)]
    sizes = [round(size / 1000) for size in (double.header_bytes, double.code_bytes)]
    return [*(f"{value:.1e}" for value in found), *sizes, *each]
