"""A program as one C header: no dependencies but the standard library's maths, no allocation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelstream._version import __version__
from kernelstream.export.program import Input, Program, TextTable, Vector

#: How a number of each step is written; a, b and c are its operands at the place i.
_STEPS = {
    **{sign: f"{{a}} {sign} {{b}}" for sign in "+-*/"},
    "minimum": "{a} < {b} ? {a} : {b}",
    "maximum": "{a} > {b} ? {a} : {b}",
    "greater": "{a} > {b} ? 1 : 0",
    "where": "{a} != 0 ? {b} : {c}",
    "isnan": "{a} != {a} ? 1 : 0",
    "exp": "KS_(exp)({a})",
    "log": "KS_(log)({a})",
    "sqrt": "KS_(sqrt)({a})",
    "abs": "KS_(fabs)({a})",
}

_START = """\
/* {title}. Written by kernelstream {version}.
 *
 * C99; nothing is allocated, and of the standard library only {used} used. Numbers are double,
 * or float where KERNELSTREAM_FLOAT is defined before this file is included. Do not compile with
 * -ffast-math: missing numbers are NaN.
 *
 *     {name}_row row = {{...}};
 *     {name}_result result;
 *     {name}_predict(&row, &result);
 *     {usage}
 */
#ifndef {guard}
#define {guard}

#include <math.h>
#include <stdint.h>
{include}
#ifndef KERNELSTREAM_REAL
#ifdef KERNELSTREAM_FLOAT
#define KERNELSTREAM_REAL float
#define KS_(function) function##f
#else
#define KERNELSTREAM_REAL double
#define KS_(function) function
#endif
typedef KERNELSTREAM_REAL ks_real;
#endif

"""

_DATE = """\
#ifndef KERNELSTREAM_DATES
#define KERNELSTREAM_DATES
/* Rounded down. */
static int64_t ks_floor(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

/* Sine and cosine of the time of day, the weekday and the day of the year; 0 if missing. */
static void ks_circles(int64_t moment, ks_real *out) {
    int64_t days = ks_floor(moment, 86400000000), minutes = ks_floor(moment, 60000000);
    int64_t shifted = days + 719468, day, year, march, leap, place[3];
    const int64_t steps[3] = {1440, 7, 366};
    int i;
    day = shifted - 146097 * ks_floor(shifted, 146097); /* of 400 years that begin in March */
    year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    march = day - (365 * year + year / 4 - year / 100);
    leap = (year % 4 == 0 && year % 100 != 0) || year == 0;
    place[0] = minutes - 1440 * ks_floor(minutes, 1440);
    place[1] = days + 3 - 7 * ks_floor(days + 3, 7);
    place[2] = march >= 306 ? march - 306 : march + 59 + leap;
    for (i = 0; i < 3; i++) {
        double angle = 6.283185307179586 * (double)place[i] / (double)steps[i];
        out[2 * i] = moment == INT64_MIN ? 0 : (ks_real)sin(angle);
        out[2 * i + 1] = moment == INT64_MIN ? 0 : (ks_real)cos(angle);
    }
}
#endif

"""

_TEXT = """\
#ifndef KERNELSTREAM_TEXTS
#define KERNELSTREAM_TEXTS
static uint32_t ks_turn(uint32_t h, int by) { return h << by | h >> (32 - by); }

/* MurmurHash3, 32 bits, of two texts after one another. */
static uint32_t ks_hash(const char *first, const char *second) {
    uint32_t h = 0, k = 0, length = 0;
    const char *parts[2];
    int part;
    parts[0] = first;
    parts[1] = second;
    for (part = 0; part < 2; part++) {
        const char *c;
        for (c = parts[part]; *c; c++) {
            k |= (uint32_t)(unsigned char)*c << 8 * (length % 4);
            if (++length % 4 == 0) {
                h = ks_turn(h ^ ks_turn(k * 0xCC9E2D51u, 15) * 0x1B873593u, 13) * 5 + 0xE6546B64u;
                k = 0;
            }
        }
    }
    h ^= ks_turn(k * 0xCC9E2D51u, 15) * 0x1B873593u;
    h ^= length;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return h ^ h >> 16;
}
#endif

"""


def write_c(program: Program, name: str = "model") -> str:
    """The text of the header; functions and types begin with ``name``.

    Examples
    --------
    >>> from kernelstream import POLKRegressor
    >>> from kernelstream.export import describe, write_c
    >>> model = POLKRegressor().partial_fit([[0.0], [1.0]], [0.0, 1.0])
    >>> "static void small_predict(" in write_c(describe(model), "small")
    True
    """
    return _Writer(program, identifier(name)).text()


def identifier(text: str) -> str:
    """A name for C.

    >>> identifier("2nd größe"), identifier("int"), identifier("x")
    ('_2nd_gr__e', 'int_', 'x')
    """
    found = re.sub(r"[^A-Za-z0-9_]", "_", text) or "_"
    if found[0].isdigit():
        found = f"_{found}"
    return f"{found}_" if found in _KEYWORDS else found


_KEYWORDS = re.findall(
    r"\w+",
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while bool true false class new delete this template",
)


class _Writer:
    """One statement per step, one array per vector."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.names: dict[int, str] = {}
        self.constants: list[str] = []
        self.lines: list[str] = []
        self.members = _members(program.inputs)

    def text(self) -> str:
        program, name = self.program, self.name
        for number, step in enumerate(program.needed()):
            self.names[id(step)] = f"v{number}"
            self.lines.append(f"    ks_real v{number}[{step.width}];")
        declared, self.lines = self.lines, []
        for step in program.needed():
            self.write(step)
        texts = any(given.kind == "text" for given in program.inputs)
        start = _START.format(
            title=f"A model of {_comment(program.target)}", version=__version__, name=name,
            guard=f"KERNELSTREAM_{name.upper()}_H", include="#include <string.h>\n" * texts,
            used="maths and strcmp are" if texts else "maths is", usage=self.usage(),
        )  # fmt: skip
        parts = [start]
        if any(given.kind == "date" for given in program.inputs):
            parts.append(_DATE)
        parts.append(_TEXT * any("ks_hash(" in each for each in self.constants))
        parts += [self.types(), "".join(self.constants)]
        parts.append(
            f"/* Predict one row. */\n"
            f"static void {name}_predict(const {name}_row *row, {name}_result *result) {{\n"
        )
        parts += [
            "\n".join([*declared, "    int i, j;", "    (void)j;", *self.lines, *self.finish()]),
            "\n}\n\n#endif\n",
        ]
        return "".join(parts)

    # ---- what goes in and comes out -----------------------------------------------------

    def usage(self) -> str:
        """How the result is printed: labels are of the type that they have in the model."""
        if self.program.labels is None:
            first = "value" if self.program.values.width == 1 else "values[0]"
            return f'printf("%g\\n", (double)result.{first});'
        kind = self.program.labels.dtype.kind
        form, cast = {"U": ("%s", ""), "f": ("%g", "")}.get(kind, ("%lld", "(long long)"))
        label = f"{cast}{self.name}_labels[result.place]"
        return f'printf("{form} %g\\n", {label}, (double)result.probabilities[result.place]);'

    def types(self) -> str:
        """The row, the result and the labels."""
        words = {
            "number": "ks_real {}; /* {}NAN: missing */",
            "text": 'const char *{}; /* {}UTF-8; NULL or "": missing */',
            "date": "int64_t {}; /* {}microseconds since 1970; INT64_MIN: missing */",
        }
        lines = ["typedef struct {"]
        for given in self.program.inputs:
            member = self.members[given.name]
            label = "" if member == given.name else f"{_comment(given.name)}: "
            if given.width:
                lines.append(
                    f"    const ks_real *{member}; /* {given.width} numbers; NAN: missing */"
                )
            else:
                lines.append("    " + words[given.kind].format(member, label))
        lines += [f"}} {self.name}_row;", "", "typedef struct {"]
        labels, width = self.program.labels, self.program.values.width
        if labels is None:
            several = "value" if width == 1 else f"values[{width}]"
            lines.append(f"    ks_real {several}; /* {_comment(self.program.target)} */")
        else:
            lines.append(f"    int place; /* in {self.name}_labels */")
            lines.append(f"    ks_real probabilities[{width}];")
        lines += [f"}} {self.name}_result;", ""]
        if labels is not None:
            kind = {"U": "char *const ", "f": "double "}.get(labels.dtype.kind, "int64_t ")
            held = ", ".join(map(_literal, labels.tolist()))
            if labels.dtype.kind == "b":
                lines.append("/* 0 is false, 1 is true. */")
            lines.append(f"static const {kind}{self.name}_labels[{len(labels)}] = {{{held}}};\n")
        return "\n".join(lines) + "\n"

    def finish(self) -> list[str]:
        program, values = self.program, self.operand(self.program.values)
        if program.labels is None or program.place is None:
            if program.values.width == 1:
                return [f"    result->value = {values.format(i=0)};"]
            return [
                f"    for (i = 0; i < {program.values.width}; i++) "
                f"result->values[i] = {values.format(i='i')};"
            ]
        place = self.operand(program.place).format(i=0)
        return [
            f"    for (i = 0; i < {program.values.width}; i++) "
            f"result->probabilities[i] = {values.format(i='i')};",
            f"    result->place = (int){place};",
        ]

    # ---- steps --------------------------------------------------------------------------

    def operand(self, vector: Vector) -> str:
        """How its number at the place {i} is written."""
        if vector.step == "constant" and vector.detail.size == 1:
            return _number(float(vector.detail.reshape(-1)[0]))
        return self.held(vector) + ("[0]" if vector.width == 1 else "[{i}]")

    def held(self, vector: Vector) -> str:
        """The array of a vector."""
        if id(vector) not in self.names:
            self.names[id(vector)] = self.constant(vector.detail)
        return self.names[id(vector)]

    def constant(self, array: Any) -> str:
        name = f"{self.name}_c{len(self.constants)}"
        numbers = [_number(x) for x in np.asarray(array).ravel().tolist()]
        rows = [", ".join(numbers[k : k + 6]) for k in range(0, len(numbers), 6)]
        self.constants.append(
            f"static const ks_real {name}[{len(numbers)}] = {{\n    "
            + ",\n    ".join(rows)
            + "};\n"
        )
        return name

    def write(self, step: Vector) -> None:
        if step.step in _STEPS:
            operands = [self.operand(vector).format(i="i") for vector in step.operands]
            value = _STEPS[step.step].format(**dict(zip("abc", operands, strict=False)))
            self.fill(step, f"(ks_real)({value})")
        else:
            getattr(self, f"write_{step.step}")(step)

    def fill(self, step: Vector, value: str) -> None:
        name = self.names[id(step)]
        self.lines.append(f"    for (i = 0; i < {step.width}; i++) {name}[i] = {value};")

    def write_read(self, step: Vector) -> None:
        member = self.members[step.detail.name]
        self.fill(step, f"row->{member}[i]" if step.detail.width else f"row->{member}")

    def write_days(self, step: Vector) -> None:
        moment = f"row->{self.members[step.detail.name]}"
        self.fill(
            step, f"{moment} == INT64_MIN ? (ks_real)NAN : (ks_real)({moment} / 86400000000.0)"
        )

    def write_gap(self, step: Vector) -> None:
        self.fill(step, f"row->{self.members[step.detail.name]} == INT64_MIN ? 1 : 0")

    def write_circles(self, step: Vector) -> None:
        name = self.names[id(step)]
        self.lines.append(f"    ks_circles(row->{self.members[step.detail.name]}, {name});")

    def write_texts(self, step: Vector) -> None:
        name = self.names[id(step)]
        self.fill(step, "0")
        for number, table in enumerate(step.detail):
            function = self.text_function(number, table)
            place = f"{function}(row->{self.members[table.input.name]})"
            self.lines += [f"    i = {place};", f"    if (i >= 0) {name}[i] += 1;"]

    def text_function(self, number: int, table: TextTable) -> str:
        name = f"{self.name}_place{number}"
        # A text with a NUL could not be given.
        own = {text: place for text, place in table.own.items() if "\0" not in text}
        texts = ", ".join(map(_literal, own)) or "0"
        places = ", ".join(map(str, own.values())) or "0"
        last = "-1"
        if table.shared:
            token = _literal(table.input.name + "=")
            last = f"{table.room} + (int)(ks_hash({token}, text) % {table.shared}u)"
        self.constants.append(
            f"static int {name}(const char *text) {{\n"
            f"    static const char *const own[] = {{{texts}}};\n"
            f"    static const int places[] = {{{places}}};\n"
            f"    int i;\n"
            f"    if (!text || !*text) return {table.missing};\n"
            f"    for (i = 0; i < {len(own)}; i++)\n"
            f"        if (strcmp(text, own[i]) == 0) return places[i];\n"
            f"    return {last};\n"
            f"}}\n"
        )
        return name

    def write_concat(self, step: Vector) -> None:
        name, first = self.names[id(step)], 0
        for vector in step.operands:
            value = self.operand(vector).format(i="i")
            self.lines.append(
                f"    for (i = 0; i < {vector.width}; i++) {name}[{first} + i] = {value};"
            )
            first += vector.width

    def write_pick(self, step: Vector) -> None:
        places, source = step.detail, self.held(step.operands[0])
        if places == list(range(places[0], places[-1] + 1)):
            self.fill(step, f"{source}[{places[0]} + i]")
            return
        name = self.names[id(step)]
        moves = (f"{name}[{k}] = {source}[{place}];" for k, place in enumerate(places))
        self.lines.append(f"    {' '.join(moves)}")

    def write_product(self, step: Vector) -> None:
        matrix = step.operands[1].detail
        self.by_column(step, matrix, "x * {m}")

    def write_squares(self, step: Vector) -> None:
        points = step.operands[1].detail
        self.by_column(step, points.T, "(x - {m}) * (x - {m})")

    def write_distances(self, step: Vector) -> None:
        points = step.operands[1].detail
        self.by_column(step, points.T, "KS_(fabs)(x - {m})")

    def by_column(self, step: Vector, matrix: Any, term: str) -> None:
        """Sums over the numbers x of a vector, side by side: compilers vectorise that."""
        name, x = self.names[id(step)], step.operands[0]
        added = term.format(m=f"{self.constant(matrix)}[j * {step.width} + i]")
        self.fill(step, "0")
        self.lines.append(
            f"    for (j = 0; j < {x.width}; j++) {{\n"
            f"        const ks_real x = {self.operand(x).format(i='j')};\n"
            f"        for (i = 0; i < {step.width}; i++) {name}[i] += {added};\n"
            f"    }}"
        )

    def write_sum(self, step: Vector) -> None:
        (x,) = step.operands
        self.accumulate(step, x.width, "0", f"total += {self.operand(x).format(i='j')}")

    def write_largest(self, step: Vector) -> None:
        (x,) = step.operands
        value = self.operand(x).format(i="j")
        start = self.operand(x).format(i="0")
        self.accumulate(step, x.width, start, f"if ({value} > total) total = {value}")

    def accumulate(self, step: Vector, count: int, start: str, statement: str) -> None:
        name = self.names[id(step)]
        self.lines.append(
            f"    for (i = 0; i < {step.width}; i++) {{\n"
            f"        ks_real total = {start};\n"
            f"        for (j = 0; j < {count}; j++) {{ {statement}; }}\n"
            f"        {name}[i] = total;\n"
            f"    }}"
        )

    def write_argmax(self, step: Vector) -> None:
        name, (x,) = self.names[id(step)], step.operands
        source = self.held(x)
        self.lines.append(
            f"    {{\n"
            f"        int best = 0;\n"
            f"        for (i = 1; i < {x.width}; i++) if ({source}[i] > {source}[best]) best = i;\n"
            f"        {name}[0] = (ks_real)best;\n"
            f"    }}"
        )


def _members(inputs: Iterable[Input]) -> dict[str, str]:
    """Names of the row's members, all different."""
    found: dict[str, str] = {}
    for given in inputs:
        name = identifier(given.name)
        while name in found.values():
            name += "_"
        found[given.name] = name
    return found


def _number(value: float) -> str:
    """Shortest digits that give the same double; a float literal would be rounded twice."""
    if not np.isfinite(value):
        return "NAN" if value != value else "-INFINITY" if value < 0 else "INFINITY"
    return repr(value) if value >= 0.0 else f"({value!r})"


def _literal(value: Any) -> str:
    """A label or a text."""
    if isinstance(value, str):
        held = value.encode("utf-8", "surrogatepass")
        return '"' + "".join(_escaped(byte) for byte in held) + '"'
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _escaped(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text).replace("*/", "* /")
