"""Features of a stream, learned on the way or by what was learned before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from kernelstream.evaluation import FitTrace
from kernelstream.feature_stream import StreamFeatures
from kernelstream.features import OnlineKernelFeatures
from kernelstream.runs._page import closing_facts, data_name
from kernelstream.runs._reading import RunError, Spelling, StreamRun, in_python, join
from kernelstream.streams.batch import Batch, plain

#: Rows whose features are taken from the same subspace: the one they were learned into.
BLOCK_ROWS = 100
#: Rows drawn in the report.
SAMPLE_ROWS = 500
#: Fit errors of a kernel with k(x, x) = 1 beyond which features say little of a row.
_UNKNOWN = 0.8
#: Where nothing else is given: a stream may change at any time.
DEFAULTS = {"n_components": 10, "step_size": "tracking", "align": True, "random_state": 0}


def make_extractor(parameters: Mapping[str, Any], **defaults: Any) -> OnlineKernelFeatures:
    """An extractor; ``defaults`` count where nothing is given."""
    return OnlineKernelFeatures(**{**DEFAULTS, **defaults, **parameters})


class FeatureRun(StreamRun):
    """Features of raw rows, learned from them as they come: ``kernelstream features``.

    They are taken from the subspace as it is after a hundred rows; the fit error beside them is
    from before.

    Parameters
    ----------
    source : path, "-", (X, y) or data frame
        As for :func:`~kernelstream.streams.open_stream`.
    features : StreamFeatures, optional
        Learn nothing: the features are what these make of the rows.
    target : str, optional
        A column that is no input, but kept.
    parameters : dict, optional
        Of :class:`~kernelstream.features.OnlineKernelFeatures`; by default 10 features that follow
        a stream which changes, with a gamma that suits the columns.
    units, warm_up, buckets, standardise
        As for :class:`~kernelstream.Preparation`.
    make : callable, optional
        Makes the extractor: see :func:`make_extractor`.
    spelling : callable, optional
        How notes and errors write a parameter (and its value).
    **reading
        As for :class:`Run`; bad rows can be skipped, but not put aside.

    Attributes
    ----------
    stream : StreamFeatures
    trace : FitTrace
        Fit errors over time, and where the stream changed.

    Examples
    --------
    >>> from kernelstream.runs import FeatureRun
    >>> from kernelstream.streams import make_turning_ellipsoid
    >>> run = FeatureRun(make_turning_ellipsoid(2000, random_state=0), batch_rows=500)
    >>> for table in run.tables():
    ...     features = [table[f"z{place}"] for place in range(10)]
    >>> list(table)[-3:], run.summary()["samples"]
    (['z9', 'fit_error', 'target'], 2000)
    """

    bad_rows_cure = "--on-bad skip (on_bad=)"

    def __init__(
        self,
        source: Any,
        features: StreamFeatures | None = None,
        *,
        target: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        units: Literal["moving", "frozen"] = "moving",
        warm_up: int = 1000,
        buckets: int | None = None,
        standardise: bool = True,
        make: Callable[..., OnlineKernelFeatures] = make_extractor,
        spelling: Spelling = in_python,
        **reading: Any,
    ) -> None:
        super().__init__(source, target, reading, spelling)
        settings = {
            "units": units, "warm_up": warm_up, "buckets": buckets, "standardise": standardise,
        }  # fmt: skip
        self.learning = features is None
        self.trace = FitTrace()
        self.sample: NDArray[np.float64] | None = None
        self._open(like=None if features is None else features.preparation)
        with self._closing_on_error():
            first = self._look()
            #: Columns that go through.
            self.kept = [] if target is None else [target]
            if self.source.matrix_width and target is None:  # such sources have one, by this name
                self.kept = ["target"] if "target" in first.columns else []
            if features is not None:
                self.kept = [name for name in self.kept if name in first.columns]
                self.stream = features
            else:
                try:
                    preparation = self._prepared(first, self.kept, settings)
                except ValueError as error:
                    cure = f"name another {spelling('target')} or fewer {spelling('drop')}"
                    raise RunError(f"{self.name}: {error}", cure) from None
                gamma = preparation.suggested_gamma
                self.stream = StreamFeatures(make(parameters or {}, gamma=gamma), preparation)
        self._block = max(BLOCK_ROWS, self.stream.extractor.n_components)
        self._started = time.perf_counter()

    def compile(self) -> Self:
        """Load or make the machine code now, so that the times measured are the stream's."""
        extractor = self.stream.extractor
        X = np.zeros((1, 1 if self.learning else extractor.n_features_in_))
        for rows in (X, csr_array(X)):
            if self.learning:
                extractor = clone(extractor).set_params(gamma=1.0, n_components=1, max_points=2)
                extractor.partial_fit(np.arange(5.0)[:, None]).partial_fit_errors(rows)
            extractor.transform(rows)
            extractor.inverse_fit_error(rows)
        self._started = time.perf_counter()
        return self

    # ---- rows -------------------------------------------------------------------------

    def tables(self, look: Callable[[], None] = lambda: None) -> Iterator[dict[str, Any]]:
        """The columns, some rows at a time: ``line``, ``z0``, ..., ``fit_error``, the target.

        ``look`` is called every hundred rows or so.
        """
        waiting: tuple[Any, ...] | None = None  # prepared rows of an unfinished block
        while (batch := self.read()) is not None:
            rows = self._admit(batch)
            if waiting is not None:
                rows = tuple(map(join, waiting, rows))
            count = len(rows[1])
            whole = count - count % self._block
            if whole:
                yield self._table(tuple(part[:whole] for part in rows), look)
            waiting = tuple(part[whole:] for part in rows) if whole < count else None
        if self.stopping:
            self.stopped_by = self._reason
        if waiting is not None:
            yield self._table(waiting, look)

    def _admit(self, batch: Batch) -> tuple[Any, ...]:
        """Prepared rows, where they came from, and the columns that go through."""
        X = self.stream.preparation.transform(batch, learn=self.learning)
        return X, batch.lines, *(plain(batch.columns[name]) for name in self.kept)

    def _table(self, rows: tuple[Any, ...], look: Callable[[], None]) -> dict[str, Any]:
        X, lines, *kept = rows
        features, errors = [], []
        for start in range(0, len(lines), self._block):
            block = X[start : start + self._block]
            errors.append(self._learn(block))
            features.append(self.stream.extractor.transform(block))
            look()
        Z = np.concatenate(features)
        self.sample = Z[-SAMPLE_ROWS:]
        table = {
            "line": lines,
            **{f"z{place}": np.ascontiguousarray(column) for place, column in enumerate(Z.T)},
            "fit_error": np.concatenate(errors),
        }
        names = [f"{name}_" if name in table else name for name in self.kept]
        return table | dict(zip(names, kept, strict=True))

    def _learn(self, X: Any) -> NDArray[np.float64]:
        extractor = self.stream.extractor
        if not self.learning:
            errors = extractor.inverse_fit_error(X)
            self.trace.update(errors)
            return errors
        before = extractor.n_updates_ if self.trace.samples else -extractor.n_components
        errors = extractor.partial_fit_errors(X)
        self.trace.update(errors, updated=min(extractor.n_updates_ - before, len(errors)))
        return errors

    # ---- the end ----------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self._started

    def summary(self) -> dict[str, Any]:
        """What the run has come to."""
        extractor, trace = self.stream.extractor, self.trace
        return {
            "samples": trace.samples,
            "features": int(extractor.factor_.shape[1]),
            "stored": len(extractor.factor_),
            "fit_error": trace.mean,
            "fit_error_recent": trace.recent,
            "censoring_rate": extractor.censoring_rate_,
            "changes": [change._asdict() for change in trace.changes],
            "bytes": extractor.nbytes_,
            "bad_rows": self.source.bad.count,
            "wall_seconds": self.seconds,
            "stopped_by": self.stopped_by,
        }

    @property
    def notes(self) -> list[str]:
        """What the user should know about rows and columns."""
        notes = self._noted + self._bad_rows_note()
        unit = self.stream.extractor.kernel_.unit
        if not self.learning and unit and self.trace.mean > _UNKNOWN:
            known = 100.0 * max(0.0, 1.0 - self.trace.mean)
            notes.append(
                f"of the usual row only {known:.0f} % lies in the features: the stream is not "
                "what they were learned from; learn them again from it"
            )
        return notes

    def write_report(
        self, path: str | os.PathLike[str], facts: Mapping[str, str] | None = None
    ) -> None:
        """Write a page about the run; ``facts`` are what it says first."""
        from kernelstream.report import write_features_report

        extractor, data = self.stream.extractor, data_name(self.name)
        write_features_report(
            path,
            title=f"Features of {Path(data).name}",
            facts={
                **(facts or {}),
                "data": data,
                "parameters": {k: str(value) for k, value in extractor.get_params().items()},
                "kernel": repr(extractor.kernel_),
                **closing_facts(self, self.trace.samples),
            },
            trace=self.trace,
            model=extractor,
            sample=self.sample,
            notes=self.notes,
        )
