"""``kernelstream predict`` and ``kernelstream evaluate``: a trained model on raw rows."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Optional

import typer

from kernelstream import storage
from kernelstream.cli import options
from kernelstream.cli.errors import UserError, check_outputs
from kernelstream.cli.running import open_rows, warn_of_bad_rows
from kernelstream.cli.terminal import Console, complain, data_text, print_json
from kernelstream.errors import naming
from kernelstream.pipeline import StreamModel
from kernelstream.storage import ModelFileError, replacing
from kernelstream.streams.batch import Batch, Column, Source, Text, plain
from kernelstream.streams.columns import check_present

ModelFile = Annotated[Path, typer.Argument(help="A model written by learn, merge or compress.")]
DataFile = Annotated[str, typer.Argument(help="Raw rows as learned from; - is standard input.")]

#: Columns that --explain names.
_EFFECTS = 3
#: Where more than half of at least so many rows are this unusual, it is the stream that is.
_FEWEST_ROWS, _UNUSUAL = 20, 0.95
#: Suffixes that say of a file what predictions are not.
_NOT_CSV = {".parquet", ".arrow", ".feather", ".npz", ".json", ".html", ".ks"}


def predict(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        Optional[Path], typer.Option(help="A CSV file; by default, or with -, standard output.")
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Also decision values of the classes; of models that are probabilities by "
            "themselves (auto, krlst, --loss log_loss) those.",
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", "--proba", help="Also the probability of each class."),
    ] = False,
    interval: Annotated[
        Optional[float],
        typer.Option(
            help="Also an interval, low and high, that contains the true number this often: 0.9, "
            "for example (learn --model auto or krlst). It holds for rows like the last ones that "
            "were learned from: of a changing stream, a model that no longer learns covers less."
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also the columns that decided each prediction, and how strongly: by how much it "
            "would change the other way if nothing were known of the column.",
        ),
    ] = False,
    novelty: Annotated[
        bool,
        typer.Option(
            "--novelty",
            help="Also how unusual each row is: which part of the rows learned last was less "
            "unusual, from 0 to 1; usual rows have all values equally often (learn --anomalies).",
        ),
    ] = False,
    keep: Annotated[
        Optional[list[str]],
        typer.Option(help="A column to copy in front of the prediction; may be repeated."),
    ] = None,
    **reading: Any,
) -> None:
    """Predict raw rows, one line of CSV for each: where it came from and what is predicted."""
    out = None if str(out) == "-" else out
    check_outputs({"--out": out}, file, model)
    if out is not None and out.suffix in _NOT_CSV:
        raise UserError(f"{out}: predictions are written as CSV", "use a name that ends in .csv")
    learned = load_stream_model(model)
    kept = list(dict.fromkeys(keep or []))
    beside = _score_columns(learned, scores, probabilities) | _interval_columns(learned, interval)
    if novelty and learned.detector is None:
        raise UserError(f"{model} does not know which rows are usual", "use learn --anomalies")
    if explain and len(learned.targets) > 1:
        raise UserError(
            f"--explain is of one prediction, and {model} predicts {len(learned.targets)} numbers "
            "of a row", "leave it out, or learn a model of each target",
        )  # fmt: skip
    watch = _Unusual(learned)
    if novelty:
        beside[("novelty",)] = watch.novelty
    predicted = [f"predicted_{name}" for name in learned.targets]
    ours = ["line", *predicted, *itertools.chain.from_iterable(beside)]
    ours += ["because"] * explain
    theirs = [f"{name}_" if name in ours else name for name in kept]
    source = _open(learned, file, {**reading, "live": file == "-"}, keep=kept)
    with contextlib.closing(source):
        for name in kept:
            check_present(file, name, list(source.schema))
        with _output(out) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([ours[0], *theirs, *ours[1:]])
            for batch in source:
                columns = [batch.lines.tolist(), *(_written(batch.columns[name]) for name in kept)]
                found = learned.predict(batch).reshape(len(batch), -1)
                columns += [learned.as_written(column.tolist()) for column in found.T]
                for compute in beside.values():
                    columns.extend(compute(batch).reshape(len(batch), -1).T.tolist())
                if explain:
                    columns.append(list(map(str, learned.explain(batch, _EFFECTS))))
                writer.writerows(zip(*columns, strict=True))
                if file == "-":
                    stream.flush()  # whoever sent the rows may be waiting for the answer
        warn_of_bad_rows(source)
        watch.complain()


def evaluate(
    model: ModelFile,
    file: DataFile,
    metrics: Annotated[Optional[str], typer.Option(help="Metrics, comma-separated.")] = None,
    as_json: options.AsJson = False,
    **reading: Any,
) -> None:
    """Measure a trained model on labelled rows, without learning from them.

    Beside it two baselines that know no features: no change repeats the last value of these rows,
    the other says their most frequent label, or their mean, so far.
    """
    # Not for predict, which is to answer at once.
    from rich.markup import escape

    from kernelstream.cli.display import grid, show_notes
    from kernelstream.evaluation import quality
    from kernelstream.evaluation.baselines import make_baselines
    from kernelstream.evaluation.labels import Labels
    from kernelstream.evaluation.metrics import DEFAULT_METRICS, check_names, make_metrics

    learned = load_stream_model(model)
    classification = learned.task == "classification"
    names = DEFAULT_METRICS[classification] if metrics is None else tuple(metrics.split(","))
    names = check_names([name.strip() for name in names], classification)
    unfit = {"log_loss", "auc"} & set(names)
    if unfit:
        raise UserError(f"{unfit.pop()} is measured while learning only", "use learn --metrics")
    labels = Labels() if classification else None
    score = make_metrics(names, labels, window=1)
    baselines = make_baselines(names[0], labels, window=1, lag=0)
    source = _open(learned, file, reading, labelled=True)
    rows = skipped = 0
    with contextlib.closing(source):
        for batch in source:
            targets, known = learned.targets_of(batch)
            targets = targets[known]
            score.update(targets, learned.predict(batch)[known])
            baselines.update(targets if labels is None else labels.encode(targets))
            rows, skipped = rows + int(known.sum()), skipped + int((~known).sum())
        warn_of_bad_rows(source)
    if not rows:
        raise UserError(f"no row of {file} has a value of {learned.target!r}", "nothing to measure")
    values = score.values() | baselines.values()
    result = {"rows": rows, "unlabelled": skipped, **{name: values[name] for name in names}}
    note = quality.beaten_by(names[0], values, learned.task)
    each = {}
    if len(learned.targets) > 1:
        found = zip(learned.targets, (output.values() for output in score.outputs), strict=True)
        each = {target: {name: own[name] for name in names} for target, own in found}
        result |= {"by_target": each} if as_json else {}
    if as_json:
        rules = {name: values[name] for name in ("no_change", "majority")}
        print_json({**result, **rules, "notes": [note] if note else []})
        return
    table = grid()
    for name, value in result.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else quality.number(value))
    for target, own in each.items():
        words = ", ".join(f"{name} {quality.number(value)}" for name, value in own.items())
        table.add_row(f"of {escape(target)}", words)
    table.add_row("baselines", quality.in_words(names[0], values, learned.task))
    show_notes(table, [note] if note else [])
    Console().print(table, soft_wrap=True)


for _command in (predict, evaluate):
    options.add_options(_command, {"on_bad": options.ON_BAD, **options.FILE})

#: What else than a model a file may be, and what it is for.
_OTHER_FILES = {
    "Checkpoint": ("this is the checkpoint of a run, not a model",
                   "the run's command with --resume and --out FILE writes the model"),
    "StreamFeatures": ("this file holds features, not a model",
                       "use it with kernelstream features FILE --apply"),
}  # fmt: skip


def load_stream_model(path: Path) -> StreamModel:
    """A model for raw rows."""
    cure = "name a model written by kernelstream learn"
    return load_file(path, StreamModel, cure, _OTHER_FILES)  # type: ignore[no-any-return]


def load_file(path: Path, kind: Any, cure: str, others: Any = None) -> Any:
    """What a file of this kind holds; of other kinds it is told what they are for."""
    if not path.is_file():
        raise UserError(f"there is no file {path}", cure)
    try:
        return kind.load(path)
    except ModelFileError as error:
        found = None
        with contextlib.suppress(ModelFileError):
            found = storage.read(path).kind
        raise UserError(*(others or {}).get(found, (str(error), cure))) from None


def _open(
    model: StreamModel, file: str, reading: Any, labelled: bool = False, keep: Sequence[str] = ()
) -> Source:
    """Rows read as the model's columns were when it learned; of other columns those to keep."""
    preparation = model.preparation
    used = [name for name in preparation.schema if name not in preparation.ignore]
    as_text = {name: "text" for name in keep if name not in used}  # as they stand
    reading["target"] = model.targets if labelled else None
    reading["schema"] = preparation.schema | as_text
    reading["decimal"] = reading["decimal"] or preparation.decimal
    width, columns = preparation.matrix_width, [*used, *keep] or None
    return open_rows(file, columns=columns, n_features=width, **reading)


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        with naming("standard output"):
            yield data_text()
            sys.stdout.flush()
        return
    with replacing(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
        yield text
        text.flush()
        text.detach()


def _written(column: Column) -> list[Any]:
    """The values of a column to copy; None, which is written as nothing, where one is missing.

    >>> import numpy as np
    >>> _written(np.array([7.0, 0.5, np.nan]))
    [7, 0.5, None]
    """
    values = plain(column).tolist()
    if isinstance(column, Text) or column.dtype.kind != "f":
        return values
    return [None if value != value else _short(value) for value in values]


def _short(value: float) -> float:
    """Whole numbers without a fraction, as far as all of them have a float of their own."""
    return int(value) if value.is_integer() and abs(value) <= 2**53 else value


class _Unusual:
    """Novelty of rows, and a word about it where it is not of rows but of the stream."""

    def __init__(self, model: StreamModel) -> None:
        self._model = model
        self._rows = self._unusual = 0

    def novelty(self, batch: Batch) -> Any:
        found = self._model.novelty(batch)
        self._rows += len(found)
        self._unusual += int((found > _UNUSUAL).sum())
        return found

    def complain(self) -> None:
        if self._rows >= _FEWEST_ROWS and 2 * self._unusual > self._rows:
            complain(
                f"{self._unusual:,} of {self._rows:,} rows are more unusual than "
                f"{100.0 * _UNUSUAL:.0f} % of those learned last: the stream has moved on, or "
                "these are rows of another kind; let the model learn from such rows"
            )


#: Names of further columns, and what computes them for a batch.
_Columns = dict[tuple[str, ...], Callable[[Batch], Any]]


def _score_columns(model: StreamModel, scores: bool, probabilities: bool) -> _Columns:
    if not (scores or probabilities):
        return {}
    if model.task == "regression":
        option = "--scores" if scores else "--probabilities"
        raise UserError(f"{option} is for classes", "leave it out; --interval 0.9 is for numbers")
    labels = model.as_written(model.classes_.tolist())
    of_classes = tuple(f"probability_{label}" for label in labels)
    columns: _Columns = {}
    if scores and getattr(model.model, "_follows", False):
        names = tuple(f"decision_{label}" for label in labels) if len(labels) > 2 else ("decision",)
        columns[names] = model.decision_function
    elif scores:
        columns[of_classes] = model.predict_proba
    return columns | ({of_classes: model.predict_proba} if probabilities else {})


def _interval_columns(model: StreamModel, coverage: float | None) -> _Columns:
    if coverage is None:
        return {}
    if not 0.0 < coverage < 1.0:
        raise UserError(
            f"--interval is {coverage:g}: how often the true number should lie inside",
            "give a number between 0 and 1, such as 0.9",
        )
    if not hasattr(model, "predict_interval"):
        if model.task == "classification":
            raise UserError("--interval is for numbers", "use --probabilities for classes")
        raise UserError(
            f"a {type(model.model).__name__} has no intervals", "learn with --model auto or krlst"
        )
    names = [f"{end}_{name}" for name in model.targets for end in ("low", "high")]
    if len(model.targets) == 1:
        names = ["low", "high"]
    return {tuple(names): lambda batch: model.predict_interval(batch, coverage)}
