"""The file of a model for raw rows: preparation, estimator and target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.importances import ColumnImportances
from kernelstream.models._files import embed, rebuild
from kernelstream.models.in_units import InUnits
from kernelstream.parts import part_of, prefixed
from kernelstream.preparation import Preparation
from kernelstream.targets import as_given

if TYPE_CHECKING:
    from kernelstream.pipeline import StreamModel

    Model = TypeVar("Model", bound=StreamModel)


def document_of(model: StreamModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything that a model holds, as a header and arrays."""
    preparation, prepared = model.preparation.to_document()
    note, arrays = embed(model.model, "model_")
    header = {
        "version": __version__,
        "target": as_given(model.targets),
        "task": model.task,
        "kind": model._kind,
        "unlabelled": model.unlabelled_,
        "units": None,
        "preparation": preparation,
        "model": note,
    }
    if model._small:
        header["small"] = True
    arrays |= prefixed("preparation_", prepared)
    if isinstance(model.estimator, InUnits):
        header["units"], units = model.estimator.to_document()
        arrays |= units
    if model.importances is not None:
        header["importances"], held = model.importances.to_document()
        arrays |= prefixed("importances_", held)
    if model.detector is not None:
        header["detector"], held = embed(model.detector, "detector_")
        arrays |= held
    return header, arrays


def restored(cls: type[Model], document: storage.Document) -> Model:
    """The model that a document holds; an error says what does not fit."""
    header, arrays = document.header, document.arrays
    prepared = part_of("preparation_", arrays)
    preparation = Preparation.from_document(header["preparation"], prepared)
    model = rebuild(header["model"], arrays, "model_")
    fresh = rebuild({**header["model"], "fitted": False}, {}, "")
    result = cls(fresh, preparation, header["target"], header["task"])
    if hasattr(model, "_state") and model.n_features_in_ != preparation.width:
        raise ValueError("the estimator's features are not those of the preparation")
    if hasattr(model, "_state") and len(result.targets) != getattr(model, "_n_targets", 1):
        raise ValueError("the estimator's outputs are not the targets")
    if header["kind"] not in (None, "number", "text"):
        raise ValueError("the target is not a column")
    if type(header["unlabelled"]) is not int or header["unlabelled"] < 0:
        raise ValueError("the number of rows without target is not a number")
    result.unlabelled_ = header["unlabelled"]
    result._kind = header["kind"]
    result._small = header.get("small") is True
    result.model = result.estimator = model
    result.estimator = result._in_units(model)
    if result.estimator is not model:
        result.estimator.restore(header["units"], arrays, preparation.width)
    elif header["units"] is not None:
        raise ValueError("the model has units of its own")
    if header.get("importances") is not None:
        held = part_of("importances_", arrays)
        result.importances = ColumnImportances.from_document(
            header["importances"], held, preparation.width
        )
    if header.get("detector") is not None:
        from kernelstream.models.novelty import NoveltyDetector

        result.detector = rebuild(header["detector"], arrays, "detector_")
        if not isinstance(result.detector, NoveltyDetector):
            raise ValueError("the detector of unusual rows is not one")
    return result
