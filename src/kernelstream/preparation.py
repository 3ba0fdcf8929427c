"""Raw columns into features, learned on the fly."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse
from sklearn.exceptions import NotFittedError

from kernelstream import raw_columns as raw
from kernelstream.categories import (
    FEWEST_BUCKETS,
    Categories,
    HashedTexts,
    buckets_for,
    packed_texts,
    unpacked_texts,
)
from kernelstream.raw_columns import CIRCLES, column_of, kind_of, unnamed
from kernelstream.standardisation import LARGEST_WARM_UP, FrozenUnits, MovingUnits
from kernelstream.streams.batch import Batch, Text
from kernelstream.streams.columns import KINDS

LARGEST_WIDTH = 2**24
UNITS = ("moving", "frozen")


class _Parts(NamedTuple):
    """The columns of a batch, checked."""

    table: NDArray[np.float64]  # (measured and dense matrix columns, n); NaN: missing
    dates: list[NDArray[Any]]
    texts: list[Text]
    sparse: Any  # CSR, or None


class Preparation:
    """Turn raw columns into the features of a kernel machine, learning how on the fly.

    * **Numbers** are in units that *move* with the stream: deviations from the mean, of the rows
      so far at first, later of about the last 4000, their own included. So dates and counters may
      run on. Beyond 3 deviations values are compressed (3 + log(|z| - 2)), a constant column
      is 0, zeros of a column that is mostly zero stay zeros, and the unit of such a column, or of
      one with two values, is at least half of what those are apart. With ``units="frozen"`` mean
      and deviation stay as they are after ``warm_up`` rows: for models that shall be merged, and
      for a stream that does not drift. Values are then cut off at 1e6 deviations, and in a column
      that was constant during the warm-up any other value is -1 or 1.
    * **Missing numbers** become the mean (0 when standardised). Each number column with a missing
      value in the first batch gets an indicator of its own; one more is shared by all other
      columns, so that the width never changes.
    * **Texts** become 1 in one of ``buckets`` features. Three quarters of these are given to
      values ("column=value") as they come for the third time; all other values share the rest by
      their hash. A missing text is one more value. Features are then sparse (CSR). Where of 256
      texts less than a twentieth came before (numbers of orders, names), those that would share a
      feature have none, until more of them come again.
    * **Dates** become points on three circles: time of day (to the minute), day of the week, day
      of the year; where units move also a number, in days, so that trends can be followed. A
      missing date is 0 everywhere, with the shared indicator.
    * **Features without names** (``Batch.matrix``) are treated as numbers if dense, and left as
      they are if sparse.

    The layout is decided by the first batch (see :meth:`start`); everything else is the same, bit
    for bit, however the rows are cut into batches.

    Parameters
    ----------
    schema : dict
        Column to "number", "text" or "date".
    ignore : iterable of str
        Columns that are no features: the target, and what else is to be left out.
    matrix_width : int, optional
        Number of features without names.
    units : {"moving", "frozen"}, default="moving"
        Whether the units of numbers follow the stream, or stay after ``warm_up`` rows.
    warm_up : int, default=1000
        Rows after which units that are to be frozen are.
    buckets : int, optional
        Features for texts, of all columns together. By default 128, or 256 where the first batch
        has more than 96 texts that come again.
    standardise : bool, default=True
        Whether numbers are standardised.
    alone : bool, default=False
        Whether the target may be alone. Then there is one feature, always 0: for models that look
        at earlier targets.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.preparation import Preparation
    >>> from kernelstream.streams.batch import Batch
    >>> batch = Batch({"t": np.array([20.0, np.nan, 22.0])}, lines=np.arange(3))
    >>> preparation = Preparation({"t": "number"})
    >>> preparation.transform(batch, learn=True)
    array([[0., 0.],
           [0., 1.],
           [1., 0.]])
    >>> preparation.feature_names_out
    ['t', 't is missing']
    """

    def __init__(
        self,
        schema: Mapping[str, str],
        *,
        ignore: Iterable[str] = (),
        matrix_width: int | None = None,
        units: Literal["moving", "frozen"] = "moving",
        warm_up: int = 1000,
        buckets: int | None = None,
        standardise: bool = True,
        alone: bool = False,
    ) -> None:
        for name, kind in schema.items():
            if not isinstance(name, str) or kind not in KINDS:
                raise ValueError(f"column {name!r:.80} is {kind!r:.80}, not one of {KINDS}")
        if isinstance(ignore, str):
            raise ValueError(f"ignore must be a list of columns, got the text {ignore!r:.80}")
        self.schema = dict(schema)
        self.ignore = tuple(ignore)
        if not all(isinstance(name, str) for name in self.ignore):
            raise ValueError("ignore must hold names of columns")
        if units not in UNITS:
            raise ValueError(f"units must be one of {UNITS}, got {units!r:.80}")
        self.units = units
        self.matrix_width = matrix_width and raw.whole("matrix_width", matrix_width, LARGEST_WIDTH)
        self.warm_up = raw.whole("warm_up", warm_up, LARGEST_WARM_UP)
        self._open = buckets is None  # the first batch says how many
        buckets = FEWEST_BUCKETS if buckets is None else buckets
        self.buckets = raw.whole("buckets", buckets, LARGEST_WIDTH)
        self.standardise = bool(standardise)

        used = {name: kind for name, kind in schema.items() if name not in self.ignore}
        self._numbers, self._texts, self._dates = (
            [name for name, kind in used.items() if kind == wanted]
            for wanted in ("number", "text", "date")
        )
        if not used and not self.matrix_width and not alone:
            raise ValueError("there is no column to learn from, but the target and those left out")
        self._indicators: list[str] | None = None  # numbers with their own; None: not started
        self._sparse = False  # the features without names are
        self._square_norm = 0.0  # of sparse features without names, on average
        self.decimal: str | None = None  # the comma where text of the first batch had it
        self._held = False  # nothing is learned any more
        self._units = self._new_units(0)
        self._categories: Categories | HashedTexts = Categories(self.buckets)

    def _new_units(self, width: int) -> FrozenUnits | MovingUnits:
        if self.units == "moving":
            return MovingUnits(width, self.standardise, self._held)
        return FrozenUnits(width, self.warm_up, self.standardise)

    # ---- layout -----------------------------------------------------------------------

    def start(self, batch: Batch) -> Self:
        """Decide the layout by the first rows; the first ``transform`` does it otherwise.

        They decide which numbers get an indicator of their own, whether the features without
        names are sparse, and how large those are. No statistics are learned.
        """
        if self._indicators is not None:
            raise ValueError("the layout has been decided: use a new Preparation")
        if not len(batch):
            raise ValueError("the first batch has no rows: the layout cannot be decided")
        sparse = batch.matrix is not None and issparse(batch.matrix)
        if batch.matrix is not None and not self.matrix_width:
            count = batch.matrix.shape[1]
            raise ValueError(f"the batch has {count} features without names: give matrix_width")
        parts = self._parts(batch, sparse)
        missing: Any = np.isnan(parts.table[: len(self._numbers)]).any(axis=1)
        if parts.sparse is not None:
            data = parts.sparse.data
            mean = min(float(np.square(data).mean()), 1e300) if len(data) else 0.0
            self._square_norm = mean * (len(data) / len(batch))
        self._indicators = [name for name, gap in zip(self._numbers, missing, strict=True) if gap]
        self._sparse = sparse
        if self._open:
            self.buckets = buckets_for(parts.texts)
            self._categories = Categories(self.buckets)
        self.decimal = "," if batch.commas else None
        self._units = self._new_units(len(parts.table))
        return self

    def _own_indicators(self) -> list[str]:
        if self._indicators is None:
            raise NotFittedError(
                "This Preparation has seen no rows yet: call start or transform(batch, learn=True)"
            )
        return self._indicators

    @property
    def _measured(self) -> list[str]:
        """Columns that become a number each."""
        follows = self.standardise and self.units == "moving"
        return self._numbers + (self._dates if follows else [])

    @property
    def _dense_width(self) -> int:
        """Features without names that are treated as numbers."""
        return 0 if self._sparse else self.matrix_width or 0

    @property
    def _shares(self) -> bool:
        """Whether there is a column whose missing values only the shared indicator shows.

        Without any column it is the one feature.
        """
        own = len(self._own_indicators())
        without = not self._used and not self.matrix_width
        return bool(len(self._numbers) > own or self._dates or self._dense_width or without)

    @property
    def width(self) -> int:
        """Number of features."""
        fixed = len(self._measured) + len(self._own_indicators()) + self._shares
        dates = 2 * len(CIRCLES) * len(self._dates)
        return fixed + dates + (self.matrix_width or 0) + (self.buckets if self._texts else 0)

    @property
    def feature_names_out(self) -> list[str]:
        """Names of the features, in order.

        Sparse features without names are numbered from 1 as in LIBSVM text, dense ones from 0.
        """
        names = [*self._measured, *(f"{name} is missing" for name in self._own_indicators())]
        names += [raw.MISSING] * self._shares
        for name in self._dates:
            names += [f"{name} {wave} {part}" for part, _ in CIRCLES for wave in ("sin", "cos")]
        names += [unnamed(place, self._sparse) for place in range(self.matrix_width or 0)]
        return names + (self._categories.names() if self._texts else [])

    @property
    def shared_texts(self) -> dict[str, dict[str, int]]:
        """The most frequent texts of each feature that texts share, and how often they came.

        Counts are at most too small.
        """
        categories = self._categories
        return categories.shared() if isinstance(categories, Categories) else {}

    @property
    def naming_columns(self) -> list[str]:
        """Columns whose texts hardly ever come again: they have no features."""
        return self._categories.naming() if self._texts else []

    @property
    def suggested_gamma(self) -> float:
        """1 / inputs, for a Gaussian kernel.

        A number, a text, a date and a dense feature without name count as one input each: each
        adds about as much to a squared distance as a standardised number does, in however many
        features it is held. Sparse features without names count as much as their squared norm
        in the first batch is on average.
        """
        self._own_indicators()
        named = len(self._numbers) + len(self._texts) + len(self._dates)
        inputs = named + self._dense_width + self._square_norm
        return 1.0 / inputs if inputs > 0.0 else 1.0

    @property
    def inputs(self) -> dict[str, str]:
        """What is looked at: the columns with their kinds, features without names as one."""
        named = {name: kind for name, kind in self.schema.items() if name not in self.ignore}
        unnamed = {f"{self.matrix_width} features": "number"} if self.matrix_width else {}
        return named | unnamed

    @property
    def standardises(self) -> bool:
        """Whether any features are in standard deviations."""
        return self.standardise and bool(self._measured or self._dense_width)

    @property
    def in_moving_units(self) -> bool:
        """Whether all features are in units that move with the stream, or need none."""
        return self.standardise and self.units == "moving" and not self._sparse

    @property
    def frozen(self) -> bool:
        """Whether the units stay as they are now."""
        return self._units.frozen

    # ---- rows -------------------------------------------------------------------------

    def transform(self, batch: Batch, learn: bool = False) -> Any:
        """Features of the rows: (n, width) array, or CSR with texts or sparse features.

        Parameters
        ----------
        batch : Batch
            With the columns of the schema; others are not looked at.
        learn : bool, default=False
            Whether these are the next rows of the stream, which move the units until those are
            frozen. Bad rows raise before anything is learned.
        """
        if not learn and self._units.rows == 0:
            raise NotFittedError(
                "This Preparation has not learned from any rows yet: call "
                "transform(batch, learn=True) first"
            )
        if self._indicators is None:
            self.start(batch)
        parts = self._parts(batch, self._sparse)
        numbers, units = self._units.measure(parts.table, learn)
        places, categories = np.empty((len(batch), 0), np.int32), self._categories
        if self._texts:
            places, categories = categories.places(self._texts, parts.texts, learn)
        features = self._assemble(parts, numbers, places)
        if learn:
            self._units, self._categories = units, categories
        return features

    def _parts(self, batch: Batch, sparse: bool) -> _Parts:
        """The columns that are used, or an error that names the one that cannot be."""
        columns = {name: self._column(batch, name) for name in self._used}
        matrix = raw.matrix_of(batch, self.matrix_width, sparse) if self.matrix_width else None
        named = len(self._measured)
        table = np.empty((named + (0 if sparse else self.matrix_width or 0), len(batch)))
        for place, name in enumerate(self._measured):
            dates = self.schema[name] == "date"
            table[place] = raw.in_days(columns[name]) if dates else columns[name]
        if matrix is not None and not sparse:
            table[named:] = matrix.T
        if not batch.bounded:
            raw.refuse_huge(table, self._measured, batch)
        return _Parts(
            table,
            [columns[name] for name in self._dates],
            [columns[name] for name in self._texts],
            matrix if sparse else None,
        )

    @property
    def _used(self) -> list[str]:
        return [*self._numbers, *self._texts, *self._dates]

    def _column(self, batch: Batch, name: str) -> Any:
        column = column_of(batch, name)
        kind, wanted = kind_of(column), self.schema[name]
        if kind != wanted:
            raise ValueError(
                f"column {name!r} holds {kind}s here, but {wanted}s when learning began; open the "
                "stream with the schema it had then, or leave the column out"
            )
        if isinstance(column, Text):
            codes = column.codes
            if codes.min(initial=-1) < -1 or codes.max(initial=-1) >= len(column.values):
                raise ValueError(f"column {name!r} has codes without a text")
        return column

    def _assemble(
        self, parts: _Parts, numbers: NDArray[np.float64], places: NDArray[np.int32]
    ) -> Any:
        """Numbers, indicators, dates, matrix, texts: side by side."""
        named = len(self._measured)
        gaps = np.isnan(parts.table)
        own = [self._numbers.index(name) for name in self._own_indicators()]
        shared: Any = np.delete(gaps, own, axis=0).any(axis=0)
        circles = []
        for column in parts.dates:
            points, missing = raw.on_circles(column)
            circles.append(points)
            shared |= missing
        dense = np.concatenate(
            [numbers[:named], gaps[own], *([shared[None]] if self._shares else []), *circles,
             numbers[named:]]
        )  # fmt: skip
        if not parts.texts and parts.sparse is None:
            return np.ascontiguousarray(dense.T)
        blocks = [raw.as_csr(dense)] if len(dense) else []
        if parts.sparse is not None:
            blocks.append(parts.sparse)
        if parts.texts:
            blocks.append(raw.ones_at(places, self.buckets))
        return hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0].copy()

    # ---- files ------------------------------------------------------------------------

    def frozen_copy(self) -> Self:
        """The same preparation for another stream, without learning from it."""
        result = copy.deepcopy(self)
        result._held = True
        result._units, result._categories = self._units.held(), self._categories.held()
        if self.units == "frozen":
            result.warm_up = self._units.rows
        return result

    def same_as(self, other: Preparation) -> bool:
        """Whether both give every row the same features."""
        mine, theirs = self.frozen_copy()._document(), other.frozen_copy()._document()
        for header, _ in (mine, theirs):
            header.pop("decimal", None)  # says nothing of features
            if header["texts"] is not None:
                texts = header["texts"]
                del texts["others"]  # counts say nothing of features
                texts["repeats"] = [name for name, each in texts["repeats"].items() if each[2]]
        same = mine[0] == theirs[0] and mine[1].keys() == theirs[1].keys()
        return same and all(np.array_equal(part, theirs[1][name]) for name, part in mine[1].items())

    def to_document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything it holds, as a JSON header and arrays."""
        return packed_texts(*self._document())

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        categories = self._categories
        header = {
            "schema": self.schema,
            "ignore": list(self.ignore),
            "matrix_width": self.matrix_width,
            "units": self.units,
            "held": self._held,
            "warm_up": self.warm_up,
            "buckets": self.buckets,
            "standardise": self.standardise,
            "indicators": self._own_indicators(),
            "sparse": self._sparse,
            "square_norm": self._square_norm,
            "texts": categories.to_header() if isinstance(categories, Categories) else None,
            **({"decimal": self.decimal} if self.decimal else {}),
        }
        return header, self._units.to_arrays()

    @classmethod
    def from_document(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Read it back; ValueError if it cannot be what :meth:`to_document` gave."""
        header = {"units": "frozen", "held": False, "texts": None, **header}  # version 0.1
        try:
            texts = unpacked_texts(header.pop("texts"), arrays)
            held = header.pop("held")
            indicators, sparse = header.pop("indicators"), header.pop("sparse")
            square_norm, decimal = header.pop("square_norm"), header.pop("decimal", None)
            if not isinstance(header["schema"], dict) or not isinstance(header["ignore"], list):
                raise ValueError("the columns are not given by name")
            result = cls(header.pop("schema"), **header, alone=True)
            result.buckets = raw.whole("buckets", header["buckets"], LARGEST_WIDTH)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a valid preparation: {error}") from None
        numbers = result._numbers
        known = isinstance(indicators, list) and [n for n in numbers if n in indicators]
        if indicators != known:
            raise ValueError("the indicators are not columns of numbers")
        if type(held) is not bool or decimal not in (None, ","):
            raise ValueError("the units are neither held nor moving, or the decimal mark is none")
        if type(sparse) is not bool or (sparse and not result.matrix_width):
            raise ValueError("the features without names are neither sparse nor dense")
        if type(square_norm) not in (int, float) or not 0.0 <= square_norm < np.inf:
            raise ValueError("the norm of the features without names is not a number")
        result._indicators, result._sparse, result._held = indicators, sparse, held
        result._square_norm, result.decimal = float(square_norm), decimal
        if texts is None:
            result._categories = HashedTexts(result.buckets)
        else:
            result._categories = Categories(result.buckets, frozen=held).restore(texts)
        width = len(result._measured) + result._dense_width
        result._units = result._new_units(0).restore(arrays, width)
        return result
