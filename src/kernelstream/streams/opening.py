"""One way into all sources: `open_stream`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from kernelstream.streams.batch import Source
from kernelstream.streams.columnar import open_frame
from kernelstream.streams.errors import StreamError
from kernelstream.streams.formats import Format, Reading, formats
from kernelstream.streams.memory import ArraySource


def open_stream(
    source: Any,
    *,
    target: str | Sequence[str] | None = None,
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
    live: bool = False,
    decimal: str | None = None,
) -> Source:
    """Read rows in batches, from a file of any size, standard input, arrays or a data frame.

    Parameters
    ----------
    source : path, "-", (X, y) or data frame
        Files by their suffix: .csv, .tsv, .libsvm, .svm (all also with .gz), .parquet, .arrow,
        .feather, .npz with `X, y` or, of a split data set, its `X_train, y_train`. "-" is
        standard input, CSV unless `format` says otherwise.
    target : str or sequence of str, default=None
        A column that must be there, or several. Sources without column names have one, "target".
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
        Between the fields of a CSV file. None: a comma; or a semicolon, tab or bar where the header
        has one of these and no comma.
    header : bool, default=True
        False: a CSV file begins with data; columns are named c0, c1, ...
    n_features : int, default=None
        Width of LIBSVM rows. None: the largest index, which takes a pass over the file.
    live : bool, default=False
        Hand out the rows of text that are there without waiting for a whole batch. How rows are
        cut into batches then depends on the sender.
    decimal : {",", "."}, default=None
        The decimal mark of numbers in CSV files. None: a comma where the first batch shows it
        beyond doubt, in columns in which every value is such a number: 5,5 does, but 1,234 may be
        a whole number, and where other columns have points nothing is certain.

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
    reading = Reading(
        target, batch_rows, on_bad, quarantine, position, dict(schema or {}), columns, drop,
        delimiter, header, n_features, live, decimal,
    )  # fmt: skip
    if isinstance(source, tuple) and len(source) == 2:
        return ArraySource(*source, reading)
    if not isinstance(source, str | os.PathLike):
        return open_frame(source, reading)
    path = os.fspath(source)
    chosen = _find_format(path, format)
    return chosen.open(path, chosen.name, reading)  # type: ignore[no-any-return]


def _find_format(path: str, name: str | None) -> Format:
    known = formats()
    if path == "-":
        name = name or "csv"
        if name not in known or not known[name].is_text:
            text = ", ".join(each.name for each in known.values() if each.is_text)
            raise StreamError(f"Standard input can be {text}, not {name!r}: name a file.")
        return known[name]
    if name is None:
        return _format_of_suffix(path, known)
    if name not in known:
        raise StreamError(f"format must be one of {', '.join(known)}, not {name!r}.")
    return known[name]


def _format_of_suffix(path: str, known: dict[str, Format]) -> Format:
    if os.path.isdir(path):
        raise StreamError(f"{path} is a directory: name one of the files in it.")
    suffixes = {suffix: format for format in known.values() for suffix in format.suffixes}
    packed = {f"{end}.gz": format for end, format in suffixes.items() if format.is_text}
    stem, suffix = os.path.splitext(path.lower())
    if suffix == ".gz":
        suffix = os.path.splitext(stem)[1] + suffix
    try:
        return (suffixes | packed)[suffix]
    except KeyError:
        raise StreamError(
            f"{path}: the suffix {suffix!r} does not tell the format. "
            f"Name one of {', '.join(known)} with --format (format=); "
            f"suffixes that do: {', '.join(suffixes)}."
        ) from None
