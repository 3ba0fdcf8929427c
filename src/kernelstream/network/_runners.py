"""Who runs the tasks of a sharded training: threads of this process, or Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelstream.network._ray_session import ray_session


class _Threads:
    """Runs functions whose arguments may be handles of earlier ones."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        # A call waits for earlier calls only, and these started before it: no deadlock.
        return self._pool.submit(_call, function, arguments)

    def share(self, value: Any) -> Any:
        return value

    def is_ready(self, handle: Future[Any]) -> bool:
        return handle.done()

    def fetch(self, handle: Future[Any]) -> Any:
        return handle.result()

    wait = fetch


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    ready = [given.result() if isinstance(given, Future) else given for given in arguments]
    return function(*ready)


class _RayTasks:
    """The same as tasks of Ray: functions of their arguments alone, so a lost one may run again."""

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
        """Until it is ready; raises its error."""
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


Runner = _Threads | _RayTasks


@contextmanager
def start_runner(
    engine: str, shards: int, workers: int | None, address: str | None
) -> Iterator[Runner]:
    """The runner that the engine's name stands for, for so many shards."""
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
