"""The engine whose agents are Ray actors: see :class:`RayEngine`."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.network._agent import Agent
from kernelstream.network._coupling import Coupling
from kernelstream.network._messages import Name, RoundRecord
from kernelstream.network._ray_host import (
    START_SECONDS,
    Behind,
    Call,
    Refused,
    await_start,
    compile_steps,
    functions_of,
    load_agent,
    make_host,
)
from kernelstream.network._ray_session import (
    MARK,
    claim,
    current_session,
    end_actors,
    ray_session,
)
from kernelstream.parameters import Instance, Number, Parameters, Whole


class RayEngine(Parameters):
    """Every agent is a Ray actor, in a process of its own, on this machine or on a cluster.

    Ray places the actors, carries their messages from one to the other, starts a lost one again
    and repeats the call that it was lost in. The actors run the code of the local engine, so the
    models are the same, bit for bit, also when processes were lost on the way.

    Attributes
    ----------
    dead : dict
        Agents that were declared dead, and the round in which that happened.

    Notes
    -----
    A round has three steps: agents with samples open it, neighbours answer, all close it. Every
    call names its round and carries all it needs, so that a call made twice, or repeated by Ray
    after a restart, does what one call does.

    A round counts when all agents have closed it. Agents that had opened or even closed a round
    which ends with an error abandon it, as in the local engine, with the next call that reaches
    them. So an agent writes its checkpoint when the next round begins: plain data, checksummed,
    replaced in one go.

    BLAS has as many threads in every agent as in this process, because the bits of a product of
    matrices depend on their number. Where agents share processors, let it be one: set
    ``OPENBLAS_NUM_THREADS=1`` before Python starts.

    Samples and answers are held by Ray's object store, not by the agents: they outlive an agent's
    process, but not the loss of the machine that holds them, which is Ray's ``ObjectLostError``.

    Examples
    --------
    >>> from kernelstream.network import Agent, Coupling
    >>> from kernelstream.network.ray_engine import RayEngine
    >>> engine = RayEngine(timeout=60.0)
    >>> engine.on_timeout
    'restart'
    """

    address: Annotated[
        str | None,
        Instance(str, words="an address", kind="str"),
        "Of a running Ray cluster.",
        """Without it the session that this process has is used, and if it has none a Ray is started
        that only this machine can reach, and shut down by ``close`` of the last engine that uses
        it.""",
    ] = field(default=None, kw_only=False)
    processors: Annotated[
        int | None, Whole(1), "That a Ray started here may use; by default all."
    ] = None
    folder: Annotated[
        str | os.PathLike[str] | None,
        Instance(str, words="a path", kind="str"),
        "Where agents write their checkpoints.",
        """On a cluster one that all machines share, and of one engine at a time. By default a
        temporary one of this machine, which ``close`` removes.""",
    ] = None
    checkpoint_every: Annotated[
        int,
        Whole(1),
        "Rounds between two checkpoints.",
        """Agents that are restarted from an older one learn the rounds since then again; until the
        next checkpoint this process keeps their samples.""",
    ] = 1
    timeout: Annotated[
        float | None,
        Number(above=0.0),
        "Seconds that an agent may take for its part of a step; by default any time.",
        """The start of the engine does not count, but that of a process which Ray replaces
        meanwhile does.""",
    ] = None
    on_timeout: Annotated[
        Literal["restart", "dead"],
        "What is done with an agent that took longer.",
        """``"restart"``: its process is ended and started again from its checkpoint, ``restarts``
        times in one step before ``TimeoutError``. ``"dead"``: it takes no further part; its
        neighbours go on without its answers, there are no records of it (NaN in a network's trace),
        and ``dead`` says since which round.""",
    ] = "restart"
    restarts: Annotated[int, Whole(0), "See ``on_timeout``."] = 3
    placement: Annotated[
        Mapping[str, Any] | None,
        """Options of the actors, such as ``{"num_cpus": 1}`` or ``{"resources": {...}}``.""",
        """By default they are spread over the machines and reserve nothing: there may be more
        agents than processors.""",
    ] = None

    def __post_init__(self) -> None:
        self._check_values()
        self._reset()

    def _reset(self) -> None:
        """No agents."""
        self.dead: dict[Name, int] = {}
        self._neighbours: dict[Name, list[Name]] = {}
        self._paths: dict[Name, Path] = {}
        self._functions: dict[Name, dict[str, Any]] = {}  # of the agents, which files do not hold
        self._placed = 0  # agents that have had a file
        self._actors: dict[Name, Any] = {}
        self._next = 0  # the round to come
        self._turn = 0  # grows with every attempt at a round: see Host
        self._log: dict[int, _Round] = {}  # what restarted agents may have to learn again
        self._ray: Any = None
        self._session: str | None = None
        self._end: Callable[[], Any] = _nothing

    # ---- the protocol -----------------------------------------------------------------

    def start(self, agents: Mapping[Name, Agent]) -> None:
        """Take over copies of these agents, in place of any others."""
        self.close()
        try:
            self._start(agents)
        except BaseException:
            self.close()
            raise

    def round(self, round: int, batches: Mapping[Name, tuple[Any, Any]]) -> dict[Name, RoundRecord]:
        """One round of all agents that are not dead."""
        self._check_session()
        self._check_living()
        self._turn += 1
        try:
            now = _Round({name: self._ray.put(batch) for name, batch in batches.items()}, {})
            requests = self._open(round, now)
            self._answer(round, now, requests)
            self._log[round] = now
            closing = {name: self._closing(name, round) for name in self._living()}
            closed = self._call(closing, round)
            self._check_living()
        except BaseException:
            self._turn += 1  # agents that hear of it undo what they did in this round
            self._log.pop(round, None)
            raise
        self._next = round + 1
        if round % self.checkpoint_every == 0:  # written by every agent before it took part
            self._log = {kept: then for kept, then in self._log.items() if kept >= round}
        return {name: closed[name][0] for name in self._actors if name in closed}

    def change(
        self, ties: Mapping[Name, tuple[list[Name], Coupling]], new: Mapping[Name, Agent]
    ) -> dict[Name, Agent]:
        """Other agents, or other neighbours; the others' processes stay.

        Every agent writes its checkpoint: none has to learn again what came before. A change that
        was interrupted can be made again.
        """
        self._check_session()
        for name in ties.keys() & self._functions.keys() - new.keys():
            if functions_of(ties[name][1]) != self._functions[name]:
                raise ValueError(
                    f"agent {name!r} cannot get another constraint: its process, started again, "
                    "would have the first one"
                )
        self._turn += 1
        held = self.agents()
        staying = [name for name in self._living() if name in ties]
        self._call({name: Call("tie", ties[name]) for name in staying}, self._next)
        for name in self.dead.keys() & ties.keys():
            held[name].tie(*ties[name])
            held[name].save(self._paths[name])
        for name in new:
            agent = copy.deepcopy(new[name])
            agent.tie(*ties[name])
            self._place(name, agent)
        if new:
            await_start(self._ray, {name: self._actors[name] for name in new})
        left = {name: agent for name, agent in held.items() if name not in ties}
        for name in left:
            self._ray.kill(self._actors.pop(name), no_restart=True)
            self._paths.pop(name).unlink(missing_ok=True)
            self._functions.pop(name)
            self.dead.pop(name, None)
        actors = {name: self._actors[name] for name in ties}
        self._actors.clear()  # the same dict: the end of the engine knows it
        self._actors.update(actors)
        self._neighbours = {name: list(neighbours) for name, (neighbours, _) in ties.items()}
        self._log = {}
        return left

    def agents(self) -> dict[Name, Agent]:
        """Copies of the agents as they are now; dead ones as they were before."""
        self._check_session()
        states = self._call({name: Call("state") for name in self._living()}, self._next)
        return {name: self._load(name, *states.get(name, ())) for name in self._actors}

    def predict(self, name: Name, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the values of agent ``name``."""
        self._check_session()
        if name not in self.dead:
            values = self._call({name: Call("predict", (X,))}, self._next)
            if name in values:
                return np.array(values[name][0])
        return self._load(name).predict(X)

    def close(self) -> None:
        """Let go of the agents; a Ray that was started here goes with the last engine."""
        self._end()
        self._reset()

    def _start(self, agents: Mapping[Name, Agent]) -> None:
        with ExitStack() as opened:
            self._ray = opened.enter_context(ray_session(self.address, self.processors))
            self._session = current_session(self._ray)
            if self.folder is None:
                folder = Path(tempfile.mkdtemp(prefix="kernelstream-agents-"))
                opened.callback(shutil.rmtree, folder, ignore_errors=True)
            else:
                folder = Path(self.folder).absolute()
                folder.mkdir(parents=True, exist_ok=True)
                claim(folder)
                opened.callback((folder / MARK).unlink, missing_ok=True)
            # Not a method: an engine that nobody holds any more is closed, too.
            opened.callback(end_actors, self._ray, self._session, self._actors)
            self._next = max((agent.round for agent in agents.values()), default=0)
            self._folder = folder
            for agent in list(agents.values())[:1]:
                compile_steps(agent)
            for name, agent in agents.items():
                self._neighbours[name] = list(agent.neighbours)
                self._place(name, agent)
            if agents:
                await_start(self._ray, self._actors)
            self._end = weakref.finalize(self, opened.pop_all().close)

    # ---- the steps of a round ---------------------------------------------------------

    def _open(self, round: int, now: _Round) -> dict[Name, Any]:
        """References to the requests of the agents that have samples."""
        calls = {
            name: Call("open", (now.batches[name],), values=1)
            for name in self._living()
            if name in now.batches
        }
        return {name: refs[1] for name, refs in self._call(calls, round).items()}

    def _answer(self, round: int, now: _Round, requests: Mapping[Name, Any]) -> None:
        """Ask every agent for all its answers at once, and note where they are."""
        asked: dict[Name, list[Name]] = {}
        for sender in requests:
            for name in self._neighbours[sender]:
                asked.setdefault(name, []).append(sender)
        calls = {}
        for name in self._living():
            if name in asked:
                asking = [requests[sender] for sender in asked[name]]
                calls[name] = Call("answer", (now.batches.get(name), *asking), len(asking))
        for name, refs in self._call(calls, round).items():
            for sender, ref in zip(asked[name], refs[1:], strict=True):
                now.answers.setdefault(sender, {})[name] = ref

    def _closing(self, name: Name, round: int) -> Call:
        then = self._log[round]
        answers = then.answers.get(name, {})
        # In the neighbours' order, as everywhere: whoever was asked first.
        names = [neighbour for neighbour in self._neighbours[name] if neighbour in answers]
        values = [answers[neighbour] for neighbour in names]
        return Call("close", (then.batches.get(name), names, *values))

    # ---- calls ------------------------------------------------------------------------

    def _send(self, name: Name, call: Call, round: int) -> list[Any]:
        method = getattr(self._actors[name], call.method).options(num_returns=1 + call.values)
        found = method.remote(self._turn, round, *call.arguments)
        return found if call.values else [found]  # type: ignore[no-any-return]

    def _call(self, calls: Mapping[Name, Call], round: int) -> dict[Name, list[Any]]:
        """Make the calls, all at once, until every agent has answered or is dead.

        A call returns references; what the first one leads to is fetched and takes its place.
        """
        ray = self._ray
        pending = {name: self._send(name, call, round) for name, call in calls.items()}
        done: dict[Name, list[Any]] = {}
        attempts = dict.fromkeys(calls, 0)
        refused: Exception | None = None
        while pending:
            first = [refs[0] for refs in pending.values()]
            ready, _ = ray.wait(first, num_returns=len(first), timeout=self.timeout)
            found = set(ready)
            for name, refs in list(pending.items()):
                del pending[name]
                if refs[0] in found:
                    try:
                        value = ray.get(refs[0])
                    except ray.exceptions.ActorDiedError:
                        # Beyond Ray's own restarts: somebody ended it for good.
                        self._count_restart(name, attempts, "was lost", RuntimeError)
                        self._actors[name] = self._make_actor(name)
                    else:
                        if isinstance(value, Refused):
                            refused = refused or value.error
                            continue
                        if not isinstance(value, Behind):
                            done[name] = [value, *refs[1:]]
                            continue
                        self._catch_up(name, value.round, round)
                elif self.on_timeout == "dead":
                    self._bury(name, round)
                    continue
                else:
                    self._count_restart(
                        name, attempts, f"did not answer within {self.timeout} s", TimeoutError
                    )
                    ray.kill(self._actors[name], no_restart=False)
                    ray.get(self._actors[name].pid.remote(), timeout=START_SECONDS)
                pending[name] = self._send(name, calls[name], round)
        if refused is not None:
            raise refused
        return done

    def _catch_up(self, name: Name, first: int, round: int) -> None:
        """Let an agent that was restarted learn again what its checkpoint does not know."""
        for missed in range(first, round):
            found = self._ray.get(self._send(name, self._closing(name, missed), missed)[0])
            if isinstance(found, Refused):
                raise found.error

    def _bury(self, name: Name, round: int) -> None:
        """End an agent for good, and write what it was when the round began."""
        self.dead[name] = round
        self._ray.kill(self._actors[name], no_restart=True)
        agent = self._load(name)
        for missed in range(agent.round, round):
            then = self._log[missed]
            if name in then.batches:
                agent.open_round(missed, *self._ray.get(then.batches[name]))
            answers = then.answers.get(name, {})
            agent.close_round(missed, {who: self._ray.get(ref) for who, ref in answers.items()})
        agent.save(self._paths[name])

    def _check_session(self) -> None:
        if self._ray is None:
            raise RuntimeError("the engine holds no agents: it was not started, or closed")
        if current_session(self._ray) != self._session:
            raise RuntimeError("the Ray of this engine was shut down, and its agents are gone")

    def _check_living(self) -> None:
        if self._actors and not self._living():
            raise RuntimeError(
                f"no agent lives: all were declared dead, none answered within {self.timeout} s. "
                "Allow more time (timeout), or on_timeout='restart'"
            )

    def _count_restart(
        self, name: Name, attempts: dict[Name, int], what: str, error: type[Exception]
    ) -> None:
        attempts[name] += 1
        if attempts[name] > self.restarts:
            raise error(
                f"agent {name!r} {what}, and was restarted {self.restarts} times in vain. Allow "
                "more time (timeout), more restarts, or on_timeout='dead' to go on without it"
            )

    def _living(self) -> list[Name]:
        return [name for name in self._actors if name not in self.dead]

    # ---- actors -----------------------------------------------------------------------

    def _place(self, name: Name, agent: Agent) -> None:
        """A file and a process for an agent."""
        self._paths[name] = self._folder / f"agent-{self._placed}.ks"
        self._placed += 1
        agent.save(self._paths[name])
        self._functions[name] = functions_of(agent.coupling)
        self._actors[name] = self._make_actor(name)

    def _load(self, name: Name, state: bytes | None = None) -> Agent:
        """An agent as its process described it, or else as its checkpoint has it."""
        if state is not None:
            return load_agent(state, **self._functions[name])
        return Agent.load(self._paths[name], **self._functions[name])

    def _make_actor(self, name: Name) -> Any:
        return make_host(
            self._ray, self.placement or {}, self._paths[name], self.checkpoint_every,
            self._functions[name],
        )  # fmt: skip


def _nothing() -> None:
    """The end of an engine that was not started."""


class _Round(NamedTuple):
    """What a round needs, as references into Ray's object store."""

    batches: dict[Name, Any]
    answers: dict[Name, dict[Name, Any]]  # asker -> neighbour -> its answer
