"""The automatic model, taken apart: long and degenerate streams, and each part left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.auto_streams import all_streams, read
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import AutoClassifier, AutoRegressor, streams
from kernelstream.core.experts.number_mixture import mix_numbers
from kernelstream.models._auto import _committee as committee
from kernelstream.models._auto import _group as group
from kernelstream.models._auto import _race as race
from kernelstream.models._auto import _sizes as sizes
from kernelstream.models._auto import _succession as succession

ROWS = 1_000_000
CAPS = (100_000, 200_000, 500_000, 1_000_000)
GENERATORS = {
    name.removeprefix("make_").replace("_", " "): getattr(streams, name)
    for name in (
        "make_transient_chessboard", "make_moving_squares", "make_changing_board", "make_sea",
        "make_rotating_hyperplane", "make_interchanging_rbf", "make_random_trees",
        "make_changing_relevance", "make_random_walk", "make_seasonal",
    )
}  # fmt: skip


def soak() -> None:
    """A million rows of each generator, and rows that are hard on numerics."""
    with threadpool_limits(1):
        show(
            "The automatic model on long streams",
            ["stream", "rows", "error", "largest residual", "bytes", "us per row"],
            _soaked(),
        )


def _soaked() -> Iterator[list[Any]]:
    for name, make in GENERATORS.items():
        X, y = make(int(share() * ROWS), random_state=0)
        yield _measured(name, np.asarray(X, dtype=float), y)
    for name, (X, y) in _hard(int(share() * ROWS) // 10):
        yield _measured(name, X, y)


def _hard(n: int) -> Iterator[tuple[str, tuple[Any, Any]]]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    yield "duplicates", (X[random.integers(20, size=n)], y)
    yield "collinear", (np.outer(X[:, 0], [1.0, -2.0, 0.5]), y)
    yield "constant", (np.ones((n, 3)), y)
    yield "1e149", (X * 1e149, X[:, 0] * 1e149)
    yield "one class", (X, np.zeros(n, int))
    yield "1,000 classes", (X[: n // 20], random.integers(1000, size=n // 20))


def _measured(name: str, X: Any, y: Any) -> list[Any]:
    numbers = y.dtype.kind == "f" and len(np.unique(y)) > 50
    model: Any = (AutoRegressor if numbers else AutoClassifier)(random_state=0)
    known = {} if numbers else {"classes": np.unique(y)}
    start, worst, wrong = time.process_time(), 0.0, []
    for part in np.array_split(np.arange(len(y)), 10):
        made = model.predict_then_learn(X[part], y[part], **known)
        known = {}
        wrong.append(np.abs(made - y[part]) if numbers else made != y[part])
        groups = [
            each
            for committee in model._state.experts.committees
            for each in committee.groups
            if each is not None
        ]
        worst = max(worst, *(each.residual() for each in groups))
    seconds = time.process_time() - start
    errors = np.concatenate(wrong)
    spread = np.abs(y - y.mean()).mean() or 1.0 if numbers else 1.0
    error = f"{errors.mean() / spread:.3f}" if numbers else f"{100.0 * errors.mean():.2f} %"
    each = 1e6 * seconds / len(y)
    return [name, f"{len(y):,}", error, f"{worst:.1e}", f"{model.nbytes_:,}", f"{each:.0f}"]


def ablation() -> None:
    """What each part is worth: the error without it, over that with it."""
    with threadpool_limits(1):
        show(
            "The error without a part, over that with all of them",
            ["stream", "error", *(f"without {part}" for part in PARTS)],
            _ablated(),
        )


def _ablated() -> Iterator[list[str]]:
    for name in all_streams():
        stream = read(name).first(max(500, int(share() * 20_000)))
        whole = _error(stream)
        ratios = []
        for without in PARTS.values():
            with without():
                ratios.append(f"{_error(stream) / whole:.3f}")
        yield [name, f"{whole:.4g}", *ratios]


def memory() -> None:
    """What less memory costs."""
    with threadpool_limits(1):
        show(
            "The error with at most so many bytes, over that with 4,000,000",
            ["stream", "error", *(f"{most:,}" for most in CAPS)],
            _capped(),
        )


def _capped() -> Iterator[list[str]]:
    for name in all_streams():
        stream = read(name).first(max(500, int(share() * 20_000)))
        whole = _error(stream)
        yield [name, f"{whole:.4g}", *(_ratio(stream, most, whole) for most in CAPS)]


def _ratio(stream: Any, most: int, whole: float) -> str:
    """The error with at most so many bytes, over another; or that these are too few."""
    try:
        return f"{_error(stream, max_bytes=most) / whole:.3f}"
    except ValueError as error:
        if "does not hold a single point" not in str(error):
            raise
        return "too few"


def _error(stream: Any, **caps: Any) -> float:
    """Percent of mistakes, or the root of the mean squared error in deviations."""
    if stream.numbers:
        made = AutoRegressor(random_state=0, **caps).predict_then_learn(stream.X, stream.y)
        wrong = np.square(made - stream.y)[1:]
        return float(np.sqrt(wrong.mean()) / stream.y.std())
    known = np.unique(stream.y)
    model = AutoClassifier(random_state=0, **caps)
    made = model.predict_then_learn(stream.X, stream.y, classes=known)
    return float(100.0 * np.mean(made != stream.y))


Without = Callable[[], Any]


def _nothing(*_: Any) -> None:
    pass


def _method(home: Any, name: str) -> Without:
    return lambda: patch.object(home, name, _nothing)


@contextmanager
def _without_experts(choose: Callable[[Any], Any]) -> Iterator[None]:
    make = committee.Committee._mixtures

    def fewer(self: Any) -> Any:
        mixture = make(self)
        mixture.used[:, choose(self)] = 0
        wide = (mixture.wide_shares, mixture.wide_past) if self.numbers else ()
        for shares in (mixture.shares, mixture.past, mixture.recent, *wide):
            shares *= mixture.used
            shares /= shares.sum(axis=1, keepdims=True)
        mixture.powers[:] *= mixture.used[:, None]
        if self.numbers:
            mixture.answers[:, 1:] *= mixture.used[:, -2:]
            mixture.answers[:] /= mixture.answers.sum(axis=1, keepdims=True)
        return mixture

    with patch.object(committee.Committee, "_mixtures", fewer):
        yield


def _experts(choose: Callable[[Any], Any]) -> Without:
    return lambda: _without_experts(choose)


def _one_kind_of_shares(mixture: Any, numbers: Any, *others: Any) -> None:
    """``mix_numbers`` in which the wide shares are the others before every row."""
    for row in range(len(numbers)):
        mixture.wide_shares[:] = mixture.shares
        one = slice(row, row + 1)
        mix_numbers(mixture, numbers[one], *(each[one] for each in others))


def _one_mixture(mixture: Any, numbers: Any, targets: Any, weights: Any, _: Any, out: Any) -> None:
    """``mix_numbers`` in which every row counts as like the last one."""
    mix_numbers(mixture, numbers, targets, weights, np.zeros(len(numbers)), out)


def _as_mixed(mixture: Any, numbers: Any, *others: Any) -> None:
    """``mix_numbers`` that never predicts nearer to the simplest experts."""
    for row in range(len(numbers)):
        mixture.answers[:] = [1.0, 0.0, 0.0]
        one = slice(row, row + 1)
        mix_numbers(mixture, numbers[one], *(each[one] for each in others))


#: Each part, and how to leave it out.
PARTS: dict[str, Without] = {
    "second order": _experts(lambda c: [committee.SIZE * k for k in range(len(c.groups))]),
    "first order": _experts(
        lambda c: [k for k in range(committee.SIZE * len(c.groups)) if k % committee.SIZE]
    ),
    "linear": _experts(
        lambda c: [committee.SIZE * len(c.groups) + k for k in range(len(c.linear))]
    ),
    "last targets": _experts(
        lambda c: np.setdiff1d(np.flatnonzero(c._uses_last_rows()), np.r_[c.similar])
    ),
    "earlier values": _experts(lambda c: [] if c.lags is None else [c._lag_place()]),
    "trees": _experts(lambda c: c.trees),
    "similar rows": _experts(lambda c: c.similar),
    "learned scales": _method(group.Group, "_learn_metric"),
    "relevance of columns": _method(committee, "relevance_of"),
    "rehearsal": _method(group.Group, "rehearse"),
    "race": _method(race, "race"),
    "moves": _method(race, "move"),
    "undone races": _method(race, "undo_race"),
    "a lead that passes on": _method(race, "lead"),
    "the full metric": lambda: patch.object(sizes.Sizes, "may_turn", lambda *_: False),
    "fresh starts": lambda: patch.object(succession.Succession, "_may_try", lambda _: False),
    "the answer to jumps": lambda: patch.object(committee, "_KEPT_IN_DRIFT", 1.0),
    "more points for a fine group": _method(committee, "follow"),
    "a second order that catches up": _method(committee, "catch_up"),
    "shares by mean squares": lambda: patch.object(committee, "mix_numbers", _one_kind_of_shares),
    "a look at rows unlike the last": lambda: patch.object(committee, "mix_numbers", _one_mixture),
    "the simplest experts' pull": lambda: patch.object(committee, "mix_numbers", _as_mixed),
}
