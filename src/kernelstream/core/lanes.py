"""Sums whose order the source fixes: lanes of a vector, and fused multiply-adds, written out.

A compiler may vectorise a sum only where it may reorder it, and then it does so differently in
every function that the sum is inlined into; likewise it fuses a product and a sum here and not
there. Nothing in ``core`` is compiled with such freedom: bits depend on the numbers alone, not on
what else a process compiled or loaded. What must be fast says here in which order it adds.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from kernelstream.core.jit import INTERPRETED, inline

_DOUBLE, _I64, _I32, _BYTE = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(8)
#: Four numbers: what every processor with fused multiply-adds holds in one or two registers.
VECTOR = ir.VectorType(_DOUBLE, 4)


class _Lanes(types.Type):
    """The type of a vector in compiled code."""

    def __init__(self):
        super().__init__(name="kernelstream.lanes")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


_number, _lanes = types.float64, _Lanes()


def _call(builder, name, *values):
    """An operation of LLVM's own on numbers or vectors."""
    kind = values[0].type
    full = f"llvm.{name}.{'v4f64' if kind == VECTOR else 'f64'}"
    function = ir.FunctionType(kind, (kind,) * len(values))
    return builder.call(builder.module.declare_intrinsic(full, (), function), values)


def fused(builder, a, b, c):
    """Write a b + c, rounded once, for numbers or vectors."""
    return _call(builder, "fma", a, b, c)


@intrinsic
def _fma(typingctx, a, b, c):
    return _number(_number, _number, _number), lambda _, builder, __, abc: fused(builder, *abc)


@intrinsic
def _fma4(typingctx, a, b, c):
    return _lanes(_lanes, _lanes, _lanes), lambda _, builder, __, abc: fused(builder, *abc)


@intrinsic
def _add4(typingctx, a, b):
    return _lanes(_lanes, _lanes), lambda _, builder, __, ab: builder.fadd(*ab)


@intrinsic
def _abs4(typingctx, a):
    return _lanes(_lanes), lambda _, builder, __, values: _call(builder, "fabs", *values)


@intrinsic
def _zero4(typingctx):
    return _lanes(), lambda _, builder, __, ___: ir.Constant(VECTOR, None)


@intrinsic
def _sum4(typingctx, a):
    """(a0 + a2) + (a1 + a3)."""

    def codegen(context, builder, signature, values):
        a0, a1, a2, a3 = (
            builder.extract_element(values[0], ir.Constant(_I32, k)) for k in range(VECTOR.count)
        )
        return builder.fadd(builder.fadd(a0, a2), builder.fadd(a1, a3))

    return _number(_lanes), codegen


def _load(kind, result):
    """A function that reads numbers of ``array[row]`` from ``place`` on."""

    def load(typingctx, array, row, place):
        def codegen(context, builder, signature, values):
            held = context.make_array(array)(context, builder, values[0])
            start = builder.bitcast(held.data, _BYTE.as_pointer())
            if array.ndim == 2:
                stride = builder.extract_value(held.strides, 0)
                start = builder.gep(start, [builder.mul(values[1], stride)])
            start = builder.gep(start, [builder.mul(values[2], ir.Constant(_I64, 8))])
            return builder.load(builder.bitcast(start, kind.as_pointer()), align=8)

        return result(array, types.int64, types.int64), codegen

    return intrinsic(load)


_load1, _load4 = _load(_DOUBLE, _number), _load(VECTOR, _lanes)

if INTERPRETED:

    def fma(a, b, c):
        """a b + c; rounded once when compiled."""
        return a * b + c

    def dot(left, i, right, j, begin, end):
        """sum_q left[i, q] right[j, q] over begin <= q < end.

        Arrays have unit stride along the last axis; one of a single dimension is a row.
        """
        total = 0.0
        for q in range(begin, end):
            total += (left if left.ndim == 1 else left[i])[q] * (
                right if right.ndim == 1 else right[j]
            )[q]
        return total

    def lengths(array, i, begin, end):
        """Sums of the squares and of the absolute values of ``array[i, begin:end]``."""
        square, absolute = 0.0, 0.0
        for q in range(begin, end):
            value = (array if array.ndim == 1 else array[i])[q]
            square += value * value
            absolute += abs(value)
        return square, absolute

else:

    @inline
    def fma(a, b, c):
        """a b + c, rounded once."""
        return _fma(a, b, c)

    @inline
    def dot(left, i, right, j, begin, end):
        """sum_q left[i, q] right[j, q] over begin <= q < end.

        Arrays have unit stride along the last axis; one of a single dimension is a row.
        """
        a = b = c = d = _zero4()
        q = begin
        while q + 16 <= end:
            a = _fma4(_load4(left, i, q), _load4(right, j, q), a)
            b = _fma4(_load4(left, i, q + 4), _load4(right, j, q + 4), b)
            c = _fma4(_load4(left, i, q + 8), _load4(right, j, q + 8), c)
            d = _fma4(_load4(left, i, q + 12), _load4(right, j, q + 12), d)
            q += 16
        while q + 4 <= end:
            a = _fma4(_load4(left, i, q), _load4(right, j, q), a)
            q += 4
        total = _sum4(_add4(_add4(a, b), _add4(c, d)))
        while q < end:
            total = _fma(_load1(left, i, q), _load1(right, j, q), total)
            q += 1
        return total

    @inline
    def lengths(array, i, begin, end):
        """Sums of the squares and of the absolute values of ``array[i, begin:end]``."""
        squares = absolutes = _zero4()
        q = begin
        while q + 4 <= end:
            value = _load4(array, i, q)
            squares = _fma4(value, value, squares)
            absolutes = _add4(absolutes, _abs4(value))
            q += 4
        square, absolute = _sum4(squares), _sum4(absolutes)
        while q < end:
            value = _load1(array, i, q)
            square = _fma(value, value, square)
            absolute += abs(value)
            q += 1
        return square, absolute
