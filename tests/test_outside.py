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


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method, (_, agree) in outside.METHODS.items() for name in agree],
)
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


def written_out(name, method, learner):
    """Whether a method written out as KOL has it makes KOL's mistakes."""
    X, y = samples_of(name)
    said = learner(kernels.gaussian(outside.STREAMS[name]["gamma"]), X, y)
    wrong, theirs = np.where(said > 0.0, 1, -1) != y, KOL[method, name]
    assert wrong.sum() == theirs["mistakes"]
    assert outside.where(wrong) == theirs["where"]


@pytest.mark.parametrize("name", ["multidist", "sets", "turning", "ijcnn1"])
def test_the_forgetron_is_kols_but_for_one_root(name):
    """The product has the paper's root: ``tests/core/test_removal.py``, with the same twin."""

    def learner(kernel, X, y):
        ones = np.ones(len(y))
        return removal.forgetron(kernel, X, y, ones, 1, outside.BUDGET, kol_phi)[2][:, 0]

    written_out(name, "Forgetron", learner)


@pytest.mark.parametrize("name", ["sets", "turning", "ijcnn1"])
def test_projectron_plus_is_kols_but_for_its_margin_steps(name):
    """KOL takes whole steps min(H / kappa, 1) where they help a function of norm U, of which the
    paper has no such number: the product has the paper's."""

    def learner(kernel, X, y):
        most, U = (
            outside.BUDGET,
            math.sqrt((outside.BUDGET + 1) / math.log(outside.BUDGET + 1)) / 4.0,
        )
        points, K, w, said = [], np.empty((0, 0)), np.empty(0), []
        for x, target in zip(X, y, strict=True):
            k = np.array([kernel(x, d) for d in points])
            f = w @ k
            said.append(f)
            loss = 1.0 - target * f
            if loss <= 0.0:
                continue
            d = np.linalg.solve(K, k) if points else k
            kappa = k @ d
            tau = 1.0 if loss >= 1.0 else min(loss / kappa, 1.0)
            helps = 2.0 * loss - tau * kappa - 2.0 * U * math.sqrt(1.0 - kappa) >= 0.0
            if loss >= 1.0 and len(points) < most:
                points, w = [*points, x], np.append(w, target)
                K = np.block([[K, k[:, None]], [k[None], 1.0]])
            elif loss >= 1.0 or helps:
                w = w + tau * target * d
        return np.array(said)

    written_out(name, "Projectron++", learner)


@pytest.mark.parametrize("name", ["sets", "turning", "ijcnn1"])
def test_nogd_is_kols_but_for_the_weights_it_begins_with(name):
    """KOL forgets the expansion when its features begin, and takes any eigenvectors unless it takes
    all of them, as here; then a step on the features is one on the span of the points."""

    def learner(kernel, X, y):
        points, w, said, features = [], np.empty(0), [], False
        for x, target in zip(X, y, strict=True):
            k = np.array([kernel(x, d) for d in points])
            f = w @ k
            said.append(f)
            if target * f >= 1.0:
                continue
            if len(points) < outside.BUDGET:
                points, w = [*points, x], np.append(w, outside.ETA * target)
                continue
            if not features:
                features, w = True, np.zeros(outside.BUDGET)
                inverse = np.linalg.inv(kernels.matrix(kernel, points, points))
            w = w + outside.ETA * target * (inverse @ k)
        return np.array(said)

    written_out(name, "NOGD", learner)
