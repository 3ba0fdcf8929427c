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


def spread(builder, number):
    """Write a vector of equal numbers."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    single = builder.insert_element(nothing, number, ir.Constant(_I32, 0))
    first = ir.Constant(ir.VectorType(_I32, VECTOR.count), [0] * VECTOR.count)
    return builder.shuffle_vector(single, nothing, first)


def fused(builder, a, b, c):
    """Write a b + c, rounded once, for numbers or vectors."""
    return _call(builder, "fma", a, b, c)


@intrinsic
def _fma(typingctx, a, b, c):
    return _number(_number, _number, _number), lambda _, builder, __, abc: fused(builder, *abc)


@intrinsic
def fma4(typingctx, a, b, c):
    """a b + c in every lane, rounded once."""
    return _lanes(_lanes, _lanes, _lanes), lambda _, builder, __, abc: fused(builder, *abc)


@intrinsic
def add4(typingctx, a, b):
    return _lanes(_lanes, _lanes), lambda _, builder, __, ab: builder.fadd(*ab)


@intrinsic
def multiply4(typingctx, a, b):
    return _lanes(_lanes, _lanes), lambda _, builder, __, ab: builder.fmul(*ab)


@intrinsic
def divide4(typingctx, a, b):
    return _lanes(_lanes, _lanes), lambda _, builder, __, ab: builder.fdiv(*ab)


@intrinsic
def _abs4(typingctx, a):
    return _lanes(_lanes), lambda _, builder, __, values: _call(builder, "fabs", *values)


@intrinsic
def zero4(typingctx):
    return _lanes(), lambda _, builder, __, ___: ir.Constant(VECTOR, None)


@intrinsic
def counting4(typingctx):
    """The numbers 0 to 3."""
    return _lanes(), lambda _, builder, __, ___: ir.Constant(VECTOR, [0.0, 1.0, 2.0, 3.0])


@intrinsic
def spread4(typingctx, a):
    """The same number in every lane."""
    return _lanes(_number), lambda _, builder, __, values: spread(builder, values[0])


@intrinsic
def less4(typingctx, a, b, yes, no):
    """In every lane ``yes`` where a < b, else ``no``."""

    def codegen(context, builder, signature, values):
        a, b, yes, no = values
        return builder.select(builder.fcmp_ordered("<", a, b), yes, no)

    return _lanes(_lanes, _lanes, _lanes, _lanes), codegen


@intrinsic
def lane4(typingctx, a, k):
    """The number in lane ``k``."""
    return _number(_lanes, types.int64), lambda _, builder, __, ak: builder.extract_element(*ak)


@intrinsic
def sum4(typingctx, a):
    """(a0 + a2) + (a1 + a3)."""

    def codegen(context, builder, signature, values):
        a0, a1, a2, a3 = (
            builder.extract_element(values[0], ir.Constant(_I32, k)) for k in range(VECTOR.count)
        )
        return builder.fadd(builder.fadd(a0, a2), builder.fadd(a1, a3))

    return _number(_lanes), codegen


def _mixed(builder, x, y, *places):
    """A vector of numbers of x (places 0 to 3) and y (4 to 7)."""
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, 4), places))


def _columns(builder, a, b, c, d):
    """The columns of the matrix with these rows."""
    even = _mixed(builder, a, b, 0, 4, 2, 6), _mixed(builder, c, d, 0, 4, 2, 6)
    odd = _mixed(builder, a, b, 1, 5, 3, 7), _mixed(builder, c, d, 1, 5, 3, 7)
    halves = (0, 1, 4, 5), (2, 3, 6, 7)
    return [_mixed(builder, *pair, *half) for half in halves for pair in (even, odd)]


@intrinsic
def sums4(typingctx, a, b, c, d):
    """The four numbers ``sum4`` of a, of b, of c and of d, with the same bits."""

    def codegen(context, builder, signature, values):
        first, second, third, fourth = _columns(builder, *values)
        return builder.fadd(builder.fadd(first, third), builder.fadd(second, fourth))

    return _lanes(_lanes, _lanes, _lanes, _lanes), codegen


@intrinsic(prefer_literal=True)
def column4(typingctx, a, b, c, d, k):
    """Column k of the matrix with the rows a, b, c and d."""

    def codegen(context, builder, signature, values):
        return _columns(builder, *values[:4])[k.literal_value]

    return _lanes(_lanes, _lanes, _lanes, _lanes, k), codegen


@intrinsic(prefer_literal=True)
def mirrored4(typingctx, a, b, c, d, k):
    """Row k of the symmetric matrix whose lower triangle is that of the rows a, b, c and d."""
    row = k.literal_value

    def codegen(context, builder, signature, values):
        column = _columns(builder, *values[:4])[row]
        return _mixed(builder, values[row], column, *range(row), *range(4 + row, 8))

    return _lanes(_lanes, _lanes, _lanes, _lanes, k), codegen


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


_load1, load4 = _load(_DOUBLE, _number), _load(VECTOR, _lanes)


@intrinsic
def store4(typingctx, array, place, value):
    """Write four numbers of a one-dimensional ``array`` from ``place`` on."""

    def codegen(context, builder, signature, values):
        held = context.make_array(array)(context, builder, values[0])
        start = builder.bitcast(held.data, _BYTE.as_pointer())
        start = builder.gep(start, [builder.mul(values[1], ir.Constant(_I64, 8))])
        builder.store(values[2], builder.bitcast(start, VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, _lanes), codegen


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

    def add_multiple(c, array, i, h, n):
        """h += c array[i] over the first n numbers."""
        for q in range(n):
            h[q] += c * (array if array.ndim == 1 else array[i])[q]

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
        a = b = c = d = zero4()
        q = begin
        while q + 16 <= end:
            a = fma4(load4(left, i, q), load4(right, j, q), a)
            b = fma4(load4(left, i, q + 4), load4(right, j, q + 4), b)
            c = fma4(load4(left, i, q + 8), load4(right, j, q + 8), c)
            d = fma4(load4(left, i, q + 12), load4(right, j, q + 12), d)
            q += 16
        while q + 4 <= end:
            a = fma4(load4(left, i, q), load4(right, j, q), a)
            q += 4
        total = sum4(add4(add4(a, b), add4(c, d)))
        while q < end:
            total = _fma(_load1(left, i, q), _load1(right, j, q), total)
            q += 1
        return total

    @inline
    def lengths(array, i, begin, end):
        """Sums of the squares and of the absolute values of ``array[i, begin:end]``."""
        squares = absolutes = zero4()
        q = begin
        while q + 4 <= end:
            value = load4(array, i, q)
            squares = fma4(value, value, squares)
            absolutes = add4(absolutes, _abs4(value))
            q += 4
        square, absolute = sum4(squares), sum4(absolutes)
        while q < end:
            value = _load1(array, i, q)
            square = _fma(value, value, square)
            absolute += abs(value)
            q += 1
        return square, absolute

    @inline
    def add_multiple(c, array, i, h, n):
        """h += c array[i] over the first n numbers."""
        q, cs = 0, spread4(c)
        while q + 4 <= n:
            store4(h, q, fma4(cs, load4(array, i, q), load4(h, 0, q)))
            q += 4
        while q < n:
            h[q] = _fma(c, _load1(array, i, q), h[q])
            q += 1
