"""The file from which a run goes on: settings, place in the stream, models and scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kernelstream import registry, storage
from kernelstream.evaluation import Prequential
from kernelstream.parameters import parameters_of
from kernelstream.parts import part_of, prefixed
from kernelstream.pipeline import StreamModel
from kernelstream.renamed import with_new_names
from kernelstream.runs._methods import as_stored
from kernelstream.runs._reading import RunError, Spelling
from kernelstream.streams import StreamError

_KIND = "Checkpoint"
#: Settings whose names in the file are not those of parameters.
_NAMES = {"method": "model", "columns": "schema", "against_neutral": "report"}

#: Defaults of version 0.1, and what they are now.
_CHANGED_DEFAULTS = {
    "method": ("polk", "auto"), "units": ("frozen", "moving"), "buckets": (256, None)
}  # fmt: skip
#: The default before the first batch decided: such a run goes on as it was.
_BUCKETS = 128


class Scored(NamedTuple):
    """A model and how well it does."""

    model: StreamModel
    score: Prequential


class Checkpoint(NamedTuple):
    """What a run needs to go on."""

    settings: dict[str, Any]
    position: Any
    schema: dict[str, str]
    own: Scored
    neutral: Scored | None  # see Run.neutral

    def write(self, path: Path) -> None:
        """One file, replaced atomically; the folder is made where there is none."""
        header: dict[str, Any] = {
            "plan": self.settings,
            "position": self.position,
            "schema": self.schema,
        }
        parts = {"model": self.own.model._document(), "score": self.own.score.state()}
        if self.neutral is not None:
            parts["neutral"] = self.neutral.model._document()
            parts["neutral score"] = self.neutral.score.state()
        named: dict[str, Any] = {}
        for part, (header[part], arrays) in parts.items():
            named |= prefixed(f"{part}:", arrays)
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write(path, _KIND, header, named)

    @classmethod
    def read(cls, path: Path, settings: Mapping[str, Any], spelling: Spelling) -> Checkpoint:
        """The checkpoint of a run with these settings; RunError for any other file."""
        try:
            document = storage.read(path)
        except storage.ModelFileError as error:
            raise RunError(str(error), "delete it and start again") from None
        if document.kind != _KIND:
            cure = f"name the folder given to {spelling('checkpoint')}"
            raise RunError(f"{path} is not a checkpoint", cure)
        try:
            if differ := differences(settings, document.header["plan"], spelling):
                raise RunError(
                    f"the checkpoint in {path.parent} was made with other settings: {differ}",
                    f"give the same, or another {spelling('checkpoint')} folder",
                )
            return _restored(document)
        except (RunError, StreamError, OSError, MemoryError):
            raise
        except Exception as error:  # what a file holds may lead to any: see storage.believing
            raise RunError(
                f"{path} cannot be gone on from: {error!r}", "delete it and start again"
            ) from error


def _restored(document: storage.Document) -> Checkpoint:
    header = document.header

    def scored(model: str, score: str) -> Scored:
        taught, measured = (part_of(f"{part}:", document.arrays) for part in (model, score))
        own = StreamModel._from_document(storage.Document("StreamModel", header[model], taught))
        return Scored(own, Prequential.restore(own.estimator, header[score], measured))

    neutral = scored("neutral", "neutral score") if header.get("neutral") else None
    return Checkpoint(
        header["plan"], header["position"], header["schema"], scored("model", "score"), neutral
    )


def differences(now: Mapping[str, Any], then: Mapping[str, Any], spelling: Spelling) -> str:
    """The settings in which two runs differ, as a user knows them.

    None and "not given" are the same: a newer version may know more settings.
    """
    now, then = _flat(now), _with_new_names(_flat(then))
    if "units" not in then:  # written by version 0.1: its run goes on as it was
        for name, (old, new) in _CHANGED_DEFAULTS.items():
            then.setdefault(name, old)
            if (then[name], now.get(name)) == (old, new):
                then[name] = new
    if then.get("buckets") == _BUCKETS and now.get("buckets") is None:
        then["buckets"] = None
    names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
    return ", ".join(
        f"{'the file' if name == 'file' else spelling(_NAMES.get(name, name))} "
        f"({then.get(name)} then, {now.get(name)} now)"
        for name in names
    )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings side by side, the method's too."""
    settings = dict(settings)
    given = {k: v for k, v in settings.pop("parameters").items() if v is not None}
    return {**settings, **as_stored(given)}


def _with_new_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    method = registry.models().get(settings["method"])
    kinds = method.estimators if method is not None else ()
    return with_new_names(settings, {name for kind in kinds for name in parameters_of(kind)})
