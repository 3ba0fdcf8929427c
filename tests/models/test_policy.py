"""Policy evaluation: what it learns, and what it promises."""

import copy
import pickle

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kernelstream
from kernelstream import DivergenceError, KernelPolicyEvaluation, ModelFileError, merge, storage
from kernelstream.models.policy import _METHODS
from kernelstream.report import write_report
from tests.models.tools import FORMS, is_fitted

METHODS = sorted(_METHODS)
every = pytest.mark.parametrize("method", METHODS)


def transitions(n=300, seed=0):
    """Some of the entries zero, for sparse input; some states the last."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 3))
    states[rng.random(states.shape) < 0.3] = 0.0
    next_states = 0.8 * states + 0.3 * rng.normal(size=states.shape)
    return states, np.sin(states[:, 0]), next_states, rng.random(n) < 0.1


def in_pieces(model, data, size):
    for first in range(0, len(data[1]), size):
        model.partial_fit(*(part[first : first + size] for part in data))
    return model


# What it learns.


def chain(n, seed=0):
    """Five states in a row that drift to the right, 1 per step, and end beyond the last."""
    rng = np.random.default_rng(seed)
    places = rng.integers(5, size=n)
    following = places + (rng.random(n) < 0.7)
    return np.eye(6)[places][:, :5], np.ones(n), np.eye(6)[following][:, :5], following == 5


def chain_values(discount):
    """V_s = 1 + discount (0.3 V_s + 0.7 V_(s + 1))."""
    values = np.zeros(6)
    for s in range(4, -1, -1):
        values[s] = (1.0 + discount * 0.7 * values[s + 1]) / (1.0 - discount * 0.3)
    return values[:5]


def learned_chain(**parameters):
    model = KernelPolicyEvaluation(
        0.9, kernel="linear", alpha=0.0, compression_error=0.0, eta0=0.1, average=True, **parameters
    )
    return model.partial_fit(*chain(20_000)).predict(np.eye(5))


@pytest.mark.parametrize(("method", "rate"), [
    ("corrected", "auto"), ("corrected", 0.001), ("corrected", 0.1), ("gradient", 0.05),
])  # fmt: skip
def test_a_table_of_values_is_found(method, rate):
    found = learned_chain(method=method, tracking_rate=rate)
    assert found == pytest.approx(chain_values(0.9), rel=0.05)


def test_a_tracker_that_slows_down_misleads():
    """It remembers the differences of a value function that had learned nothing."""
    found = learned_chain(tracking_rate=0.1, tracking_schedule="inverse_sqrt", tracking_decay=1.0)
    assert np.abs(found / chain_values(0.9) - 1.0).max() > 0.1


def test_off_policy_the_tracker_must_be_as_fast_as_the_function():
    """From 1 always to 2, where V is twice as large: temporal differences grow without end."""
    once, twice = np.ones((2000, 1)), np.full((2000, 1), 2.0)
    rewards = np.append(1.0, np.zeros(1999))
    common = {"kernel": "linear", "alpha": 0.0, "compression_error": 0.0, "eta0": 0.1}
    fast = KernelPolicyEvaluation(tracking_rate=0.2, **common).partial_fit(once, rewards, twice)
    assert abs(fast.predict([[1.0]])[0]) < 1e-6
    slow = KernelPolicyEvaluation(**common)
    with pytest.raises(DivergenceError):
        in_pieces(slow, (once, rewards, twice), 500)


def random_walk(episodes, seed=0):
    """Five places in a row, a step to either side; it ends beyond the first and the last, and only
    the latter pays: V(i) = i / 6."""
    random = np.random.default_rng(seed)
    places, following = [], []
    for _ in range(episodes):
        place = int(random.integers(1, 6))
        while 0 < place < 6:
            places.append(place)
            place += 1 if random.random() < 0.5 else -1
            following.append(place)
    here, there = np.array(places), np.array(following)
    ends = (there == 0) | (there == 6)
    return here[:, None] / 6.0, (there == 6).astype(float), there[:, None] / 6.0, ends


def test_episodes_that_end_need_no_discount():
    """Every value within 5 % of the truth."""
    places = np.arange(1, 6)[:, None] / 6.0
    model = KernelPolicyEvaluation(
        1.0, gamma=30.0, eta0=0.03, compression_error=1e-4,
        average=True, random_state=0,
    ).partial_fit(*random_walk(5000))  # fmt: skip
    assert model.predict(places) == pytest.approx(places[:, 0], rel=0.05)
    assert model.model_order_ == 5


def test_without_discount_the_ends_must_be_known():
    states, rewards, next_states, ends = random_walk(3)
    model = KernelPolicyEvaluation(1.0)
    with pytest.raises(ValueError, match=r"discount=1 is for episodes that end.*terminal"):
        model.partial_fit(states, rewards, next_states)
    assert not is_fitted(model)
    model.partial_fit(states, rewards, next_states, ends)


def test_the_general_algorithm_with_one_number_does_not_find_it():
    """One number for all states: E[delta] = 0 for many functions; squared delta: biased."""
    for rate, tracking in ((0.01, "average"), (1.0, "average"), (0.01, "momentum")):
        found = learned_chain(method="scalar", tracking_rate=rate, tracking=tracking)
        assert np.abs(found / chain_values(0.9) - 1.0).max() > 0.1


def test_a_value_function_in_closed_form():
    """A linear-Gaussian system: V(x) = -x^T P x - c by the discrete Lyapunov equation."""
    A, discount = 0.85 * np.array([[0.9, 0.2], [-0.2, 0.9]]), 0.8
    rng = np.random.default_rng(0)
    covariance = solve_discrete_lyapunov(A, 0.15 * np.eye(2))
    states = rng.multivariate_normal(np.zeros(2), covariance, 40_000)
    noise = rng.multivariate_normal(np.zeros(2), 0.15 * np.eye(2), 40_000)
    P = solve_discrete_lyapunov(np.sqrt(discount) * A.T, np.eye(2))
    constant = discount / (1.0 - discount) * 0.15 * np.trace(P)
    test = rng.multivariate_normal(np.zeros(2), covariance, 1000)
    truth = -np.einsum("ij,jk,ik->i", test, P, test) - constant
    model = KernelPolicyEvaluation(
        discount, gamma=0.1, compression_error=0.02, average=True, random_state=0
    )
    model.partial_fit(states, -np.einsum("ij,ij->i", states, states), states @ A.T + noise)
    wrong = model.predict(test) - truth
    assert np.sqrt(np.mean(wrong**2) / np.mean(truth**2)) < 0.1
    assert np.sqrt(np.mean(wrong**2)) < 0.25 * np.std(truth)
    assert model.model_order_ < 60


def test_without_a_next_state_it_is_regression():
    """discount 0 or only terminal states: the mean reward at each state."""
    states, rewards, next_states, _ = transitions(2000)
    once = KernelPolicyEvaluation(0.0).partial_fit(states, rewards, next_states)
    over = KernelPolicyEvaluation(0.9).partial_fit(
        states, rewards, next_states, np.ones(2000, bool)
    )
    assert np.array_equal(once.predict(states), over.predict(states))
    assert np.corrcoef(once.predict(states), rewards)[0, 1] > 0.97


@every
def test_bellman_error_is_what_is_left(method):
    model = KernelPolicyEvaluation(0.5, method=method, tracking_rate=0.05).partial_fit(
        *transitions(3000)
    )
    left = model.bellman_error_
    size = abs(left) if method == "scalar" else np.abs(left(transitions()[0])).mean()
    assert 0.0 < size < 0.2
    differences = model.temporal_differences(*transitions())
    assert abs(differences.mean()) < 0.2


def test_temporal_differences_by_their_definition():
    states, rewards, next_states, terminal = transitions()
    model = KernelPolicyEvaluation(0.8, average=True).partial_fit(
        states, rewards, next_states, terminal
    )
    there = np.where(terminal, 0.0, model.predict(next_states))
    expected = rewards + 0.8 * there - model.predict(states)
    found = model.temporal_differences(states, rewards, next_states, terminal)
    assert found == pytest.approx(expected)


# What it promises.


@every
@pytest.mark.parametrize(
    "average", [{}, {"average": True}, {"average": True, "average_horizon": 50}]
)
@pytest.mark.parametrize("form", FORMS)
def test_any_chunking_gives_the_same_bits(method, average, form):
    states, rewards, next_states, terminal = transitions(120)
    data = FORMS[form](states), rewards, FORMS[form](next_states), terminal
    new = KernelPolicyEvaluation(method=method, random_state=0, **average)
    whole = clone(new).partial_fit(*data).fingerprint()
    for size in (1, 7, 50):
        assert in_pieces(clone(new), data, size).fingerprint() == whole


def test_forms_of_input_agree():
    pd = pytest.importorskip("pandas")
    states, rewards, next_states, terminal = transitions()
    dense = KernelPolicyEvaluation(random_state=0).partial_fit(
        states, rewards, next_states, terminal
    )
    for one, other in ((csr_array, csr_array), (np.asarray, csr_array), (csr_array, np.asarray)):
        model = KernelPolicyEvaluation(random_state=0)
        model.partial_fit(one(states), list(rewards), other(next_states), terminal.astype(int))
        assert model.predict(one(states)) == pytest.approx(dense.predict(states))
    frame = pd.DataFrame(states, columns=list("abc"))
    model = KernelPolicyEvaluation(random_state=0)
    model.partial_fit(frame, pd.Series(rewards), frame.assign(**{
        name: next_states[:, i] for i, name in enumerate("abc")}), terminal)  # fmt: skip
    assert list(model.feature_names_in_) == list("abc")
    assert model.predict(frame) == pytest.approx(dense.predict(states))


def spoil(place, value):
    def spoiled(data):
        data = [part.copy() for part in data]
        data[place] = data[place].astype(object if value is None else float)
        data[place][(200, 1) if data[place].ndim == 2 else 200] = value
        return data

    return spoiled


def replace(place, change):
    return lambda data: [change(part) if i == place else part for i, part in enumerate(data)]


DAMAGES = {
    "NaN state": (spoil(0, np.nan), "states: .*NaN at row 200, column 1"),
    "infinite next state": (spoil(2, np.inf), "next_states: .*infinity at row 200, column 1"),
    "huge next state": (spoil(2, 1e200), "next_states: .*too large"),
    "NaN reward": (spoil(1, np.nan), "rewards: .*NaN at row 200"),
    "no reward": (spoil(1, None), "rewards: "),
    "half terminal": (spoil(3, 0.5), "terminal must hold booleans"),
    "NaN terminal": (spoil(3, np.nan), "terminal must hold booleans"),
    "short states": (replace(0, lambda x: x[:-1]), "299 states, but 300 next_states"),
    "short rewards": (replace(1, lambda x: x[:-1]), "rewards: .*300, 299"),
    "short terminal": (replace(3, lambda x: x[:-1]), "300 booleans"),
    "wide next states": (replace(2, lambda x: np.hstack([x, x])), "next_states: .*6 features"),
    "complex states": (replace(0, lambda x: x + 1j), "states: .*[Cc]omplex"),
    "no states": (lambda data: [part[:0] for part in data], "states: .*0 sample"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_bad_input_changes_nothing(name):
    damage, message = DAMAGES[name]
    data = transitions()
    model = KernelPolicyEvaluation(random_state=0).partial_fit(*data)
    before = model.fingerprint()
    for call in (model.partial_fit, model.temporal_differences):
        with pytest.raises(ValueError, match=message):
            call(*damage(data))
        assert model.fingerprint() == before
    new = KernelPolicyEvaluation()
    with pytest.raises(ValueError, match=" "):
        new.partial_fit(*damage(data))
    assert not is_fitted(new)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"discount": 1.1}, "discount"),
        ({"tracking": "both"}, "tracking"),
        ({"tracking": "momentum"}, "'momentum' .* is for method='scalar'"),
        ({"discount": -0.1}, "discount"),
        ({"method": "td"}, "method"),
        ({"tracking_rate": 0.0}, "tracking_rate"),
        ({"tracking_rate": 1.5}, "tracking_rate"),
        ({"eta0": 2.0, "alpha": 1.0}, "eta0"),
        ({"max_bytes": 10}, "max_bytes=10 .* at least"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    new = KernelPolicyEvaluation(**parameters)
    with pytest.raises(ValueError, match=message):
        new.partial_fit(*transitions())
    assert not is_fitted(new)


def test_what_cannot_change_on_the_way():
    model = KernelPolicyEvaluation().partial_fit(*transitions())
    for parameters in ({"method": "scalar"}, {"average": True}, {"gamma": 2.0}):
        before = model.get_params()
        with pytest.raises(ValueError, match="cannot"):
            model.set_params(**parameters).partial_fit(*transitions())
        model.set_params(**before)
    model.set_params(discount=0.5, tracking_rate=0.2, eta0=0.1).partial_fit(*transitions())


@every
@pytest.mark.parametrize("eta0", [0.2, 10.0, 1e100])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e50, 1e149])
def test_finite_stays_finite_or_is_refused(method, eta0, size):
    states, rewards, next_states, terminal = transitions(60)
    model = KernelPolicyEvaluation(0.99, method=method, eta0=eta0, alpha=0.0, tracking_rate=0.5)
    for scale in (1.0, size):
        try:
            model.partial_fit(scale * states, size * rewards, next_states, terminal)
        except DivergenceError as error:
            assert "eta0" in str(error)  # noqa: PT017
    if hasattr(model, "_state"):
        assert np.isfinite(model.dual_coef_).all()
        assert np.isfinite(model.predict(states)).all()
        again = pickle.loads(pickle.dumps(model))
        assert again.fingerprint() == model.fingerprint()


@pytest.mark.parametrize("cap", [{"max_points": 5}, {"max_bytes": 6000}])
def test_memory_is_a_contract(cap):
    model = KernelPolicyEvaluation(compression_error=0.0, average=True, **cap)
    data = transitions(120)
    for i in range(120):
        model.partial_fit(*(part[i : i + 1] for part in data))
        assert model.model_order_ <= cap.get("max_points", 1000)
        assert model.nbytes_ <= cap.get("max_bytes", 20_000)
    assert model.n_forced_ > 0


def test_input_is_neither_modified_nor_kept():
    data = transitions()
    copies = copy.deepcopy(data)
    model = KernelPolicyEvaluation(random_state=0).partial_fit(*data)
    for part, same in zip(data, copies, strict=True):
        assert (part == same).all()
    before = model.fingerprint()
    data[0][:] = data[2][:] = 7.0
    assert model.fingerprint() == before
    model.predict(copies[0])
    assert model.fingerprint() == before


@every
@pytest.mark.parametrize("average", [False, True])
def test_a_file_holds_everything(tmp_path, method, average):
    data = transitions()
    model = KernelPolicyEvaluation(method=method, average=average, random_state=0)
    in_pieces(model, [part[:150] for part in data], 50)
    model.save(tmp_path / "model.ks")
    again = kernelstream.load(tmp_path / "model.ks")
    assert again.fingerprint() == model.fingerprint()
    for each in (model, again):
        in_pieces(each, [part[150:] for part in data], 50)
    assert again.fingerprint() == model.fingerprint()
    assert np.array_equal(again.predict(data[0]), model.predict(data[0]))


def test_a_damaged_file_is_refused(tmp_path):
    model = KernelPolicyEvaluation(method="scalar").partial_fit(*transitions())
    model.save(tmp_path / "model.ks")
    content = bytearray((tmp_path / "model.ks").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.ks").write_bytes(content)
    with pytest.raises(ModelFileError):
        kernelstream.load(tmp_path / "model.ks")


def test_copies_are_independent():
    data = transitions()
    model = KernelPolicyEvaluation(random_state=0).partial_fit(*data)
    before = model.fingerprint()
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.partial_fit(*data)
        assert model.fingerprint() == before
    assert not is_fitted(clone(model))


# It is a model like the others.


@pytest.mark.parametrize("average", [False, True])
def test_the_value_function_is_a_value(average):
    states, *rest = transitions()
    model = KernelPolicyEvaluation(average=average).partial_fit(states, *rest)
    assert model.expansion_(states) == pytest.approx(model.predict(states))
    assert model.dictionary_.shape == (model.model_order_, 3)
    assert model.dual_coef_.shape == (1, model.model_order_)
    assert model.residual_ < 1e-6
    assert model.n_seen_ == 300


def test_models_merge():
    data = transitions()
    halves = [
        KernelPolicyEvaluation().partial_fit(*(part[i::2] for part in data)) for i in range(2)
    ]
    merged = merge(halves)
    mean = 0.5 * sum(half.predict(data[0]) for half in halves)
    assert merged.predict(data[0]) == pytest.approx(mean, abs=1e-3)
    merged.partial_fit(*data)


def test_a_report_can_be_written(tmp_path):
    model = KernelPolicyEvaluation().partial_fit(*(part[:, :2] if part.ndim == 2 else part
                                                   for part in transitions()))  # fmt: skip

    class NoTrace:
        def to_columns(self):
            return {}

    write_report(
        tmp_path / "value.html", title="Value", facts={"method": "policy evaluation"},
        trace=NoTrace(), model=model, feature_names=["place", "speed"], target="value",
    )  # fmt: skip
    assert "speed" in (tmp_path / "value.html").read_text()


def test_a_batch_that_cannot_wait_is_refused(tmp_path):
    model = KernelPolicyEvaluation(random_state=0).partial_fit(*transitions(50))
    header, arrays = model._document()
    header["pending"] = {"sparse": False}
    parts = {
        "dense": np.ones((1, 3)), "data": np.empty(0), "indices": np.empty(0, np.int32),
        "indptr": np.zeros(1, np.int64), "targets": np.ones(1), "weights": np.ones(1),
    }  # fmt: skip
    arrays |= {f"pending_{name}": part for name, part in parts.items()}
    storage.write(tmp_path / "model.ks", "KernelPolicyEvaluation", header, arrays)
    with pytest.raises(ModelFileError, match="no unfinished batch"):
        kernelstream.load(tmp_path / "model.ks")


@pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
def test_a_raised_cap_makes_room_for_both_states():
    model = KernelPolicyEvaluation(max_points=1, compression_error=0.0, random_state=0)
    data = transitions(40)
    in_pieces(model, data, 20)
    in_pieces(model.set_params(max_points=10), data, 1)
    assert model.model_order_ == 10


def test_advice_names_only_what_there_is():
    with pytest.raises(NotFittedError, match="Call 'partial_fit'"):
        KernelPolicyEvaluation().predict([[0.0]])


def test_the_trackers_rate_follows_its_schedule():
    """What is given is constant unless a schedule is named; one that does not fall is, too."""
    walked = random_walk(40)

    def values(method, rate=0.1, **given):
        model = KernelPolicyEvaluation(1.0, method=method, gamma=30.0, tracking_rate=rate, **given)
        return model.partial_fit(*walked).predict(walked[0][:20])

    for method, auto in (("corrected", 1e-5), ("gradient", 0.01), ("scalar", 0.01)):
        assert np.array_equal(values(method, "auto"), values(method, auto))
        level = values(method, tracking_schedule="inverse_time", tracking_decay=0.0)
        assert np.array_equal(level, values(method))
        assert not np.allclose(values(method), values(method, tracking_schedule="inverse_time"))
