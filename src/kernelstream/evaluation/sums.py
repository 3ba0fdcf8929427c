"""Sums over a stream, the same bits however its samples are cut into arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from kernelstream.evaluation.labels import Codes

Floats = NDArray[np.float64]


class Sums:
    """s <- factor s + x for every sample; factor 1 sums up."""

    def __init__(self, factor: float, columns: int) -> None:
        self.factor = factor
        self.last = np.zeros(columns)

    def run(self, values: Floats) -> Floats:
        """The sums after each of the (n, columns) samples."""
        # Both go step by step, unlike sum: any chunking gives the same bits.
        if self.factor == 1.0:
            series = np.cumsum(np.concatenate([self.last[None], values]), axis=0)[1:]
        else:
            carried = self.factor * self.last[None]
            series, _ = lfilter([1.0], [1.0, -self.factor], values, axis=0, zi=carried)
        self.last = series[-1].copy()
        return series  # type: ignore[no-any-return]


class Counts:
    """The same for a matrix in which every sample adds 1 to one cell, up to a common scale.

    Instead of all cells fading, the new ones weigh more and more, until it is time to rescale.
    """

    def __init__(self, factor: float) -> None:
        period = 4096
        if factor < 1.0:
            period = int(np.clip(-np.log(1e100) / np.log(factor), 1, period))
        self.rising = factor ** -np.arange(float(period))
        self.rescale = factor**period
        self.place = 0  # in the period
        self.matrix = np.zeros((0, 0))

    def add(self, rows: Codes, columns: Codes, side: int) -> None:
        """Add samples; the matrix becomes (side, side)."""
        self.matrix = enlarged(self.matrix, side)
        cells, flat = rows * side + columns, self.matrix.reshape(-1)
        while len(cells):
            room = len(self.rising) - self.place
            now, cells = cells[:room], cells[room:]
            # One addition after another, unlike bincount plus a sum: chunking does not matter.
            np.add.at(flat, now, self.rising[self.place : self.place + len(now)])
            self.place += len(now)
            if self.place == len(self.rising):
                flat *= self.rescale
                self.place = 0


def enlarged(matrix: Floats, side: int) -> Floats:
    """The matrix with rows and columns of zeros after its own, (side, side)."""
    if side == len(matrix):
        return matrix
    larger = np.zeros((side, side))
    larger[: len(matrix), : len(matrix)] = matrix
    return larger


def copied(array: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array from a file; ValueError if it cannot take the place of ``like``."""
    if array.shape != like.shape or array.dtype != like.dtype:
        raise ValueError(
            f"{array.dtype} of shape {array.shape} cannot be {like.dtype} of shape {like.shape}"
        )
    return array.copy()


def all_codes(values: NDArray[Any], classes: int) -> bool:
    """Whether these are numbers of classes."""
    return bool(np.isin(values, np.arange(classes)).all())


class Recent:
    """The last ``window`` samples, some numbers each, in a ring."""

    def __init__(self, window: int, columns: int) -> None:
        self.ring = np.zeros((window, columns))
        self.count = 0  # of all samples so far

    def extend(self, samples: Floats) -> None:
        """Take in (n, columns) samples."""
        window = len(self.ring)
        self.count += len(samples)
        samples = samples[-window:]
        self.ring[(np.arange(-len(samples), 0) + self.count) % window] = samples

    def restore(self, ring: Floats, count: int) -> None:
        """Go on from these; ValueError if they cannot have been here."""
        self.ring, self.count = copied(ring, self.ring), count
        if count < 0:
            raise ValueError(f"{count} samples so far cannot be")

    def samples(self) -> Floats:
        """(n, columns), n <= window, oldest first."""
        window = len(self.ring)
        if self.count <= window:
            return self.ring[: self.count]
        return np.roll(self.ring, -(self.count % window), axis=0)
