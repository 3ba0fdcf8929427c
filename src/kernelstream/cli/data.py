"""``kernelstream datasets``: list, generate and convert streams."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from kernelstream.cli import options
from kernelstream.cli.errors import UserError, check_outputs, not_accepted
from kernelstream.cli.running import open_rows, warn_of_bad_rows
from kernelstream.cli.terminal import Console, data_bytes
from kernelstream.errors import naming
from kernelstream.raw_columns import kind_of
from kernelstream.storage import replacing
from kernelstream.streams import (
    drifting,
    drifting_numbers,
    list_datasets,
    make_drifting_market,
)
from kernelstream.streams.batch import Batch, plain, slice_rows
from kernelstream.streams.synthetic import multidist_blocks, regression_outliers_blocks
from kernelstream.streams.synthetic_manifolds import spheres_blocks, turning_ellipsoid_blocks

#: Rows converted at a time.
_ROWS = 16_384
#: Entries of features without names that are made dense at a time.
_ENTRIES = 1 << 22

Tables = Iterator[dict[str, Any]]


def _whole(make: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """A generator that makes all samples at once, as one block."""

    def blocks(rows: int, random_state: int) -> Iterator[Any]:
        yield make(rows, random_state=random_state)

    return blocks


def _names(features: int, target: str = "label") -> str:
    return " ".join([*(f"x{j}" for j in range(1, features + 1)), target])


#: Name -> blocks of samples, names of the columns (the target last), and what it is. Blocks are
#: (X, y), or columns that have their names.
GENERATORS: dict[str, tuple[Callable[..., Iterator[Any]], str, str]] = {
    "multidist": (
        multidist_blocks,
        "x y label",
        "five classes, mixtures of Gaussians in the plane (POLK)",
    ),
    "outliers": (regression_outliers_blocks, "x y", "a curve with noise and outliers (COLK)"),
    "spheres": (
        spheres_blocks,
        "x1 x2 x3 label",
        "two noisy spheres, one inside the other (OK-FEB)",
    ),
    "ellipsoid": (
        turning_ellipsoid_blocks,
        "x1 x2 x3 turned",
        "an ellipsoid that turns every 1000 rows (OK-FEB)",
    ),
    "market": (
        _whole(make_drifting_market),
        "direction",
        "a drifting electricity market: dates, categories, gaps",
    ),
    "chessboard": (
        _whole(drifting.make_transient_chessboard),
        _names(2),
        "a chessboard shown field by field, then as a whole (SAM-kNN)",
    ),
    "squares": (
        _whole(drifting.make_moving_squares),
        _names(2),
        "four squares that move to and fro (SAM-kNN)",
    ),
    "sea": (_whole(drifting.make_sea), _names(3), "the SEA concepts: a threshold that jumps"),
    "hyperplane": (
        _whole(drifting.make_rotating_hyperplane),
        _names(10),
        "a hyperplane that turns all the time",
    ),
    "interchanging-rbf": (
        _whole(drifting.make_interchanging_rbf),
        _names(2),
        "Gaussians that take one another's places (SAM-kNN)",
    ),
    "trees": (
        _whole(drifting.make_random_trees),
        _names(10),
        "rules along the axes: random trees, one after the other",
    ),
    "board": (
        _whole(drifting.make_changing_board),
        _names(2),
        "a board of which some fields change every 2000 rows",
    ),
    "relevance": (
        _whole(drifting_numbers.make_changing_relevance),
        _names(12, "y"),
        "a curve over 3 of 12 columns, others every 5000 rows",
    ),
    "walk": (
        _whole(drifting_numbers.make_random_walk),
        "last before third y",
        "a random walk: the next value from the last three",
    ),
    "seasonal": (
        _whole(drifting_numbers.make_seasonal),
        "time place last before third y",
        "a series with a season and a trend",
    ),
    "late-categories": (
        _whole(drifting_numbers.make_late_categories),
        "returned",
        "orders of shops that open one after the other: texts",
    ),
}


def _generated(name: str, rows: int, seed: int) -> Tables:
    blocks, names, _ = GENERATORS[name]
    for block in blocks(rows, random_state=seed):
        if isinstance(block, dict):
            yield block
        else:
            X, y = block
            yield dict(zip(names.split(), [*X.T, y], strict=True))


def list_all(
    folder: Annotated[
        Optional[Path], typer.Option(help="A folder of .npz files; by default $KERNELSTREAM_DATA.")
    ] = None,
) -> None:
    """What can be generated, and the data sets of a folder."""
    table = Table("name", "target", "what it is")
    for name, (_, columns, text) in GENERATORS.items():
        table.add_row(name, columns.split()[-1], f"generated: {text}")
    with contextlib.suppress(FileNotFoundError):
        for name in list_datasets(folder):
            table.add_row(escape(name), "target", "stored")
    Console().print(table)


def generate(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(GENERATORS)}.")],
    out: Annotated[str, typer.Option(help="A .csv, .parquet or .npz file; - is standard output.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same rows.")] = 0,
) -> None:
    """Write a generated stream."""
    if name not in GENERATORS:
        raise not_accepted("the name", name, list(GENERATORS))
    if out != "-":
        check_outputs({"--out": Path(out)})
    write_table(out, _generated(name, rows, seed), GENERATORS[name][1].split()[-1])


def convert(
    source: Annotated[str, typer.Argument(help="A file in any format that learn reads.")],
    out: Annotated[str, typer.Option(help="A .csv, .parquet, .npz or .libsvm file.")],
    target: Annotated[
        str, typer.Option(help="The target column; .npz and .libsvm need to know it.")
    ] = "target",
    **reading: Any,
) -> None:
    """Write a stream in another format.

    Batch by batch: only .npz files are made as a whole.
    """
    if out != "-":
        check_outputs({"--out": Path(out)}, source)
    rows = open_rows(source, batch_rows=_ROWS, **reading)
    with contextlib.closing(rows):
        if out.endswith((".libsvm", ".svm")):
            _write_libsvm(out, rows, target)
        else:
            write_table(out, (table for batch in rows for table in _tables(batch)), target)
        warn_of_bad_rows(rows)


options.add_options(
    convert,
    {**options.FILE, "n_features": options.READING["n_features"], "on_bad": options.ON_BAD},
)


def _tables(batch: Batch) -> Tables:
    """A batch as plain columns; features without names become f0, f1, ..."""
    width = 0 if batch.matrix is None else batch.matrix.shape[1]
    step = max(1, _ENTRIES // max(width, 1))
    for start in range(0, len(batch), step):
        stop = min(start + step, len(batch))
        columns: dict[str, Any] = {}
        if batch.matrix is not None:
            part = slice_rows(batch.matrix, start, stop)
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            columns = {f"f{j}": dense[:, j] for j in range(width)}
        for name, column in batch.columns.items():
            columns[name] = plain(column)[start:stop]
        yield columns


def write_table(out: str, tables: Tables, target: str) -> None:
    """Write columns batch by batch; the suffix chooses the format."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if out.endswith(".npz"):
        _write_npz(out, tables, target)
        return
    if out != "-" and not out.endswith((".csv", ".tsv", ".parquet")):
        raise UserError(f"{out} has a suffix that cannot be written",
                        "use .csv, .tsv, .parquet, .npz or .libsvm")  # fmt: skip
    with contextlib.ExitStack() as stack:
        if out == "-":
            stack.enter_context(naming("standard output"))
            place = data_bytes()
        else:
            place = stack.enter_context(replacing(Path(out)))
        writer: Any = None
        for columns in tables:
            table = pa.table({name: _arrow(column) for name, column in columns.items()})
            if writer is None and out.endswith(".parquet"):
                writer = stack.enter_context(pyarrow.parquet.ParquetWriter(place, table.schema))
            elif writer is None:
                mark = "\t" if out.endswith(".tsv") else ","
                style = pyarrow.csv.WriteOptions(delimiter=mark, quoting_style="needed")
                writer = stack.enter_context(
                    pyarrow.csv.CSVWriter(place, table.schema, write_options=style)
                )
            writer.write_table(table)


def _arrow(column: Any) -> Any:
    """By the kind of column alone, never by the values: all batches have the same types."""
    import pyarrow as pa

    array = np.asarray(column)
    if array.dtype.kind == "f":
        return pa.array(array, mask=np.isnan(array))
    if array.dtype.kind in "OU":
        return pa.array(array.tolist(), pa.string())
    return pa.array(array)


def _write_npz(out: str, tables: Tables, target: str) -> None:
    parts = list(tables)  # the format holds whole arrays
    names = [name for name in parts[0] if name != target]
    if target not in parts[0]:
        raise UserError(f"there is no column {target!r}", f"--target is one of: {', '.join(names)}")
    whole = {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}
    unfit = [name for name in names if whole[name].dtype.kind not in "biuf"]
    if unfit:
        raise UserError(
            f"column {unfit[0]!r} does not hold numbers", "write .csv or .parquet instead"
        )
    y = whole[target]
    if y.dtype.kind == "O":
        y = y.astype(str)
    with replacing(Path(out)) as place:
        np.savez_compressed(place, X=np.column_stack([whole[name] for name in names]), y=y)


def _write_libsvm(out: str, rows: Any, target: str) -> None:
    from sklearn.datasets import dump_svmlight_file

    with replacing(Path(out)) as place:
        for batch in rows:
            y = batch.columns.get(target)
            if y is None or kind_of(y) != "number":
                raise UserError(f"LIBSVM text needs a target of numbers, {target!r} is none",
                                "name it with --target, or write .csv instead")  # fmt: skip
            if batch.matrix is not None:
                X = batch.matrix
            else:
                names = [name for name in batch.columns if name != target]
                for name in names:
                    column = batch.columns[name]
                    if kind_of(column) != "number" or np.isnan(column).any():
                        raise UserError(f"column {name!r} holds more than numbers: texts, dates "
                                        "or gaps", "write .csv instead")  # fmt: skip
                X = np.column_stack([batch.columns[name] for name in names])
            dump_svmlight_file(X, y, place, zero_based=False)
