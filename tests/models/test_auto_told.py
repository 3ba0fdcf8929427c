"""What the automatic model says of itself: shares over time, changes, columns that matter."""

import re

import numpy as np
import pytest

from kernelstream import AutoClassifier, AutoRegressor, load
from kernelstream.models._auto._history import FIRST, MOST_RECORDS, WIDTH, History
from kernelstream.models._auto._told import _of_columns


def stream(rows=3000, jump=True):
    """Columns 1 and 3 are noise; halfway the rule becomes another one, if there is a jump."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 4))
    values = np.sin(2.0 * X[:, 0]) + X[:, 2]
    if jump:
        after = X[rows // 2 :]
        values[rows // 2 :] = np.cos(2.0 * after[:, 0]) - after[:, 2]
    return X, values, values + 0.1 * random.normal(size=rows)


def learned(numbers, jump=True, cuts=()):
    X, values, noisy = stream(jump=jump)
    model = (AutoRegressor if numbers else AutoClassifier)(random_state=0)
    y = noisy if numbers else np.where(values > 0.0, "yes", "no")
    for part in np.split(np.arange(len(y)), cuts):
        model.partial_fit(X[part], y[part])
    return model


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "numbers"])
def jumped(request):
    return request.param, learned(request.param)


def test_a_jump_is_noticed_once_and_a_steady_stream_has_none(jumped):
    numbers, model = jumped
    assert len(model.drifts_) == 1
    assert 1500 < model.drifts_[0] < 1600
    assert len(learned(numbers, jump=False).drifts_) == 0


def test_shares_are_parts_of_one(jumped):
    numbers, model = jumped
    history = model.history_
    rows = history.pop("rows")
    assert rows.tolist() == [*range(FIRST, 3000, FIRST), 3000]
    assert np.allclose(sum(history.values()), 1.0, atol=1e-5)
    assert sum(model.experts_.values()) == pytest.approx(1.0)
    assert list(model.experts_.values()) == sorted(model.experts_.values(), reverse=True)
    leading = next(iter(model.experts_))
    assert any(leading.startswith(name) for name in history)
    if numbers:  # before the jump all rows count alike, after it the experts that adapt gain
        adaptive = sum(shares for name, shares in history.items() if "adaptive" in name)
        assert adaptive[rows > 1500].max() > adaptive[rows <= 1500][-1] + 0.05


def test_columns_that_matter(jumped):
    _, model = jumped
    parts = model.column_importances_
    assert parts.shape == (4,)
    assert parts.sum() == pytest.approx(1.0)
    assert min(parts[[0, 2]]) > 2.0 * max(parts[[1, 3]])


def test_a_sentence(jumped):
    numbers, model = jumped
    text = model._what_it_did(dict(zip("abcd", model.column_importances_.tolist(), strict=True)))
    assert "a nonlinear model" in text
    assert re.search("; (a|c|a and c|c and a) matters? most; ", text)
    assert f"near row {model.drifts_[0]:,}." in text
    quiet = learned(numbers, jump=False)._what_it_did({"a": 0.5, "b": 0.5})
    assert "no column matters much more" in quiet
    assert "worse" not in quiet


def test_chunks_and_files_change_nothing(jumped, tmp_path):
    numbers, model = jumped
    cut = learned(numbers, cuts=(1, 700, 701, 2222))
    assert cut.fingerprint() == model.fingerprint()
    model.save(tmp_path / "model.ks")
    again = load(tmp_path / "model.ks")
    assert again.drifts_.tolist() == model.drifts_.tolist()
    for name, column in model.history_.items():
        assert np.array_equal(again.history_[name], column)


def test_many_features_share_columns():
    X = np.zeros((40, 700))
    X[:, 650] = np.arange(40) % 5
    parts = AutoRegressor(random_state=0).partial_fit(X, X[:, 650]).column_importances_
    assert parts.shape == (700,)
    assert parts.sum() == pytest.approx(1.0)
    assert parts[650] == parts.max()


def test_a_history_is_bounded_and_evenly_spaced():
    history = History()
    for seen in range(FIRST, 700 * FIRST, FIRST):
        if history.is_due(seen):
            history.append(np.full(WIDTH, seen), seen)
        assert history.count == seen // history.every <= MOST_RECORDS
    rows = history.records[: history.count, 0]
    assert rows.tolist() == [history.every * i for i in range(1, history.count + 1)]
    assert history.nbytes <= History.nbytes_for()


@pytest.mark.parametrize("change", [
    {"every": 100}, {"every": 0}, {"every": 3 * FIRST}, {"marks": 7}, {"marks": -1},
    {"watch": {"seen": 1, "rows": 1, "fast": float("nan"), "slow": 0.0, "variance": 0.0,
               "scale": 0.0}},
])  # fmt: skip
def test_a_history_of_nonsense_is_refused(change):
    history = History()
    for seen in (FIRST, 2 * FIRST):
        history.append(np.zeros(WIDTH), seen)
    header, arrays = history.to_document()
    assert History.from_document(header, arrays, 2 * FIRST + 5).count == 2
    with pytest.raises(ValueError, match="history"):
        History.from_document({**header, **change}, arrays, 2 * FIRST + 5)
    with pytest.raises(ValueError, match="history"):
        History.from_document(header, arrays, 3 * FIRST)


def test_columns_that_share_an_input_are_named_once():
    shares = {"city or zone": 0.3, "city": 0.29, "age": 0.28, "id": 0.07, "x": 0.06}
    assert _of_columns(shares) == "city or zone and age matter most"
    assert _of_columns({"city": 0.5, "city or zone": 0.5, "age": 0.0}) == "city matters most"
