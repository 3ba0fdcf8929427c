"""The pass of the compositional learner, made for the user's functions; and checks of these."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from kernelstream.core.blocks import evaluate_block, grow_block, reduce_block
from kernelstream.core.direct.quasi_gradient import partner, tracking_rate
from kernelstream.core.kernel import Rows
from kernelstream.core.passes import DIVERGED, FULL, PROBE, PROBE_EVERY, roomy
from kernelstream.rows import dense_matrix, slice_rows


def check_functions(
    inner: Callable[..., Any], inner_derivative: Callable[..., Any],
    outer_derivative: Callable[..., Any], n_tracked: int | None, rows: Rows,
    targets: NDArray[np.float64],
) -> None:  # fmt: skip
    """Refuse functions that do not return what they should, on the first pair of samples.

    ``targets`` is (n, q), as many numbers as f has.
    """
    several = targets.shape[1] if targets.shape[1] > 1 else None
    sample, other = 0, partner(0, len(targets))
    x, x_other = (dense_matrix(slice_rows(rows, i, i + 1))[0] for i in (sample, other))
    value = 0.0 if several is None else np.zeros(several)
    y, y_other = targets[sample], targets[other]
    if several is None:
        y, y_other = y[0], y_other[0]
    tracked = inner(value, x_other, y_other)
    _check_returned("inner", tracked, n_tracked)
    _check_slopes(inner_derivative(value, x_other, y_other), n_tracked, several)
    seen = tracked if n_tracked is None else np.array(tracked, dtype=np.float64)
    found = outer_derivative(value, seen, x, y)
    if not hasattr(found, "__len__") or len(found) != 2:
        raise ValueError(
            "outer_derivative must return a pair, the derivatives of the outer function in "
            f"value and in what is tracked; it returned {found!r}. Return "
            f"{'0.0' if several is None else f'np.zeros({several})'} as the first where it does "
            "not depend on value"
        )
    if several is None and np.ndim(found[0]) != 0:
        raise ValueError(
            "the first that outer_derivative returns, its derivative in value, must be a "
            f"number; it has shape {np.shape(found[0])}"
        )
    if several is not None and np.shape(found[0]) != (several,):
        raise ValueError(
            "the first that outer_derivative returns, its derivative in value, must be "
            f"{several} numbers, because y has so many per sample; it "
            f"{_described(np.shape(found[0]))}"
        )
    _check_returned("outer_derivative, as its second,", found[1], n_tracked)


def _described(shape: tuple[int, ...]) -> str:
    return "is one number" if shape == () else f"has shape {shape}"


def _check_returned(what: str, found: Any, n: int | None) -> None:
    shape = np.shape(found)
    if n is None and shape != ():
        raise ValueError(
            f"{what} returned an array of shape {shape}, expected one number: say "
            f"n_tracked={int(np.prod(shape))} where so many expectations are tracked"
        )
    if n is not None and shape != (n,):
        got = "one number" if shape == () else f"an array of shape {shape}"
        raise ValueError(f"{what} returned {got}, expected {n} numbers, because n_tracked={n}")


def _check_slopes(found: Any, n: int | None, several: int | None) -> None:
    if several is None:
        _check_returned("inner_derivative", found, n)
        return
    shape = (several,) if n is None else (n, several)
    if np.shape(found) != shape:
        got = "one number" if np.shape(found) == () else f"an array of shape {np.shape(found)}"
        why = f"y has {several} numbers per sample"
        if n is not None:
            why = f"n_tracked={n} and {why}"
        raise ValueError(
            f"inner_derivative returned {got}, expected an array of shape {shape}, because {why}"
        )


@lru_cache(maxsize=64)
def make_pass(
    inner: Callable[..., Any],
    inner_derivative: Callable[..., Any],
    outer_derivative: Callable[..., Any],
    scalar: bool,
    single: bool,
    apart: bool,
) -> Callable[..., tuple[int, int]]:
    """A pass for these functions: compiled if all of them are, else the same code in Python.

    ``scalar``: one number is tracked, ``single``: f has one. Functions are then given numbers, and
    arrays otherwise. ``apart``: the first of each pair is a sample of the outer expectation alone,
    the second one of the inner. Else both take both roles.
    """
    jitted = all(is_jitted(function) for function in (inner, inner_derivative, outer_derivative))
    compile_or_not = numba.njit(nogil=True) if jitted else lambda function: function

    @compile_or_not  # type: ignore[untyped-decorator]
    def put_one(number: Any, out: Any) -> None:
        out[0] = number

    @compile_or_not  # type: ignore[untyped-decorator]
    def put_all(numbers: Any, out: Any) -> None:
        for k in range(out.shape[0]):
            out[k] = numbers[k]

    @compile_or_not  # type: ignore[untyped-decorator]
    def first_of(numbers: Any) -> Any:
        return numbers[0]

    @compile_or_not  # type: ignore[untyped-decorator]
    def all_of(numbers: Any) -> Any:
        return numbers

    # What is tracked, f, and the derivative of the former in the latter: numbers or arrays.
    put, seen = (put_one, first_of) if scalar else (put_all, all_of)
    put_value, value = (put_one, first_of) if single else (put_all, all_of)

    if scalar:

        @compile_or_not  # type: ignore[untyped-decorator]
        def put_slopes(slopes: Any, out: Any) -> None:
            put_value(slopes, out[0])

    else:

        @compile_or_not  # type: ignore[untyped-decorator]
        def put_slopes(slopes: Any, out: Any) -> None:
            for k in range(out.shape[0]):
                put_value(slopes[k], out[k])

    @compile_or_not  # type: ignore[untyped-decorator]
    def sample(rows: Any, i: Any, x: Any) -> None:
        if rows.sparse:
            x[:] = 0.0
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                x[rows.indices[q]] = rows.data[q]
        else:
            x[:] = rows.dense[i]

    @compile_or_not  # type: ignore[untyped-decorator]
    def learn(
        state: Any, past: Any, settings: Any, program: Any, rows: Any, targets: Any,
        sample_weights: Any, first: Any, predictions: Any, tracked: Any,
    ) -> tuple[int, int]:  # fmt: skip
        status, rule = state.status[0], settings[0]
        outputs = targets.shape[1]
        rest = np.zeros((rule.batch, state.weights.shape[0] - outputs))
        i = first
        while i < targets.shape[0]:
            count = min(rule.batch, targets.shape[0] - i)
            if status.order + count > state.diagonal.shape[0]:
                return FULL, i
            if status.changes >= PROBE_EVERY:
                return PROBE, i
            values, norms, f, earlier = evaluate_block(state, past, rule, program, rows, i, count)
            if predictions.shape[0] > 0:
                for r in range(count):
                    for c in range(outputs):  # of the average if there is one
                        predictions[i + r, c] = f[r, f.shape[1] - outputs + c]
            rate = tracking_rate(rule, status.steps)
            x = np.zeros((count, state.points.shape[0]))
            trackers = np.zeros((count, tracked.shape[0]))  # after each sample alone
            now, then = np.zeros(tracked.shape[0]), np.zeros(tracked.shape[0])
            for r in range(count):
                sample(rows, i + r, x[r])
                if apart and r % 2 == 0:
                    continue
                put(inner(value(f[r, :outputs]), x[r], value(targets[i + r])), now)
                if past.shape[0] > 0:  # (20)
                    put(inner(value(earlier[r, :outputs]), x[r], value(targets[i + r])), then)
                    trackers[r] = (1.0 - rate) * (tracked - then) + now
                else:  # (19)
                    trackers[r] = (1.0 - rate) * tracked + rate * now
            # (24) with the outer function's own derivative, each sample in both roles
            direction = np.zeros((count, outputs))
            own, slopes = np.zeros(outputs), np.zeros((tracked.shape[0], outputs))
            for r in range(count):
                if apart and r % 2 == 1:
                    continue
                other = partner(r, count)
                in_value, in_tracked = outer_derivative(
                    value(f[r, :outputs]), seen(trackers[other]), x[r], value(targets[i + r])
                )
                put(in_tracked, then)
                put_value(in_value, own)
                put_slopes(
                    inner_derivative(
                        value(f[other, :outputs]), x[other], value(targets[i + other])
                    ),
                    slopes,
                )
                for c in range(outputs):
                    direction[r, c] += own[c]
                    direction[other, c] += (then * slopes[:, c]).sum()
            after = np.zeros(tracked.shape[0])
            roles = count // 2 if apart else count
            for r in range(count):
                for c in range(outputs):
                    direction[r, c] *= sample_weights[i + r]
                after += trackers[r] / roles  # zero where it is not one of the inner samples
            if not np.isfinite(after).all():
                return DIVERGED, i
            record = state.status[0]
            current = state.weights[: past.shape[0], : record.order] * record.scale
            active, error = grow_block(
                state, rule, program, rows, i, values, norms, direction, rest[:count], roles
            )
            if active < 0:
                return DIVERGED, i
            reduce_block(state, past, rule, current, active, error, count)
            tracked[:] = after
            i += count
        return roomy(state, rule.batch), i

    return learn  # type: ignore[no-any-return]
