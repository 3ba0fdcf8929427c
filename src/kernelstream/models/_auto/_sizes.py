"""How many experts an automatic model has, how large they may become, and the bytes of it all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernelstream.core.experts.contest import CONTEST_STATUS
from kernelstream.core.experts.lags import KEPT, WIDTH
from kernelstream.core.experts.linear import LINEAR_STATUS
from kernelstream.core.experts.neighbours import SIZE as NEIGHBOURS
from kernelstream.models._auto._forest import Forest, forest_size
from kernelstream.models._auto._group import SIZE, Group
from kernelstream.models._auto._history import History
from kernelstream.models._auto._intervals import Intervals
from kernelstream.models._auto._latest import Latest
from kernelstream.models._auto._mixtures import pools_of

#: gamma times features of the groups at the beginning, and how they learn scales of columns.
SCALES = ((0.125, 1.0, 4.0), (0.5, 0.5, 1.0), (2.0, 1.0, 4.0))
#: Linear experts: whether the last target is an input, and how fast they forget.
LINEAR = ((False, 1.0), (False, 0.999), (True, 1.0), (True, 0.999))
#: Which of these keep their whole covariance where memory is short: first those that do not forget.
#: There is a part of the memory for it, or a larger one of what is more than so many bytes: with
#: few, points are worth more.
WHOLE_FIRST, FOR_LINEAR, FOR_LINEAR_OF_MORE, SHORT = (0, 2, 1, 3), 0.15, 0.4, 200_000
#: Decays of the chains of classes; the last one counts classes alone.
DECAYS = (0.999, 0.95, 0.999)
#: Points of a group before the race, of the leading one after it, and once many rows were seen.
MOST, LARGE, LARGEST = 128, 300, 400
#: Points of the leading group where the stream changes.
FOLLOWING = 192
#: Groups of a committee on trial have so many points at least; otherwise there are no trials.
LEAST_YOUNG = 32
#: The full metric needs the square of the features.
WIDEST_METRIC = 128
#: Latest rows where memory is short.
LEAST_MEMORY = 16
#: With more classes the linear experts do not see the last one, and the chains know what follows
#: the latest classes alone: both need the square of the classes.
MOST_FOLLOWED = 128


def chained(classes: int) -> int:
    """Classes of which the chains know what follows them."""
    return classes if classes <= MOST_FOLLOWED else max(1, MOST_FOLLOWED**2 // classes)


def lagged_inputs(outputs: int, numbers: bool) -> int:
    """Inputs that stand for the last target."""
    return outputs if numbers or outputs <= MOST_FOLLOWED else 0


#: With more targets of numbers none is predicted from earlier ones.
MOST_SERIES = 8


class Sizes(NamedTuple):
    """What a committee may hold."""

    most: int  # points of a group
    large: int  # points of the leading group in the end
    memory: int  # latest rows: new groups learn from them, and similar ones predict
    whole: int  # linear experts that keep their whole covariance; the others its diagonal alone
    young: int = 0  # points of each group of a committee on trial; 0: there is none
    lags: bool = False  # whether an expert predicts numbers from earlier ones
    leaves: int = 0  # of each tree; 0: there are no trees
    columns: int = 0  # that each leaf counts

    @property
    def leading(self) -> int:
        """Points of the leading group just after the race."""
        return min(self.large, max(self.most, LARGE))

    @property
    def changing(self) -> int:
        """Points of the leading group where the stream changes."""
        return min(self.large, max(self.most, FOLLOWING))

    def may_turn(self, features: int) -> bool:
        """Whether there may be a group with a full metric: not where memory is short."""
        return features <= WIDEST_METRIC and self.memory > LEAST_MEMORY

    def keeps_whole(self, place: int) -> bool:
        """Whether a linear expert keeps its whole covariance."""
        return WHOLE_FIRST.index(place) < self.whole

    def on_trial(self) -> Sizes:
        """Those of a committee on trial."""
        return self._replace(most=self.young, large=self.young, young=0)


def plan(
    features: int,
    outputs: int,
    numbers: bool,
    delayed: bool,
    max_points: int | None,
    max_bytes: int | None,
    lags: bool = True,
    trees: tuple[int, int] | None = None,
) -> Sizes:
    """What fits: as many points as possible, after what the other experts need.

    ``lags``: whether there may be an expert on earlier numbers. ``trees``: leaves and columns of
    those that there are, to be kept if they can be; None before there are any.
    """
    shape = features, outputs, numbers, delayed
    limit = np.inf if max_bytes is None else max_bytes
    inputs = lagged_inputs(outputs, numbers)
    linear = np.cumsum([8 * (1 + features + inputs * LINEAR[k][0]) ** 2 for k in WHOLE_FIRST])
    for_linear = max(FOR_LINEAR * limit, FOR_LINEAR_OF_MORE * (limit - SHORT))
    whole = int((linear <= for_linear).sum())
    targets = outputs if numbers else 1
    memory = int(min(512, max(LEAST_MEMORY, limit / 8 // (8 * (features + targets)))))
    room = LARGEST + 2 * MOST if max_points is None else max_points

    thrift, young = False, 0
    forest = forest_size(features, outputs, numbers, limit / 6, trees)
    lags &= numbers and not delayed and outputs <= MOST_SERIES and _lag_bytes(outputs) <= limit / 8

    def sizes(most: int, large: int) -> Sizes:
        if thrift:
            return Sizes(most, large, LEAST_MEMORY, 0)
        return Sizes(most, large, memory, whole, young, lags, *forest)

    # A committee on trial may have an eighth of what there is.
    beside = MOST if max_points is None else min(MOST, room // 8 // 3)

    def on_trial() -> int:
        fits = _largest(
            beside, lambda size: _committee_bytes(*shape, sizes(size, size)) <= limit / 8
        )
        return fits if fits >= LEAST_YOUNG else 0

    young = on_trial()
    if lags and not young:  # which are worth more
        lags = False
        young = on_trial()
        lags = not young
    if max_points is not None:
        room -= 3 * young

    def fits(sizes: Sizes) -> bool:
        return nbytes_for(*shape, sizes) <= limit

    most = _largest(min(MOST, room // 3), lambda size: fits(sizes(size, size)))
    if most == 0:  # nothing but points
        thrift = True
        most = _largest(min(MOST, room // 3), lambda size: fits(sizes(size, size)))
    if most == 0:
        least = nbytes_for(*shape, sizes(1, 1))
        raise ValueError(
            f"max_bytes={max_bytes} does not hold a single point: for {features} features and "
            f"{outputs} outputs it must be {least} at least"
        )
    beyond = room - 2 * most  # the leading group and two others
    large = _largest(beyond, lambda size: fits(sizes(most, max(most, size))))
    return sizes(most, max(most, large))


def _lag_bytes(targets: int) -> int:
    return 8 * targets * (KEPT + 1 + WIDTH * (WIDTH + 1)) + 8


def _largest(room: int, fits: Callable[[int], bool]) -> int:
    """The largest size up to ``room`` that fits; 0 where none does."""
    if room > 0 and fits(room):  # most often
        return room
    low, high = 0, room - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def nbytes_for(features: int, outputs: int, numbers: bool, delayed: bool, sizes: Sizes) -> int:
    """The most bytes that a model ever holds, in closed form."""
    shape = features, outputs, numbers, delayed
    committees = _committee_bytes(*shape, sizes)
    if sizes.young:
        committees += _committee_bytes(*shape, sizes.on_trial())
    errors = Intervals.nbytes_for(outputs * (1 if delayed else 2)) if numbers else 0
    targets = outputs if numbers else 1
    memory = Latest.nbytes_for(features, targets, sizes.memory) + 8 * 9 * (features + targets)
    contest = CONTEST_STATUS.itemsize + 16 * targets
    if sizes.leaves:
        memory += Forest.nbytes_for(features, outputs, numbers, sizes.leaves, sizes.columns)
    return committees + errors + memory + History.nbytes_for(targets) + contest


def _committee_bytes(
    features: int, outputs: int, numbers: bool, delayed: bool, sizes: Sizes
) -> int:
    full = sizes.may_turn(features)
    shape = features, outputs, numbers
    small, large = (Group.nbytes_for(*shape, m, False) for m in sizes[:2])
    turned, long = (Group.nbytes_for(*shape, m, full) for m in sizes[:2])
    groups = max(3 * small, large + small + turned, long + small)
    experts, count = 0, len(SCALES) * SIZE + (2 if numbers else len(DECAYS))
    count += (sizes.leaves > 0) + (0 if delayed else NEIGHBOURS)
    for place, (lagged, _) in enumerate(LINEAR):
        if not (lagged and delayed):
            width = 1 + features + lagged_inputs(outputs, numbers) * lagged
            experts += 8 * width * ((width if sizes.keeps_whole(place) else 1) + outputs)
            experts += LINEAR_STATUS.itemsize
            count += 1
    if sizes.lags:
        experts += _lag_bytes(outputs)
        count += 1
    targets, classes = (outputs, 1) if numbers else (1, outputs)
    pools = len(pools_of(numbers))
    each = count * (4 + pools * (count + 1)) + 11 + pools + (2 * count + 14 if numbers else 0)
    mixture = 8 * targets * (1 if delayed else 2) * each + 8
    rows = chained(classes)
    counts = 8 * len(DECAYS) * (rows + 1) * classes + 16 * rows
    return groups + experts + mixture + counts
