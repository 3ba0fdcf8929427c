"""Damage files in every way there is: they are refused, or read as what they are."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from benchmarks import fuzz_damage as damage
from benchmarks.share import share
from benchmarks.tables import show

MODEL_FILES = 5000
ROW_FILES = 1000
#: Of each file: seconds of the processor; seconds by the clock, since others use this machine,
#: too; and bytes.
MOST_WORK, MOST_SECONDS, MOST_BYTES = 10.0, 120.0, 100 * 10**6
#: Of the tool, that are tried in turn.
COMMANDS = 16
#: What may become of a file, and what may not.
MODELS_GOOD = ("refused", "same", "another")
ROWS_GOOD = ("refused", "unnamed", "read")
_BAD = ("traceback or wrong", "hang or crash", "above 100 MB", "most MB", "longest s")
#: Failures that are printed.
SHOWN = 40

_PROCESSES = multiprocessing.get_context("spawn")


class Case(NamedTuple):
    """A damaged file, and how it is looked at."""

    kind: str
    way: str  # in which it was damaged
    data: bytes
    how: tuple[Any, ...]  # further arguments of what looks


class Seen(NamedTuple):
    """What came of a file."""

    what: str  # as an Outcome, or hang or crash
    detail: str
    seconds: float  # of the processor
    bytes: int  # of memory, at most, beyond what was there before


def main() -> None:
    """Print a table of model files and one of files of rows, and below them what went wrong."""
    models, rows = round(MODEL_FILES * share()), round(ROW_FILES * share())
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Worker(Path(folder)) as worker:
        show(
            f"{models:,} damaged model files",
            ("kind", "files", "refused", "harmless", "another model", *_BAD),
            _table(worker, damaged_models(worker.originals, models), MODELS_GOOD, failures),
        )
        show(
            f"{rows:,} damaged files of rows, read by the tool",
            ("format", "files", "refused", "refused, file not named", "read", *_BAD),
            _table(worker, damaged_rows(worker.originals, rows), ROWS_GOOD, failures),
        )
    print("", *failures[:SHOWN], f"{len(failures) or 'No'} failures.", sep="\n")


def _table(
    worker: Worker, cases: Iterator[Case], good: tuple[str, ...], failures: list[str]
) -> Iterator[tuple[Any, ...]]:
    """One row for each kind, and one for all; failures are described."""
    seen: dict[str, list[Seen]] = {}
    for number, case in enumerate(cases):
        found = worker.look(case)
        seen.setdefault(case.kind, []).append(found)
        problem = f"{found.what}: {' '.join(found.detail.split())[:300]}"
        if found.bytes > MOST_BYTES:
            problem = f"{found.bytes / 1e6:.0f} MB of memory"
        if found.what not in good or found.bytes > MOST_BYTES:
            failures.append(f"* {case.kind}, file {number}, {case.way}: {problem}")
            print(failures[-1], file=sys.stderr, flush=True)
        if number % 100 == 99:
            print(f"{number + 1:,} files, {len(failures)} failures", file=sys.stderr, flush=True)
    seen["all"] = [found for part in seen.values() for found in part]
    for kind, part in seen.items():
        count = Counter(found.what for found in part)
        large = sum(found.bytes > MOST_BYTES for found in part)
        yield (
            kind, len(part), *(count[what] for what in good), count["error"] + count["wrong"],
            count["hang"] + count["crash"], large, max(found.bytes for found in part) / 1e6,
            max(found.seconds for found in part),
        )  # fmt: skip


def damaged_models(originals: dict[str, Path], count: int) -> Iterator[Case]:
    """Every other round of kinds has a checksum that was put right again."""
    data = {name: path.read_bytes() for name, path in originals.items() if path.suffix == ".ks"}
    names = list(data)
    for number in range(count):
        random = np.random.default_rng([1, number])
        name, sealed = names[number % len(names)], number // len(names) % 2 == 1
        way: Any = damage.choose(random, damage.SEALED if sealed else damage.BYTES)
        if sealed:
            other = damage.Parts(data[damage.choose(random, names)])
            damaged = way(damage.Parts(data[name]), random, other)
        else:
            damaged = way(data[name], random)
        yield Case(name, way.__name__, damaged, (sealed,))


def damaged_rows(originals: dict[str, Path], count: int) -> Iterator[Case]:
    """Every third file comes through a pipe, where the format allows it."""
    data = {name: path.read_bytes() for name, path in originals.items() if path.suffix != ".ks"}
    names = list(data)
    for number in range(count):
        random = np.random.default_rng([2, number])
        name, turn = names[number % len(names)], number // len(names)
        way: Any = damage.choose(random, damage.ROWS_OF.get(name, damage.BYTES))
        yield Case(name, way.__name__, way(data[name], random), (turn % COMMANDS, turn % 3 == 2))


# ---- the process that looks at files --------------------------------------------------


class Worker:
    """A process that may hang, crash or be short of memory: then there is another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.originals: dict[str, Path] = {}
        self._start()

    def _start(self) -> None:
        self._connection, other = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(
            target=_work, args=(other, self._folder, self.originals), daemon=True
        )
        self._process.start()
        other.close()
        self.originals = self._connection.recv()

    def look(self, case: Case) -> Seen:
        """What becomes of a file."""
        started, used = time.perf_counter(), self._seconds()
        try:
            self._connection.send(case)
            while not self._connection.poll(0.5):
                work = self._seconds() - used
                if work > MOST_WORK or time.perf_counter() - started > MOST_SECONDS:
                    self.__exit__()
                    self._start()
                    return Seen("hang", f"no end after {work:.0f} s", work, 0)
            return self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self._start()
            return Seen("crash", f"exit code {code}", 0.0, 0)

    def _seconds(self) -> float:
        """Of the processor, by the worker so far; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


def _work(connection: Any, folder: Path, originals: dict[str, Path]) -> None:
    """Make the files, unless they are there, and look at damaged ones for ever."""
    from benchmarks import fuzz_files as files

    os.chdir(folder)
    if not originals:
        originals = files.write_models(folder) | files.write_rows(folder)
    connection.send(originals)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + 8 * 2**30,) * 2)  # the machine has others, too
    right: dict[Any, Any] = {}  # what undamaged files come to
    while True:
        case = connection.recv()
        original = originals[case.kind]
        path = folder / f"damaged-{original.name}"
        path.write_bytes(case.data)
        # The undamaged file first: it says what is right, and loads the machine code.
        if original.suffix == ".ks":
            if case.kind not in right:
                right[case.kind] = files.what_is_right(case.kind, original)
            look = partial(files.look_at_model, case.kind, path, *case.how, right[case.kind])
        else:
            if (case.kind, case.how) not in right:
                found = right[case.kind, case.how] = files.read_rows(case.kind, original, *case.how)
                if found.what != "read":
                    raise RuntimeError(f"{case.kind} {case.how}, undamaged: {found}")
            look = partial(files.read_rows, case.kind, path, *case.how)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here on
        before, started = _memory("VmRSS"), time.process_time()
        try:
            with files.strictly():
                what, detail = look()
        except Exception as error:
            what, detail = "error", f"{type(error).__name__}: {error}"
        used = time.process_time() - started
        connection.send(Seen(what, detail, used, _memory("VmHWM") - before))


def _memory(field: str) -> int:
    """Bytes of this process; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return 0
