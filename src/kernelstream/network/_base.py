"""A network of agents: its rounds and what it has learned; what both kinds share."""

from __future__ import annotations

import inspect
import itertools
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import docstrings, storage
from kernelstream.errors import prefixed
from kernelstream.kernels import first_gamma
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss, make_loss
from kernelstream.models._files import Saved
from kernelstream.network import _file
from kernelstream.network._agent import Agent, agent_model
from kernelstream.network._changes import change_graph, check_schedule
from kernelstream.network._coupling import Coupling
from kernelstream.network._engine import Engine, make_engine
from kernelstream.network._graph import check_graph, own_graph
from kernelstream.network._learned import Learned
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
from kernelstream.parameters import Instance, Nothing, Parameters, Whole, Words
from kernelstream.rows import as_rows

#: The end of a stream; None is a round without samples.
_END = object()

_SETTINGS = """
Parameters
----------
**settings
    Parameters of :class:`~kernelstream.POLKClassifier` or :class:`~kernelstream.POLKRegressor` for
    all agents, with their defaults: all but ``batch_size``, ``max_bytes``, ``n_epochs``,
    ``shuffle`` and ``class_weight``. With ``risk`` or ``risk_weight`` agents are
    :class:`~kernelstream.COLKClassifier` or :class:`~kernelstream.COLKRegressor`, whose pairs are
    samples of one round: let it have two or more. ``gamma="scale"`` is taken from the first round
    of all agents. A round is a mini-batch; more than one sample per round and agent wants a larger
    ``eta0``.
"""


class _Network(Learned, Parameters, Saved):
    """Graph, engine, rounds, prediction: what both kinds of networks share.

    References
    ----------
    .. [1] A. Koppel, A. S. Bedi, K. Rajawat, B. M. Sadler, "Optimally compressed nonparametric
       online learning: tradeoffs between memory and consistency", IEEE Signal Processing
       Magazine 37(3) (2020), Section III.
    """

    graph: Annotated[
        Any,
        Instance(object, kind="networkx.Graph"),
        """Undirected, connected, without self-loops. Its nodes, strings or integers, are the
        agents.""",
        "The network has a copy of its own; :meth:`change_graph` gives it another one.",
    ] = field(kw_only=False)
    loss: Annotated[
        Any,
        Words(*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES),
        Instance(Loss),
        "A loss for classes, or one for numbers: that decides what the network learns.",
        """Not the ``hinge`` of the estimators by default: neighbours compare values, and those of
        the logistic loss are log-odds, of which a mean makes sense.""",
    ] = "log_loss"
    coupling: Annotated[
        Literal["normalised", "explicit", "printed"],
        """Limit the pull of the neighbours to less than half the way, whatever its strength; or
        take it as [1]_ prints it, and refuse or cut what could overshoot; or as it is printed,
        whatever comes of it. See the notes.""",
    ] = "normalised"
    two_way: Annotated[
        bool,
        "Also move an agent at its neighbours' samples.",
        """The penalty on f_i(x_i) - f_j(x_i) has a gradient in f_j too, which [1]_ leaves out; with
        it agents learn about places that only their neighbours see. Needs more answers' bytes and
        points.""",
    ] = False
    classes: Annotated[
        Any,
        Instance(object, kind="array or None"),
        "All labels there will be.",
        """Else they are those of all arrays given to the first ``run``, or of the first round; a
        label that comes later is refused. All agents have the classes in sorted order.""",
    ] = None
    agent_settings: Annotated[
        Any,
        Instance(Mapping, words="a dict of agent to dict", kind="dict of agent to dict"),
        Nothing(),
        "Parameters of single agents, by their names, that differ from ``settings``.",
        """Their ``loss``, too, as long as all agents learn classes or all learn numbers: what
        neighbours compare are values of their functions, so let these mean the same.""",
    ] = None
    allow_disconnected: Annotated[
        bool, "Whether parts of the graph may learn without hearing of one another."
    ] = False
    engine: Annotated[
        Any,
        Words("local", "ray"),
        Instance(Engine, words="an Engine"),
        "What runs the agents: this process, or Ray. The same bits come out.",
    ] = "local"
    random_state: Annotated[int | None, Whole(0), "Agent number i gets ``random_state + i``."] = (
        None
    )

    round_: Annotated[int, "Rounds so far."] = field(init=False, default=0)

    def __init_subclass__(cls, **keywords: Any) -> None:
        own = "__init__" in cls.__dict__
        super().__init_subclass__(**keywords)
        if not own:
            del cls.__init__  # a generated one would not take the parameters of agents
        cls.__doc__ = docstrings.extended(cls.__doc__, _SETTINGS)
        shown = [parameter.in_signature for parameter in cls._parameters.values()]
        rest = inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD, annotation=Any)
        cls.__signature__ = inspect.Signature([*shown, rest])  # type: ignore[attr-defined]

    def __init__(self, graph: Any, **given: Any) -> None:
        self.graph = graph
        for parameter in self._parameters.keys() & given.keys():
            setattr(self, parameter, given.pop(parameter))
        self._check_values()
        check_graph(graph, self.allow_disconnected)
        self.graph = own_graph(graph)
        self.loss = make_loss(self.loss)
        self._names: list[Name] = list(graph.nodes)
        own = dict(self.agent_settings or {})
        strangers = [name for name in own if name not in self._names]
        if strangers:
            raise ValueError(f"agent_settings names {strangers[0]!r}, which is not in the graph")
        self._common = given  # what is left are parameters of agents
        self._seed = secrets.randbits(31) if self.random_state is None else int(self.random_state)
        self._settings: dict[Name, dict[str, Any]] = {
            name: self._settings_of(name, place) for place, name in enumerate(self._names)
        }
        self._away: dict[Name, Agent] = {}
        self._check_agents()
        self._classes = None if self.classes is None else distinct_labels(self.classes, "classes")
        self._set_up(self.engine)

    def _settings_of(self, name: Name, number: int) -> dict[str, Any]:
        """The parameters of agent ``name``, the ``number``-th that there was."""
        own = (self.agent_settings or {}).get(name, {})
        return {
            "random_state": self._seed + number, **self._common, "loss": self.loss, **own,
        }  # fmt: skip

    def _check_agents(self) -> None:
        """Refuse now what the first round would refuse."""
        for name in self._names:
            chosen = self._settings[name]
            model = agent_model(name, chosen)
            if make_loss(chosen["loss"]).for_regression != self.loss.for_regression:
                raise ValueError(
                    f"agent {name!r}: {chosen['loss']!r} learns something else than "
                    f"{self.loss.name!r}, the network's loss: all agents learn classes, or all "
                    "learn numbers"
                )
            with prefixed(f"agent {name!r}"):
                if not isinstance(model.learning_rate, str):
                    raise ValueError(
                        "learning_rate=Steps(...) has no largest step that the coupling could be "
                        "checked for: give eta0 and the name of a schedule"
                    )
                self._coupling_of(name).check_step(model.eta0)

    def _set_up(self, engine: Any) -> None:
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
            for neighbour, value in (record.violations or record.differences).items():
                edge = f"{record.agent!r} {neighbour!r}"
                self._violations[edge] = self._violations.get(edge, 0.0) + value
        spent = sum(max(0.0, value) for value in self._violations.values()) / self.round_
        self._trace.add(records, {**self._totals, "average_violation": spent})
        return self

    def run(
        self,
        streams: Any,
        rounds: int | None = None,
        batch: int = 1,
        graphs: Mapping[int, Any] | None = None,
    ) -> Self:
        """Rounds until all streams have ended, or so many.

        An agent whose stream has ended goes on answering its neighbours, but learns no more.

        Parameters
        ----------
        streams : dict of agent to stream, a list of streams, or a tuple (X, y)
            A stream is (X, y), of which every round takes the next ``batch`` samples, or an
            iterator of (X, y), of which every round takes the next; None is a round without
            samples. A tuple (X, y) is one stream for all: sample t goes to agent t modulo their
            number.
        rounds : int, optional
            At most so many.
        batch : int, default=1
            Samples per agent and round. The messages of a round grow with it, their number
            does not.
        graphs : dict of round to networkx.Graph, optional
            Graphs that the network changes to, each before the round of that number
            (``round_`` is the number of the next one): see :meth:`change_graph`. The stream of
            an agent that is not in the graph stands still; it is not waited for.
        """
        if not isinstance(batch, int | np.integer) or batch < 1:
            raise ValueError(f"batch must be a whole number >= 1, got {batch!r}")
        if isinstance(streams, tuple):
            streams = deal(streams, self._names)
        schedule = check_schedule(self, graphs or {})
        names = list(dict.fromkeys([*self._names, *(n for g in schedule.values() for n in g)]))
        if isinstance(streams, Mapping):
            chosen = by_name(streams, names, "streams")
        else:
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
            self._go_through(parts, rounds, schedule)
        finally:
            self._classes = classes  # those of a run that was refused are forgotten
        return self

    def _go_through(
        self, parts: dict[Name, Iterator[Any]], rounds: int | None, graphs: dict[int, Any]
    ) -> None:
        for _ in itertools.count() if rounds is None else range(rounds):
            if self.round_ in graphs:
                self.change_graph(graphs.pop(self.round_))
            current = {name: next(parts[name], _END) for name in self._names if name in parts}
            for name, found in current.items():
                if found is _END:
                    del parts[name]
            batches = {name: found for name, found in current.items() if found is not _END}
            if not batches:
                break
            batches = {name: found for name, found in batches.items() if found is not None}
            if batches:
                self.partial_fit_round(batches)

    def change_graph(self, graph: Any) -> Self:
        """Let the next round take place on another graph.

        Agents that are no longer in it leave, with what they know: they neither learn nor answer,
        and the mean of all functions is without them. They can be asked still (``predict`` with
        ``agent=``), and go on from there when a later graph has them again. Agents that come for
        the first time know nothing yet, and have the network's settings. The multipliers of edges
        that stay are kept, those of others begin at 0. All or nothing, like a round; both engines
        give the same bits.

        Parameters
        ----------
        graph : networkx.Graph
            As for a new network. ``networkx.Graph(network.graph)`` is a copy to be changed.
        """
        self._check_open()
        change_graph(self, graph)
        return self

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

    def close(self) -> None:
        """Let the engine go, and with it the agents: the network is at its end."""
        self._engine.close()
        self._started, self._closed = False, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return _file.document(self)

    @classmethod
    def _from_document(cls, document: storage.Document, **functions: Any) -> Self:
        network = cls.__new__(cls)
        _file.restore(network, document.header, document.arrays, **functions)
        return network
