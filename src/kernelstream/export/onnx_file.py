"""A program as an ONNX graph: plain operators in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelstream._version import __version__
from kernelstream.export.program import Input, Program, TextTable, Vector

#: Versions of the operators, the oldest that have all of them.
_OPSET, _ML_OPSET, _IR = 20, 4, 9

#: Steps that are one operator.
_SAME = {
    "+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "minimum": "Min", "maximum": "Max",
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "product": "MatMul",
}  # fmt: skip
#: Steps whose operator gives true or false.
_TESTS = {"greater": "Greater", "isnan": "IsNaN"}

_DAY = 86_400_000_000
#: How a missing date is given: what ``numpy.datetime64("NaT")`` is as a whole number.
MISSING_DATE = -(2**63)


def import_onnx() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "to write ONNX the package onnx is needed: pip install 'kernelstream[onnx]'"
        ) from error
    return onnx


def write_onnx(program: Program) -> bytes:
    """The file: see ``docs/howto/export.md`` for its inputs and outputs.

    Examples
    --------
    >>> from kernelstream import POLKRegressor
    >>> from kernelstream.export import describe, write_onnx
    >>> model = POLKRegressor().partial_fit([[0.0], [1.0]], [0.0, 1.0])
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(write_onnx(describe(model)))
    >>> [(each.name, each.type) for each in session.get_inputs()]
    [('features', 'tensor(double)')]
    """
    return _Writer(program).model()  # type: ignore[no-any-return]


class _Writer:
    """Adds operators to a graph; values are known by name."""

    def __init__(self, program: Program) -> None:
        self.onnx = import_onnx()
        self.program = program
        self.nodes: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self.names: dict[int, str] = {}
        self.inner = "_"  # begins the names of values, which no input may have
        while any(given.name.startswith(self.inner) for given in program.inputs):
            self.inner += "_"

    def model(self) -> Any:
        make, program = self.onnx.helper, self.program
        for step in program.needed():
            self.names[id(step)] = self.write(step)
        outputs = [self.finish(), *self.finish_label()]
        used = {name for node in self.nodes for name in node.input}
        graph = make.make_graph(
            self.nodes, f"kernelstream model of {program.target}",
            [self.input_info(given) for given in program.inputs], outputs,
            [tensor for tensor in self.constants.values() if tensor.name in used],
        )  # fmt: skip
        versions = [make.make_opsetid("", _OPSET)]
        if any(given.kind == "text" for given in program.inputs):
            versions.append(make.make_opsetid("ai.onnx.ml", _ML_OPSET))
            versions.append(make.make_opsetid("com.microsoft", 1))
        model = make.make_model(
            graph, opset_imports=versions, producer_name="kernelstream",
            producer_version=__version__, ir_version=_IR,
        )  # fmt: skip
        return model.SerializeToString()

    # ---- pieces -------------------------------------------------------------------------

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """One operator; returns the name of its value."""
        name = f"{self.inner}v{len(self.nodes)}"
        make = self.onnx.helper
        self.nodes.append(
            make.make_node(operator, list(inputs), [name], domain=domain, **attributes)
        )
        return name

    def constant(self, array: Any, kind: type[Any] = np.float64) -> str:
        held = np.asarray(array, dtype=object if kind is str else kind)
        key = (held.shape, kind, repr(held.tolist()) if kind is str else held.tobytes())
        if key not in self.constants:
            name = f"{self.inner}c{len(self.constants)}"
            tensor = (
                self.onnx.helper.make_tensor(
                    name, self.onnx.TensorProto.STRING, held.shape,
                    [text.encode("utf-8", "surrogatepass") for text in held.ravel()],
                ) if kind is str
                else self.onnx.numpy_helper.from_array(
                    np.ascontiguousarray(held).reshape(held.shape), name
                )
            )  # fmt: skip
            self.constants[key] = tensor
        return str(self.constants[key].name)

    def whole(self, *numbers: int) -> str:
        return self.constant(numbers, np.int64)

    def double(self, value: str) -> str:
        return self.node("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def operand(self, vector: Vector) -> str:
        """A value, or a constant, which is a row where it is not a matrix."""
        if vector.step != "constant":
            return self.names[id(vector)]
        return self.constant(vector.detail)

    # ---- steps --------------------------------------------------------------------------

    def write(self, step: Vector) -> str:
        operands = [self.operand(vector) for vector in step.operands]
        if step.step in ("+", "-", "*", "/") and step.operands[1].step == "constant":
            return self.with_constant(step.step, operands[0], step.operands[1].detail)
        if step.step in _SAME:
            return self.node(_SAME[step.step], *operands)
        if step.step in _TESTS:
            return self.double(self.node(_TESTS[step.step], *operands))
        return getattr(self, f"write_{step.step}")(step, *operands)  # type: ignore[no-any-return]

    def with_constant(self, step: str, value: str, array: Any) -> str:
        """A value and a constant, number by number.

        onnxruntime leaves out the addition of what is almost 0 (1e-8) and the multiplication by
        what is almost 1 (1e-5): those are written in a way that it does not see through.
        """
        if array.size == 1 and step in "+-" and 0.0 < abs(array.item()) < 1e-6:
            return self.node("Sum", value, self.constant(array if step == "+" else -array))
        if array.size == 1 and step in "*/" and 0.0 < abs(array.item() - 1.0) < 1e-3:
            twice = self.node(_SAME[step], value, self.constant(2.0 * array))
            return self.node("Mul", twice, self.constant(0.5 if step == "*" else 2.0))
        return self.node(_SAME[step], value, self.constant(array))

    def write_read(self, step: Vector) -> str:
        given: Input = step.detail
        return given.name if given.width else self.column(given.name)

    def column(self, value: str) -> str:
        """(n,) as (n, 1)."""
        return self.node("Unsqueeze", value, self.whole(1))

    def write_where(self, step: Vector, choice: str, yes: str, no: str) -> str:
        chosen = self.node("Cast", choice, to=self.onnx.TensorProto.BOOL)
        return self.node("Where", chosen, yes, no)

    def write_sum(self, step: Vector, value: str) -> str:
        return self.node("ReduceSum", value, self.whole(1))

    def write_largest(self, step: Vector, value: str) -> str:
        return self.node("ReduceMax", value, self.whole(1))

    def write_argmax(self, step: Vector, value: str) -> str:
        return self.double(self.node("ArgMax", value, axis=1))

    def write_pick(self, step: Vector, value: str) -> str:
        return self.node("Gather", value, self.whole(*step.detail), axis=1)

    def write_concat(self, step: Vector, *values: str) -> str:
        """Constants get as many rows as the others have."""
        whole = next(v for v in step.operands if v.step != "constant")
        rows = self.node("Shape", self.names[id(whole)], end=1)
        parts = []
        for vector, value in zip(step.operands, values, strict=True):
            if vector.step == "constant":
                shape = self.node("Concat", rows, self.whole(1), axis=0)
                value = self.node("Expand", value, shape)
            parts.append(value)
        return self.node("Concat", *parts, axis=1)

    def write_squares(self, step: Vector, x: str, points: str) -> str:
        """|x|^2 - 2 x.d + |d|^2 about the points' mean: no rows times points times features."""
        held = step.operands[1].detail
        center = held.mean(axis=0)
        moved = held - center
        x = self.with_constant("-", x, center)
        own = self.node("ReduceSum", self.node("Mul", x, x), self.whole(1))
        both = self.node("MatMul", x, self.constant(-2.0 * moved.T))
        norms = self.constant((moved * moved).sum(axis=1))
        apart = self.node("Add", self.node("Add", both, own), norms)
        return self.node("Max", apart, self.constant(0.0))

    def write_distances(self, step: Vector, x: str, points: str) -> str:
        apart = self.node("Sub", self.node("Unsqueeze", x, self.whole(1)), points)
        return self.node("ReduceSum", self.node("Abs", apart), self.whole(2), keepdims=0)

    # ---- dates: whole numbers, microseconds since 1970 -----------------------------------

    def divide(self, value: str, by: int) -> str:
        """Rounded down, which Div does for positive numbers only."""
        rest = self.node("Mod", value, self.whole(by))
        return self.node("Div", self.node("Sub", value, rest), self.whole(by))

    def missing(self, date: Input) -> str:
        return self.node("Equal", self.column(date.name), self.whole(MISSING_DATE))

    def write_gap(self, step: Vector) -> str:
        return self.double(self.missing(step.detail))

    def write_days(self, step: Vector) -> str:
        moments = self.double(self.column(step.detail.name))
        days = self.node("Div", moments, self.constant(float(_DAY)))
        return self.node("Where", self.missing(step.detail), self.constant(np.nan), days)

    def write_circles(self, step: Vector) -> str:
        missing = self.missing(step.detail)
        moments = self.node("Where", missing, self.whole(0), self.column(step.detail.name))
        minute = self.node("Mod", self.divide(moments, 60_000_000), self.whole(1440))
        days = self.divide(moments, _DAY)
        weekday = self.node("Mod", self.node("Add", days, self.whole(3)), self.whole(7))
        parts = []
        for place, steps in ((minute, 1440), (weekday, 7), (self.day_of_year(days), 366)):
            angle = 2.0 * np.pi * np.arange(steps) / steps
            table = np.stack([np.sin(angle), np.cos(angle)], axis=1)
            both = self.node("Gather", self.constant(table), place, axis=0)  # (n, 1, 2)
            parts.append(self.node("Squeeze", both, self.whole(1)))
        points = self.node("Concat", *parts, axis=1)
        return self.node("Where", missing, self.constant(0.0), points)

    def day_of_year(self, days: str) -> str:
        """From 0, in the Gregorian calendar: in a cycle of 400 years that begins in March."""
        shifted = self.node("Add", days, self.whole(719_468))
        day = self.node("Mod", shifted, self.whole(146_097))
        leaps = self.node("Sub", self.divide(day, 36_524), self.divide(day, 146_096))
        year = self.node("Add", self.node("Sub", day, self.divide(day, 1460)), leaps)
        year = self.divide(year, 365)
        fourth, hundredth = self.divide(year, 4), self.divide(year, 100)
        before = self.node("Sub", self.node("Add", self.times(year, 365), fourth), hundredth)
        since_march = self.node("Sub", day, before)
        # Until December the year is the one that began in January; it has 59 or 60 days before.
        by_4, by_100 = (self.is_multiple(year, number) for number in (4, 100))
        leap = self.node("And", by_4, self.node("Not", by_100))
        leap = self.node("Or", leap, self.node("Equal", year, self.whole(0)))
        begun = self.node("Where", leap, self.whole(60), self.whole(59))
        next_year = self.node("GreaterOrEqual", since_march, self.whole(306))
        shift = self.node("Where", next_year, self.whole(-306), begun)
        return self.node("Add", since_march, shift)

    def times(self, value: str, by: int) -> str:
        return self.node("Mul", value, self.whole(by))

    def is_multiple(self, value: str, of: int) -> str:
        return self.node("Equal", self.node("Mod", value, self.whole(of)), self.whole(0))

    # ---- texts --------------------------------------------------------------------------

    def write_texts(self, step: Vector) -> str:
        counts = ""
        for table in step.detail:
            places = self.whole(*range(step.width))
            found = self.double(self.node("Equal", self.place(table), places))
            counts = self.node("Add", counts, found) if counts else found
        return counts

    def place(self, table: TextTable) -> str:
        """Of a text: its own, or one by MurmurHash3, which onnxruntime has and ONNX has not."""
        texts = self.column(table.input.name)
        known = {"": table.missing, **{text: k for text, k in table.own.items() if text}}
        own = self.node(
            "LabelEncoder", texts, domain="ai.onnx.ml", keys_strings=list(known),
            values_int64s=list(known.values()), default_int64=-1,
        )  # fmt: skip
        if not table.shared:
            return own
        tokens = self.node("StringConcat", self.constant(f"{table.input.name}=", str), texts)
        hashed = self.node("MurmurHash3", tokens, domain="com.microsoft", positive=1, seed=0)
        whole = self.node("Cast", hashed, to=self.onnx.TensorProto.INT64)
        shared = self.node("Mod", whole, self.whole(table.shared))
        shared = self.node("Add", shared, self.whole(table.room))
        return self.node("Where", self.node("Less", own, self.whole(0)), shared, own)

    # ---- what goes in and comes out -----------------------------------------------------

    def input_info(self, given: Input) -> Any:
        kinds = self.onnx.TensorProto
        kind = {"number": kinds.DOUBLE, "text": kinds.STRING, "date": kinds.INT64}[given.kind]
        shape = ["rows", given.width] if given.width else ["rows"]
        return self.onnx.helper.make_tensor_value_info(given.name, kind, shape)

    def output(self, value: str, name: str, kind: int, shape: list[Any]) -> Any:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def free(self, name: str) -> str:
        while any(given.name == name for given in self.program.inputs):
            name += "_"
        return name

    def finish(self) -> Any:
        program, double = self.program, self.onnx.TensorProto.DOUBLE
        value = self.operand(program.values)
        shape = ["rows", program.values.width]
        if program.labels is None:
            name = self.free("prediction")
            if program.values.width > 1:
                return self.output(value, name, double, shape)
            return self.output(self.node("Squeeze", value, self.whole(1)), name, double, ["rows"])
        return self.output(value, self.free("probabilities"), double, shape)

    def finish_label(self) -> list[Any]:
        labels, kinds = self.program.labels, self.onnx.TensorProto
        if labels is None or self.program.place is None:
            return []
        whole = self.node("Cast", self.operand(self.program.place), to=kinds.INT64)
        place = self.node("Squeeze", whole, self.whole(1))
        held, kind = {
            "U": (str, kinds.STRING), "f": (np.float64, kinds.DOUBLE), "b": (np.bool_, kinds.BOOL),
        }.get(labels.dtype.kind, (np.int64, kinds.INT64))  # fmt: skip
        label = self.node("Gather", self.constant(labels.tolist(), held), place)
        return [self.output(label, self.free("label"), kind, ["rows"])]
