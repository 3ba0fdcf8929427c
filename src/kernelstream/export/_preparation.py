"""How raw columns become features, as steps of a program."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kernelstream.categories import LONGEST, Categories, HashedTexts
from kernelstream.core.units import FAR, LARGEST, ColumnUnits, reach, unit_of
from kernelstream.export.program import Input, Program, TextTable, Vector
from kernelstream.preparation import Preparation
from kernelstream.raw_columns import CIRCLES
from kernelstream.standardisation import FARTHEST, FrozenUnits, MovingUnits


def features_of(program: Program, preparation: Preparation) -> Vector:
    """The features of a row, in the order of ``Preparation.feature_names_out``."""
    columns = {
        name: Input(name, kind)
        for name, kind in preparation.schema.items()
        if name not in preparation.ignore
    }
    if not columns and not preparation.matrix_width:
        raise ValueError(
            "it was learned from earlier targets alone: it predicts the same for every row"
        )
    program.inputs += columns.values()
    matrix: list[Vector] = []
    if preparation.matrix_width:
        given = Input(_free_name("features", columns), "number", preparation.matrix_width)
        program.inputs.append(given)
        matrix = [program.add("read", given.count, (), given)]
    measured = [
        program.add("days" if columns[name].kind == "date" else "read", 1, (), columns[name])
        for name in preparation._measured
    ]
    dates = [columns[name] for name in preparation._dates]
    own = [preparation._numbers.index(name) for name in preparation._own_indicators()]
    gaps = [program.add("gap", 1, (), date) for date in dates]
    found: list[Vector] = []
    if measured or (matrix and not preparation._sparse):
        table = program.concat(*measured, *([] if preparation._sparse else matrix))
        numbers = in_units(table, preparation._units)
        missing = table.isnan()
        found += [numbers.pick(range(len(measured))), missing.pick(own)]
        gaps.append(missing.pick([place for place in range(table.width) if place not in own]))
        if not preparation._sparse:
            matrix = [numbers.pick(range(len(measured), table.width))]
    if preparation._shares:
        found.append(program.concat(*gaps).largest())
    found += [program.add("circles", 2 * len(CIRCLES), (), date) for date in dates]
    found += matrix
    if preparation._texts:
        tables = [_places(columns[name], preparation._categories) for name in preparation._texts]
        found.append(program.add("texts", preparation.buckets, (), tables))
    return program.concat(*found)


def in_units(values: Vector, units: FrozenUnits | MovingUnits) -> Vector:
    """Numbers as units that stay as they are measure them; missing ones filled in."""
    if isinstance(units, MovingUnits):
        if units.standardise:
            return in_moving_units(values, units.columns)
        return values.isnan().where(units.columns.mean, values)
    mean, deviation = units.running.mean, units.running.deviation
    if not units.standardise:
        return values.isnan().where(mean, values)
    constant = deviation == 0.0
    result = (values - mean) / np.where(constant, 1.0, deviation)
    result = result.minimum(FARTHEST).maximum(-FARTHEST)
    if constant.any():  # there is no unit: any other value is -1 or 1
        sides = (values > mean) - (values.program.vector(mean) > values)
        result = values.program.vector(constant).where(sides, result)
    return values.isnan().where(0.0, result)


def in_moving_units(values: Vector, columns: ColumnUnits) -> Vector:
    """``core.units.moving_units`` without learning."""
    plain = getattr(unit_of, "py_func", unit_of)
    pairs = [plain(columns, place) for place in range(len(columns.mean))]
    center, deviation = np.array(pairs).reshape(-1, 2).T
    usable = deviation > 1e-14 * np.abs(center)
    z = (values - center) / np.where(usable, deviation, 1.0)
    size = z.abs()
    far = (size.minimum(LARGEST).maximum(FAR) - (FAR - 1.0)).log() + FAR
    compressed = (size > FAR).where(far, size)
    z = (z > 0.0).where(compressed, compressed * -1.0) * usable
    plain = getattr(reach, "py_func", reach)
    bounds = [plain(columns, place) for place in range(len(columns.mean))]
    least, most = np.array(bounds).reshape(-1, 2).T
    z = z.maximum(least).minimum(most)
    return values.isnan().where(0.0, z)


def _places(given: Input, texts: Categories | HashedTexts) -> TextTable:
    own, missing = texts.of_column(given.name)
    room, longest = (texts.room, LONGEST) if isinstance(texts, Categories) else (0, 0)
    shared = 0 if given.name in texts.naming() else texts.buckets - room
    return TextTable(given, own, missing, room, shared, longest)


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
