"""Matrix products on the leading blocks of larger arrays, from inside compiled code.

``np.dot`` in compiled code wants contiguous arrays and allocates its result. Here the
arrays are the live corner of a state with spare capacity, so BLAS is called with explicit
leading dimensions. Small products stay in plain loops: a BLAS call costs more than they do.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from kernelstream.core.jit import INTERPRETED, compiled, inner
from kernelstream.core.lanes import dot, fma

#: Multiply-adds from which a BLAS call pays for itself.
BLAS_FROM = 16384

if not INTERPRETED:
    _pointer = types.CPointer(types.float64)
    _char = types.char
    # The symbol behind numba's own np.dot: scipy's BLAS, safe to call from cached code.
    _gemm = types.ExternalFunction(
        "numba_xxgemm",
        types.intc(
            _char, _char, _char, types.intp, types.intp, types.intp, _pointer,
            _pointer, types.intp, _pointer, types.intp, _pointer, _pointer, types.intp,
        ),
    )  # fmt: skip

    @intrinsic
    def _address(typingctx, array):
        def codegen(context, builder, signature, arguments):
            return context.make_array(signature.args[0])(context, builder, arguments[0]).data

        return _pointer(array), codegen

    @inner
    def _blas(left, left_flag, right, right_flag, out, m, n, k, scales):
        # Row-major out = left right is column-major out^T = right^T left^T.
        _gemm(
            types.char(100), types.char(right_flag), types.char(left_flag), n, m, k,
            _address(scales), _address(right), right.strides[0] // 8,
            _address(left), left.strides[0] // 8,
            _address(scales[1:]), _address(out), out.strides[0] // 8,
        )  # fmt: skip


@compiled
def multiply(left, left_transposed, right, right_transposed, out, m, n, k, alpha, beta):
    """Set ``out[:m, :n] = alpha op(left)[:m, :k] op(right)[:k, :n] + beta out[:m, :n]``.

    All arrays are 2-D float64 with unit stride along the last axis.
    """
    if m == 0 or n == 0:
        return
    if not INTERPRETED and m * n * k >= BLAS_FROM:
        scales = np.array([alpha, beta])
        _blas(
            left, 116 if left_transposed else 110, right, 116 if right_transposed else 110,
            out, m, n, k, scales,
        )  # fmt: skip
        return
    for i in range(m):
        row = out[i]
        if beta == 0.0:
            for j in range(n):
                row[j] = 0.0
        elif beta != 1.0:
            for j in range(n):
                row[j] *= beta
        if right_transposed and not left_transposed:
            for j in range(n):
                row[j] = fma(alpha, dot(left, i, right, j, 0, k), row[j])
        elif right_transposed:
            for j in range(n):
                total = 0.0
                for q in range(k):
                    total = fma(left[q, i], right[j, q], total)
                row[j] = fma(alpha, total, row[j])
        else:
            for q in range(k):
                factor = alpha * (left[q, i] if left_transposed else left[i, q])
                for j in range(n):
                    row[j] = fma(factor, right[q, j], row[j])
