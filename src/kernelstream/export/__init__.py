"""Trained models for places without kernelstream: ONNX, a C header, a file for NumPy alone."""

from __future__ import annotations

import os
from typing import Any

from kernelstream.export._models import describe
from kernelstream.export.c_header import write_c
from kernelstream.export.numpy_file import write_numpy
from kernelstream.export.onnx_file import write_onnx
from kernelstream.storage import replacing

__all__ = ["FORMATS", "describe", "export", "write_c", "write_numpy", "write_onnx"]

#: What a model can be exported to, and the suffix of the file.
FORMATS = {"onnx": ".onnx", "c": ".h", "numpy": ".py"}


def export(
    model: Any, path: str | os.PathLike[str], to: str | None = None, name: str = "model"
) -> None:
    """Write what a trained model predicts, preparation of raw columns included.

    It is the prediction of any row by the model as it is now; what is written learns no more.

    Parameters
    ----------
    model : StreamModel or estimator
        The inputs are the raw columns of a :class:`~kernelstream.pipeline.StreamModel`, or one
        matrix of features.
    path : path
        The file to write.
    to : {"onnx", "c", "numpy"}, optional
        By default what the suffix says: ``.onnx``, ``.h``, ``.py``.
    name : str, default="model"
        With what names begin in C.

    Examples
    --------
    >>> import runpy, tempfile
    >>> from kernelstream import POLKClassifier, make_multidist
    >>> from kernelstream.export import export
    >>> X, y, X_test, y_test = make_multidist(1000, n_test=100, random_state=1)
    >>> model = POLKClassifier().partial_fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(model, f"{folder}/model.py")
    ...     predict = runpy.run_path(f"{folder}/model.py")["predict"]
    >>> bool((predict(X_test) == model.predict(X_test)).all())
    True
    """
    if to is None:
        suffix = os.path.splitext(os.fspath(path))[1]
        known = {ending: format for format, ending in FORMATS.items()}
        if suffix not in known:
            raise ValueError(
                f"the suffix {suffix!r} is none of {', '.join(known)}: say to what the model is "
                f"exported, to= one of {list(FORMATS)}"
            )
        to = known[suffix]
    content = as_bytes(model, to, name)
    with replacing(path) as file:
        file.write(content)


def as_bytes(model: Any, to: str, name: str = "model") -> bytes:
    """The content of the file that :func:`export` writes."""
    if to not in FORMATS:
        raise ValueError(f"to must be one of {list(FORMATS)}, got {to!r:.80}")
    program = describe(model)
    if to == "onnx":
        return write_onnx(program)
    text = write_c(program, name) if to == "c" else write_numpy(program)
    return text.encode("utf-8", "surrogatepass")
