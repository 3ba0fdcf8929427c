"""The step that an agent takes in a round: POLK's on a mini-batch, pulled by its neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.blocks import pull_pass
from kernelstream.core.direct import PULL
from kernelstream.core.kernel import Rows
from kernelstream.core.loss import loss_values
from kernelstream.core.schedule import step_size
from kernelstream.core.threads import one_thread
from kernelstream.expansion import expand
from kernelstream.models import _validation as check
from kernelstream.network._coupling import Coupling, pull_factor
from kernelstream.network._messages import Message
from kernelstream.rows import stack_rows


class Step(NamedTuple):
    """What a step found; values from before it."""

    values: NDArray[np.float64]  # (n, outputs): the agent's function at its own samples
    losses: NDArray[np.float64]  # (n,)
    differences: NDArray[np.float64]  # h_ij, |f_i - f_j|^2, per answer, the mean over the samples
    size: float  # eta


def copy_model(model: Any) -> Any:
    """The same estimator with a state of its own: a step changes the state's arrays in place."""
    copy: Any = object.__new__(type(model))
    vars(copy).update(vars(model))
    copy._state = type(model._state)(*(np.array(part) for part in model._state))
    return copy


def take_step(
    model: Any,
    coupling: Coupling,
    rows: Rows,
    targets: NDArray[np.float64],
    strengths: NDArray[np.float64],
    heard: list[tuple[int, Message]],
) -> Step:
    """The step of (17) or (19). The model may be left half changed by an error.

    ``strengths`` multiply f_i - f_j, one per neighbour; an answer comes with its neighbour's place.
    """
    n, answers = len(targets), [answer for _, answer in heard]
    lessons = [answer.lesson for answer in answers if answer.lesson is not None]
    # In units of the largest, so that no sum or product of strengths overflows.
    unit = max(1.0, strengths.max(initial=0.0), *(lesson.strength for lesson in lessons))
    strengths = strengths[[place for place, _ in heard]] / unit
    theirs = np.zeros((len(answers), n, model._outputs))
    for k, answer in enumerate(answers):
        theirs[k] = answer.values
    total = float(strengths.sum())
    pulls = [np.full(n, total)]
    centres = [np.tensordot(strengths, theirs, axes=1)]
    constraint = coupling.constraint
    if constraint is not None:  # (19) with another h: no centre that f is pulled to
        own = iterate(model, rows)
        slopes = _returned("derivative", [constraint.derivative(own, each) for each in theirs], own)
        pulls, centres = [np.zeros(n)], [-np.tensordot(strengths, slopes, axes=1)]
    for lesson in lessons:
        rows = stack_rows(rows, check.check_rows(model, lesson.X))
        strength = lesson.strength / unit
        total += strength
        strength *= n / len(lesson.values)  # a mean over them, too
        pulls.append(np.full(len(lesson.values), strength))
        centres.append(strength * lesson.values)
    pull = np.column_stack([np.concatenate(pulls), np.concatenate(centres)])

    # The estimator's own loop, with the whole round as one batch.
    own_batch_size, model.batch_size = model.batch_size, len(pull)
    limit, settings, _ = model._make_plan()
    settings["direct"] = PULL
    model._plan = limit, settings, pull_pass
    rule, steps = settings[0], model._state.status[0]["steps"]
    eta = float(step_size(rule.schedule, rule.initial_step, rule.decay, steps))
    pull *= pull_factor(coupling, model.kernel_, eta * total, unit, rows)
    f = np.zeros((len(pull), model._outputs))
    without_target = np.full(len(pull) - n, np.nan)
    with one_thread():
        model._run(rows, np.append(targets, without_target), np.ones(len(pull)), f, pull)
    model.batch_size = own_batch_size
    model._forget_plan()

    f, losses = f[:n], np.empty(n)
    loss_values(rule.loss, rule.loss_number, f, targets, losses)
    differences = ((f - theirs) ** 2).sum(axis=(1, 2)) / n
    if constraint is not None:
        values = [constraint.value(f, each) for each in theirs]
        differences = _returned("value", values, f[:, 0]).mean(axis=1)
    return Step(f, losses, differences, eta)


def iterate(model: Any, rows: Rows) -> NDArray[np.float64]:
    """(n, outputs): the current function, also where predictions come from an average."""
    state, outputs = model._state, model._outputs
    weights = state.weights[:outputs, : state.order].T * state.status[0]["scale"]
    return expand(model.kernel_, rows, state, weights)


def _returned(what: str, found: list[Any], like: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a function of the user's own returned for each answer, checked."""
    numbers = np.empty((len(found), *like.shape))
    for place, each in enumerate(found):
        if np.shape(each) != like.shape or not np.isfinite(each).all():
            raise ValueError(
                f"the constraint's {what} must return finite numbers of shape {like.shape} for the "
                f"values of {len(like)} samples; it returned {each!r}"
            )
        numbers[place] = each
    return numbers
