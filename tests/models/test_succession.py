"""Streams whose rule changes at once: experts that know nothing are tried, and take over."""

from unittest.mock import patch

import numpy as np
import pytest

from kernelstream import AutoClassifier, AutoRegressor, load
from kernelstream.models._auto._state import AutoState
from kernelstream.models._auto._succession import Succession

CHANGE, N = 2400, 5000


def stream(numbers):
    """Two of six columns matter, others from the change on."""
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, size=(N, 6))
    values = np.sin(2.0 * X[:, 0]) + X[:, 1]
    values[CHANGE:] = np.sin(2.0 * X[CHANGE:, 2]) - X[CHANGE:, 3]
    y = values + 0.1 * random.normal(size=N)
    return X, (y if numbers else np.where(y > 0.0, 1, 0))


def begun(numbers, **parameters):
    return (AutoRegressor if numbers else AutoClassifier)(random_state=0, **parameters)


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "numbers"])
def on_trial(request):
    """A model in the middle of a trial."""
    X, y = stream(request.param)
    model = begun(request.param)
    rows = CHANGE
    model.partial_fit(X[:rows], y[:rows])
    while model._state.experts.young is None or model._state.experts.young.seen < 300:
        model.partial_fit(X[rows : rows + 50], y[rows : rows + 50])
        rows += 50
    return request.param, rows, model


def error(numbers, predictions, y):
    return np.mean((predictions - y) ** 2) if numbers else np.mean(predictions != y)


def test_experts_that_know_nothing_take_over(on_trial):
    numbers, _, model = on_trial
    assert model.restarts_ == 0
    X, y = stream(numbers)
    with_trials = begun(numbers)
    known = {} if numbers else {"classes": [0, 1]}
    made = with_trials.predict_then_learn(X, y, **known)
    assert with_trials.restarts_ == 1
    assert with_trials._state.experts.young is None
    assert "it forgot everything once" in with_trials._what_it_did({})
    with patch.object(Succession, "_may_try", lambda _: False):
        without = begun(numbers)
        kept = without.predict_then_learn(X, y, **known)
    assert without.restarts_ == 0
    later = slice(CHANGE + 600, None)
    assert error(numbers, made[later], y[later]) < 0.9 * error(numbers, kept[later], y[later])


@pytest.mark.parametrize("under_way", [False, True])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_change_right_after_a_trial_for_nothing_or_at_its_end_is_noticed(numbers, under_way):
    X, y = stream(numbers)
    begin = 2048 if under_way else 2304
    model = begun(numbers).partial_fit(X[:begin], y[:begin])
    experts = model._state.experts
    experts._end_trial(young_stays=False)
    if under_way:  # it is clear that it is lost 512 rows later, soon after the change
        experts.young = experts.established.successor(begin)
        experts.scales[1], experts.status["odds"] = experts.scales[0], -50.0
    model.partial_fit(X[begin:], y[begin:])
    assert model.restarts_ == 1


def test_chunks_and_files_in_a_trial_change_nothing(on_trial, tmp_path):
    numbers, rows, model = on_trial
    X, y = stream(numbers)
    whole = begun(numbers).partial_fit(X[:rows], y[:rows])
    assert whole.fingerprint() == model.fingerprint()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint() == model.fingerprint()
    assert np.array_equal(again.predict(X), model.predict(X))
    again.partial_fit(X[rows:], y[rows:])
    assert again.fingerprint() == whole.partial_fit(X[rows:], y[rows:]).fingerprint()


def test_the_better_one_predicts(on_trial):
    _, _, model = on_trial
    experts = model._state.experts
    for leads, expected in ((0, experts.established), (1, experts.young)):
        with patch.dict(experts.__dict__, status=experts.status.copy()):
            experts.status["leads"] = leads
            assert experts.leading is expected


@pytest.mark.parametrize("most", [600_000, 1_200_000, 2_500_000])
def test_memory_of_a_trial_counts(most):
    X, y = stream(False)
    model = begun(False, max_bytes=most)
    tried = False
    for first in range(0, N, 500):
        model.partial_fit(X[first : first + 500], y[first : first + 500])
        assert model.nbytes_ <= most
        tried |= model._state.experts.young is not None
    assert tried


def test_caps_and_classes_change_in_a_trial(tmp_path):
    X, y = stream(False)
    model = begun(False).partial_fit(X[: CHANGE + 400], y[: CHANGE + 400])
    assert model._state.experts.young is not None
    model.partial_fit(X[:3], [7, 0, 7])
    assert model._state.experts.young.outputs == 3
    model.set_params(max_bytes=1_000_000).partial_fit(X[:10], y[:10])
    assert model._state.experts.young is not None
    assert model.nbytes_ <= 1_000_000
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").fingerprint() == model.fingerprint()
    model.set_params(max_bytes=150_000).partial_fit(X[:10], y[:10])
    assert model._state.experts.young is None  # no room for two
    assert model.nbytes_ <= 150_000


def test_rows_that_count_alike_are_never_forgotten():
    X, y = stream(False)
    model = begun(False, forget=False).partial_fit(X, y)
    assert model.restarts_ == 0
    assert model._state.experts.young is None


def test_nonsense_in_a_file_is_refused(on_trial):
    _, _, model = on_trial
    header, arrays = model._state.to_document()
    AutoState.from_document(header, arrays, 6)
    young = header["young"]
    for change in (
        {"young": {**young, "sizes": [4, 4, *young["sizes"][2:]]}},
        {"young": {**young, "seen": header["rows"] + 1}},
        {"contest": {**header["contest"], "recent": 2.0}},
        {"contest": {**header["contest"], "scale": -1.0}},
        {"began": -1},
        {"rows": 1.0},
    ):
        with pytest.raises(ValueError, match=r"contradict|range|more rows"):
            AutoState.from_document({**header, **change}, arrays, 6)
