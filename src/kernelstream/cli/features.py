"""``kernelstream features``: raw rows become a file of learned features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from rich.markup import escape

from kernelstream.cli import methods, options
from kernelstream.cli.data import write_table
from kernelstream.cli.display import FeatureDisplay, grid, show_files, show_inputs, show_notes, size
from kernelstream.cli.errors import UserError, check_outputs
from kernelstream.cli.methods import check_value, parameter_options
from kernelstream.cli.options import READING, of_run
from kernelstream.cli.predict import load_file
from kernelstream.cli.running import Stop, command_typed, in_words_of_the_tool
from kernelstream.cli.spelling import as_option, option
from kernelstream.cli.terminal import Console, print_json
from kernelstream.feature_stream import StreamFeatures
from kernelstream.features import OnlineKernelFeatures
from kernelstream.runs import FeatureRun
from kernelstream.runs._methods import value_of
from kernelstream.runs._reading import PREPARING, text_of
from kernelstream.runs.extraction import DEFAULTS, make_extractor

_FEATURES = "The features (in brackets what is taken where nothing is given)"


def features(
    file: options.File, as_json: options.AsJson = False, quiet: options.Quiet = False, **given: Any
) -> None:
    """Learn features from a stream and write them, row by row, in memory that never grows.

    A row becomes a few numbers whose products approximate a kernel. They are taken from the
    subspace as it is after a hundred rows, this one among them. The fit error written beside
    them is from before: where it rises, the stream has changed.
    """
    out, apply, save, report, target = (given.pop(name) for name in _OWN)
    if out == "-" and as_json:
        raise UserError("--out - and --json would both write to standard output", "leave one out")
    if out != "-" and not out.endswith((".parquet", ".csv", ".tsv")):
        raise UserError(f"{out} has a suffix that cannot be written", "use .parquet, .csv or .tsv")
    inputs = [name for name in (file, apply) if name is not None]
    place = None if out == "-" else Path(out)
    check_outputs({"--out": place, "--save": save, "--report": report}, *inputs)
    reading, parameters = options.taken(given, "raise", "skip")
    saved = None
    if apply is not None:
        _refuse_learning(parameters, reading, save)
        saved = load_file(apply, StreamFeatures, "name a file written by features --save")
    for name, text in parameters.items():
        if isinstance(text, str):  # --align is a flag
            check_value(OnlineKernelFeatures, name, text)
    console, stop = Console(stderr=True), Stop()
    with stop.listening():
        with in_words_of_the_tool():
            run = FeatureRun(
                file, saved, target=target, parameters=parameters, make=_make, spelling=as_option,
                **reading,
            )  # fmt: skip
            with run:
                stop.watch(run, console, quiet)
                with FeatureDisplay(console, run, quiet) as display:
                    write_table(out, run.tables(display.update), "")
            if save is not None:
                run.stream.save(save)
        summary = run.summary()
        if report is not None:
            run.write_report(report, {"command": command_typed()})
        if as_json:
            print_json({**summary, "out": out, "save": text_of(save), "report": text_of(report)})
        else:
            messages = console if out == "-" else Console()
            _print_summary(messages, run, summary, out, {"extractor": save, "report": report})
    stop.exit(run)


_OWN = {
    "out": of_run(
        str, "The features: a .parquet, .csv or .tsv file; - is standard output, as CSV.", ...
    ),
    "apply": of_run(
        Optional[Path], "Learn nothing: the features of these rows by what --save wrote."
    ),
    "save": of_run(Optional[Path], "Where to write the extractor with its preparation."),
    "report": options.REPORT,
    "target": options.of_rows(Optional[str], "A column that is no input, but kept."),
}
_ALIGN = "Turn the features so that they move as little as the subspace allows."
options.add_options(
    features,
    _OWN,
    {"align": options.added(_FEATURES, Optional[bool], _ALIGN)},
    options.of_methods(
        parameter_options(OnlineKernelFeatures, DEFAULTS, without=("align",)), _FEATURES
    ),
    READING,
)


def _refuse_learning(
    parameters: Mapping[str, Any], reading: Mapping[str, Any], save: Path | None
) -> None:
    """Options that mean nothing where nothing is learned."""
    learning = ["--no-align" if value is False else option(k) for k, value in parameters.items()]
    learning += [option(name) for name in PREPARING if reading[name] != READING[name][1]]
    learning += ["--column"] * bool(reading["schema"]) + ["--save"] * (save is not None)
    if learning:
        raise UserError(
            f"{learning[0]} is for learning, and --apply learns nothing", "leave one out"
        )


def _make(parameters: Mapping[str, Any], **defaults: Any) -> OnlineKernelFeatures:
    """The extractor, with values as they were typed."""
    values = {k: value_of(v) if isinstance(v, str) else v for k, v in parameters.items()}
    extractor = make_extractor(values, **defaults)
    with methods.refusing_parameters("features --help"):
        extractor._check_parameters()
    return extractor


def _print_summary(
    console: Console,
    run: FeatureRun,
    summary: dict[str, Any],
    out: str,
    files: dict[str, Path | None],
) -> None:
    table = grid()
    rate = summary["samples"] / max(summary["wall_seconds"], 1e-9)
    table.add_row("rows", f"{summary['samples']:,}   [dim]{rate:,.0f} per second[/]")
    show_inputs(table, run.stream.preparation.inputs)
    recent = f"[dim]lately {summary['fit_error_recent']:.4f}[/]"
    table.add_row("fit error", f"{summary['fit_error']:.4f}   {recent}")
    table.add_row("stored", f"{summary['stored']:,} samples   [dim]{size(summary['bytes'])}[/]")
    table.add_row("censored", f"{100.0 * summary['censoring_rate']:.1f} % of the rows")
    changes = run.trace.changes
    for change in changes[:10]:
        table.add_row(
            "change",
            f"[yellow]at row {change.sample:,} the fit error had risen from {change.before:.4f} "
            f"to {change.after:.4f}[/]",
        )
    if len(changes) > 10:
        table.add_row("change", f"[yellow]and {len(changes) - 10:,} more[/]")
    show_notes(table, run.notes)
    where = "standard output" if out == "-" else out
    table.add_row("features", escape(f"{where} ({summary['features']} for each row)"))
    show_files(table, files)
    console.print(table, soft_wrap=True)
    if run.stopped_by is not None:
        console.print(f"Stopped by {run.stopped_by}: the rows until then are written.")
