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
from kernelstream.models.polk import POLKClassifier
from kernelstream.network import _file
from kernelstream.network._agent import Agent, agent_model
from kernelstream.network._coupling import Coupling
from kernelstream.network._engine import Engine, make_engine
from kernelstream.network._graph import check_graph, own_graph
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
    all agents, with their defaults: all but ``batch_size``, ``max_bytes``, ``n_epochs`` and
    ``shuffle``. ``gamma="scale"`` is taken from the first round of all agents. A round is a
    mini-batch; more than one sample per round and agent wants a larger ``eta0``.
"""


class _Network(Parameters, Saved):
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
        "The network has a copy of its own, which cannot be changed.",
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
        Literal["normalised", "explicit"],
        """Limit the pull of the neighbours to less than half the way, whatever its strength, or
        take it as [1]_ prints it. See the notes.""",
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
        if any("loss" in chosen for chosen in own.values()):
            raise ValueError("the loss is the same for all agents: give it to the network")
        # What is left of ``given`` are parameters of agents.
        seed = secrets.randbits(31) if self.random_state is None else int(self.random_state)
        self._settings: dict[Name, dict[str, Any]] = {
            name: {"random_state": seed + place, **given, **own.get(name, {}), "loss": self.loss}
            for place, name in enumerate(self._names)
        }
        for name, chosen in self._settings.items():  # refuse now what the first round would refuse
            model = agent_model(name, chosen)
            with prefixed(f"agent {name!r}"):
                if not isinstance(model.learning_rate, str):
                    raise ValueError(
                        "learning_rate=Steps(...) has no largest step that the coupling could be "
                        "checked for: give eta0 and the name of a schedule"
                    )
                self._coupling_of(name).check_step(model.eta0)
        self._classes = None if self.classes is None else distinct_labels(self.classes, "classes")
        self._set_up(self.engine)

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

    def run(self, streams: Any, rounds: int | None = None, batch: int = 1) -> Self:
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
        """The labels, sorted; for classification."""
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
        """Predictions of an agent, or without ``agent`` of the mean of all functions (no vote)."""
        values = self._values(X, agent)
        if self.loss.for_regression:
            return values[:, 0]
        return POLKClassifier._labels(values, self.classes_)

    def errors(self, X: Any, y: Any) -> dict[Name, float]:
        """Every agent's share of mistakes, or mean squared error, on test samples."""
        y = np.asarray(y)
        errors = {}
        for name in self._names:
            predicted = self.predict(X, agent=name)
            if y.shape != predicted.shape:
                raise ValueError(f"y must have shape {predicted.shape}, got {y.shape}")
            wrong = (predicted - y) ** 2 if self.loss.for_regression else predicted != y
            errors[name] = float(wrong.mean())
        return errors

    def _values(self, X: Any, agent: Name | None) -> NDArray[np.float64]:
        self._check_started()
        if agent is not None:
            self._check_known(agent)
            return self._engine.predict(agent, X)
        values = [self._engine.predict(name, X) for name in self._names]
        return np.mean(values, axis=0)

    @property
    def trace_(self) -> Any:
        """As a pandas data frame, a row per round (of a long run per 2, 4, 8 ... rounds).

        Means over agents and rounds: ``loss`` and ``error`` (share of mistakes or squared error)
        of the round's samples before they were learned, ``disagreement`` (mean of
        |f_i(x_i) - f_j(x_i)|^2 over neighbours j), ``violation`` (its positive part above the
        tolerance). Sums so far: ``samples``, ``messages``, ``bytes``. At the end of the row:
        ``average_violation`` (positive part of the mean over all rounds, per edge, then summed
        over edges: the left side of (21) over T), ``points`` and ``points NAME`` per agent,
        ``multiplier NAME NEIGHBOUR``, where names are written as in Python, texts in quotes.
        """
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

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return _file.document(self)

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        network = cls.__new__(cls)
        _file.restore(network, document.header, document.arrays)
        return network
