"""A network of agents: its rounds, what it has learned, its file; what both kinds share.

Equation numbers are those of the survey of online learning with kernels, Section III.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import docstrings, storage
from kernelstream._version import __version__
from kernelstream.kernels import first_gamma
from kernelstream.losses import Loss, make_loss
from kernelstream.models._files import Saved
from kernelstream.models.polk import POLKClassifier, POLKRegressor
from kernelstream.network._agent import DECIDED_BY_ROUNDS, Agent
from kernelstream.network._coupling import Coupling
from kernelstream.network._engine import Engine, make_engine
from kernelstream.network._graph import check_graph, import_networkx
from kernelstream.network._messages import Name
from kernelstream.network._samples import (
    all_labels,
    as_pair,
    by_name,
    deal,
    distinct_labels,
    in_pieces,
)
from kernelstream.network._trace import NetworkTrace
from kernelstream.parameters import parameters_of
from kernelstream.rows import as_rows

#: POLK's parameters that agents may have.
SETTINGS = tuple(name for name in parameters_of(POLKClassifier) if name not in DECIDED_BY_ROUNDS)

#: What a stream says that has ended; None is a round without samples.
_END = object()


class _Network(Saved):
    """Graph, engine, rounds, prediction: what both kinds of networks share.

    Parameters
    ----------
    loss : str or Loss, default="log_loss"
        A loss for classes, or one for numbers: that decides what the network learns.
    coupling : {"normalised", "explicit"}, default="normalised"
        Limit the pull of the neighbours to less than half the way, whatever its strength, or take
        it as the survey prints it. See the notes.
    two_way : bool, default=False
        Also move an agent at its neighbours' samples. The penalty on f_i(x_i) - f_j(x_i) has a
        gradient in f_j too, which the survey leaves out; with it agents learn about places
        that only their neighbours see. Needs more answers' bytes and points.
    classes : array, optional
        All labels there will be. Else they are those of all arrays given to the first ``run``,
        or of the first round; a label that comes later is refused. All agents have the classes
        in sorted order.
    agent_settings : dict of agent to dict, optional
        Parameters of single agents that differ from ``settings``.
    allow_disconnected : bool, default=False
        Whether parts of the graph may learn without hearing of one another.
    engine : {"local", "ray"} or Engine, default="local"
        Who runs the agents: this process, or Ray. The same bits come out.
    random_state : int, optional
        Agent number i gets ``random_state + i``.
    **settings
        Parameters of :class:`~kernelstream.POLKClassifier` or
        :class:`~kernelstream.POLKRegressor` for all agents, with their defaults: ``kernel``,
        ``gamma`` (``"scale"`` is taken from the first round of all agents), ``degree``, ``coef0``,
        ``alpha``, ``learning_rate``, ``eta0``, ``parsimony``, ``epsilon``, ``max_points``,
        ``average``, ``projection``. A round is a mini-batch; more than one sample per round and
        agent wants a larger ``eta0``.

    Attributes
    ----------
    agents_ : dict of name to Agent
        Copies of the agents as they are.
    classes_ : array
        The labels, sorted; for classification.
    round_ : int
        Rounds so far.
    trace_ : pandas.DataFrame
        A row per round (of a long run per 2, 4, 8 ... rounds), means over agents and rounds:
        ``loss`` and ``error`` (share of mistakes or squared error) of the round's samples before
        they were learned, ``disagreement`` (mean |f_i(x_i) - f_j(x_i)|^2 over neighbours j),
        ``violation`` (its positive part above the tolerance); sums so far: ``samples``,
        ``messages``, ``bytes``; at the end of the row: ``average_violation`` (positive part of the
        mean over all rounds, per edge, then summed over edges: the left side of (21) over T),
        ``points`` and ``points NAME`` per agent, ``multiplier NAME NEIGHBOUR``, where names are
        written as in Python, texts in quotes.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__doc__ = docstrings.extended(cls.__doc__, _Network.__doc__)

    def __init__(
        self,
        graph: Any,
        loss: Any,
        coupling: str,
        two_way: bool,
        classes: Any,
        agent_settings: Mapping[Name, Mapping[str, Any]] | None,
        allow_disconnected: bool,
        engine: str | Engine,
        random_state: int | None,
        settings: dict[str, Any],
    ) -> None:
        if coupling not in ("normalised", "explicit"):
            raise ValueError(f"coupling must be 'normalised' or 'explicit', got {coupling!r}")
        check_graph(graph, allow_disconnected)
        self.graph = graph.copy()  # the caller may go on changing its own
        self.loss = make_loss(loss)
        self.coupling = coupling
        self.two_way = bool(two_way)
        self.random_state = random_state
        self._names: list[Name] = list(graph.nodes)
        own = dict(agent_settings or {})
        strangers = [name for name in own if name not in self._names]
        if strangers:
            raise ValueError(f"agent_settings names {strangers[0]!r}, which is not in the graph")
        seed = secrets.randbits(31) if random_state is None else int(random_state)
        self._settings: dict[Name, dict[str, Any]] = {
            name: {"random_state": seed + place, **settings, **own.get(name, {}), "loss": self.loss}
            for place, name in enumerate(self._names)
        }
        for name, chosen in self._settings.items():
            for parameter in chosen:
                if parameter not in SETTINGS:
                    raise TypeError(
                        f"agent {name!r}: {parameter!r} is not a parameter of a network's agents; "
                        f"there are {', '.join(SETTINGS)}"
                    )
        if any("loss" in chosen for chosen in own.values()):
            raise ValueError("the loss is the same for all agents: give it to the network")
        self._classes = None if classes is None else distinct_labels(classes, "classes")
        self._set_up(engine)

    def _check_settings(self) -> None:
        """Refuse now what the first round would refuse."""
        kind = POLKRegressor if self.loss.for_regression else POLKClassifier
        for name, chosen in self._settings.items():
            coupling = self._coupling_of(name)
            model = kind(**chosen)
            try:
                model._check_parameters()
                coupling.check_step(model.eta0)
            except ValueError as error:
                raise ValueError(f"agent {name!r}: {error}") from error

    def _set_up(self, engine: str | Engine) -> None:
        self._engine = make_engine(engine)
        self._started = self._closed = False
        self.round_ = 0
        self._totals = {"samples": 0.0, "messages": 0.0, "bytes": 0.0}
        self._violations: dict[str, float] = {}
        self._trace = NetworkTrace()

    def _start(self, agents: dict[Name, Agent]) -> None:
        self._engine.start(agents)
        self._known: Any = getattr(agents[self._names[0]].model, "classes_", None)
        self._started = True

    # ---- what a kind of network supplies ----------------------------------------------

    def _coupling_of(self, name: Name) -> Coupling:
        raise NotImplementedError

    def _recall(self, couplings: Mapping[Name, Coupling]) -> None:
        """Set the network's own parameters to what its agents, read from a file, have."""
        raise NotImplementedError

    # ---- rounds -----------------------------------------------------------------------

    def partial_fit_round(self, batches: Any) -> Self:
        """One round: every agent with samples learns one mini-batch, coupled to its neighbours.

        All or nothing: if any agent's samples are refused, or its step would overflow, no agent
        has changed.

        Parameters
        ----------
        batches : dict of agent to (X, y), or a list of (X, y) in the order of the graph's nodes
            ``None``, or no entry, is an agent without samples: it answers its neighbours, but
            does not learn in this round.
        """
        self._check_open()
        given = {
            name: as_pair(f"agent {name!r}", batch)
            for name, batch in by_name(batches, self._names, "batches").items()
            if batch is not None
        }
        given = {name: (X, y) for name, (X, y) in given.items() if X.shape[0] or len(y)}
        if not given:
            raise ValueError("no agent has samples in this round")
        new = not self._started
        if new:
            self._start(self._first_agents(given))
        try:
            records = self._engine.round(self.round_, given)
        except BaseException:
            self._started = not new  # the classes and the width were those of this round
            raise
        self.round_ += 1
        for record in records.values():
            self._totals["samples"] += record.samples
            self._totals["messages"] += record.messages
            self._totals["bytes"] += record.bytes
            told = record.violations or record.differences
            for neighbour, value in told.items():
                edge = f"{record.agent!r} {neighbour!r}"
                self._violations[edge] = self._violations.get(edge, 0.0) + value
        spent = sum(max(0.0, value) for value in self._violations.values()) / self.round_
        self._trace.add(records, {**self._totals, "average_violation": spent})
        return self

    def run(self, streams: Any, rounds: int | None = None, batch: int = 1) -> Self:
        """Rounds until all streams have ended, or so many.

        An agent whose stream has ended goes on answering its neighbours, but learns no more.

        Parameters
        ----------
        streams : dict of agent to stream, a list of streams, or a tuple (X, y)
            A stream is (X, y), of which every round takes the next ``batch`` samples, or an
            iterator of (X, y), of which every round takes the next; None is a round without
            samples. A tuple (X, y) is one stream
            for all: sample t goes to agent t modulo their number.
        rounds : int, optional
            At most so many.
        batch : int, default=1
            Samples per agent and round. The messages of a round grow with it, their number
            does not.
        """
        if not isinstance(batch, int | np.integer) or batch < 1:
            raise ValueError(f"batch must be a whole number >= 1, got {batch!r}")
        if isinstance(streams, tuple):
            streams = deal(streams, self._names)
        chosen = by_name(streams, self._names, "streams")
        whole = {
            name: as_pair(f"agent {name!r}", stream)
            for name, stream in chosen.items()
            if isinstance(stream, tuple | list)
        }
        parts: dict[Name, Iterator[Any]] = {
            name: in_pieces(*whole[name], int(batch)) if name in whole else iter(stream)
            for name, stream in chosen.items()
        }
        classes = self._classes
        if not self._started and classes is None and not self.loss.for_regression:
            # A small first round may not have met every class.
            labels = [distinct_labels(y, "y") for _, y in whole.values()]
            if labels and len(whole) == len(chosen):
                self._classes = all_labels(labels)
        try:
            self._go_through(parts, rounds)
        finally:
            self._classes = classes  # those of a run that was refused are forgotten
        return self

    def _go_through(self, parts: Mapping[Name, Iterator[Any]], rounds: int | None) -> None:
        for _ in itertools.count() if rounds is None else range(rounds):
            current = {name: next(part, _END) for name, part in parts.items()}
            parts = {name: part for name, part in parts.items() if current[name] is not _END}
            if not parts:
                break
            batches = {name: current[name] for name in parts if current[name] is not None}
            if batches:
                self.partial_fit_round(batches)

    def _first_agents(self, batches: Mapping[Name, tuple[Any, Any]]) -> dict[Name, Agent]:
        widths = {name: X.shape[1] for name, (X, _) in batches.items()}
        features = next(iter(widths.values()))
        for name, width in widths.items():
            if width != features:
                raise ValueError(
                    f"agents {next(iter(widths))!r} and {name!r} have {features} and {width} "
                    "features: neighbours must be able to evaluate one another's samples"
                )
        classes = self._classes
        if classes is None and not self.loss.for_regression:
            classes = all_labels([distinct_labels(y, "y") for _, y in batches.values()])
            if len(classes) < 2:
                raise ValueError(
                    f"the first round has only the class {classes.tolist()[0]!r}: name all of them "
                    "with classes="
                )
        settings = self._settings
        if any(chosen.get("gamma") == "scale" for chosen in settings.values()):
            gamma = first_gamma("scale", *(as_rows(X) for X, _ in batches.values()))
            settings = {
                name: {**chosen, "gamma": gamma} if chosen.get("gamma") == "scale" else chosen
                for name, chosen in settings.items()
            }
        return {
            name: Agent(
                name, settings[name], list(self.graph.neighbors(name)), self._coupling_of(name),
                features=features, classes=classes,
            )
            for name in self._names
        }  # fmt: skip

    # ---- what was learned -------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(
                f"This {type(self).__name__} was closed, its agents are gone: save it before "
                "close, or make a new one"
            )

    def _check_started(self) -> None:
        self._check_open()
        if not self._started:
            raise RuntimeError(
                f"This {type(self).__name__} has learned nothing yet: call run or partial_fit_round"
            )

    @property
    def agents_(self) -> dict[Name, Agent]:
        """Copies of the agents as they are."""
        self._check_started()
        return self._engine.agents()

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        if self.loss.for_regression:
            raise AttributeError("a network that learns numbers has no classes")
        self._check_started()
        return self._known

    def model(self, agent: Name) -> Any:
        """A copy of an agent's model that stands alone: it predicts, learns, saves, merges."""
        self._check_known(agent)
        return self.agents_[agent].model

    def _check_known(self, agent: Name) -> None:
        if agent not in self._names:
            raise ValueError(f"there is no agent {agent!r} in the graph")

    def decision_function(self, X: Any, agent: Name | None = None) -> NDArray[np.float64]:
        """Values of an agent's function, or without ``agent`` of the mean of all functions.

        (n,) for numbers and two classes, else (n, classes).
        """
        values = self._values(X, agent)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any, agent: Name | None = None) -> NDArray[Any]:
        """What an agent says, or without ``agent`` the mean of all agents' functions.

        The mean is taken of the functions, not of their votes.
        """
        values = self._values(X, agent)
        if self.loss.for_regression:
            return values[:, 0]
        return POLKClassifier._labels(values, self.classes_)

    def errors(self, X: Any, y: Any) -> dict[Name, float]:
        """Every agent's share of mistakes, or mean squared error, on test samples."""
        y = np.asarray(y)
        errors = {}
        for name in self._names:
            said = self.predict(X, agent=name)
            if y.shape != said.shape:
                raise ValueError(f"y must have shape {said.shape}, got {y.shape}")
            wrong = (said - y) ** 2 if self.loss.for_regression else said != y
            errors[name] = float(wrong.mean())
        return errors

    def _values(self, X: Any, agent: Name | None) -> NDArray[np.float64]:
        self._check_started()
        if agent is not None:
            self._check_known(agent)
            return self._engine.predict(agent, X)
        values = [self._engine.predict(name, X) for name in self._names]
        return np.mean(values, axis=0)  # type: ignore[no-any-return]

    @property
    def trace_(self) -> Any:
        """The course of the rounds as a pandas data frame."""
        return self._trace.frame()

    def trace_columns(self) -> dict[str, NDArray[np.float64]]:
        """The course of the rounds as plain arrays: ``trace_`` without pandas."""
        return self._trace.to_columns()

    def close(self) -> None:
        """Let the engine go, and with it the agents: the network is at its end."""
        self._engine.close()
        self._started, self._closed = False, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- files ------------------------------------------------------------------------

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The agents, the graph's nodes and edges, and the trace; not the graph's attributes."""
        agents, dead = self.agents_, self._engine.dead
        late = [n for n in self._names if n not in dead and agents[n].round != self.round_]
        if late or len(dead) == len(agents):
            raise RuntimeError(
                f"agent {late[0]!r} is in round {agents[late[0]].round}, the network in "
                f"{self.round_}: its last round was left half done"
                if late
                else "every agent is dead: there is no network left to save"
            )
        columns = self._trace.state()
        arrays: dict[str, NDArray[Any]] = {"trace": np.array(list(columns.values()))}
        headers = []
        for place, name in enumerate(self._names):
            header, parts = agents[name].state()
            headers.append(header)
            arrays.update({f"agent{place}_{part}": array for part, array in parts.items()})
        return {
            "version": __version__,
            "loss": [self.loss.name, self.loss.number],
            "coupling": self.coupling,
            "two_way": self.two_way,
            "edges": [list(edge) for edge in self.graph.edges],
            "round": self.round_,
            "totals": self._totals,
            "violations": self._violations,
            "columns": list(columns),
            "every": self._trace.every,
            "open": self._trace.open,
            "dead": [name for name in self._names if name in dead],
            "agents": headers,
        }, arrays

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        agents = {}
        for place, note in enumerate(header["agents"]):
            prefix = f"agent{place}_"
            own = {n[len(prefix) :]: part for n, part in arrays.items() if n.startswith(prefix)}
            agents[note["name"]] = Agent.restore(note, own)
        network = cls.__new__(cls)
        network.graph = import_networkx().Graph()
        network.graph.add_nodes_from(agents)
        network.graph.add_edges_from(header["edges"])
        latest, dead = header["round"], header["dead"]
        if (
            len(network.graph) != len(header["agents"])
            or latest not in {agent.round for agent in agents.values()}
            or any(
                set(agent.neighbours) != set(network.graph.neighbors(name))
                or not (agent.round == latest or (name in dead and agent.round < latest))
                for name, agent in agents.items()
            )
        ):
            raise ValueError("the agents contradict the graph, or one another")
        network.loss = Loss(*header["loss"])
        network.coupling, network.two_way = header["coupling"], bool(header["two_way"])
        network.random_state, network._classes, network._settings = None, None, {}
        network._names = list(agents)
        network._set_up("local")
        network.round_ = int(header["round"])
        network._totals = {name: float(header["totals"][name]) for name in network._totals}
        network._violations = {name: float(sum_) for name, sum_ in header["violations"].items()}
        rows = [
            dict(zip(header["columns"], row, strict=True)) for row in arrays["trace"].T.tolist()
        ]
        network._trace = NetworkTrace(rows, int(header["every"]), int(header["open"]))
        network._recall({name: agent.coupling for name, agent in agents.items()})
        network._start(agents)
        return network
