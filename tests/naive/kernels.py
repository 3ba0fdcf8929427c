"""Kernels by their definition, one pair of samples at a time."""

import math

import numpy as np


def gaussian(gamma):
    return lambda x, z: math.exp(-gamma * float(np.sum((x - z) ** 2)))


def laplacian(gamma):
    return lambda x, z: math.exp(-gamma * float(np.sum(np.abs(x - z))))


def _matern_distance(x, z, nu, gamma):
    """sqrt(2 nu) |x - z| / length, with the Gaussian's length scale 1 / sqrt(2 gamma)."""
    length = 1.0 / math.sqrt(2.0 * gamma)
    return math.sqrt(2.0 * nu) * math.sqrt(float(np.sum((x - z) ** 2))) / length


def matern12(gamma):
    return lambda x, z: math.exp(-_matern_distance(x, z, 0.5, gamma))


def matern32(gamma):
    def kernel(x, z):
        s = _matern_distance(x, z, 1.5, gamma)
        return (1.0 + s) * math.exp(-s)

    return kernel


def matern52(gamma):
    def kernel(x, z):
        s = _matern_distance(x, z, 2.5, gamma)
        return (1.0 + s + s * s / 3.0) * math.exp(-s)

    return kernel


def polynomial(gamma, coef0, degree):
    return lambda x, z: (gamma * float(np.sum(x * z)) + coef0) ** degree


def linear():
    return lambda x, z: float(np.sum(x * z))


def add(first, second):
    return lambda x, z: first(x, z) + second(x, z)


def multiply(first, second):
    return lambda x, z: first(x, z) * second(x, z)


def scale(kernel, factor):
    return lambda x, z: factor * kernel(x, z)


def matrix(kernel, X, Z):
    """k(x_i, z_j)."""
    return np.array([[kernel(x, z) for z in Z] for x in X]).reshape(len(X), len(Z))
