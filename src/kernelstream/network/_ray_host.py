"""The Ray actor that holds one agent, and its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelstream import storage
from kernelstream.network._agent import Agent
from kernelstream.network._coupling import Coupling
from kernelstream.network._messages import Message, Name, RoundRecord
from kernelstream.network._ray_session import blas_threads

#: An agent's process must be there within this many seconds.
START_SECONDS = 300.0


class Behind(NamedTuple):
    """Instead of a result: the agent was restarted from the checkpoint of an earlier round."""

    round: int


class Refused(NamedTuple):
    """Instead of a result, which Ray would report as an unhandled error to be seen by nobody."""

    error: Exception


class Call(NamedTuple):
    """A method of :class:`Host` and its arguments beside turn and round."""

    method: str
    arguments: tuple[Any, ...] = ()
    values: int = 0  # that it returns beside its result, and that stay in Ray's object store


class Host:
    """One agent, and its checkpoint.

    Calls name their turn, an attempt at a round. A later turn means that the rounds before its
    own are settled, and that an earlier turn's attempt at its own round was given up.
    """

    def __init__(self, path: str, checkpoint_every: int, threads: int, **functions: Any) -> None:
        threadpool_limits(threads, "blas")
        self._path, self._every = path, checkpoint_every
        self._agent = Agent.load(path, **functions)
        self._written = self._agent.round  # the round that the checkpoint is from
        self._turn = -1
        compile_steps(self._agent)  # a part of starting, so that no step waits for it

    def pid(self) -> int:
        return os.getpid()

    def open(self, turn: int, round: int, batch: tuple[Any, Any]) -> Any:
        """Whether it did, and the request to the neighbours."""
        return self._do(turn, round, lambda: (True, self._agent.open_round(round, *batch)), 1)

    def answer(self, turn: int, round: int, batch: Any, *requests: Message) -> Any:
        """Whether it did, and the answers in the order of the requests."""

        def answers() -> tuple[Any, ...]:
            self._open_again(round, batch)
            return True, *[self._agent.answer(request) for request in requests]

        return self._do(turn, round, answers, len(requests))

    def close(self, turn: int, round: int, batch: Any, names: list[Name], *answers: Message) -> Any:
        """The record of the round."""

        def record() -> RoundRecord:
            self._open_again(round, batch)
            return self._agent.close_round(round, dict(zip(names, answers, strict=True)))

        return self._do(turn, round, record)

    def tie(self, turn: int, round: int, neighbours: list[Name], coupling: Coupling) -> Any:
        """Whether the agent has these neighbours now, in its checkpoint too."""

        def tied() -> bool:
            self._agent.tie(neighbours, coupling)
            self._agent.save(self._path)
            self._written = self._agent.round
            return True

        return self._do(turn, round, tied)

    def state(self, turn: int, round: int) -> Any:
        """All of the agent after the rounds before this one, as in a file."""
        return self._do(turn, round, lambda: storage.dumps("Agent", *self._agent.state()))

    def predict(self, turn: int, round: int, X: Any) -> Any:
        """(n, outputs): the agent's values after the rounds before this one."""
        return self._do(turn, round, lambda: self._agent.predict(X))

    def _do(self, turn: int, round: int, work: Callable[[], Any], values: int = 0) -> Any:
        """What the work returns: its result and, where Ray expects them, so many values."""
        try:
            if self._is_ready(turn, round):
                return work()
            failed: Behind | Refused = Behind(self._agent.round)
        except Exception as error:
            failed = Refused(error)
        return (failed, *[None] * values) if values else failed

    def _is_ready(self, turn: int, round: int) -> bool:
        """Whether this round can be worked on, all before it being closed, none after it."""
        if turn < self._turn:
            return False  # a call of a given up attempt that Ray repeats: nobody hears it
        if turn > self._turn:
            self._agent.abandon_round(round)
            self._turn = turn
        if self._agent.round == round != self._written and round % self._every == 0:
            self._agent.save(self._path)
            self._written = round
        return self._agent.round >= round

    def _open_again(self, round: int, batch: Any) -> None:
        """Open the round if this process has not: it may have been restarted in between."""
        if batch is not None and not self._agent.is_open and self._agent.round == round:
            self._agent.open_round(round, *batch)


def make_host(
    ray: Any, placement: Mapping[str, Any], path: Path, checkpoint_every: int,
    functions: Mapping[str, Any],
) -> Any:  # fmt: skip
    """The actor of an agent whose file is there; ``await_start`` waits for its process."""
    options = {
        "num_cpus": 0,
        "scheduling_strategy": "SPREAD",
        **placement,
        "max_restarts": -1,
        "max_task_retries": -1,  # calls can be repeated: see the notes of the engine
    }
    host = ray.remote(Host).options(**options)
    return host.remote(str(path), checkpoint_every, blas_threads(), **functions)


def await_start(ray: Any, actors: Mapping[Name, Any]) -> None:
    """Wait until all processes are there."""
    refs = {name: actor.pid.remote() for name, actor in actors.items()}
    ready, _ = ray.wait([*refs.values()], num_returns=len(refs), timeout=START_SECONDS)
    late = [name for name, ref in refs.items() if ref not in ready]
    if late:
        raise TimeoutError(
            f"agent {late[0]!r} did not start within {START_SECONDS:.0f} s: start fewer "
            "agents, or see whether Ray has the resources that placement asks for"
        )
    ray.get([*refs.values()])


def load_agent(data: bytes, **functions: Any) -> Agent:
    """The agent whose state a host returned."""
    return Agent._from_document(storage.loads(data), **functions)


def functions_of(coupling: Coupling) -> dict[str, Any]:
    """What the file of an agent does not hold: its constraint, if it has one."""
    return {} if coupling.constraint is None else {"constraint": coupling.constraint}


def compile_steps(agent: Agent) -> None:
    """Have the machine code in the cache on disk before many processes want it at once."""
    twin = Agent.restore(*agent.state(), agent.coupling.constraint)
    classes = getattr(twin.model, "classes_", None)
    y = np.zeros(1) if classes is None else classes[:1]
    request = twin.open_round(twin.round, np.zeros((1, twin.model.n_features_in_)), y)
    for neighbour in twin.neighbours[:1]:
        twin.answer(replace(request, sender=neighbour))
    twin.close_round(twin.round, {})
