"""Training in parts: shards learned side by side, their models merged as a tree."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone, is_classifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelstream.models._base import KernelEstimator
from kernelstream.models.merging import COUNTED, check_max_points, merge
from kernelstream.network._ray_session import ray_session
from kernelstream.streams import Batch, StreamError, Text, open_stream

#: Rows read at once from a file.
_FILE_ROWS = 8192


def fit_sharded(
    model: Any,
    shards: Sequence[Any],
    *,
    engine: str = "local",
    merge_every: int | None = None,
    max_points: int | None = None,
    error: float | None = None,
    classes: Any = None,
    target: str | None = None,
    workers: int | None = None,
    address: str | None = None,
) -> Any:
    """Train on shards side by side, and merge what they learned into one model.

    The result depends on the shards and their order only: not on the engine, nor on the number
    of workers.

    Parameters
    ----------
    model : POLKClassifier or POLKRegressor
        Its parameters are what counts; it stays as it is. ``gamma`` must not be ``"scale"``,
        which every shard would work out for itself.
    shards : sequence
        Each one ``(X, y)``, an iterable of such pairs, or the name of a file that
        :func:`~kernelstream.streams.open_stream` reads and whose columns are numbers. Iterables
        are read here, files where they are learned. Each is visited once, in its order; lengths
        may differ, and a shard that has ended takes no further part. Where columns have names,
        all shards must have those of the first one, in any order.
    engine : {"local", "ray"}, default="local"
        Threads of this process (compiled passes run side by side), or tasks of Ray.
    merge_every : int, optional
        Merge whenever every shard has learned from this many more samples, and let all of them
        go on from the merged model. By default they are merged once, at the end.
    max_points : int, optional
        Of every merged model, and never more than ``model`` allows.
    error : float, optional
        The distance in the RKHS that one merge of all shards may lose where ``max_points`` does
        not force more. Each level of the tree gets an equal share.
    classes : array, optional
        All classes there will be, as for ``partial_fit``.
    target : str, optional
        The target's column in files that have columns.
    workers : int, optional
        Threads, or processors of a Ray that is started here; by default all there are.
    address : str, optional
        Of a running Ray cluster.

    Returns
    -------
    model
        A new one that can go on learning.

    Notes
    -----
    A merged model is the mean of the shards' functions, weighted by the samples that each has
    learned from since the last merge. Where functions are averaged the current iterates and
    their averages are merged alike. Unfinished batches are learned before a merge. The step
    counter of a merged model, t of ``learning_rate`` and of ``average``, is the largest of its
    parts': it counts steps along one shard, not over all of them. ``n_seen_``, ``error_spent_``
    and ``n_forced_`` are the sums over all shards.

    Every shard sees a part of the samples only, and the mean of m functions moves an m-th as far
    for each: with a step size tuned for one stream, use about m times as large a one.

    Examples
    --------
    >>> from kernelstream import POLKClassifier, fit_sharded, make_multidist
    >>> X, y, X_test, y_test = make_multidist(8000, n_test=1000, random_state=1)
    >>> shards = [(X[i::4], y[i::4]) for i in range(4)]
    >>> model = fit_sharded(POLKClassifier(random_state=0), shards, max_points=40)
    >>> model.n_seen_, model.model_order_ <= 40, bool(model.score(X_test, y_test) > 0.97)
    (8000, True, True)
    """
    _check(model, engine, merge_every)
    check_max_points(max_points)
    labels = is_classifier(model)
    sources = [
        _source(shard, target, place, labels) for place, shard in enumerate(_checked(shards))
    ]
    settings = _Merge(max_points, error)
    with _runner(engine, len(sources), workers, address) as runner:
        result: Any = None
        counts = dict.fromkeys(COUNTED, 0)
        beginning = clone(model)
        _share_names(runner, sources)
        while learned := _learn_all(runner, beginning, sources, merge_every, classes):
            result = runner.fetch(_merge_all(runner, learned, settings))
            status = result._state.status[0]
            for name in COUNTED:  # of this round alone: the next one begins at zero again
                counts[name] += status[name].item()
                status[name] = 0
            beginning = result
    if result is None:
        raise ValueError("the shards hold no samples: there is nothing to learn from")
    for name, value in counts.items():
        result._state.status[0][name] = value
    return result


def _checked(shards: Sequence[Any]) -> list[Any]:
    shards = list(shards)
    if not shards:
        raise ValueError("fit_sharded needs at least one shard")
    return shards


def _check(model: Any, engine: str, merge_every: Any) -> None:
    if not isinstance(model, KernelEstimator) or not model._factored:
        raise TypeError(
            "fit_sharded takes a model that can be merged, such as POLKClassifier or "
            f"POLKRegressor, got {type(model).__name__}"
        )
    if getattr(model, "gamma", None) == "scale" and isinstance(model.kernel, str):
        raise ValueError(
            "gamma='scale' would give every shard a kernel of its own; give a number, or 'auto' "
            "with standardised data"
        )
    if engine not in ("local", "ray"):
        raise ValueError(f"engine must be 'local' or 'ray', got {engine!r}")
    if merge_every is not None and not (
        isinstance(merge_every, int | np.integer) and merge_every >= 1
    ):
        raise ValueError(f"merge_every must be a whole number of at least 1, got {merge_every!r}")


# ---- what is done where the shards are learned ---------------------------------------------


class _Part(NamedTuple):
    """A shard's model on the way from one merge to the next."""

    model: Any
    learned: int = 0  # samples since the last merge
    place: Any = None  # where to go on in a file; None: at its end, or no file


def _begin(model: Any) -> _Part:
    return _Part(copy.deepcopy(model))


def _learn(part: _Part, portion: _Samples | _FileRows, shard: int, classes: Any) -> _Part:
    model, learned = part.model, part.learned
    keywords = {} if classes is None else {"classes": classes}
    try:
        for X, y in portion:
            model.partial_fit(X, y, **keywords)
            learned += len(y)
    except Exception as error:
        error.add_note(f"This happened in shard {shard}.")
        raise
    return _Part(model, learned, portion.place)


def _tell(part: _Part) -> tuple[int, Any]:
    return part.learned, part.place


def _merge_parts(settings: _Merge, *parts: Any) -> Any:
    return merge(
        [part.model if isinstance(part, _Part) else part for part in parts],
        error=settings.error,
        max_points=settings.max_points,
    )


class _Merge(NamedTuple):
    max_points: int | None
    error: float | None  # of one merge


# ---- one round -----------------------------------------------------------------------------


def _learn_all(
    runner: _Runner, model: Any, sources: list[Any], merge_every: int | None, classes: Any
) -> list[Any]:
    """Let every shard learn its next samples; handles of the parts that found some."""
    shared = runner.share(model)
    portions = [source.portions(merge_every) for source in sources]
    handles: dict[int, Any] = {}
    waiting = list(range(len(sources)))
    ended: list[int] = []
    while waiting:
        for shard in list(waiting):
            portion = next(portions[shard], None)
            if portion is None:
                waiting.remove(shard)
                ended.extend([shard] if shard in handles else [])
                continue
            if shard in handles:  # no more than one portion of each shard is on its way
                runner.wait(handles[shard])
            part = handles[shard] if shard in handles else runner.submit(_begin, shared)
            handles[shard] = runner.submit(_learn, part, portion, shard, classes)
        for shard in [shard for shard in ended if runner.is_ready(handles[shard])]:
            runner.wait(handles[shard])  # an error ends the reading of the others
            ended.remove(shard)
    told = {shard: runner.submit(_tell, handle) for shard, handle in handles.items()}
    found = []
    for shard, handle in handles.items():
        learned, sources[shard].place = runner.fetch(told[shard])
        if learned:
            found.append(handle)
    return found


def _merge_all(runner: _Runner, parts: list[Any], settings: _Merge) -> Any:
    """Neighbours in pairs, the pairs in pairs, ...: the same tree whoever is ready first."""
    levels = max(1, (len(parts) - 1).bit_length())
    if settings.error is not None:
        # A mean of functions is no further off than the worst of them: errors add up by level.
        settings = settings._replace(error=settings.error / levels)
    for _ in range(levels):
        parts = [
            runner.submit(_merge_parts, settings, *parts[first : first + 2])
            if first + 1 < len(parts) or len(parts) == 1
            else parts[first]
            for first in range(0, len(parts), 2)
        ]
    return parts[0]


# ---- shards --------------------------------------------------------------------------------


class _Samples:
    """Samples that travel."""

    place = None

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        yield self.X, self.y


class _FileRows:
    """Rows that are read where they are learned."""

    def __init__(self, shard: _FileShard, rows: int | None) -> None:
        self.path, self.target, self.place = shard.path, shard.target, shard.place
        self.names, self.labels = shard.names, shard.labels
        self.rows = rows

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        left = self.rows
        while left is None or left > 0:
            size = _FILE_ROWS if left is None else min(_FILE_ROWS, left)
            position, schema = self.place or (None, None)
            stream = open_stream(
                self.path, target=self.target, batch_rows=size, position=position, schema=schema
            )
            try:
                for batch in stream:
                    self.place = stream.position, stream.schema
                    X, y = _matrix(batch, self.path, self.target, self.names)
                    yield X, _whole(y) if self.labels else y
                    if left is not None:
                        left -= len(batch)
                        if left < size:
                            break  # on with smaller batches
                else:
                    self.place = None
                    return
            finally:
                stream.close()


class _ArrayShard:
    names: list[str] | None = None  # of the columns, in the order that all shards follow
    plain = False  # no names for the model: rows of files come without

    def __init__(self, X: Any, y: Any, shard: int) -> None:
        self.X, self.y, self.place, self.shard = X, y, None, shard
        self.rows = X.shape[0] if hasattr(X, "shape") else len(X)
        self.next = 0
        if y is None:
            raise ValueError(f"shard {shard}: y is missing")
        if len(y) != self.rows:
            raise ValueError(f"shard {shard}: X has {self.rows} rows, y has {len(y)}")

    def own_names(self, runner: _Runner) -> list[str] | None:
        """The columns' names as they come."""
        return _column_names(self.X)

    def portions(self, rows: int | None) -> Iterator[_Samples]:
        """The next samples, at most so many, as one portion."""
        first, last = self.next, self.rows if rows is None else min(self.next + rows, self.rows)
        self.next = last
        if first < last:
            X, y = _cut(self.X, self.y, first, last)
            yield _Samples(_ordered(X, self), y)


class _IteratorShard:
    names: list[str] | None = None
    plain = False

    def __init__(self, batches: Iterable[tuple[Any, Any]], shard: int) -> None:
        self.batches = iter(batches)
        self.place, self.shard = None, shard

    def own_names(self, runner: _Runner) -> list[str] | None:
        """Those of the first batch."""
        first = list(islice(self.batches, 1))
        self.batches = chain(first, self.batches)
        return _column_names(self._pair(first[0])[0]) if first else None

    def portions(self, rows: int | None) -> Iterator[_Samples]:
        """The next samples, at most so many, batch by batch."""
        left = rows
        while left is None or left > 0:
            found = list(islice(self.batches, 1))
            if not found:
                return
            X, y = self._pair(found[0])
            if left is not None:
                if len(y) > left:
                    self.batches = chain([_cut(X, y, left, len(y))], self.batches)
                    X, y = _cut(X, y, 0, left)
                left -= len(y)
            if len(y):
                yield _Samples(_ordered(X, self), y)

    def _pair(self, batch: Any) -> tuple[Any, Any]:
        if not (isinstance(batch, tuple | list) and len(batch) == 2) or batch[1] is None:
            raise TypeError(
                f"shard {self.shard}: every batch of an iterable must be a pair (X, y), got "
                f"{type(batch).__name__}"
            )
        return batch[0], batch[1]


class _FileShard:
    names: list[str] | None = None
    plain = False

    def __init__(self, path: str, target: str | None, labels: bool) -> None:
        self.path, self.target, self.labels = path, target, labels
        self.place: Any = None
        self.begun = False

    def own_names(self, runner: _Runner) -> list[str] | None:
        """Of the columns beside the target; looked up where files are read."""
        return runner.fetch(runner.submit(_file_names, self.path, self.target))  # type: ignore[no-any-return]

    def portions(self, rows: int | None) -> Iterator[_FileRows]:
        """The next rows, at most so many, as one portion."""
        if not self.begun or self.place is not None:
            self.begun = True
            yield _FileRows(self, rows)


def _source(shard: Any, target: str | None, place: int, labels: bool) -> Any:
    if isinstance(shard, str | os.PathLike):
        return _FileShard(os.path.abspath(shard), target, labels)
    # A list of two may also be one of two batches, which are pairs and no matrices.
    if (isinstance(shard, tuple) and len(shard) == 2) or (
        isinstance(shard, list) and len(shard) == 2 and getattr(shard[0], "ndim", 0) == 2
    ):
        return _ArrayShard(shard[0], shard[1], place)
    if isinstance(shard, Iterable) and not isinstance(shard, np.ndarray):
        return _IteratorShard(shard, place)
    raise TypeError(
        f"shard {place} must be (X, y), an iterable of such pairs or the name of a file, got "
        f"{type(shard).__name__}"
    )


def _share_names(runner: _Runner, sources: list[Any]) -> None:
    """Let all shards follow the first one whose columns have names."""
    for first in sources:
        names = first.own_names(runner)
        if names is not None:
            files = any(isinstance(source, _FileShard) for source in sources)
            for source in sources:
                source.names, source.plain = names, files
            return


def _column_names(X: Any) -> list[str] | None:
    names = list(getattr(X, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def _file_names(path: str, target: str | None) -> list[str] | None:
    stream = open_stream(path, target=target, batch_rows=1)
    try:
        next(stream, None)
        wanted = target if target is not None else "target"
        return [name for name in stream.schema if name != wanted] or None
    finally:
        stream.close()


def _ordered(X: Any, source: _ArrayShard | _IteratorShard) -> Any:
    """A data frame with its columns as in the first shard; arrays have no names."""
    found = _column_names(X)
    if source.names is None or found is None:
        return X
    if found != source.names:
        _check_names(found, source.names, f"shard {source.shard}")
        X = X[source.names]
    return X.to_numpy() if source.plain else X


def _check_names(found: list[str], names: list[str], where: str) -> None:
    for what, wrong in (
        ("does not have", [name for name in names if name not in found]),
        ("also has", [name for name in found if name not in names]),
    ):
        if wrong:
            raise ValueError(
                f"{where} {what} column {wrong[0]!r}: all shards must have the columns of the "
                f"first one, {names}"
            )


def _cut(X: Any, y: Any, first: int, last: int) -> tuple[Any, Any]:
    def rows(data: Any) -> Any:
        return data.iloc[first:last] if hasattr(data, "iloc") else data[first:last]

    return rows(X), rows(y)


def _matrix(
    batch: Batch, path: str, target: str | None, order: list[str] | None
) -> tuple[Any, Any]:
    """A batch of a file as X and y."""
    wanted = target if target is not None else "target"
    if wanted not in batch.columns:
        raise StreamError(f"{path} has no column {wanted!r}: name the target's with target=.")
    names = [name for name in batch.columns if name != wanted]
    if order is not None and names:
        _check_names(names, order, path)
        names = order
    texts = [name for name in names if not _is_number(batch.columns[name])]
    if texts:
        raise StreamError(
            f"{path}: column {texts[0]!r} does not hold numbers; fit_sharded takes prepared "
            "columns. Write numbers, or learn with StreamModel."
        )
    column = batch.columns[wanted]
    y = np.array(column.values)[column.codes] if isinstance(column, Text) else column
    parts = [batch.columns[name][:, None] for name in names]  # type: ignore[index]
    if batch.matrix is None:
        return np.hstack(parts), y
    return (np.hstack([batch.matrix, *parts]) if parts else batch.matrix), y


def _whole(y: Any) -> Any:
    """Labels 0, 1, ... as whole numbers: files of text only know numbers."""
    if y.dtype.kind == "f" and ((y == np.floor(y)) & (np.abs(y) < 2.0**53)).all():
        return y.astype(np.int64)
    return y


def _is_number(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"


# ---- engines -------------------------------------------------------------------------------


class _Runner(Protocol):
    """Runs functions whose arguments may be handles of earlier ones."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any: ...

    def share(self, value: Any) -> Any: ...

    def is_ready(self, handle: Any) -> bool: ...

    def wait(self, handle: Any) -> None:
        """Until it is ready; raises its error."""

    def fetch(self, handle: Any) -> Any: ...


class _Threads:
    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        # A call waits for earlier calls only, and these were begun before it: no deadlock.
        return self._pool.submit(_call, function, arguments)

    def share(self, value: Any) -> Any:
        return value

    def is_ready(self, handle: Future[Any]) -> bool:
        return handle.done()

    def wait(self, handle: Future[Any]) -> None:
        handle.result()

    def fetch(self, handle: Future[Any]) -> Any:
        return handle.result()


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    ready = [given.result() if isinstance(given, Future) else given for given in arguments]
    return function(*ready)


class _RayTasks:
    """Tasks are functions of their arguments alone, so Ray may run a lost one again."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(_run_alone)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._run.remote(function, *arguments)

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def is_ready(self, handle: Any) -> bool:
        return bool(self._ray.wait([handle], timeout=0, fetch_local=False)[0])

    def wait(self, handle: Any) -> None:
        self.fetch(self.submit(_nothing, handle))  # the model stays where it is

    def fetch(self, handle: Any) -> Any:
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None


def _nothing(part: Any) -> None:
    """Fails where that part did."""


def _run_alone(function: Callable[..., Any], *arguments: Any) -> Any:
    with threadpool_limits(1):
        return function(*arguments)


@contextmanager
def _runner(
    engine: str, shards: int, workers: int | None, address: str | None
) -> Iterator[_Runner]:
    if engine == "ray":
        with ray_session(address, workers) as ray:
            yield _RayTasks(ray)
        return
    # Sums of a product may depend on how BLAS splits it: one thread each, as Ray's workers have.
    workers = min(shards, workers or os.cpu_count() or 1)
    with threadpool_limits(1):
        pool = ThreadPoolExecutor(workers)
        try:
            yield _Threads(pool)
        finally:
            pool.shutdown(cancel_futures=True)
