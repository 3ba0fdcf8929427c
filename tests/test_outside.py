"""The same mistakes as other programs, sample by sample: see ``benchmarks/recorded``."""

import math

import numpy as np
import pytest

from benchmarks import outside
from tests.naive import kernels, removal

KOL = outside.recorded("kol")


def samples_of(name):
    samples = outside.stream(name)
    if samples is None:
        pytest.skip(f"{name} is not in the folder named by KERNELSTREAM_DATA")
    return samples


@pytest.mark.parametrize("name", outside.STREAMS)
@pytest.mark.parametrize("method", [name for name, (_, same) in outside.METHODS.items() if same])
def test_mistakes_are_those_of_kol(method, name):
    X, y = samples_of(name)
    model = outside.METHODS[method][0](gamma=outside.STREAMS[name]["gamma"])
    wrong, theirs = outside.mistakes(model, X, y), KOL[method, name]
    assert wrong.sum() == theirs["mistakes"]
    assert outside.where(wrong) == theirs["where"]
    assert model.model_order_ == theirs["points"]


def kol_phi(square, s, s_mu, left):
    """KOL's shrinking: where the quadratic opens downwards it takes the larger root, which can be
    above 1 and lets the weights grow."""
    a, b = square - 2.0 * s_mu, 2.0 * s
    if a == 0.0:
        return max(0.0, min(1.0, left / b))
    if a + b <= left:
        return 1.0
    root = math.sqrt(b * b + 4.0 * a * left)
    return (-b + (root if a > 0.0 else -root)) / (2.0 * a)


@pytest.mark.parametrize("name", outside.STREAMS)
def test_the_forgetron_is_kols_but_for_one_root(name):
    """Written out with KOL's root; the product has the paper's, compared with the same twin."""
    X, y = samples_of(name)
    X, y = X[:2000], y[:2000]
    kernel = kernels.gaussian(outside.STREAMS[name]["gamma"])
    ones = np.ones(len(y))
    _, _, said = removal.forgetron(kernel, X, y, ones, 1, outside.BUDGET, kol_phi)
    wrong = np.where(said[:, 0] > 0.0, 1, -1) != y
    theirs = KOL["Forgetron", name]
    if len(y) == outside.STREAMS[name]["samples"]:
        assert outside.where(wrong) == theirs["where"]
