"""Data sets stored as `.npz` files in a folder that the user names."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelstream.streams.errors import StreamError
from kernelstream.streams.memory import npz_arrays

FOLDER_VARIABLE = "KERNELSTREAM_DATA"


@dataclass(frozen=True)
class Dataset:
    """Samples and targets, in the order and the dtype in which they were stored.

    Without an official split everything is in the train part, and the test part is None.
    """

    name: str
    X_train: NDArray[Any]  # (n, p)
    y_train: NDArray[Any]  # (n,)
    X_test: NDArray[Any] | None = None  # (m, p)
    y_test: NDArray[Any] | None = None  # (m,)


def load_dataset(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read `<folder>/<name>.npz`.

    Parameters
    ----------
    name : str
        The file's name without `.npz`. The file holds `X, y`, or, where an official split
        exists, `X_train, y_train, X_test, y_test`.
    folder : path, default=None
        None: the folder named by the environment variable `KERNELSTREAM_DATA`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from kernelstream.streams import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/line.npz", X=np.arange(3.0).reshape(3, 1), y=np.arange(3.0))
    ...     data = load_dataset("line", folder)
    >>> data.X_train.shape, data.X_test is None
    ((3, 1), True)
    """
    folder = _resolve_folder(folder)
    path = folder / f"{name}.npz"
    if not path.is_file():
        available = ", ".join(list_datasets(folder)) or "none"
        raise FileNotFoundError(
            f"No data set {name!r} in the folder '{folder}' (there: {available}). Another folder "
            f"can be given as `folder=` or in the environment variable {FOLDER_VARIABLE}."
        )
    with npz_arrays(path) as arrays:
        if "X_train" in arrays:
            fields = ("X_train", "y_train", "X_test", "y_test")
            return Dataset(name, *(arrays[field] for field in fields))
        if "X" in arrays:
            return Dataset(name, arrays["X"], arrays["y"])
        raise StreamError(
            f"'{path}' holds neither 'X, y' nor 'X_train, y_train, X_test, y_test' "
            f"but: {', '.join(arrays.files)}."
        )


def list_datasets(folder: str | os.PathLike[str] | None = None) -> list[str]:
    """Names that `load_dataset` can read from the folder, sorted.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from kernelstream.streams import list_datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/line.npz", X=np.ones((3, 1)), y=np.arange(3.0))
    ...     list_datasets(folder)
    ['line']
    """
    names = []
    for path in sorted(_resolve_folder(folder).glob("*.npz")):
        with suppress(StreamError), npz_arrays(path) as arrays:
            if "X" in arrays or "X_train" in arrays:
                names.append(path.stem)
    return names


def _resolve_folder(folder: str | os.PathLike[str] | None) -> Path:
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if not folder:
        raise FileNotFoundError(
            "No data folder is known: pass `folder=` or set the environment variable "
            f"{FOLDER_VARIABLE} to the folder that holds the .npz files."
        )
    return Path(folder)
