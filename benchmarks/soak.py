"""Streams that drift without end: do memory, time, numerics and error stay what they were?"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks import policy
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import (
    AVMClassifier,
    CapWarning,
    COLKClassifier,
    KernelPolicyEvaluation,
    POLKClassifier,
)
from kernelstream.cli.display import resident_bytes
from kernelstream.features import OnlineKernelFeatures

#: Samples made and learned at a time; never more than a thousandth of the run.
CHUNK = 20_000
#: Four regions on a circle, the classes in turn, swing to and fro by this angle. A model that
#: does not forget ends up with the mean of all places, which is worse, but not hopeless.
SWING = 0.3
#: How far the point moves that rewards are measured from.
RADIUS = 1.0

Piece = tuple[NDArray[Any], ...]


class Run(NamedTuple):
    """A learner and its stream."""

    samples: int
    period: int  # samples until the stream is back where it was
    make: Callable[[], Any]
    piece: Callable[[float, int, np.random.Generator], Piece]  # at a phase, so many samples
    learn: Callable[[Any, Piece], Any]  # and say what was predicted before
    errors: Callable[[Any, Piece], NDArray[Any]]  # of what was predicted
    measure: str  # what they are


class Tenth(NamedTuple):
    """A tenth of a run."""

    seconds: float  # of the processor, per sample
    error: float
    points: int
    bytes: int
    resident: int
    residual: float | None  # the worst


def main() -> None:
    """One row for each learner; where it stands goes to standard error."""
    show(
        "Streams that drift all the time",
        ("learner", "samples", "seconds", "points", "bytes", "resident MiB more", "us per sample",
         "ratio", "worst residual", "measure", "error"),
        (_row(name) for name in RUNS),
    )  # fmt: skip
    print(
        "\nPoints, bytes and resident memory: at the end of the first tenth and of the last. "
        "us per sample and ratio: second tenth and last. Error: first, second and last tenth."
    )


def _row(name: str) -> tuple[Any, ...]:
    samples = max(1000, round(RUNS[name].samples * share()))
    print(f"{name}, {samples:,} samples", file=sys.stderr, flush=True)
    try:  # in a process of its own: memory that another learner gave back would hide growth
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return (name, f"{samples:,}", *pool.submit(_soak, name, samples).result())
    except Exception as error:  # the others are measured nevertheless
        return (name, f"{samples:,}", f"FAILED: {error!r}", *[""] * 8)


def _soak(name: str, samples: int) -> tuple[Any, ...]:
    run, random = RUNS[name], np.random.default_rng(0)
    period = run.period * samples / run.samples
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)  # a cap is meant here
        run.learn(run.make(), run.piece(0.0, 100, np.random.default_rng(1)))  # compiles
        started, model, tenths = time.perf_counter(), run.make(), []
        for number in range(10):
            tenth = _tenth(run, model, range(samples * number // 10, samples * (number + 1) // 10),
                           period, random)  # fmt: skip
            tenths.append(tenth)
            print(
                f"  {number + 1}/10: {1e6 * tenth.seconds:.3f} us, {tenth.points} points, error "
                f"{tenth.error:.4g}, {tenth.resident >> 10:,} KiB", file=sys.stderr, flush=True,
            )  # fmt: skip
    first, second, last = tenths[0], tenths[1], tenths[-1]
    residuals = [tenth.residual for tenth in tenths if tenth.residual is not None]
    return (
        time.perf_counter() - started, f"{first.points}, {last.points}",
        f"{first.bytes:,}, {last.bytes:,}", (last.resident - first.resident) / 2**20,
        f"{1e6 * second.seconds:.3f}, {1e6 * last.seconds:.3f}", last.seconds / second.seconds,
        max(residuals, default="none"), run.measure,
        ", ".join(f"{tenth.error:.4g}" for tenth in (first, second, last)),
    )  # fmt: skip


def _tenth(
    run: Run, model: Any, numbers: range, period: float, random: np.random.Generator
) -> Tenth:
    chunk = max(10, min(CHUNK, len(numbers) // 100))
    seconds, wrong, residuals = [], 0.0, []
    for first in numbers[::chunk]:
        piece = run.piece(first / period, min(chunk, numbers.stop - first), random)
        start = time.process_time()
        said = run.learn(model, piece)
        seconds.append((time.process_time() - start) / len(piece[0]))
        wrong += float(run.errors(said, piece).sum())
        residuals.append(_residual(model))
    return Tenth(
        float(np.median(seconds)),  # others use this machine, too
        wrong / len(numbers), model.model_order_, model.nbytes_,
        resident_bytes(), max((r for r in residuals if r is not None), default=None),
    )  # fmt: skip


def _residual(model: Any) -> float | None:
    """Of the Gram factor: the model's own probe; of features, by how much A'KA is not M."""
    if not isinstance(model, OnlineKernelFeatures):
        return getattr(model, "residual_", None)
    rank, _, M = model._live_inner()
    state = model._state
    A, K = state.factor[: state.order, :rank], model.kernel_(state.points[:, : state.order].T)
    return float(np.abs(A.T @ K @ A - M).max() / np.abs(M).max())


def regions(phase: float, count: int, random: np.random.Generator) -> Piece:
    """Samples of four regions in the plane and their classes, at a phase of the swing."""
    region = random.integers(4, size=count)
    angle = SWING * np.sin(2.0 * np.pi * phase) + 0.5 * np.pi * np.arange(4)
    centre = 1.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centre[region] + random.normal(scale=0.5, size=(count, 2)), region & 1


def rewarded_walk(phase: float, count: int, random: np.random.Generator) -> Piece:
    """Transitions of the system of the policy benchmark, rewarded by another point each time.

    The cost of x is |x - c|^2 / 10, and c goes round: V(x) gets two terms more than `value` has.
    """
    angle = 2.0 * np.pi * phase
    centre = RADIUS * np.array([np.cos(angle), np.sin(angle)])
    states, rewards, following = policy.walk(count, random)
    linear = 2.0 * policy.COST @ centre
    constant = centre @ policy.COST @ centre
    ahead = np.linalg.inv(np.eye(2) - policy.DISCOUNT * policy.A)
    truth = policy.value(states) + states @ ahead.T @ linear - constant / (1.0 - policy.DISCOUNT)
    return states, rewards + states @ linear - constant, following, truth


def _classify(model: Any, piece: Piece) -> Any:
    return model.predict_then_learn(*piece, classes=[0, 1])


def _mistakes(said: Any, piece: Piece) -> NDArray[Any]:
    return said != piece[1]


def _subspace(model: Any, piece: Piece) -> Any:
    return model.partial_fit_errors(piece[0])


def _evaluate(model: Any, piece: Piece) -> Any:
    states, rewards, following, _ = piece
    said = model.predict(states) if hasattr(model, "_state") else np.zeros(len(states))
    model.partial_fit(states, rewards, following)
    return said


def _value_errors(said: Any, piece: Piece) -> NDArray[Any]:
    return (said - piece[-1]) ** 2 / np.var(piece[-1])


def _classifier(make: Callable[..., Any], samples: int, **settings: Any) -> Run:
    def made() -> Any:
        return make(gamma=1.0, random_state=0, **settings)

    return Run(samples, 10**6, made, regions, _classify, _mistakes, "share of mistakes")


RUNS = {
    "POLK": _classifier(POLKClassifier, 10**8, eta0=0.5, compression_error=0.05, alpha=1e-4),
    "AVM": _classifier(AVMClassifier, 10**8, max_points=100),
    "COLK": _classifier(COLKClassifier, 10**7, eta0=0.5, compression_error=0.05),
    "online kernel features": Run(
        10**7, 10**6,
        lambda: OnlineKernelFeatures(
            8, max_points=30, gamma=1.0, step_size="tracking", random_state=0
        ),
        regions, _subspace, lambda said, piece: said, "fit error",
    ),
    "policy evaluation": Run(
        10**6, 10**5,
        lambda: KernelPolicyEvaluation(
            policy.DISCOUNT, gamma=0.1, compression_error=0.01, random_state=0
        ),
        rewarded_walk, _evaluate, _value_errors, "squared error / variance of V",
    ),
}  # fmt: skip
