import numpy as np
import pytest

from kernelstream.core.blas import BLAS_FROM, multiply
from tests.core.tools import COMPILED, size

# One shape in plain loops, one beyond BLAS_FROM multiply-adds.
SHAPES = [(3, 4, 5), (1, 7, 1), (size(40, 12), size(30, 9), size(50, 11))]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("left_transposed", [False, True])
@pytest.mark.parametrize("right_transposed", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-1.0, 1.0), (0.5, -2.0)])
def test_product_of_corners(shape, left_transposed, right_transposed, alpha, beta):
    m, n, k = shape
    rng = np.random.default_rng(m)
    # Larger arrays: the product must read and write the leading corner alone.
    left, right, out = (rng.normal(size=(70, 80)) for _ in range(3))
    before = out.copy()
    a = (left.T if left_transposed else left)[:m, :k]
    b = (right.T if right_transposed else right)[:k, :n]
    multiply(left, left_transposed, right, right_transposed, out, m, n, k, alpha, beta)
    assert np.allclose(out[:m, :n], alpha * a @ b + beta * before[:m, :n], rtol=0, atol=1e-12)
    before[:m, :n] = out[:m, :n]
    assert np.array_equal(out, before)


def test_both_ways_are_covered():
    if COMPILED:
        assert SHAPES[0][0] * SHAPES[0][1] * SHAPES[0][2] < BLAS_FROM
        assert SHAPES[2][0] * SHAPES[2][1] * SHAPES[2][2] >= BLAS_FROM


@pytest.mark.parametrize("shape", SHAPES)
def test_beta_zero_ignores_what_was_there(shape):
    m, n, k = shape
    left, right = np.ones((70, 80)), np.ones((70, 80))
    out = np.full((70, 80), np.nan)
    multiply(left, False, right, False, out, m, n, k, 1.0, 0.0)
    assert np.array_equal(out[:m, :n], np.full((m, n), float(k)))


def test_empty_products():
    left, right, out = np.ones((2, 3)), np.ones((3, 2)), np.full((2, 2), 7.0)
    multiply(left, False, right, False, out, 2, 2, 0, 1.0, 0.5)
    assert np.array_equal(out, np.full((2, 2), 3.5))
    multiply(left, False, right, False, out, 0, 2, 3, 1.0, 0.0)
    multiply(left, False, right, False, out, 2, 0, 3, 1.0, 0.0)
    assert np.array_equal(out, np.full((2, 2), 3.5))


def test_a_view_further_to_the_right():
    rng = np.random.default_rng(0)
    n = size(60, 8)
    left, right = rng.normal(size=(n, n)), rng.normal(size=(n, n))
    out = np.zeros((n, 2 * n))
    multiply(left, False, right, True, out[:, n:], n, n, n, 1.0, 0.0)
    assert np.allclose(out[:, n:], left @ right.T, rtol=0, atol=1e-12)
    assert not out[:, :n].any()
