"""Networks of agents that learn together: consensus by penalty, proximity by multipliers.

Equation numbers are those of the survey of online learning with kernels, Section III.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.losses import Loss, make_loss
from kernelstream.models import _validation as check
from kernelstream.models._files import Saved
from kernelstream.models.polk import POLKClassifier, POLKRegressor
from kernelstream.network._agent import DECIDED_BY_ROUNDS, Agent
from kernelstream.network._coupling import Coupling
from kernelstream.network._engine import Engine
from kernelstream.network._local import LocalEngine
from kernelstream.network._messages import Name
from kernelstream.network._trace import NetworkTrace

#: POLK's parameters that agents may have.
SETTINGS = tuple(
    name for name in POLKClassifier._parameter_constraints if name not in DECIDED_BY_ROUNDS
)

#: What a stream says that has ended; None is a round without samples.
_END = object()

_GRAPH = """
    graph : networkx.Graph
        Undirected, connected, without self-loops. Its nodes, strings or integers, are the agents.
"""

_PARAMETERS = """
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
"""

_ATTRIBUTES = """
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


class _Network(Saved):
    """Graph, engine, rounds, prediction: what both kinds of networks share."""

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
        _check_graph(graph, allow_disconnected)
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
        self._classes = None if classes is None else _labels(classes, "classes")
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
            name: _pair(name, batch)
            for name, batch in self._by_name(batches, "batches").items()
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
            streams = self._deal(streams)
        chosen = self._by_name(streams, "streams")
        whole = {name: _pair(name, s) for name, s in chosen.items() if isinstance(s, tuple | list)}
        parts: dict[Name, Iterator[Any]] = {
            name: _pieces(*whole[name], int(batch)) if name in whole else iter(stream)
            for name, stream in chosen.items()
        }
        classes = self._classes
        if not self._started and classes is None and not self.loss.for_regression:
            # A small first round may not have met every class.
            labels = [_labels(y, "y") for _, y in whole.values()]
            if labels and len(whole) == len(chosen):
                self._classes = _union(labels)
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

    def _deal(self, stream: tuple[Any, Any]) -> dict[Name, tuple[Any, Any]]:
        X, y = _pair("the stream", stream)
        y = np.asarray(y)
        number = len(self._names)
        return {name: (X[i::number], y[i::number]) for i, name in enumerate(self._names)}

    def _by_name(self, given: Any, what: str) -> dict[Name, Any]:
        if isinstance(given, Mapping):
            strangers = [name for name in given if name not in self._names]
            if strangers:
                raise ValueError(
                    f"{what} names the agent {strangers[0]!r}, which is not in the graph "
                    f"({', '.join(map(repr, self._names[:5]))}"
                    f"{', ...' if len(self._names) > 5 else ''})"
                )
            return {name: given[name] for name in self._names if name in given}
        if not isinstance(given, Sequence) or len(given) != len(self._names):
            found = f"{len(given)} of them" if isinstance(given, Sequence) else f"a {type(given)}"
            raise ValueError(
                f"{what} must be a dict by agent, or a list of {len(self._names)} in the order of "
                f"the graph's nodes; got {found}"
            )
        return dict(zip(self._names, given, strict=True))

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
            classes = _union([_labels(y, "y") for _, y in batches.values()])
            if len(classes) < 2:
                raise ValueError(
                    f"the first round has only the class {classes.tolist()[0]!r}: name all of them "
                    "with classes="
                )
        settings = self._settings
        if any(chosen.get("gamma") == "scale" for chosen in settings.values()):
            gamma = _scale([X for X, _ in batches.values()], features)
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

    def _per_edge(self, what: str, given: Any, name: Name) -> dict[Name, float]:
        """A number per neighbour from one number, a dict by edge, or an attribute of the edges."""
        numbers = {}
        for other in self.graph.neighbors(name):
            value = given
            if isinstance(given, str):
                value = self.graph.edges[name, other].get(given)
            elif isinstance(given, Mapping):
                value = given.get((name, other), given.get((other, name)))
            numbers[other] = _number(f"{what} of the edge {name!r} - {other!r}", value)
        return numbers

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
        network.graph = _import_networkx().Graph()
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


class ConsensusNetwork(_Network):
    __doc__ = f"""Agents that learn one function from streams of their own, by a penalty.

    Parameters
    ----------
    {_GRAPH.strip()}
    penalty : float, dict of edge to float, or str; default=1.0
        c of (17), how strongly neighbours pull; a number per edge, or the name of an attribute of
        the graph's edges. 0: agents alone.
    {_PARAMETERS.strip()}

    Attributes
    ----------
    {_ATTRIBUTES.strip()}

    See Also
    --------
    ProximityNetwork : agents whose functions are related, not equal.

    Notes
    -----
    In a round agent i with samples x sends them to its neighbours j, which answer f_j(x), all as
    they were when the round began. Then

        f_i <- (1 - eta alpha) f_i - eta mean_x [l'(f_i(x), y) + c sum_j (f_i(x) - f_j(x))] k(x, .)

    (17), followed by kernel orthogonal matching pursuit, each agent on its own. The pull is a
    gradient step on a quadratic of curvature c degree k(x, x), and neighbours move towards one
    another at the same time: what two of them differ by is multiplied by
    1 - 2 eta c degree k(x, x) - eta l'' k(x, x) - eta alpha. So the survey's step,
    ``coupling="explicit"``, needs eta0 (2 c degree k(x, x) + L k(x, x) + alpha) < 2 (with
    ``two_way`` 4 c), where L bounds l'', and is refused beyond. ``"normalised"`` divides the pull
    by 1 + 2 eta c degree k(x, x): f_i(x) moves a share below 1/2 of its way to its neighbours'
    mean, and any c is stable where eta0 (L k(x, x) + alpha) <= 1. It is (17) with the penalty
    c / (1 + 2 eta c degree k(x, x)), which larger c bring up to 1 / (2 eta degree k(x, x)).

    With penalty 0 agents are POLK: bit for bit where a round has two samples or more, up to
    rounding where it has one, for which POLK has a step of its own.

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelstream import make_multidist
    >>> from kernelstream.network import ConsensusNetwork
    >>> X, y, X_test, y_test = make_multidist(4000, n_test=1000, random_state=1)
    >>> network = ConsensusNetwork(nx.cycle_graph(4), penalty=0.2, gamma=0.8, eta0=2.0)
    >>> network = network.run((X, y), batch=4)  # one stream, dealt to four agents
    >>> bool((network.predict(X_test) == y_test).mean() > 0.95)
    True
    >>> int(network.trace_["messages"].iloc[-1])  # 250 rounds, 4 agents, 2 neighbours, both ways
    4000
    """

    def __init__(
        self,
        graph: Any,
        *,
        penalty: Any = 1.0,
        loss: Any = "log_loss",
        coupling: str = "normalised",
        two_way: bool = False,
        classes: Any = None,
        agent_settings: Mapping[Name, Mapping[str, Any]] | None = None,
        allow_disconnected: bool = False,
        engine: str | Engine = "local",
        random_state: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            graph, loss, coupling, two_way, classes, agent_settings, allow_disconnected, engine,
            random_state, settings,
        )  # fmt: skip
        self.penalty = penalty
        self._check_settings()

    def _coupling_of(self, name: Name) -> Coupling:
        return Coupling(
            "consensus",
            penalty=self._per_edge("penalty", self.penalty, name),
            normalised=self.coupling == "normalised",
            two_way=self.two_way,
        )

    def _recall(self, couplings: Mapping[Name, Coupling]) -> None:
        self.penalty = _by_edge({name: c.penalty for name, c in couplings.items()})


class ProximityNetwork(_Network):
    __doc__ = f"""Agents that learn related functions, each close to its neighbours' ones.

    Parameters
    ----------
    {_GRAPH.strip()}
    tolerance : float, dict of edge to float, or str; default=0.1
        gamma_ij of (18): how large the mean of |f_i(x_i) - f_j(x_i)|^2 may be; a number per edge,
        or the name of an attribute of the graph's edges.
    dual_regularisation : float, default=0.01
        delta of (20): lets multipliers fade. Must satisfy dual_regularisation * eta0**2 < 1.
    {_PARAMETERS.strip()}

    Attributes
    ----------
    {_ATTRIBUTES.strip()}

    See Also
    --------
    ConsensusNetwork : agents that learn one function.

    Notes
    -----
    The penalty of :class:`ConsensusNetwork` becomes a multiplier per neighbour that moves on its
    own, with h_ij = |f_i(x) - f_j(x)|^2, summed over outputs, the mean over the round's samples:

        f_i <- (1 - eta alpha) f_i - eta mean_x [l' + sum_j mu_ij h'_ij] k(x, .)          (19)
        mu_ij <- max(0, (1 - delta eta^2) mu_ij + eta (h_ij - gamma_ij))                 (20)

    Where the agents differ by more than the tolerance the multiplier grows until they do not. It
    has no bound known in advance, hence the normalised pull; with ``coupling="explicit"`` a pull
    that could overshoot, beyond 1 / (2 eta k(x, x)), is cut there. As (19) is printed no multiplier
    has to be sent; the survey says one must, and with ``two_way=True``, the whole gradient of the
    Lagrangian, it is.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from kernelstream.network import ProximityNetwork
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-2.0, 2.0, (3, 500, 1))
    >>> y = [np.sin(2.0 * X[i, :, 0]) + 0.3 * i for i in range(3)]  # shifted curves
    >>> network = ProximityNetwork(
    ...     nx.path_graph(3), loss="squared_error", tolerance=0.05, eta0=0.5
    ... )
    >>> network = network.run([(X[i], y[i]) for i in range(3)])
    >>> bool(network.trace_["disagreement"].iloc[-100:].mean() < 0.1)
    True
    """

    def __init__(
        self,
        graph: Any,
        *,
        tolerance: Any = 0.1,
        dual_regularisation: float = 0.01,
        loss: Any = "log_loss",
        coupling: str = "normalised",
        two_way: bool = False,
        classes: Any = None,
        agent_settings: Mapping[Name, Mapping[str, Any]] | None = None,
        allow_disconnected: bool = False,
        engine: str | Engine = "local",
        random_state: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            graph, loss, coupling, two_way, classes, agent_settings, allow_disconnected, engine,
            random_state, settings,
        )  # fmt: skip
        self.tolerance = tolerance
        self.dual_regularisation = _number("dual_regularisation", dual_regularisation)
        self._check_settings()

    def _coupling_of(self, name: Name) -> Coupling:
        return Coupling(
            "proximity",
            tolerance=self._per_edge("tolerance", self.tolerance, name),
            dual_regularisation=self.dual_regularisation,
            normalised=self.coupling == "normalised",
            two_way=self.two_way,
        )

    def _recall(self, couplings: Mapping[Name, Coupling]) -> None:
        self.tolerance = _by_edge({name: c.tolerance for name, c in couplings.items()})
        self.dual_regularisation = next(iter(couplings.values())).dual_regularisation


def _number(what: str, value: Any) -> float:
    """A strength: finite, and not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{what} must be a number, got {value!r}")
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{what} must be a finite number >= 0, got {value}")
    return float(value)


def _by_edge(given: Mapping[Name, Any]) -> float | dict[tuple[Name, Name], float]:
    """One number if it is the same everywhere, else a number per edge and direction."""
    numbers = {
        (name, other): number for name, own in given.items() for other, number in own.items()
    }
    different = set(numbers.values())
    return numbers if len(different) > 1 else different.pop() if different else 0.0


def make_engine(engine: str | Engine) -> Engine:
    """The engine that the parameter names."""
    if engine == "local":
        return LocalEngine()
    if engine == "ray":
        from kernelstream.network.ray_engine import RayEngine

        return RayEngine()  # type: ignore[no-any-return]
    if isinstance(engine, str):
        raise ValueError(f"engine must be 'local', 'ray' or an Engine, got {engine!r}")
    return engine


def _import_networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise ImportError("networks need networkx: pip install 'kernelstream[network]'") from error
    return networkx


def _check_graph(graph: Any, allow_disconnected: bool) -> None:
    networkx = _import_networkx()
    if not isinstance(graph, networkx.Graph):
        raise TypeError(f"graph must be a networkx.Graph, got {type(graph).__name__}")
    if graph.is_directed() or graph.is_multigraph():
        raise ValueError(
            "graph must be undirected, with at most one edge between two agents: answers go both "
            "ways; networkx.Graph(graph) makes one"
        )
    if not len(graph):
        raise ValueError("graph has no nodes: a network needs at least one agent")
    for name in graph.nodes:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(
                f"agents are named by strings or integers, got {name!r}; "
                "networkx.convert_node_labels_to_integers(graph) renames them"
            )
    loops = list(networkx.selfloop_edges(graph))
    if loops:
        raise ValueError(
            f"agent {loops[0][0]!r} is its own neighbour: it agrees with itself anyway; remove "
            "such edges with graph.remove_edges_from(networkx.selfloop_edges(graph))"
        )
    parts = networkx.number_connected_components(graph)
    if parts > 1 and not allow_disconnected:
        alone = [name for name in graph.nodes if graph.degree(name) == 0]
        hint = f" (agent {alone[0]!r} has no neighbour)" if alone else ""
        raise ValueError(
            f"graph falls into {parts} parts that never hear of one another{hint}: add edges, or "
            "say allow_disconnected=True"
        )


def _pair(name: Any, batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ValueError(f"agent {name!r}: expected (X, y), got a {type(batch).__name__}")
    X, y = batch
    X = X.tocsr() if issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"agent {name!r}: X must be 2-D, got shape {X.shape}")
    if not np.ndim(y):
        raise ValueError(f"agent {name!r}: y must have an entry per sample, got {y!r}")
    return X, y


def _pieces(X: Any, y: Any, batch: int) -> Iterator[tuple[Any, Any]]:
    """(X, y) by ``batch`` samples."""
    y = np.asarray(y)
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows, y has {len(y)}")
    for first in range(0, len(y), batch):
        yield X[first : first + batch], y[first : first + batch]


def _labels(y: Any, name: str) -> NDArray[Any]:
    return np.unique(check.check_labels(y, len(y), name))


def _union(labels: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """All labels, sorted: the order of the classes in every agent."""
    parts = list(labels)
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        raise ValueError("some agents have texts as labels, others numbers")
    return np.unique(np.concatenate(parts))


def _scale(samples: list[Any], features: int) -> float:
    """1 / (features * variance) of all entries, as scikit-learn's ``gamma="scale"``."""
    count = sum(X.shape[0] for X in samples) * features
    total = sum(float(X.sum()) for X in samples)
    squares = sum(float((X.multiply(X) if issparse(X) else np.square(X)).sum()) for X in samples)
    variance = squares / count - (total / count) ** 2
    return 1.0 / (features * variance) if variance > 1e-100 else 1.0
