"""BSGD's policies keep the promises that are checked for the first of them with all methods."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream import BSGDClassifier, load
from tests.models.tools import assert_within_closed_form, in_pieces, stream

POLICIES = [
    {"policy": "removal"},
    {"policy": "projection"},
    {"policy": "merging", "search": "golden"},
    {"policy": "merging", "search": "table"},
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_chunks_files_and_sparse_rows_do_not_matter(policy, tmp_path):
    X, y = stream(BSGDClassifier, n=300, classes=3)
    y[:100] %= 2  # the third class comes late
    make = {"max_points": 12, "gamma": 1.0, "random_state": 0, **policy}
    whole = BSGDClassifier(**make).partial_fit(X, y)
    pieces = in_pieces(BSGDClassifier(**make), X[:200], y[:200], 7)
    pieces.save(tmp_path / "model.ks")
    again = load(tmp_path / "model.ks")
    for x, label in zip(X[200:], y[200:], strict=True):
        again.learn_one(x, label)
    assert again.fingerprint() == whole.fingerprint()
    assert whole.model_order_ == 12
    assert_within_closed_form(whole)
    sparse = BSGDClassifier(**make).partial_fit(csr_array(X), y)
    assert np.allclose(sparse.decision_function(X), whole.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_lower_cap_and_huge_samples(policy):
    X, y = stream(BSGDClassifier, n=120)
    model = BSGDClassifier(max_points=30, random_state=0, **policy).partial_fit(X, y)
    model.set_params(max_points=5).partial_fit(X * 1e140, y)
    assert model.model_order_ <= 5
    assert np.isfinite(model.decision_function(X)).all()


def test_what_a_policy_needs():
    X, y = stream(BSGDClassifier, n=50)
    with pytest.raises(ValueError, match=r"Gaussian kernel.*policy='projection'"):
        BSGDClassifier(policy="merging", kernel="laplacian").partial_fit(X, y)
    model = BSGDClassifier(policy="projection").partial_fit(X, y)
    assert model.residual_ < 1e-4
    with pytest.raises(ValueError, match="policy cannot change"):
        model.set_params(policy="merging").partial_fit(X, y)
    with pytest.raises(AttributeError, match="only policy='projection'"):
        _ = BSGDClassifier().partial_fit(X, y).residual_
