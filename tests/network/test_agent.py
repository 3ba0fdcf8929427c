"""One agent: messages that come twice, late or never, and its state."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import kernelstream
from kernelstream import DivergenceError, ModelFileError, storage
from kernelstream.network import Agent, Coupling, LocalEngine

SETTINGS = {
    "loss": "log_loss",
    "gamma": 0.8,
    "eta0": 1.0,
    "compression_error": 0.05,
    "random_state": 0,
}


def pair(coupling=None, **settings):
    coupling = coupling or Coupling("proximity", tolerance=0.01, two_way=True)
    return {
        name: Agent(
            name, {**SETTINGS, **settings}, [other], coupling, features=2, classes=["x", "y", "z"]
        )
        for name, other in (("a", "b"), ("b", "a"))
    }


def batches(number, n=3):
    random = np.random.default_rng(number)
    return {
        name: (random.normal(size=(n, 2)), random.choice(["x", "y", "z"], n)) for name in ("a", "b")
    }


def one_round(agents, number):
    given = batches(number)
    requests = {name: agents[name].open_round(number, *given[name]) for name in agents}
    answers = {"a": agents["b"].answer(requests["a"]), "b": agents["a"].answer(requests["b"])}
    return requests, {"a": {"b": answers["a"]}, "b": {"a": answers["b"]}}


def after(rounds, coupling=None, **settings):
    agents = pair(coupling, **settings)
    for number in range(rounds):
        _, answers = one_round(agents, number)
        for name, agent in agents.items():
            agent.close_round(number, answers[name])
    return agents


def test_a_second_delivery_changes_nothing():
    agents = after(4)
    requests, answers = one_round(agents, 4)
    before = {name: agent.fingerprint() for name, agent in agents.items()}
    again = agents["b"].answer(requests["a"])  # asked twice: the same answer
    np.testing.assert_array_equal(again.values, answers["a"]["b"].values)
    np.testing.assert_array_equal(again.lesson.values, answers["a"]["b"].lesson.values)
    agents["a"].open_round(4, *batches(4)["a"])  # opened twice
    assert {name: agent.fingerprint() for name, agent in agents.items()} == before

    record = agents["a"].close_round(4, answers["a"])
    closed = agents["a"].fingerprint()
    assert closed != before["a"]
    assert agents["a"].close_round(4, answers["a"]) == record
    assert agents["a"].close_round(4, {}) == record
    agents["a"].open_round(4, *batches(4)["a"])
    assert agents["a"].fingerprint() == closed
    # b asks late: a answers as it was when the round began.
    late = agents["a"].answer(requests["b"])
    np.testing.assert_array_equal(late.values, answers["b"]["a"].values)
    agents["b"].close_round(4, {"a": late})
    reference = after(5)
    assert agents["a"].fingerprint() == reference["a"].fingerprint()
    assert agents["b"].fingerprint() == reference["b"].fingerprint()


def test_records_are_not_the_agents_own():
    agents = after(3)
    record = agents["a"].close_round(2, {})
    record.multipliers["b"] = 99.0
    assert agents["a"].close_round(2, {}).multipliers["b"] != 99.0


def test_rounds_out_of_order_are_refused():
    agents = after(2)
    requests, _ = one_round(agents, 2)
    before = agents["a"].fingerprint()
    with pytest.raises(ValueError, match="cannot open round 3"):
        agents["a"].open_round(3, *batches(3)["a"])
    with pytest.raises(ValueError, match="cannot close round 5"):
        agents["a"].close_round(5, {})
    with pytest.raises(ValueError, match="cannot close round 0"):
        agents["a"].close_round(0, {})
    stranger = copy.copy(requests["a"])
    object.__setattr__(stranger, "sender", "c")
    with pytest.raises(ValueError, match="'c' is no neighbour of agent 'b'"):
        agents["b"].answer(stranger)
    object.__setattr__(stranger, "round", 7)
    with pytest.raises(ValueError, match="is not known here"):
        agents["b"].answer(stranger)
    assert agents["a"].fingerprint() == before


def test_answers_that_make_no_sense_are_refused():
    agents = after(2)
    _, answers = one_round(agents, 2)
    before = agents["a"].fingerprint()
    good = answers["a"]["b"]
    for change, message in (
        (np.zeros((2, 3)), r"shape \(2, 3\), expected \(3, 3\)"),
        (np.full((3, 3), np.nan), "not finite"),
        (None, "shape"),
    ):
        bad = copy.copy(good)
        object.__setattr__(bad, "values", change)
        with pytest.raises(ValueError, match=message):
            agents["a"].close_round(2, {"b": bad})
    for field, value in (("sender", "z"), ("receiver", "z"), ("round", 1)):
        with pytest.raises(ValueError, match="given as the answer of 'b' was one of"):
            agents["a"].close_round(2, {"b": replace(good, **{field: value})})
    for change in ({"strength": np.inf}, {"values": np.full((3, 3), np.nan)}):
        bad = replace(good, lesson=replace(good.lesson, **change))
        with pytest.raises(ValueError, match="lesson of 'b' is not finite"):
            agents["a"].close_round(2, {"b": bad})
    with pytest.raises(ValueError, match="no neighbour 'z'"):
        agents["a"].close_round(2, {"z": good})
    assert agents["a"].fingerprint() == before
    assert agents["a"].close_round(2, {"b": good}).samples == 3


def test_an_answer_that_does_not_come():
    agents = after(6)
    multiplier = agents["a"].multipliers.copy()
    assert multiplier[0] > 0.0
    one_round(agents, 6)
    record = agents["a"].close_round(6, {"b": None})
    np.testing.assert_array_equal(agents["a"].multipliers, multiplier)
    assert record.samples == 3
    assert record.differences == {}
    assert record.disagreement is None
    assert record.messages == 1
    assert record.bytes == 3 * 2 * 8


def test_without_samples_an_agent_stays_as_it_is():
    agents = after(3)
    model = agents["a"].model.fingerprint()
    record = agents["a"].close_round(3, {})
    assert agents["a"].model.fingerprint() == model
    assert (record.samples, record.loss, record.messages, record.bytes) == (0, None, 0, 0)
    assert agents["a"].round == 4


@pytest.mark.parametrize("way", ["restore", "pickle", "deepcopy"])
def test_going_on_from_a_copy_gives_the_same_bits(way):
    agents = after(7, projection="random")
    copies = {
        "restore": lambda agent: Agent.restore(*agent.state()),
        "pickle": lambda agent: pickle.loads(pickle.dumps(agent)),
        "deepcopy": copy.deepcopy,
    }
    restored = {name: copies[way](agent) for name, agent in agents.items()}
    for group in (agents, restored):
        for number in range(7, 30):
            _, answers = one_round(group, number)
            for name, agent in group.items():
                agent.close_round(number, answers[name])
    for name, agent in agents.items():
        assert restored[name].fingerprint() == agent.fingerprint()
        assert restored[name].close_round(29, {}) == agent.close_round(29, {})


def test_a_state_of_parts_that_do_not_fit():
    header, arrays = after(2)["a"].state()
    with pytest.raises(ValueError, match="multipliers"):
        Agent.restore(header, {**arrays, "multipliers": np.array([-1.0])})
    with pytest.raises(ValueError, match="multipliers"):
        Agent.restore(header, {**arrays, "multipliers": np.zeros(3)})
    with pytest.raises(ValueError, match="multipliers"):
        Agent.restore(header, {**arrays, "multipliers": np.array([np.inf])})


def test_a_file_of_parts_that_do_not_fit_is_refused_by_name(tmp_path):
    header, arrays = after(2)["a"].state()
    storage.write(tmp_path / "agent", "Agent", header, arrays)
    assert kernelstream.load(tmp_path / "agent").fingerprint() == after(2)["a"].fingerprint()
    for spoiled in ({**header, "round": []}, {**header, "coupling": {}}, {"name": "a"}):
        storage.write(tmp_path / "agent", "Agent", spoiled, arrays)
        with pytest.raises(ModelFileError, match="agent is not a valid Agent"):
            kernelstream.load(tmp_path / "agent")


def test_bad_samples_change_nothing_and_name_the_agent():
    agents = after(3)
    before = agents["a"].fingerprint()
    X, y = batches(3)["a"]
    X[1, 1] = np.nan
    for bad_X, bad_y, message in (
        (X, y, "agent 'a': .*NaN at row 1, column 1"),
        (X[:, :1], y, "agent 'a': .*1 features"),
        (np.zeros((3, 2)), y[:2], "agent 'a': .*inconsistent"),
        (np.zeros((3, 2)), ["x", "q", "x"], "agent 'a': .*'q'.* at row 1, not among"),
        (np.zeros((3, 2)), [0, 1, 0], "agent 'a': "),
    ):
        with pytest.raises(ValueError, match=message):
            agents["a"].open_round(3, bad_X, bad_y)
        assert agents["a"].fingerprint() == before
    assert agents["a"].close_round(3, {}).samples == 0


def test_input_is_neither_kept_nor_modified():
    agents, reference = pair(), pair()
    given = batches(0)
    X, y = given["a"][0].copy(), given["a"][1].copy()
    agents["a"].open_round(0, X, y)
    X[:] = 1e9
    y[:] = "z"
    reference["a"].open_round(0, *given["a"])
    agents["a"].close_round(0, {})
    reference["a"].close_round(0, {})
    assert agents["a"].fingerprint() == reference["a"].fingerprint()


def test_settings_that_cannot_be():
    consensus = Coupling("consensus")
    for settings, coupling, error, message in (
        (
            {"batch_size": 3},
            consensus,
            TypeError,
            "'batch_size' is not a parameter .* a round",
        ),
        ({"eta0": 1.0, "alpha": 2.0}, consensus, ValueError, "eta0"),
        ({}, Coupling("consensus", penalty={"z": 1.0}), ValueError, "no penalty .* 'b'"),
        (
            {"eta0": 2.0},
            Coupling("proximity", dual_regularisation=0.25),
            ValueError,
            "dual_regularisation",
        ),
        (
            {"eta0": 1.0},
            Coupling("consensus", penalty=0.75, normalised=False),  # 2 * 0.75 + 1/2 of the loss
            ValueError,
            r"= 2 is not below 2.*coupling='normalised'",
        ),
    ):
        with pytest.raises(error, match=message):
            pair(coupling, **settings)
    for given, message in (
        ({"penalty": -1.0}, "penalty must be"),
        ({"penalty": {"b": np.inf}}, "penalty must be"),
        ({"tolerance": np.nan}, "tolerance must be"),
        ({"dual_regularisation": -1.0}, "dual_regularisation must be a finite number >= 0"),
        ({"dual_regularisation": np.nan}, "dual_regularisation must be a finite number >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Coupling("proximity", **given)
    with pytest.raises(ValueError, match="at least two classes"):
        Agent("a", {"loss": "hinge"}, [], consensus, features=2)


def test_a_step_that_would_overflow_names_the_agent():
    agent = Agent(
        "a", {"loss": "squared_error", "eta0": 1.0}, [], Coupling("consensus"), features=1
    )
    before = agent.model.fingerprint()
    agent.open_round(0, np.zeros((1, 1)), [1e80])
    with pytest.raises(DivergenceError, match="agent 'a': round 0"):
        agent.close_round(0, {})
    assert agent.model.fingerprint() == before


def test_the_watch_over_the_factor_goes_on():
    agents = pair(compression_error=0.0, max_points=40)
    engine = LocalEngine()
    engine.start(agents)
    for number in range(300):
        engine.round(number, batches(number, n=4))
    for agent in engine.agents().values():
        status = agent.model._state.status[0]
        assert 0.0 < status["residual"] < 1e-6  # it was probed
        assert agent.model.residual_ < 1e-6
        assert agent.model.model_order_ <= 40
        assert agent.model.nbytes_ < 8 * 200 * (2 + 3 + 4 + 200)


def test_an_abandoned_round_is_as_if_it_had_never_been():
    agents, reference = after(5), after(5)
    before = {name: agent.fingerprint() for name, agent in agents.items()}
    _, answers = one_round(agents, 5)
    agents["a"].close_round(5, answers["a"])  # b has opened it only
    assert agents["a"].fingerprint() != before["a"]
    for _ in range(2):  # again changes nothing
        for agent in agents.values():
            agent.abandon_round(5)
            agent.abandon_round(6)
        assert {name: agent.fingerprint() for name, agent in agents.items()} == before
    assert agents["b"].close_round(5, {}).samples == 0  # no samples of the round are left
    agents["b"].abandon_round(5)
    with pytest.raises(ValueError, match="cannot go back to round 3"):
        agents["a"].abandon_round(3)
    with pytest.raises(ValueError, match="cannot go back to round 4"):
        Agent.restore(*agents["a"].state()).abandon_round(4)  # what was before is not saved
    for group in (agents, reference):
        for number in (5, 6):
            _, answers = one_round(group, number)
            for name, agent in group.items():
                agent.close_round(number, answers[name])
    for name, agent in agents.items():
        assert agent.fingerprint() == reference[name].fingerprint()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_one_agent_leaves_all_as_they_were(error, monkeypatch):
    engine, reference = LocalEngine(), LocalEngine()
    for one in (engine, reference):
        one.start(pair())
        for number in range(4):
            one.round(number, batches(number))
    before = {name: agent.fingerprint() for name, agent in engine.agents().items()}
    learn = Agent._error

    def failing(agent, f, targets):  # b's points and weights have moved by then
        if agent.name == "b":
            raise error
        return learn(agent, f, targets)

    with monkeypatch.context() as patch:
        patch.setattr(Agent, "_error", failing)
        with pytest.raises(error):
            engine.round(4, batches(99))
    assert {name: agent.fingerprint() for name, agent in engine.agents().items()} == before
    for one in (engine, reference):
        one.round(4, {"a": batches(4)["a"]})  # b has no samples, not those of the first try
    for name, agent in engine.agents().items():
        assert agent.fingerprint() == reference.agents()[name].fingerprint()


def test_a_round_that_is_refused_after_it_was_closed_stays_closed():
    engine = LocalEngine()
    engine.start(pair())
    engine.round(0, batches(0))
    before = {name: agent.fingerprint() for name, agent in engine.agents().items()}
    with pytest.raises(ValueError, match="NaN"):
        engine.round(0, {"a": (np.full((1, 2), np.nan), ["x"])})
    assert {name: agent.fingerprint() for name, agent in engine.agents().items()} == before
