"""One agent of a network: a POLK model that hears its neighbours."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream.core.kernel import Rows
from kernelstream.errors import DivergenceError, prefixed
from kernelstream.losses import make_loss
from kernelstream.models import COLKClassifier, COLKRegressor, POLKClassifier, POLKRegressor
from kernelstream.models import _validation as check
from kernelstream.models._files import Saved, embed, rebuild
from kernelstream.network._coupling import Coupling, as_constraint
from kernelstream.network._messages import (
    Lesson,
    Message,
    Name,
    RoundRecord,
    answer_size,
    request_size,
)
from kernelstream.network._step import copy_model, iterate, take_step
from kernelstream.parameters import parameters_of
from kernelstream.renamed import refuse_old_names
from kernelstream.rows import copy_rows, count_rows, dense_rows, plain_matrix

#: Parameters of models that agents cannot have: rounds are the batches, streams have one order.
_NOT_OF_AGENTS = ("batch_size", "max_bytes", "n_epochs", "shuffle", "class_weight")


def settings_known(kind: type[Any]) -> list[str]:
    """Parameters that agents with such models may have."""
    return [name for name in parameters_of(kind) if name not in _NOT_OF_AGENTS]


def agent_model(name: Name, settings: Mapping[str, Any]) -> Any:
    """The estimator of an agent, its parameters checked."""
    regression = make_loss(settings.get("loss", "hinge")).for_regression
    kind: Any = POLKRegressor if regression else POLKClassifier
    if "risk" in settings or "risk_weight" in settings:
        kind = COLKRegressor if regression else COLKClassifier
    known = settings_known(kind)
    refuse_old_names(f"agent {name!r}", known, settings)
    for parameter in settings:
        if parameter not in known:
            raise TypeError(
                f"agent {name!r}: {parameter!r} is not a parameter of a network's agents, where "
                "a round is a batch, memory is bounded by max_points, and samples come once and "
                f"in order; there are {', '.join(known)}"
            )
    model = kind(**settings)
    with prefixed(f"agent {name!r}"):
        model._check_parameters()
    return model


class Agent(Saved):
    """A node of the network: its model, its neighbours, and what one round does to it.

    Deterministic and picklable. In round r, which all agents go through together, every agent
    with new samples opens the round, its neighbours answer, and then all agents close it, those
    without samples too. All answers come from the functions at the start of the round. A file of
    an agent, written between rounds, is one like any model's.

    Parameters
    ----------
    name : str or int
    settings : dict
        Parameters of :class:`~kernelstream.POLKClassifier` or, if the loss is one for numbers,
        of :class:`~kernelstream.POLKRegressor` (with ``risk`` or ``risk_weight`` of
        :class:`~kernelstream.COLKClassifier` or :class:`~kernelstream.COLKRegressor`), apart from
        ``batch_size``, ``max_bytes``, ``n_epochs``, ``shuffle`` and ``class_weight``.
    neighbours : sequence of names
    coupling : Coupling
    features : int
        Width of the samples.
    classes : array, optional
        All classes, for classification: the same for all agents.

    Examples
    --------
    >>> import numpy as np
    >>> coupling = Coupling("consensus", penalty=1.0)
    >>> settings = {"loss": "squared_error", "random_state": 0}
    >>> ann = Agent("Ann", settings, ["Bob"], coupling, features=1)
    >>> bob = Agent("Bob", settings, ["Ann"], coupling, features=1)
    >>> request = ann.open_round(0, np.array([[0.5]]), np.array([1.0]))
    >>> record = ann.close_round(0, {"Bob": bob.answer(request)})
    >>> record.loss, record.messages, record.bytes
    (0.5, 2, 16)
    """

    def __init__(
        self,
        name: Name,
        settings: Mapping[str, Any],
        neighbours: Sequence[Name],
        coupling: Coupling,
        *,
        features: int,
        classes: Any = None,
    ) -> None:
        self.name = name
        self.neighbours = list(neighbours)
        self.coupling = coupling
        self.model = agent_model(name, settings)
        if isinstance(self.model, POLKClassifier | COLKClassifier):
            if classes is None or len(classes) < 2:
                raise ValueError(f"agent {name!r}: classification needs at least two classes")
            self.model.classes_ = np.unique(check.check_labels(classes, len(classes), "classes"))
            self.model._fixed_classes, self.model._met = True, {}
        empty = np.empty((0, features))
        self.model._start(empty, dense_rows(empty))
        self.multipliers = np.zeros(len(self.neighbours))
        self.round = 0  # the next one to close
        self._last: RoundRecord | None = None
        self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_before": None}  # copies do not undo what they have not done

    def _prepare(self) -> None:
        """What follows from the rest, and what belongs to an open round."""
        self._penalties = self._per_neighbour("penalty", self.coupling.penalty)
        self._tolerances = self._per_neighbour("tolerance", self.coupling.tolerance)
        self._batch: tuple[Rows, NDArray[np.float64], Any] | None = None
        self._given: dict[Name, Message] = {}
        self._before: dict[str, Any] | None = None  # what abandon_round goes back to
        with prefixed(f"agent {self.name!r}"):
            self.coupling.check_explicit(sum(self._penalties.tolist()), self.model)
            self.coupling.check_step(self.model.eta0)

    # ---- a round ----------------------------------------------------------------------

    def open_round(self, round: int, X: Any, y: Any) -> Message:
        """Take the round's samples; returns what to send to every neighbour.

        Nothing is learned yet; opened again before it is closed, a round has the newer samples.
        For a round that was closed before, nothing changes.
        """
        model = self.model
        with prefixed(f"agent {self.name!r}"):
            rows = check.check_samples(model, X)
            if hasattr(model, "classes_"):
                targets = self._places(check.check_labels(y, count_rows(rows)))
            else:
                targets = check.check_numbers(y, count_rows(rows))
        if round > self.round:
            raise ValueError(
                f"agent {self.name!r} is in round {self.round}: it cannot open round {round}"
            )
        if round == self.round:
            rows = copy_rows(rows)  # the caller may go on using its arrays
            own = iterate(model, rows) if self.coupling.two_way else None
            self._batch = rows, targets, own
        return Message(self.name, round, X=plain_matrix(rows))

    def answer(self, message: Message) -> Message:
        """What this agent's function is at the samples of a request, at the round's start."""
        given = self._given.get(message.sender)
        if message.round == self.round - 1 and given is not None and given.round == message.round:
            return given
        if message.round != self.round:
            raise ValueError(
                f"agent {self.name!r} is in round {self.round}: its function at the start of round "
                f"{message.round} is not known here"
            )
        if message.sender not in self.neighbours:
            raise ValueError(f"{message.sender!r} is no neighbour of agent {self.name!r}")
        rows = check.check_samples(self.model, message.X)
        lesson = None
        if self.coupling.two_way and self._batch is not None:
            strength = self._strengths()[self.neighbours.index(message.sender)]
            lesson = Lesson(plain_matrix(self._batch[0]), self._batch[2], float(strength))
        values = iterate(self.model, rows)
        reply = Message(self.name, self.round, None, message.sender, values, lesson)
        self._given[message.sender] = reply
        return reply

    def close_round(self, round: int, answers: Mapping[Name, Message | None]) -> RoundRecord:
        """Learn from the round's samples and the answers that came, and move the multipliers.

        A neighbour that is missing from ``answers`` pulls at nothing in this round, and its
        multiplier stays. An agent that has not opened the round goes on to the next one as it
        is. A second call for the same round changes nothing.
        """
        if round == self.round - 1 and self._last is not None:
            return copy.deepcopy(self._last)
        if round != self.round:
            raise ValueError(
                f"agent {self.name!r} is in round {self.round}: it cannot close round {round}"
            )
        record = RoundRecord(self.name, round)
        model, multipliers = self.model, self.multipliers.copy()
        if self._batch is not None:
            heard = self._heard(answers)
            model = copy_model(model)
            self._learn(model, multipliers, record, heard)
            record.messages = len(self.neighbours) + len(heard)
            record.bytes = len(self.neighbours) * request_size(self._batch[0])
            record.bytes += sum(answer_size(answer) for _, answer in heard)
        record.order = model.model_order_
        if self.coupling.kind == "proximity":
            record.multipliers = dict(zip(self.neighbours, multipliers.tolist(), strict=True))
        now = {
            "model": model, "multipliers": multipliers, "round": round + 1, "_last": record,
            "_batch": None,
        }  # fmt: skip
        before = {name: getattr(self, name) for name in now}
        vars(self).update(now, _before=before)  # at once: an interrupt leaves no half of it
        return copy.deepcopy(record)

    def abandon_round(self, round: int) -> None:
        """Be as before this round: it is to be tried again, with other samples perhaps.

        This is how all engines undo a round. Samples are dropped if the round is open, and what was
        learned is undone if it was the last to be closed. A second call changes nothing, nor does
        one for a round to come.
        """
        if round == self.round - 1 and self._before is not None:
            vars(self).update(self._before)
        elif round < self.round:
            raise ValueError(
                f"agent {self.name!r} is in round {self.round}: it cannot go back to round {round}"
            )
        if round == self.round:
            self._batch = self._before = None
            self._given = {j: given for j, given in self._given.items() if given.round != round}

    def tie(self, neighbours: Sequence[Name], coupling: Coupling) -> None:
        """Have these neighbours from the next round on.

        The multipliers of those that were neighbours before stay, others begin at 0. Between
        rounds only: samples of an open one are dropped.
        """
        known = dict(zip(self.neighbours, self.multipliers.tolist(), strict=True))
        before = self.neighbours, self.coupling, self.multipliers
        self.neighbours, self.coupling = list(neighbours), coupling
        self.multipliers = np.array([known.get(name, 0.0) for name in neighbours])
        try:
            self._prepare()
        except ValueError:
            self.neighbours, self.coupling, self.multipliers = before
            self._prepare()
            raise

    def join(self, round: int) -> None:
        """Take part from this round on, after having been away, without neighbours so far."""
        self.round, self._last = round, None
        self.neighbours, self.multipliers = [], np.empty(0)

    @property
    def is_open(self) -> bool:
        """Whether it has samples of a round that is not closed."""
        return self._batch is not None

    def _heard(self, answers: Mapping[Name, Message | None]) -> list[tuple[int, Message]]:
        """The answers that came, each with its neighbour's place, in the neighbours' order."""
        assert self._batch is not None
        expected = (len(self._batch[1]), self.model._outputs)
        unknown = [name for name in answers if name not in self.neighbours]
        if unknown:
            raise ValueError(f"agent {self.name!r} has no neighbour {unknown[0]!r}")
        heard = [
            (place, answer)
            for place, name in enumerate(self.neighbours)
            if (answer := answers.get(name)) is not None
        ]
        for place, answer in heard:
            name, lesson = self.neighbours[place], answer.lesson
            if (answer.sender, answer.receiver, answer.round) != (name, self.name, self.round):
                raise ValueError(
                    f"agent {self.name!r}, round {self.round}: given as the answer of {name!r} was "
                    f"one of {answer.sender!r} to {answer.receiver!r} in round {answer.round}"
                )
            with prefixed(f"agent {self.name!r}"):
                shape = np.shape(answer.values)
                if shape != expected:
                    raise ValueError(
                        f"the answer of {name!r} has shape {shape}, expected {expected}"
                    )
                if not np.isfinite(answer.values).all():
                    raise ValueError(f"the answer of {name!r} is not finite")
                if lesson is not None and not (
                    np.isfinite(lesson.values).all() and 0.0 <= lesson.strength < np.inf
                ):
                    raise ValueError(f"the lesson of {name!r} is not finite")
        return heard

    def _learn(
        self,
        model: Any,
        multipliers: NDArray[np.float64],
        record: RoundRecord,
        heard: list[tuple[int, Message]],
    ) -> None:
        """The step of (17) or of (19)-(20), which changes the model and the multipliers."""
        assert self._batch is not None
        rows, targets, _ = self._batch
        try:
            step = take_step(model, self.coupling, rows, targets, self._strengths(), heard)
        except DivergenceError as error:
            raise DivergenceError(
                f"agent {self.name!r}: round {self.round} would make the weights overflow: "
                f"{model._overflow_cure()}"
            ) from error
        record.samples = len(targets)
        record.loss = float(step.losses.mean())
        record.error = self._error(step.values, targets)
        places = [place for place, _ in heard]
        names = [self.neighbours[place] for place in places]
        record.differences = dict(zip(names, step.differences.tolist(), strict=True))
        if self.coupling.kind == "proximity":
            violations = step.differences - self._tolerances[places]
            record.violations = dict(zip(names, violations.tolist(), strict=True))
            fading = 1.0 - self.coupling.dual_regularisation * step.size * step.size
            moved = fading * multipliers[places] + step.size * violations  # (20)
            multipliers[places] = np.maximum(0.0, moved)

    def _strengths(self) -> NDArray[np.float64]:
        """What multiplies f_i - f_j: c of (17), or 2 mu_ij of (19), where h' = 2 (f_i - f_j); or
        mu_ij alone, which multiplies an h' of the user's own."""
        if self.coupling.kind == "consensus":
            return self._penalties
        return self.multipliers if self.coupling.constraint else 2.0 * self.multipliers

    def _places(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Labels as places among the classes."""
        classes = self.model.classes_
        if (classes.dtype.kind == "U") != (labels.dtype.kind == "U"):
            raise ValueError(f"y holds {labels.dtype}, the classes are {classes.tolist()}")
        places = np.minimum(classes.searchsorted(labels), len(classes) - 1)
        unknown = classes[places] != labels
        if unknown.any():
            row = int(np.argmax(unknown))
            raise ValueError(
                f"y contains the label {labels.tolist()[row]!r} at row {row}, not among the "
                f"network's classes {classes.tolist()}; name all of them with classes="
            )
        return places.astype(np.float64)

    def _error(self, f: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
        if not hasattr(self.model, "classes_"):
            return float(((f[:, 0] - targets) ** 2).mean())
        places = f.argmax(axis=1) if f.shape[1] > 1 else f[:, 0] > 0.0
        return float((places != targets).mean())

    def _per_neighbour(self, what: str, given: float | Mapping[Name, float]) -> NDArray[np.float64]:
        if not isinstance(given, Mapping):
            given = dict.fromkeys(self.neighbours, given)
        missing = [name for name in self.neighbours if name not in given]
        if missing:
            raise ValueError(f"agent {self.name!r}: no {what} for its neighbour {missing[0]!r}")
        return np.array([given[name] for name in self.neighbours], dtype=np.float64)

    # ---- what it knows ----------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the values behind the model's predictions."""
        return self.model._evaluate(X)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything as JSON values and arrays; an open round is not part of it."""
        note, arrays = embed(self.model, "model_")
        known = asdict(replace(self.coupling, penalty=0.0, tolerance=0.0, constraint=None))
        del known["constraint"]
        coupling = {
            **known,
            "penalty": self._penalties.tolist(),
            "tolerance": self._tolerances.tolist(),
        }
        last = self._last and {  # JSON knows only texts as keys
            name: [list(pair) for pair in value.items()] if isinstance(value, dict) else value
            for name, value in asdict(self._last).items()
        }
        header = {
            "name": self.name, "neighbours": self.neighbours, "coupling": coupling,
            "round": self.round, "last": last, "model": note,
        }  # fmt: skip
        if self.coupling.constraint is not None:
            header["functions"] = ["constraint"]  # code, which is not in a file
        return header, {**arrays, "multipliers": self.multipliers.copy()}

    @classmethod
    def restore(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        constraint: Any = None,
    ) -> Self:
        """The agent that :meth:`state` described, with the constraint that it had."""
        if ("constraint" in header.get("functions", [])) != (constraint is not None):
            raise ValueError("whether there is a constraint contradicts what the agents note")
        agent = cls.__new__(cls)
        agent.name, agent.neighbours = header["name"], list(header["neighbours"])
        coupling = dict(header["coupling"])
        for name in ("penalty", "tolerance"):
            coupling[name] = dict(zip(agent.neighbours, coupling[name], strict=True))
        agent.coupling = Coupling(**coupling, constraint=as_constraint(constraint))
        agent.model = rebuild(header["model"], arrays, "model_")
        agent.multipliers = np.array(arrays["multipliers"], dtype=np.float64)
        usable = (agent.multipliers >= 0.0) & np.isfinite(agent.multipliers)
        if usable.shape != (len(agent.neighbours),) or not usable.all():
            raise ValueError("the multipliers are not finite numbers >= 0, one per neighbour")
        agent.round = int(header["round"])
        last: dict[str, Any] = {
            name: {key: number for key, number in value} if isinstance(value, list) else value
            for name, value in (header["last"] or {}).items()
        }
        agent._last = RoundRecord(**last) if last else None
        agent._prepare()
        return agent

    _document = state

    @classmethod
    def _from_document(cls, document: storage.Document, constraint: Any = None) -> Self:
        return cls.restore(document.header, document.arrays, constraint)
