"""What automatic models compile last, called once: a second process does it at first use."""

from __future__ import annotations

import numpy as np

from kernelstream.core.experts.class_mixture import mix_classes
from kernelstream.core.experts.contest import CONTEST_STATUS, contest
from kernelstream.core.experts.number_mixture import mix_numbers
from kernelstream.models._auto._group import Group, as_columns, packed
from kernelstream.models._auto._history import History
from kernelstream.models._auto._intervals import Intervals
from kernelstream.models._auto._mixtures import new_mixtures
from kernelstream.models._auto._relevance import relevance_of


def compile_last(numbers: bool) -> None:
    """Renewals, relevance, intervals, the watch on losses, mixtures."""
    outputs = 1 if numbers else 2
    group = Group(2, outputs, 4, 1.0, numbers, 0)
    group.state.status["points"] = 1
    group.state.inverse[:1] = packed(np.eye(1) / np.sqrt(group.state.status["amplitude"] + 1.0))[:1]
    group.state.covariance[:1] = 1.0
    group.renew()
    group.resize(2)
    rows, targets = np.arange(256.0).reshape(128, 2) % 7.0, np.arange(128.0) % outputs
    relevance_of(rows, as_columns(targets), numbers)
    ones = np.ones(128)
    out = np.full((128, 1, outputs), 0.5)
    if numbers:
        Intervals(1).learn(np.ones((128, 1)), ones, 0.9)
    contest(
        np.zeros(1, CONTEST_STATUS), np.zeros((2, 1)), numbers, out, out[:0], as_columns(targets),
        ones, np.empty_like(out),
    )  # fmt: skip
    History().follow(np.ones((128, 1)), numbers, 0)
    mixture, one = new_mixtures(np.ones((2, 4), np.int64), numbers), as_columns(targets[:1])
    opinions, mixed = np.full((1, 4, outputs), 0.5), np.empty((1, 2, outputs))
    if numbers:
        mix_numbers(mixture, opinions, one, ones[:1], np.zeros(1), mixed)
    else:
        mix_classes(mixture, opinions, one, ones[:1], mixed)
