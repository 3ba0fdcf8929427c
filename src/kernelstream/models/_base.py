"""What every estimator on a kernel expansion shares: data in, state, prediction.

A method adds its parameters, its settings and its compiled pass; the loop over samples, the
unfinished batch and the memory are here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.buffer import Buffer
from kernelstream.core import ahead
from kernelstream.core.blocks import block_pass
from kernelstream.core.direct import GRADIENT
from kernelstream.core.jit import entry
from kernelstream.core.kernel import Rows
from kernelstream.core.loop import sample_pass
from kernelstream.core.passes import DIVERGED, DONE, FULL, LATE, ROOMY, UNUSABLE
from kernelstream.core.reduce import KOMP
from kernelstream.core.state import (
    SMALLEST_CAPACITY,
    State,
    spread,
)
from kernelstream.core.threads import one_thread
from kernelstream.errors import DivergenceError
from kernelstream.kernels import Kernel
from kernelstream.models import _validation as check
from kernelstream.models._files import SavedExpansion
from kernelstream.models._learned import LearnedFunction
from kernelstream.models._memory import BoundedMemory
from kernelstream.models._stream import StreamEstimator, random_numbers
from kernelstream.rows import dense_rows, slice_rows, take_rows

#: Samples handed to the compiled pass at once when ``fit`` reorders them.
_FIT_BLOCK = 4096

#: No predictions are wanted; nothing is known of samples beside their targets.
_NONE = np.empty((0, 1))


class KernelEstimator(LearnedFunction, BoundedMemory, SavedExpansion, StreamEstimator):
    """Base of all estimators that learn a kernel expansion from a stream."""

    kernel_: Annotated[Kernel, "The kernel with all its numbers."] = field(init=False)
    _lasting: ClassVar[tuple[str, ...]] = ("loss", "kernel", "gamma")  # cannot change on the way
    _direct: ClassVar[int] = GRADIENT  # what gives coefficients to blocks: see core/direct
    _reduce: ClassVar[Any] = KOMP  # what makes room: see core/reduce
    _factored: ClassVar[bool] = True  # whether the state needs a factor of its Gram matrix
    _multiplies: ClassVar[bool] = False  # whether steps of one sample have products for BLAS
    _waits: ClassVar[bool] = True  # whether samples may wait to be learned from together
    _fit_errors: ClassVar[int] = 0  # columns that its pass writes behind predictions
    _state: State = field(init=False)  # absent until something was learned
    # See _run; what learn_one calls, see _prepare_call.
    _plan: tuple[int, NDArray[Any], Any] | None = field(init=False, default=None)
    _call: Any = field(init=False, default=None)
    _pending: Buffer | None = field(init=False, default=None)  # of an unfinished batch

    # ---- what a method supplies -------------------------------------------------------

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        """What its compiled pass does with each sample: see ``core/settings.py``."""
        raise NotImplementedError

    def _pass(self) -> Callable[..., tuple[int, int]]:
        """The compiled pass: see ``core/loop.py`` and ``core/blocks.py``."""
        single = self.batch_size == 1
        chosen = sample_pass(self._reduce) if single else block_pass(self._direct)
        return chosen  # type: ignore[no-any-return]

    def _make_kernel(self, rows: Rows) -> Kernel:
        """The kernel, where it takes its numbers from the first samples."""
        raise NotImplementedError

    def _table(self, samples: int) -> NDArray[np.float64]:
        """What its steps of one sample look up."""
        return _NONE

    def _watch(self) -> None:
        """What the compiled pass asks for with ``PROBE``."""

    def _overflow_cure(self) -> str:
        """Why the weights would overflow, and what to do about it."""
        raise NotImplementedError

    # ---- state ------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_plan": None, "_call": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):  # joblib may have mapped the arrays read-only
            self._state = type(self._state)(*(np.array(part) for part in self._state))
        if self._pending is not None:
            self._pending = self._pending.copy()

    @property
    def _outputs(self) -> int:
        return 1

    @property
    def _parts(self) -> int:
        """Sets of weight columns: the current function, and what its average needs."""
        return 2 if self.average else 1

    @property
    def _columns(self) -> int:
        return self._outputs * self._parts

    @property
    def _projected(self) -> int:
        """Weight columns that compression acts on: the first ones, by default all."""
        return self._columns

    def _forget_plan(self) -> None:
        super()._forget_plan()
        self._plan = None

    def _check_against_state(self) -> None:
        if len(self._state.weights) != self._columns:
            raise ValueError("average cannot be switched once the model has learned")

    def _check_room(self, outputs: int) -> None:
        self._capacity_limit(self.n_features_in_, outputs)

    def _check_range(self, rows: Rows) -> None:
        check.check_kernel_range(self.kernel_, rows)

    def _restart_past(self) -> None:
        """Points were removed or moved outside a step: forget what refers to earlier ones."""

    def _start(self, X: Any, rows: Rows) -> None:
        """An empty state for samples like these."""
        compiled_pass = self._pass()
        if not ahead.is_cached(compiled_pass):
            ahead.explain()
            step = "samples" if self.batch_size == 1 else "blocks"
            ahead.start(step if self._factored else "others")
        self.kernel_ = self._make_kernel(rows)
        self._check_range(rows)
        check.note_features(self, X)
        features = rows.dense.shape[1]
        capacity = min(SMALLEST_CAPACITY, self._capacity_limit(features))
        seed = int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max))
        self._state = self._allocate(features, capacity, seed)
        self._pending = None
        self._forget_plan()

    def _note_new_outputs(self, halved: bool) -> None:
        """The weights were laid out again for another class, two from ``halved`` weights."""
        status = self._state.status[0]
        if halved:
            status["square_norm"] *= 0.5
        status["cheapest"] = 0.0

    # ---- learning ---------------------------------------------------------------------

    def _learn(
        self, rows: Rows, targets: NDArray[np.float64], weights: Any, predictions: Any = None
    ) -> None:
        """Consume the samples in order; an unfinished batch waits for the next call.

        ``predictions``, (n, outputs) or None, receives those made just before each step. Samples of
        weight zero are left out, and may not be among those predicted.
        """
        if weights is None:
            weights = np.ones(len(targets))
        else:
            used = weights != 0.0  # a sample of weight zero is a sample that never came
            if not used.all():
                rows, targets, weights = take_rows(rows, used), targets[used], weights[used]
        batch = self.batch_size
        self._flush_whole()
        if batch == 1:
            self._run(rows, targets, weights, predictions)
            return
        n, first = len(targets), 0
        if self._pending is not None:
            first = min(batch - len(self._pending), n)
            self._wait(rows, targets, weights, slice(0, first), predictions)
            if len(self._pending) < batch:
                return
            self.flush()
        whole = slice(first, first + (n - first) // batch * batch)
        self._run(
            slice_rows(rows, whole.start, whole.stop), targets[whole], weights[whole],
            None if predictions is None else predictions[whole],
        )  # fmt: skip
        if whole.stop < n:
            self._wait(rows, targets, weights, slice(whole.stop, n), predictions)

    def _wait(self, rows: Rows, targets: Any, weights: Any, some: slice, predictions: Any) -> None:
        """Keep some samples until their batch is full; they are predicted now."""
        part = slice_rows(rows, some.start, some.stop)
        if predictions is not None:
            predictions[some, : self._outputs] = self._values(part)
            self._judge(predictions[some])
        self._push(part, targets[some], weights[some])

    def _push(self, rows: Rows, targets: Any, weights: Any) -> None:
        new = Buffer(rows, targets, weights)
        self._pending = new.copy() if self._pending is None else self._pending.followed_by(new)

    def _flush_whole(self) -> None:
        """Learn from what waits if that is a whole batch: batches have become smaller."""
        if self._pending is not None and len(self._pending) >= self.batch_size:
            self.flush()

    def flush(self) -> Self:
        """Learn from the samples of an unfinished batch now, as a smaller batch."""
        pending = getattr(self, "_pending", None)
        if pending is not None:
            self._check_parameters()
            seen = self.n_seen_
            self._pending = None
            self._forget_plan()
            try:
                self._run(pending.rows, pending.targets, pending.weights)
            except DivergenceError:
                raise  # it would diverge again: the batch is given up
            except BaseException:
                done = self.n_seen_ - seen
                if done < len(pending):
                    self._pending = pending.since(done)
                raise
        return self

    def _run(
        self, rows: Rows, targets: Any, weights: Any, predictions: Any = None, extra: Any = None
    ) -> None:
        """Whole passes inside compiled code; back here only to grow or to check the factor."""
        if self._plan is None:
            self._plan = self._make_plan()
        limit, settings, compiled_pass = self._plan
        follows = self._follows and extra is None
        if predictions is None and follows:
            predictions = np.empty((len(targets), self._outputs + self._fit_errors))
        room = _NONE if predictions is None else predictions
        extra = self._table(len(targets)) if extra is None else extra
        if targets.ndim > 1:  # several numbers: the pass finds them beside the samples
            extra = np.hstack([targets, extra]) if len(extra) else np.ascontiguousarray(targets)
            targets = np.zeros(len(targets))
        done = 0
        while True:
            first = done
            with one_thread(self._multiplies or self.batch_size > 1):
                reason, done = compiled_pass(
                    *self._state, settings, *self.kernel_.program, *rows, targets, weights, extra,
                    done, room,
                )  # fmt: skip
            if follows and done - first == len(targets):
                self._follow(room, targets, weights)
            elif follows:
                self._follow(room[first:done], targets[first:done], weights[first:done])
            if reason == DONE:
                return
            if reason == ROOMY:
                needed = max(SMALLEST_CAPACITY, self._state.extent) + self.batch_size + self.slack
                self._resize(min(spread(2 * needed, needed), limit))
                return
            if reason == FULL:
                capacity = self._state.capacity
                least = self._state.order + self._points_needed(len(targets) - done)
                wanted = min(spread(2 * capacity, least), limit)
                if wanted <= capacity:  # or this would never end
                    raise RuntimeError(
                        f"{type(self).__name__} needs room for {least} points and may hold "
                        f"{limit}, those of an unfinished step included: please report this"
                    )
                self._resize(wanted)
            elif reason == UNUSABLE:
                raise ValueError(f"Sample {done} of this call has NaN, infinite or huge entries.")
            elif reason == LATE:
                self._catch_up(limit)
            elif reason == DIVERGED:
                raise DivergenceError(
                    f"Sample {done} of this call would make the weights overflow: "
                    f"{self._overflow_cure()} What was learned before it is kept."
                )
            else:
                self._watch()

    def _make_plan(self) -> tuple[int, NDArray[Any], Callable[..., tuple[int, int]]]:
        """Points that may be held, settings and pass, for as long as no parameter changes."""
        limit = self._capacity_limit(self._state.points.shape[0])
        self._shrink(limit)
        return limit, self._settings(self._outputs, self._most(limit)), self._pass()

    @property
    def n_waiting_(self) -> int:
        """Samples that nothing was learned from yet, in an unfinished batch; ``flush()`` does."""
        return 0 if self._pending is None else len(self._pending)

    @property
    def _follows(self) -> bool:
        """Whether predictions are looked at once their targets are known."""
        return False

    def _follow(self, made: NDArray[np.float64], targets: Any, weights: Any) -> None:
        """Look at predictions, each from just before its sample's step."""

    def _following(
        self, made: NDArray[np.float64], targets: Any, weights: Any
    ) -> Callable[[Any], None]:
        """:meth:`_follow` of a model for one sample at a time, which is always in these arrays."""
        return lambda model: model._follow(made, targets, weights)  # type: ignore[no-any-return]

    # ---- one sample at a time, lean ---------------------------------------------------

    def _learn_one(self, x: NDArray[np.float64], target: float) -> None:
        """One sample without scikit-learn's validation."""
        if self._call is None:
            self._prepare_call()
        compiled_pass, rest, follow, (targets, weights, row) = self._call
        if not isinstance(x, np.ndarray):
            x = np.asarray(x, dtype=np.float64)
        if x.dtype.kind == "c":
            raise ValueError("Complex data not supported: learn_one takes real numbers")
        if x.shape != row.shape[1:]:
            raise ValueError(
                f"learn_one takes an array of {row.shape[1]} features, got shape {x.shape}"
            )
        targets[0] = target
        row[0] = x
        if compiled_pass is None:
            rows = check.check_rows(self, row)
            self._check_range(rows)
            self._learn(rows, targets, None)
            if self._lean:  # from now on
                self._call = None
            return
        reason, done = compiled_pass(*self._state, *rest)
        if done and follow is not None:
            follow(self)
        if reason != DONE:  # what is left, if anything, and what there is to do about the state
            self._run(dense_rows(row[done:]), targets[done:], weights[done:])

    @property
    def _lean(self) -> bool:
        """Whether a sample that the compiled pass accepts needs no other check."""
        alone = self.batch_size == 1 and self._pending is None and not self._multiplies
        return alone and self.kernel_.unit and self._numbers_each == 1

    def _prepare_call(self) -> None:
        """What does not change from one sample to the next."""
        self._check_parameters()
        features = self._state.points.shape[0]
        each = self._numbers_each
        targets = np.empty(1) if each == 1 else np.empty((1, each))
        weights, row = np.ones(1), np.empty((1, features))
        made = np.empty((1, self._outputs + self._fit_errors)) if self._follows else _NONE
        settings = self._settings(self._outputs, self._most(self._capacity_limit(features)))
        rest = (
            settings, *self.kernel_.program, *dense_rows(row), targets, weights, self._table(1), 0,
            made,
        )  # fmt: skip
        compiled_pass = follow = None
        if self._lean and self._plan is not None:  # else a lowered cap may ask for fewer points
            compiled_pass = entry(self._pass(), (*self._state, *rest))
            follow = self._following(made, targets, weights) if self._follows else None
        self._call = compiled_pass, rest, follow, (targets, weights, row)
