"""What the tests of sources share."""

import numpy as np

from kernelstream.streams import Text, open_stream


def as_list(column):
    """Values of a column, None where missing."""
    if isinstance(column, Text):
        return [None if code < 0 else column.values[code] for code in column.codes]
    return [None if value != value else value for value in column.tolist()]


def read_all(source, **options):
    """All rows of all columns, and the lines."""
    stream = open_stream(source, **options)
    rows = {name: [] for name in stream.schema}
    lines = []
    for batch in stream:
        assert len(batch) > 0
        for name, column in batch.columns.items():
            assert len(column) == len(batch)
            rows[name] += as_list(column)
        lines += batch.lines.tolist()
    stream.close()
    return rows, lines, stream


def same_batches(ours, theirs):
    """Whether two lists of batches are equal to the last bit."""
    return len(ours) == len(theirs) and all(map(_same_batch, ours, theirs))


def _same_batch(ours, theirs):
    if list(ours.columns) != list(theirs.columns) or ours.lines.tolist() != theirs.lines.tolist():
        return False
    for name, column in ours.columns.items():
        other = theirs.columns[name]
        if isinstance(column, Text):
            if column.values != other.values or column.codes.tolist() != other.codes.tolist():
                return False
        elif column.dtype != other.dtype or column.tobytes() != other.tobytes():
            return False
    return (ours.matrix is None) == (theirs.matrix is None) and (
        ours.matrix is None or np.array_equal(_dense(ours.matrix), _dense(theirs.matrix))
    )


def _dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
