"""Candidates of a search, and the file from which it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernelstream import storage
from kernelstream.evaluation import Prequential
from kernelstream.parts import part_of, prefixed
from kernelstream.pipeline import StreamModel
from kernelstream.runs._checkpoints import Scored, differences
from kernelstream.runs._reading import RunError, Spelling
from kernelstream.streams import StreamError

_KIND = "Tuning"


@dataclass
class Trial:
    """A candidate."""

    number: int  #: 0 is the one in which nothing was chosen.
    parameters: dict[str, Any]  #: That were chosen.
    scored: Scored | None = None  #: While it is in the search.
    rows: int = 0  #: That it was measured on.
    value: float = float("nan")  #: The metric over all of them.
    problem: str = ""  #: Why it failed.


class State(NamedTuple):
    """Where a search stands."""

    position: Any
    schema: dict[str, str]
    metric: str
    samples: int
    trials: list[Trial]


def write(path: Path, settings: Mapping[str, Any], state: State) -> None:
    """One file, replaced atomically; the folder is made where there is none."""
    listed: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for trial in state.trials:
        about: dict[str, Any] = {
            "number": trial.number, "parameters": trial.parameters, "rows": trial.rows,
            "value": trial.value if trial.value == trial.value else None,
            "problem": trial.problem, "model": None, "score": None,
        }  # fmt: skip
        if trial.scored is not None:
            parts = {"model": trial.scored.model._document(), "score": trial.scored.score.state()}
            for part, (about[part], held) in parts.items():
                arrays |= prefixed(f"{trial.number}:{part}:", held)
        listed.append(about)
    header = {
        "plan": dict(settings), "position": state.position, "schema": state.schema,
        "metric": state.metric, "samples": state.samples, "trials": listed,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    storage.write(path, _KIND, header, arrays)


def read(path: Path, settings: Mapping[str, Any], spelling: Spelling) -> State:
    """The search that was begun with these settings; RunError for any other file."""
    try:
        document = storage.read(path)
    except storage.ModelFileError as error:
        raise RunError(str(error), "delete it and start again") from None
    if document.kind != _KIND:
        raise RunError(f"{path} is no search", f"name the folder given to {spelling('checkpoint')}")
    header = document.header
    try:
        if differ := differences(settings, header["plan"], spelling):
            raise RunError(
                f"the search in {path.parent} was begun with other settings: {differ}",
                f"give the same, or another {spelling('checkpoint')} folder",
            )
        trials = [_restored(about, document.arrays) for about in header["trials"]]
    except (RunError, StreamError, OSError, MemoryError):
        raise
    except Exception as error:  # what a file holds may lead to any: see storage.believing
        raise RunError(
            f"{path} cannot be gone on from: {error!r}", "delete it and start again"
        ) from error
    held = [trial.scored.model for trial in trials if trial.scored is not None]
    for model in held[1:]:  # rows are prepared once for all
        model.preparation = held[0].preparation
    return State(header["position"], header["schema"], header["metric"], header["samples"], trials)


def _restored(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Trial:
    value = float("nan") if about["value"] is None else float(about["value"])
    trial = Trial(
        int(about["number"]), dict(about["parameters"]), None, int(about["rows"]), value,
        str(about["problem"]),
    )  # fmt: skip
    if about["model"] is not None:
        taught, measured = (
            part_of(f"{trial.number}:{part}:", arrays) for part in ("model", "score")
        )
        document = storage.Document("StreamModel", about["model"], taught)
        model = StreamModel._from_document(document)
        score = Prequential.restore(model.estimator, about["score"], measured)
        trial.scored = Scored(model, score)
    return trial
