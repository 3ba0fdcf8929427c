"""One way into all sources: `open_stream`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from kernelstream.streams.bad_rows import POLICIES
from kernelstream.streams.batch import Source
from kernelstream.streams.columnar import open_frame, open_ipc, open_parquet
from kernelstream.streams.delimited import DelimitedSource
from kernelstream.streams.errors import StreamError
from kernelstream.streams.libsvm import LibsvmSource
from kernelstream.streams.memory import ArraySource, check_matrix_target, open_npz

#: How file names end -> the format.
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "feather",
    ".npz": "npz",
}
_TEXT = ("csv", "tsv", "libsvm")


def open_stream(
    source: Any,
    *,
    target: str | None = None,
    batch_rows: int = 8192,
    on_bad: str = "raise",
    quarantine: str | os.PathLike[str] | None = None,
    position: dict[str, Any] | None = None,
    schema: dict[str, str] | None = None,
    format: str | None = None,
    columns: list[str] | None = None,
    drop: Sequence[str] = (),
    delimiter: str | None = None,
    header: bool = True,
    n_features: int | None = None,
) -> Source:
    """Read rows in batches, from a file of any size, standard input, arrays or a data frame.

    Parameters
    ----------
    source : path, "-", (X, y) or data frame
        Files by their suffix: .csv, .tsv, .libsvm, .svm (all also with .gz), .parquet, .arrow,
        .feather, .npz with `X, y` or, of a split data set, its `X_train, y_train`. "-" is
        standard input, CSV unless `format` says otherwise.
    target : str, default=None
        A column that must be there. Sources without column names have one, "target".
    batch_rows : int, default=8192
        Rows of a batch; bad ones among them are missing from it.
    on_bad : {"raise", "skip", "quarantine"}, default="raise"
        What is done with rows of text files that do not fit: the wrong number of fields, or
        values of another kind than in the first batch. They are counted in `bad` of the source.
    quarantine : path, default=None
        For on_bad="quarantine": the file to which bad rows are added as they stand.
    position : dict, default=None
        `position` of an earlier source: go on after the last batch that it handed out. Needs
        its `schema` too.
    schema : dict of str to {"number", "text", "date"}, default=None
        Kinds of columns that are not left to the first batch. Columns that the source does not
        have are passed over.
    format : str, default=None
        "csv", "tsv", "libsvm", "parquet", "arrow", "feather" or "npz", whatever the suffix.
    columns : list of str, default=None
        Hand out only these and the target.
    drop : sequence of str, default=()
        Do not even read these.
    delimiter : str, default=None
        Between the fields of a CSV file, where it is no comma.
    header : bool, default=True
        False: a CSV file begins with data; columns are named c0, c1, ...
    n_features : int, default=None
        Width of LIBSVM rows. None: the largest index, which takes a pass over the file.

    Returns
    -------
    Source
        An iterator of batches.

    Raises
    ------
    StreamError
        With cause and cure in one line.

    Examples
    --------
    >>> import tempfile
    >>> from kernelstream.streams import open_stream
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
    ...     _ = file.write("load,city\\n1.5,Ulm\\n,Bonn\\n")
    >>> stream = open_stream(file.name, target="load")
    >>> stream.schema
    {'load': 'number', 'city': 'text'}
    >>> batch = next(stream)
    >>> batch.columns["load"], batch.columns["city"].values, batch.lines
    (array([1.5, nan]), ['Ulm', 'Bonn'], array([2, 3]))
    """
    if not (isinstance(batch_rows, int) and batch_rows >= 1):
        raise StreamError(f"batch_rows must be a whole number of at least 1, not {batch_rows!r}.")
    if on_bad not in POLICIES:
        raise StreamError(f"on_bad must be one of {', '.join(POLICIES)}, not {on_bad!r}.")
    if on_bad == "quarantine" and quarantine is None:
        raise StreamError(
            "Quarantine needs a file for the rows: name it with --quarantine (quarantine=)."
        )
    rows: dict[str, Any] = {"batch_rows": batch_rows, "position": position}
    bad: dict[str, Any] = {"on_bad": on_bad, "quarantine": quarantine}
    table: dict[str, Any] = {"target": target, "columns": columns, "drop": drop, "schema": schema}

    if isinstance(source, tuple) and len(source) == 2:
        _check_position(position, "arrays")
        _check_no_drop("the arrays", drop)
        return ArraySource(*source, target=target, **rows)
    if not isinstance(source, str | os.PathLike):
        _check_position(position, "frame")
        return open_frame(source, **table, **rows)
    path = os.fspath(source)
    format = _find_format(path, format)
    _check_position(position, format)
    if format in ("csv", "tsv"):
        csv: dict[str, Any] = {"format": format, "delimiter": delimiter, "header": header}
        return DelimitedSource(path, **csv, **table, **rows, **bad)
    if format in ("libsvm", "npz"):
        _check_no_drop(path, drop)
    if format == "libsvm":
        check_matrix_target(path, target)
        return LibsvmSource(path, n_features=n_features, **rows, **bad)
    if format == "parquet":
        return open_parquet(path, **table, **rows)
    if format == "npz":
        return open_npz(path, target=target, **rows)
    return open_ipc(path, format, **table, **rows)


def _find_format(path: str, format: str | None) -> str:
    known = ", ".join(dict.fromkeys(SUFFIXES.values()))
    if path == "-":
        format = format or "csv"
        if format not in _TEXT:
            raise StreamError(
                f"Standard input can be {', '.join(_TEXT)}, not {format!r}: name a file."
            )
        return format
    if format is None:
        if os.path.isdir(path):
            raise StreamError(f"{path} is a directory: name one of the files in it.")
        stem, suffix = os.path.splitext(path.lower())
        if suffix == ".gz":
            suffix = os.path.splitext(stem)[1]
            suffix = suffix if SUFFIXES.get(suffix) in _TEXT else f"{suffix}.gz"
        format = SUFFIXES.get(suffix)
        if format is None:
            raise StreamError(
                f"{path}: the suffix {suffix!r} does not name the format. "
                f"Name one of {known} with --format (format=); "
                f"suffixes that do: {', '.join(SUFFIXES)}."
            )
    if format not in SUFFIXES.values():
        raise StreamError(f"format must be one of {known}, not {format!r}.")
    return format


def _check_no_drop(name: str, drop: Sequence[str]) -> None:
    if drop:
        raise StreamError(f"{name} has no column names: {drop[0]!r} cannot be left out.")


def _check_position(position: dict[str, Any] | None, format: str) -> None:
    if position is None:
        return
    for name in {"offset", "line", "rows", "row", "n_features"} & set(position):
        if type(position[name]) is not int or not 0 <= position[name] < 2**62:
            raise StreamError(f"The position has no valid {name}: start again.")
    if position.get("format") != format:
        raise StreamError(
            f"The position is one in {position.get('format')!r} data, this is {format!r}. "
            "Resume with the source that was read before."
        )
