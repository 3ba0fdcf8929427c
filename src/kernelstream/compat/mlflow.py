"""Models as MLflow's ``pyfunc`` flavour: logged, registered, loaded and served like any other."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernelstream
from kernelstream.streams.errors import require

_PURPOSE = "MLflow's flavour"


def save_model(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a trained model as a folder that ``mlflow.pyfunc.load_model`` reads.

    Parameters
    ----------
    model : StreamModel, estimator or path
        A path is that of a file that ``kernelstream learn --out`` or ``save`` wrote.
    path : path
        The folder, which must not be there yet.
    **options
        Those of ``mlflow.pyfunc.save_model``: ``signature``, ``input_example``, ``metadata``...

    Examples
    --------
    >>> import tempfile
    >>> from kernelstream import POLKClassifier, make_multidist
    >>> from kernelstream.compat.mlflow import save_model
    >>> X, y, X_test, y_test = make_multidist(500, n_test=5, random_state=1)
    >>> model = POLKClassifier().partial_fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model")  # doctest: +SKIP
    """
    pyfunc = require("mlflow.pyfunc", _PURPOSE, "mlflow")
    with _parts(model) as parts:
        pyfunc.save_model(os.fspath(path), **{**parts, **options})


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a trained model in the active run; returns what ``mlflow.pyfunc.log_model`` does.

    Parameters
    ----------
    model : StreamModel, estimator or path
        See :func:`save_model`.
    name : str, default="model"
    **options
        Those of ``mlflow.pyfunc.log_model``: ``registered_model_name``, ``signature``...
    """
    pyfunc = require("mlflow.pyfunc", _PURPOSE, "mlflow")
    with _parts(model) as parts:
        return pyfunc.log_model(name, **{**parts, **options})


@contextlib.contextmanager
def _parts(model: Any) -> Iterator[dict[str, Any]]:
    """The file of a model, who reads it, and what has to be installed for that."""
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(model, str | os.PathLike):
            kernelstream.load(model)  # an error now is better than one where it is served
            file = Path(model)
        else:
            file = Path(folder) / "model.ks"
            model.save(file)
        yield {
            "loader_module": __name__,
            "data_path": str(file),
            "pip_requirements": [f"kernelstream[frames]=={kernelstream.__version__}", "pandas"],
        }


def _load_pyfunc(path: str) -> Served:
    """What MLflow calls to read a model."""
    return Served(kernelstream.load(path))


class Served:
    """A loaded model with the one method that MLflow asks for."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """Labels or numbers of rows, as the model itself predicts them.

        With a ``signature`` that has such a parameter, ``params={"method": "predict_proba"}`` asks
        for another method of the model.
        """
        method = (params or {}).get("method", "predict")
        known = ("predict", "predict_proba", "decision_function", "novelty")
        if method not in known or not hasattr(self._model, method):
            raise ValueError(
                f"method is {method!r:.80}: a {type(self._model).__name__} has "
                + ", ".join(name for name in known if hasattr(self._model, name))
            )
        return getattr(self._model, method)(model_input)

    def get_raw_model(self) -> Any:
        """The model itself: it has all its methods, and learns on."""
        return self._model
