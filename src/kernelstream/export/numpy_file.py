"""A program as one Python file that needs NumPy alone."""

from __future__ import annotations

import base64
import textwrap
from typing import Any

import numpy as np

from kernelstream._version import __version__
from kernelstream.export.program import Input, Program, Vector

#: How each step is written; operands are a, b, c.
_STEPS: dict[str, str] = {
    **{sign: f"{{a}} {sign} {{b}}" for sign in "+-*/"},
    "minimum": "np.minimum({a}, {b})",
    "maximum": "np.maximum({a}, {b})",
    "greater": "({a} > {b}) * 1.0",
    "where": "np.where({a} != 0.0, {b}, {c})",
    "isnan": "np.isnan({a}) * 1.0",
    "exp": "np.exp({a})",
    "log": "np.log({a})",
    "sqrt": "np.sqrt({a})",
    "abs": "np.abs({a})",
    "product": "{a} @ {b}",
    "squares": "_squares({a}, {b})",
    "distances": "_distances({a}, {b})",
    "sum": "{a}.sum(axis=1, keepdims=True)",
    "largest": "{a}.max(axis=1, keepdims=True)",
    "argmax": "{a}.argmax(axis=1)[:, None]",
}

_START = '''"""Predicts {what}. Written by kernelstream {version}; needs NumPy alone.

predict(rows){proba}

{inputs}
"""

import base64
{imports}
import numpy as np


def _array(text, *shape):
    return np.frombuffer(base64.b64decode(text), "<f8").reshape(shape)


def _side_by_side(*parts):
    n = max(len(part) if part.ndim == 2 else 1 for part in parts)
    return np.concatenate([np.broadcast_to(part, (n, part.shape[-1])) for part in parts], axis=1)


def _squares(x, points):
    center = points.mean(axis=0)
    x, points = x - center, points - center
    apart = (x * x).sum(axis=1)[:, None] + (points * points).sum(axis=1) - 2.0 * x @ points.T
    return np.maximum(apart, 0.0)


def _distances(x, points):
    return np.stack([np.abs(x - point).sum(axis=1) for point in points], axis=1)
'''

_DATES = r"""

def _moment(value):
    if isinstance(value, str):
        text = value.strip()
        time = re.fullmatch(r"(\d{1,2})(:\d\d(?::\d\d)?)(?:(\.\d+)| ?([AaPp][Mm]))?", text)
        text = re.sub(r"([ T])(\d:\d\d)", r"\g<1>0\2", text)
        dotted = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(|[ T]\d\d:.*)", text)
        slashed = re.fullmatch(r"(\d{4})/(\d{1,2})/(\d{1,2})(|[ T]\d\d:.*)", text)
        if time:
            hour, half = int(time[1]), (time[4] or "").lower()
            if half and not 1 <= hour <= 12:
                raise ValueError(f"{value!r} is no time of day")
            hour = hour % 12 + 12 * (half == "pm") if half else hour
            text = f"1970-01-01T{hour:02d}{time[2]}{time[3] or ''}"
        elif dotted:
            text = f"{dotted[3]}-{dotted[2]:0>2}-{dotted[1]:0>2}{dotted[4]}"
        elif slashed:
            text = f"{slashed[1]}-{slashed[2]:0>2}-{slashed[3]:0>2}{slashed[4]}"
        value = datetime.datetime.fromisoformat(text) if text else None
    if value is None or type(value).__name__ == "NAType" or value != value:
        return np.datetime64("NaT")
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise ValueError(f"{value!r} has a time zone but no day: give it in one zone")
        value = datetime.datetime.combine(datetime.date(1970, 1, 1), value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _moments(column):
    column = np.asarray(column)
    if column.dtype.kind in "OU":
        column = np.array([_moment(value) for value in column.tolist()], dtype="datetime64[us]")
    return column.astype("datetime64[us]")[:, None]


def _days(column):
    moments = _moments(column)
    return np.where(np.isnat(moments), np.nan, moments.view(np.int64) / 86_400_000_000.0)


def _gap(column):
    return np.isnat(_moments(column)) * 1.0


def _circles(column):
    moments = _moments(column)[:, 0]
    missing = np.isnat(moments)
    moments = np.where(missing, np.datetime64(0, "us"), moments)
    passed, days = moments.view(np.int64), moments.astype("datetime64[D]").view(np.int64)
    year = moments.astype("datetime64[Y]").astype("datetime64[D]").view(np.int64)
    places = (passed // 60_000_000 % 1440, 1440), ((days + 3) % 7, 7), (days - year, 366)
    angles = [2.0 * np.pi * place / steps for place, steps in places]
    points = np.stack([wave(angle) for angle in angles for wave in (np.sin, np.cos)], axis=1)
    return np.where(missing[:, None], 0.0, points)
"""

_TEXTS = '''

def _murmur(data):
    """MurmurHash3, 32 bits, seed 0."""

    def turn(h, by):
        return (h << by | h >> 32 - by) & 0xFFFFFFFF

    h = 0
    for i in range(0, len(data), 4):
        k = int.from_bytes(data[i : i + 4], "little")
        h ^= turn(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
        if len(data) - i >= 4:
            h = (turn(h, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def _place(text, column, own, missing, room, shared, longest):
    if text is None or text != text or text == "":
        return missing
    token = f"{column}={text}"
    if longest and len(token) > longest:
        whole = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        token = f"{token[: longest - 20]}... {whole}"
    place = own.get(token[len(column) + 1 :])
    if place is not None:
        return place
    if not shared:
        return None
    return room + _murmur(token.encode("utf-8", "surrogatepass")) % shared


def _texts(width, *columns):
    counts = np.zeros((len(columns[0][0]), width))
    for texts, *table in columns:
        known = {}
        for row, text in enumerate(texts):
            if text not in known:
                known[text] = _place(text, *table)
            if known[text] is not None:
                counts[row, known[text]] += 1.0
    return counts
'''

_END = '''

def _compute(rows):
    with np.errstate(all="ignore"):
{steps}
        return {result}


def predict(rows):
    """{prediction}"""
    return {predict}
'''

_PROBABILITIES = '''

def predict_proba(rows):
    """(n, classes): the probability of each of LABELS."""
    return _compute(rows)[0]
'''


def write_numpy(program: Program) -> str:
    """The text of the file.

    Examples
    --------
    >>> from kernelstream import POLKRegressor
    >>> from kernelstream.export import describe, write_numpy
    >>> model = POLKRegressor().partial_fit([[0.0], [1.0]], [0.0, 1.0])
    >>> written = {}
    >>> exec(write_numpy(describe(model)), written)
    >>> bool(abs(written["predict"]([[0.5]]) - model.predict([[0.5]]))[0] < 1e-12)
    True
    """
    names: dict[int, str] = {}
    constants: list[str] = []
    lines: list[str] = []

    def name_of(vector: Vector) -> str:
        if id(vector) in names:
            return names[id(vector)]
        array = vector.detail  # a constant
        if array.shape == (1,):  # a matrix of one number stays one
            return repr(float(array.reshape(-1)[0]))
        names[id(vector)] = f"_C{len(constants)}"
        constants.append(f"{names[id(vector)]} = {_as_text(array)}")
        return names[id(vector)]

    for number, step in enumerate(program.needed()):
        lines.append(f"v{number} = {_step(step, [name_of(v) for v in step.operands])}")
        names[id(step)] = f"v{number}"
    result = name_of(program.values)
    if program.place is not None:
        result += f", {name_of(program.place)}[:, 0].astype(int)"
    elif program.values.width == 1:
        result += "[:, 0]"
    return _file(program, constants, lines, result)


def _step(step: Vector, operands: list[str]) -> str:
    if step.step == "read":
        return f"_numbers(rows, {step.detail.name!r})"
    if step.step in ("days", "gap", "circles"):
        return f"_{step.step}(rows[{step.detail.name!r}])"
    if step.step == "pick":
        return f"{operands[0]}[:, {_slice(step.detail)}]"
    if step.step == "texts":
        columns = ", ".join(
            f"(rows[{t.input.name!r}], {t.input.name!r}, {t.own!r}, {t.missing}, {t.room}, "
            f"{t.shared}, {t.longest})"
            for t in step.detail
        )
        return f"_texts({step.width}, {columns})"
    if step.step == "concat":
        operands = [f"np.array([{o}])" if _is_number(o) else o for o in operands]
        return f"_side_by_side({', '.join(operands)})"
    return _STEPS[step.step].format(**dict(zip("abc", operands, strict=False)))


def _is_number(text: str) -> bool:
    return not text.startswith(("v", "_"))


def _slice(places: list[int]) -> str:
    if places and places == list(range(places[0], places[-1] + 1)):
        return f"{places[0]}:{places[-1] + 1}"
    return repr(places)


def _as_text(array: Any) -> str:
    text = base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()
    wrapped = textwrap.wrap(text, 92)
    shape = ", ".join(map(str, array.shape))
    return "_array(\n" + "\n".join(f'    "{line}"' for line in wrapped) + f",\n    {shape},\n)"


def _file(program: Program, constants: list[str], lines: list[str], result: str) -> str:
    kinds = {given.kind for given in program.inputs}
    classes = program.labels is not None
    start = _START.format(
        what=program.target,
        version=__version__,
        proba="  predict_proba(rows)" * classes,
        inputs=_inputs_in_words(program.inputs),
        imports="import datetime\n" * ("date" in kinds)
        + "import hashlib\n" * ("text" in kinds)
        + "import re\n" * ("date" in kinds),
    )
    lookup = "\n\ndef _numbers(rows, name):\n" + (
        "    return np.asarray(rows, dtype=np.float64)\n"
        if _is_plain(program)
        else "    column = np.asarray(rows[name], dtype=np.float64)\n"
        "    return column[:, None] if column.ndim == 1 else column\n"
    )
    parts = [start, lookup, _DATES * ("date" in kinds), _TEXTS * ("text" in kinds), "\n\n"]
    if program.labels is not None:
        parts.append(f"LABELS = np.array({program.labels.tolist()!r})\n")
    parts.append("\n".join(constants) + "\n")
    parts.append(
        _END.format(
            steps="\n".join(f"        {line}" for line in lines),
            result=result,
            prediction="The label of each row." if classes else _numbers_in_words(program),
            predict="LABELS[_compute(rows)[1]]" if classes else "_compute(rows)",
        )
    )
    if classes:
        parts.append(_PROBABILITIES)
    return "".join(parts)


def _numbers_in_words(program: Program) -> str:
    each = program.values.width
    return "The number for each row." if each == 1 else f"{each} numbers for each row."


def _is_plain(program: Program) -> bool:
    """Whether rows are one matrix and nothing else."""
    return len(program.inputs) == 1 and program.inputs[0].width is not None


def _inputs_in_words(inputs: list[Input]) -> str:
    if len(inputs) == 1 and inputs[0].width is not None:
        return f"rows: an array of {inputs[0].width} columns; NaN is a missing number."
    words = {"number": "numbers, NaN: missing", "text": "strings, None and \"\": missing",
             "date": "datetime64, dates or times of day, texts such as 2024-03-01T08:00, "
                     "2024/03/01, 1.3.2024 or 9:05 PM,\n        or int64 microseconds since 1970; "
                     "NaT: missing"}  # fmt: skip
    lines = ["rows: a mapping (a dict, a data frame) of columns, each a 1-D array:"]
    for given in inputs:
        wide = f"array of {given.width} columns of " if given.width else ""
        lines.append(f"    {given.name!r}: {wide}{words[given.kind]}")
    return "\n".join(lines)
