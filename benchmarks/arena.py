"""Every online method on every stream at every budget: error, time, points, bytes.

Long: a night. What is measured is kept in ``build/``, cell by cell, so that a run goes on where an
earlier one was stopped. ``--quick`` has shorter streams, one order, two budgets and fewer trials;
``KERNELSTREAM_BENCH_SHARE=0.25`` lies between: all orders and budgets, shorter streams, fewer
trials. ``KERNELSTREAM_BENCH_JOBS=2`` measures two streams at a time,
``KERNELSTREAM_BENCH_METHODS=auto,polk`` these methods only: the page takes the cells of the others
from ``benchmarks/recorded``.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.arena_methods import Contestant, candidate, contestants
from benchmarks.arena_streams import ORDERS, ROWS, Contest, prepared, sources
from benchmarks.share import share
from kernelstream import registry
from kernelstream.errors import CapWarning, DivergenceError, IllConditionedError

BUDGETS = (50, 100, 200, 400)
#: Of targets, in deviations: what lies beyond counts as this for methods that measure nothing.
FARTHEST = 10.0
#: What stands for no method at all.
BASELINES = ("no-change", "prior")

Cell = dict[str, Any]


class Plan(NamedTuple):
    """How much is measured."""

    rows: int  # of a stream at most
    first: int  # of which these choose the parameters, and are not scored
    orders: int
    budgets: tuple[int, ...]
    trials: int

    @property
    def usual(self) -> int:
        """The budget of diagrams and of the verdict."""
        return self.budgets[1]

    def search_rows(self, rows: int) -> int:
        """Of a stream with so many rows, those that choose the parameters."""
        return min(self.first, rows // 4)


def plan() -> Plan:
    """The whole arena, one with shorter streams, or the small one."""
    if share() >= 1.0:
        return Plan(ROWS, 2000, ORDERS, BUDGETS, 20)
    rows = max(400, int(share() * ROWS))
    if share() > 0.1:
        return Plan(rows, 500, ORDERS, BUDGETS, 8)
    return Plan(rows, 400, 1, (50, 200), 6)


def main() -> None:
    """Measure what is missing, then write results, pictures and pages."""
    from benchmarks import arena_page

    jobs = int(os.environ.get("KERNELSTREAM_BENCH_JOBS", "1"))
    tasks = [(name, order) for name in sources() for order in range(plan().orders)]
    Parallel(n_jobs=jobs)(delayed(measure_stream)(*task) for task in tasks)
    arena_page.main()


def measure_stream(name: str, order: int) -> None:
    """All cells of a stream in one order that are missing."""
    today = plan()
    done = {(c["stream"], c["order"], c["method"], c["budget"]) for c in stored()}
    numbers = sources()[name].numbers
    methods = wanted(contestants(numbers))
    missing = [
        (method, budget) for method in methods for budget in today.budgets
        if (name, order, method, budget) not in done
    ]  # fmt: skip
    idle = [each for each in BASELINES if (name, order, each, 0) not in done]
    if not missing and not idle:
        return
    stream = prepared(name, order, today.rows)
    about = {"stream": name, "order": order, "numbers": numbers, "rows": len(stream.y)}
    for method in idle:
        keep(about | {"method": method, "budget": 0} | _baseline(method, stream))
    with threadpool_limits(1):
        warm: set[str] = set()
        for method, budget in missing:
            if method not in warm:  # compiled before it is timed
                attempt(methods[method], {}, budget, stream.first(200), order)
                warm.add(method)
            cell = measure(methods[method], budget, stream, order)
            keep(about | {"method": method, "budget": budget} | cell)
    print(name, "order", order, "done", flush=True)


def wanted(methods: dict[str, Contestant]) -> dict[str, Contestant]:
    """Those to measure: all unless the environment names some, as the registry has them."""
    named = os.environ.get("KERNELSTREAM_BENCH_METHODS")
    if not named:
        return methods
    names = [name.strip() for name in named.split(",")]
    unknown = sorted({*names} - {*registry.models()})
    if unknown:
        raise SystemExit(f"no method named {unknown[0]}; there are {', '.join(registry.models())}")
    return {name: each for name, each in methods.items() if each.method in names}


# ---- one method on one stream ----------------------------------------------------------------


def measure(contestant: Contestant, budget: int, stream: Contest, seed: int) -> Cell:
    """Choose parameters on the first rows, then learn the stream from its beginning with them."""
    today = plan()
    first = today.search_rows(len(stream.y))
    part = stream.first(first)
    found: list[tuple[float, dict[str, Any]]] = []
    for trial in range(today.trials):
        parameters = candidate(contestant, trial, stream.features)
        if trial and not parameters:  # nothing to choose
            break
        error, *_ = attempt(contestant, parameters, budget, part, seed, since=first // 4)
        found.append((error, parameters))
    _, chosen = min(found, key=lambda each: each[0])
    error, micros, model, failed = attempt(contestant, chosen, budget, stream, seed, since=first)
    cell: Cell = {"error": error, "us": micros, "parameters": chosen, "failed": failed}
    return cell | {
        "points": getattr(model, "model_order_", 0) if model is not None else 0,
        "bytes": int(model.nbytes_) if model is not None else 0,
    }


def attempt(
    contestant: Contestant,
    parameters: dict[str, Any],
    budget: int,
    stream: Contest,
    seed: int,
    since: int = 0,
) -> tuple[float, float, Any, str]:
    """The error after row ``since``, microseconds a row, the model, and why it failed if it did."""
    given = {**parameters, **contestant.fixed, "max_points": budget, "random_state": seed}
    model = contestant.kind(**given)
    start = time.process_time()  # of the processor: others may use the machine, too
    try:
        with warnings.catch_warnings(category=CapWarning, action="ignore"):
            made = _predict(model, stream)
    except (DivergenceError, IllConditionedError, ValueError) as failure:
        return np.inf, np.inf, None, f"{type(failure).__name__}: {failure}"[:200]
    micros = 1e6 * (time.process_time() - start) / len(stream.y)
    return score(made, stream, since), micros, model, ""


def _predict(model: Any, stream: Contest) -> Any:
    """Each row predicted, then learned from."""
    own_units = model._measures_targets
    X = stream.raw if own_units else stream.X
    if not stream.numbers:
        return model.predict_then_learn(X, stream.y, classes=np.unique(stream.y))
    if own_units:
        return model.predict_then_learn(X, stream.y)
    measured = np.clip((stream.y - stream.center) / stream.scale, -FARTHEST, FARTHEST)
    return stream.center + stream.scale * model.predict_then_learn(X, measured)


def score(made: Any, stream: Contest, since: int) -> float:
    """Mistakes in %, or the root of the mean squared error in deviations of the target."""
    made, y = made[since:], stream.y[since:]
    if not stream.numbers:
        return 100.0 * float(np.mean(made != y))
    return float(np.sqrt(np.mean((made - y) ** 2)) / (y.std() or 1.0))


def _baseline(method: str, stream: Contest) -> Cell:
    """Without learning: the last target again; the most frequent label or the mean so far."""
    y = stream.y
    if method == "no-change":
        made = np.concatenate([y[:1], y[:-1]])
    elif stream.numbers:
        made = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))])
    else:
        counts = np.cumsum(np.eye(y.max() + 1, dtype=np.int64)[y], axis=0)
        made = np.concatenate([[0], counts[:-1].argmax(axis=1)])
    error = score(made, stream, plan().search_rows(len(y)))
    return {
        "error": error, "us": 0.0, "parameters": {}, "failed": "", "points": 0, "bytes": 0
    }  # fmt: skip


# ---- cells -----------------------------------------------------------------------------------


def results(suffix: str) -> Path:
    """Where results are kept; the small arena has its own."""
    return Path("build") / f"arena-{share():g}.{suffix}"


def stored() -> Iterator[Cell]:
    """What has been measured so far; a line that was not finished counts as missing."""
    if results("jsonl").exists():
        for line in results("jsonl").read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def keep(cell: Cell) -> None:
    """Append a cell."""
    results("jsonl").parent.mkdir(exist_ok=True)
    with open(results("jsonl"), "a") as file:
        file.write(json.dumps(cell) + "\n")
