"""What trained models compute from the features of a row, as steps of a program."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import eigh

from kernelstream.core import calibration
from kernelstream.core import kernel as core
from kernelstream.core.experts.class_mixture import FLOOR, SUREST
from kernelstream.core.experts.forest import SLIGHT
from kernelstream.core.experts.mixture import MixtureState
from kernelstream.core.units import FAR, FARTHEST_INPUT
from kernelstream.export._preparation import features_of, in_moving_units
from kernelstream.export.program import Input, Program, Vector
from kernelstream.kernels import Kernel
from kernelstream.models._auto._forest import Forest
from kernelstream.models._auto._group import SIZE, Group, unpacked
from kernelstream.models._auto._mixtures import reach_of_any_row, weights_of_any_row
from kernelstream.models._auto._succession import Succession
from kernelstream.models._auto._tracker import Tracker
from kernelstream.models._auto._units import _LARGEST, RowUnits, _folded
from kernelstream.models._base import KernelEstimator
from kernelstream.models._classifier import StreamClassifier
from kernelstream.models._experts import ExpertEstimator
from kernelstream.models._kernel_classifier import CalibratedClassifier
from kernelstream.models.in_units import InUnits
from kernelstream.pipeline import StreamModel


def describe(model: Any) -> Program:
    """What a model predicts, learning nothing more.

    Parameters
    ----------
    model : StreamModel or estimator
        Trained. The inputs of a :class:`StreamModel` are its raw columns, those of an estimator
        one matrix.

    Examples
    --------
    >>> from kernelstream import POLKClassifier, make_multidist
    >>> from kernelstream.export import describe
    >>> X, y = make_multidist(500, random_state=1)
    >>> program = describe(POLKClassifier().partial_fit(X, y))
    >>> [(given.name, given.kind, given.width) for given in program.inputs]
    [('features', 'number', 2)]
    >>> len(program.labels), program.values.width  # classes, and a probability for each
    (5, 5)
    """
    if isinstance(model, StreamModel):
        model._check_taught()
        program = Program(model.target)
        features = features_of(program, model.preparation)
        estimator, units = model.model, model.estimator
    else:
        estimator = units = model
        _check_kind(estimator)
        estimator._fitted()
        program = Program()
        given = Input("features", "number", estimator.n_features_in_)
        program.inputs.append(given)
        features = program.add("read", given.count, (), given)
    _check_kind(estimator)
    if isinstance(units, InUnits) and not units._settled:
        raise ValueError(
            "the model has not learned yet: rows wait for the unit of the target; call flush() "
            "first, or learn from more rows"
        )
    values = values_of(estimator, program, features)
    if isinstance(units, InUnits):
        mean, unit = units._mean_and_unit()
        values = values * unit + mean
    if isinstance(estimator, StreamClassifier):
        _decide(program, estimator, values)
    else:
        program.values = values
    return program


def _check_kind(estimator: Any) -> None:
    if not isinstance(estimator, KernelEstimator | ExpertEstimator):
        raise TypeError(
            f"a {type(estimator).__name__} cannot be exported: trained classifiers and regressors "
            "of kernelstream can, and models written by kernelstream learn"
        )


def _decide(program: Program, estimator: Any, values: Vector) -> None:
    """Labels and probabilities."""
    if len(estimator.classes_) < 2:
        raise ValueError("the model has met one class only: there is nothing to predict")
    program.labels = estimator.classes_
    two = values.width == 1
    place = values > 0.0 if two else values.argmax()
    if isinstance(estimator, ExpertEstimator):
        program.values = values
    elif isinstance(estimator, CalibratedClassifier) and estimator._follows:
        table = estimator._calibration_table()
        program.values = _from_margins(program, values, place, table)
    else:  # the loss has probabilities of its own
        program.values = (program.concat(values * 0.0, values) if two else values).softmax()
    program.place = place


def _from_margins(program: Program, values: Vector, place: Vector, table: Any) -> Vector:
    """``core.calibration.fill_probabilities``: a curve for every class that may lead."""
    classes, unit = len(table) - 1, float(table[0, calibration.MEAN])
    one = program.vector(1.0)
    others = (program.vector(np.arange(float(classes))) - place).abs() > 0.5
    mine = one - others
    slope = mine.dot(table[1:, calibration.SLOPE])
    offset = mine.dot(table[1:, calibration.OFFSET])

    def in_units(margins: Vector) -> Vector:
        farthest = calibration.FARTHEST
        return (margins / unit).minimum(farthest) if unit > 0.0 else (margins > 0.0) * farthest

    behind = in_units(values.abs() if values.width == 1 else values.largest() - values)
    shares = others * (behind * slope * -1.0).exp()
    total = shares.sum()
    next_one = shares.largest() / total
    nearest = others.where(behind, 1e9) * -1.0
    score = offset - slope * nearest.largest()
    least = next_one * calibration.AHEAD / (next_one + 1.0)
    right = (one / ((score * -1.0).exp() + 1.0)).maximum(least)
    return others.where(shares * ((one - right) / total), right)


@singledispatch
def values_of(estimator: Any, program: Program, features: Vector) -> Vector:
    """Its outputs: decision values or numbers; of experts probabilities or numbers."""
    raise NotImplementedError


@values_of.register
def _(estimator: KernelEstimator, program: Program, features: Vector) -> Vector:
    """One kernel expansion."""
    values = kernel_values(estimator.kernel_, features, estimator.dictionary_)
    return values.product(estimator.dual_coef_.T)


@values_of.register
def _(estimator: ExpertEstimator, program: Program, features: Vector) -> Vector:
    """Experts on rows in units."""
    state = estimator._state
    rows = measured_rows(features, state.rows)
    experts = state.experts
    result = (
        tracker_values(experts, rows)
        if isinstance(experts, Tracker)
        else committee_values(experts, rows)
    )
    if state.targets is None:
        return result
    return result * state.targets.unit + state.targets.center


# ---- kernels ----------------------------------------------------------------------------


def kernel_values(kernel: Kernel, x: Vector, points: Any) -> Vector:
    """k(x, d) for each stored point d; see ``core.kernel.evaluate``."""
    needs = kernel.program
    stack: list[Vector] = []
    dots = x.product(points.T) if needs.needs_dots else None
    squares = x.squares(points) if needs.needs_squares else None
    l1 = x.distances(points) if needs.needs_l1 else None
    for code, numbers in zip(needs.codes.tolist(), needs.numbers.tolist(), strict=True):
        number, coef0, degree = numbers
        if code in (core.ADD, core.MULTIPLY):
            second, first = stack.pop(), stack.pop()
            stack.append(first + second if code == core.ADD else first * second)
        elif code == core.SCALE:
            stack.append(stack.pop() * number)
        elif code in (core.LINEAR, core.POLYNOMIAL):
            assert dots is not None
            base = dots if code == core.LINEAR else dots * number + coef0
            value = base
            for _ in range(int(degree) - 1):
                value = value * base
            stack.append(value)
        elif code == core.LAPLACIAN:
            assert l1 is not None
            stack.append((l1 * -number).exp())
        else:
            assert squares is not None
            stack.append(_of_squares(code, number, squares))
    return stack.pop()


def _of_squares(code: int, gamma: float, squares: Vector) -> Vector:
    if code == core.GAUSSIAN:
        return (squares * -gamma).exp()
    if code not in (core.MATERN12, core.MATERN32, core.MATERN52):
        raise NotImplementedError("this kernel cannot be exported")
    if code == core.MATERN12:
        return (squares.sqrt() * -math.sqrt(2.0 * gamma)).exp()
    s = squares.sqrt() * math.sqrt((6.0 if code == core.MATERN32 else 10.0) * gamma)
    shape = s + 1.0
    if code == core.MATERN52:
        shape = shape + s * s * (1.0 / 3.0)
    return shape * (s * -1.0).exp()


# ---- experts ----------------------------------------------------------------------------


def measured_rows(features: Vector, units: RowUnits) -> Vector:
    """``RowUnits.measure`` without learning."""
    if units.features > units.width:
        columns, signs = _folded(np.arange(units.features))
        fold = np.zeros((units.features, units.width))
        fold[np.arange(units.features), columns] = signs
        features = features.product(fold)
    if units.moving:
        return in_moving_units(features, units.columns)
    return features.minimum(_LARGEST).maximum(-_LARGEST)


class _Group:
    """Steps of a group of kernel experts; see ``core.experts.group.group_pass``."""

    def __init__(self, group: Group, rows: Vector) -> None:
        state, n = group.state, group.order
        status = state.status[0]
        self.numbers, self.outputs = bool(status["numbers"]), group.outputs
        if len(group.turn):
            rows = rows.product(group.turn.T)
        roots = np.sqrt(state.scales)
        squares = (rows * roots).squares((state.points[:, :n] * roots[:, None]).T)
        self.amplitude = float(status["amplitude"])
        self.kernel = (squares * -float(status["gamma"])).exp() * self.amplitude + 1.0
        self.state, self.n = state, n
        self.factor = unpacked(state.inverse, n).T  # S: its product with S^T inverts the kernel's

    def expert(self, place: int) -> Vector:
        """Its number, or its probabilities."""
        state, n = self.state, self.n
        mine = slice(place * self.outputs, (place + 1) * self.outputs)
        values = self.kernel.product(self.factor @ state.weights[mine, :n].T)
        if self.numbers:
            return values
        return (values if place else values * _shrink(self.variance())).softmax()

    def variance(self) -> Vector:
        """Of the functions of second order: k(x, x) - u.(I - covariance) u, where u = T k.

        In the axes of the matrix in the middle one matrix does for both products.
        """
        state, n = self.state, self.n
        lower = unpacked(state.covariance, n)
        sizes, axes = eigh(np.eye(n) - lower - np.tril(lower, -1).T)
        u = self.kernel.product(self.factor @ axes)
        return (u * u).dot(-sizes) + (self.amplitude + 1.0)


def _quadratic(x: Vector, matrix: Any) -> Vector:
    return (x.product(matrix) * x).sum()


def _shrink(variance: Vector) -> Vector:
    """Values of an uncertain function count for less."""
    root = (variance * (0.125 * math.pi) + 1.0).sqrt()
    return variance.program.vector(1.0) / root


def tracker_values(tracker: Tracker, rows: Vector) -> Vector:
    """Of the one expert of KRLS-T."""
    return _Group(tracker.group, rows).expert(0)


def committee_values(experts: Succession, rows: Vector) -> Vector:
    """The mixture for any row: without experts that look at the last target."""
    committee = experts.leading
    mixture = committee.mixture
    used = mixture.used[-1]
    opinions: dict[int, Vector] = {}
    for place, group in enumerate(committee.groups):
        if group is None or not used[SIZE * place : SIZE * (place + 1)].any():
            continue
        steps = _Group(group, rows)
        for k in range(SIZE):
            if used[SIZE * place + k]:
                opinions[SIZE * place + k] = steps.expert(k)
    first = SIZE * len(committee.groups)
    for place, linear in enumerate(committee.linear, first):
        if used[place]:
            opinions[place] = _linear(linear, rows, committee.numbers)
    trees = committee.trees
    if experts.forest is not None and used[trees].any():
        opinions[trees.start] = _forest(experts.forest, rows)
    last = committee.experts - 1
    if used[last]:
        if committee.numbers:
            known = committee.level
        else:
            counts = committee.chains.counts[-1, -1]
            known = (counts + 0.5 / len(counts)) / (counts.sum() + 0.5)
        opinions[last] = rows.program.vector(known)
    if set(opinions) != set(np.flatnonzero(used).tolist()):
        raise NotImplementedError("an expert that looks at the last target cannot be exported")
    if not committee.numbers:
        return _mix_classes(rows.program, mixture, opinions)
    return _mix_numbers(rows.program, mixture, committee.targets, opinions)


def _linear(linear: Any, rows: Vector, numbers: bool) -> Vector:
    """A linear expert; see ``core.experts.linear.linear_pass``."""
    weights, covariance = linear.weights, linear.covariance
    if linear.status[0]["far"]:
        apart = rows.abs()
        far = (apart.minimum(FARTHEST_INPUT) - FAR).exp() + (FAR - 1.0)
        far = far.minimum(FARTHEST_INPUT)
        far = (rows > 0.0).where(far, far * -1.0)
        rows = (apart > FAR).where(far, rows)
    values = rows.product(weights[:, 1:].T) + weights[:, 0]
    if numbers:
        return values
    x = rows.program.concat(rows.program.vector(1.0), rows)
    diagonal = len(covariance) == 1
    variance = (x * x).dot(covariance[0]) if diagonal else _quadratic(x, covariance)
    return (values * _shrink(variance.maximum(1e-12))).softmax()


def _forest(forest: Forest, rows: Vector) -> Vector:
    """All trees; see ``core.experts.forest.forest_pass``."""
    errors, found = forest.state.errors[:, 3], []
    weights = np.ones(len(errors)) if forest.numbers else (1.0 - errors) ** 2 + SLIGHT
    for k, weight in enumerate((weights / weights.sum()).tolist()):
        columns, cuts, turns, values = forest.tree(k)
        if not len(columns):
            found.append(rows.program.vector(weight * values[0]))
            continue
        # A row is in the leaf to which it turns right where it must, and nowhere else.
        right = rows.pick(columns.tolist()) > cuts
        inside = right.product(turns) > (turns > 0.0).sum(axis=0) - 0.5
        found.append(inside.product(weight * values))
    return rows.program.total(found)


def _mix_numbers(
    program: Program, mixture: MixtureState, targets: int, opinions: dict[int, Vector]
) -> Vector:
    """``number_mixture.mix_numbers`` without learning; the last mixtures, one a target."""
    weights = weights_of_any_row(mixture, targets)
    (low, high), drawn = reach_of_any_row(mixture, targets)
    mixed = program.total([each * weights[:, k] for k, each in opinions.items()])
    return mixed * (1.0 - drawn) + mixed.maximum(low).minimum(high) * drawn


def _mix_classes(program: Program, mixture: MixtureState, opinions: dict[int, Vector]) -> Vector:
    """``class_mixture.mix_classes`` without learning."""
    classes = next(iter(opinions.values())).width
    above = {k: p * (1.0 - FLOOR) + FLOOR / classes for k, p in opinions.items()}
    made = [program.total([p * mixture.shares[-1, k] for k, p in above.items()])]
    logs = {k: p.log() for k, p in above.items()}
    for powers in mixture.powers[-1]:
        made.append(program.total([p * powers[k] for k, p in logs.items()]).softmax())
    mixed = program.total([way * part for way, part in zip(made, mixture.ways[-1], strict=True)])
    return _calibrated(program, mixed, mixture.calibration[-1, :3])


def _calibrated(program: Program, mixed: Vector, numbers: Any) -> Vector:
    """``class_mixture.calibrate``."""
    a, b, c = numbers.tolist()
    best = mixed.largest()
    places = program.vector(np.arange(float(mixed.width)))
    apart = places - mixed.argmax()
    others = apart.abs() > 0.5  # all but the likeliest class, the first of equal ones
    p = best.minimum(1.0 - 1e-6)
    rest = program.vector(1.0) - best
    sure = p.log() * a - (program.vector(1.0) - p).log() * b + c
    small = (sure.abs() * -1.0).exp()
    confidence = (sure > 0.0).where(1.0, small) / (small + 1.0)
    other = (mixed * others).largest()
    least = other / (rest + other)  # where the likeliest and the next are alike
    shown = confidence.maximum(least + 1e-9).minimum(SUREST)
    changed = others.where(mixed * ((program.vector(1.0) - shown) / rest), shown)
    return (rest > 0.0).where(changed, mixed)
