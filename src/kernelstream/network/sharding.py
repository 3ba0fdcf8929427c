"""Training in parts: shards learned side by side, their models merged as a tree."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from kernelstream.models._base import KernelEstimator
from kernelstream.models.merging import COUNTED, check_max_points, merge
from kernelstream.network._runners import Runner, start_runner
from kernelstream.network._shards import FileRows, Samples, Shard, make_shard, share_names
from kernelstream.registry import Method, register


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
    sources = [make_shard(shard, target, place, labels) for place, shard in enumerate(shards)]
    if not sources:
        raise ValueError("fit_sharded needs at least one shard")
    with start_runner(engine, len(sources), workers, address) as runner:
        result: Any = None
        counts = dict.fromkeys(COUNTED, 0)
        beginning = clone(model)
        share_names(runner, sources)
        while learned := _learn_all(runner, beginning, sources, merge_every, classes):
            result = runner.fetch(_merge_all(runner, learned, max_points, error))
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


_PROGRESS = attrgetter("learned", "place")


def _learn(before: Any, portion: Samples | FileRows, shard: int, classes: Any) -> _Part:
    """One portion more, after others of this shard or with the model that all of them share."""
    part = before if isinstance(before, _Part) else _Part(copy.deepcopy(before))
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


def _merge_parts(max_points: int | None, error: float | None, *parts: Any) -> Any:
    models = [part.model if isinstance(part, _Part) else part for part in parts]
    return merge(models, error=error, max_points=max_points)


# ---- one round -----------------------------------------------------------------------------


def _learn_all(
    runner: Runner, model: Any, sources: list[Shard], merge_every: int | None, classes: Any
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
            before = handles.get(shard, shared)
            handles[shard] = runner.submit(_learn, before, portion, shard, classes)
        for shard in [shard for shard in ended if runner.is_ready(handles[shard])]:
            runner.wait(handles[shard])  # an error ends the reading of the others
            ended.remove(shard)
    # Models stay where they are.
    progress = {shard: runner.submit(_PROGRESS, handle) for shard, handle in handles.items()}
    found = []
    for shard, handle in handles.items():
        learned, sources[shard].place = runner.fetch(progress[shard])
        if learned:
            found.append(handle)
    return found


def _merge_all(
    runner: Runner, parts: list[Any], max_points: int | None, error: float | None
) -> Any:
    """Neighbours in pairs, the pairs in pairs, ...: the same tree whoever is ready first."""
    levels = max(1, (len(parts) - 1).bit_length())
    if error is not None:
        # A mean of functions is no further off than the worst of them: errors add up by level.
        error = error / levels
    for _ in range(levels):
        parts = [
            runner.submit(_merge_parts, max_points, error, *parts[first : first + 2])
            if first + 1 < len(parts) or len(parts) == 1
            else parts[first]
            for first in range(0, len(parts), 2)
        ]
    return parts[0]


register(
    Method(
        name="parts",
        title="training in parts",
        description="shards learned side by side and merged as a tree; agents of a network as "
        "processes that may be lost; the same bits on threads and on Ray",
        names=("fit_sharded", "network.RayEngine"),
    )
)
