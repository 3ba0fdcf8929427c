"""Parameters that had other names, and defaults that are the same wherever a method is used."""

import networkx as nx
import pytest

from kernelstream import (
    AVMClassifier,
    COLKRegressor,
    KernelPolicyEvaluation,
    Parsimony,
    POLKClassifier,
    POLKRegressor,
    Run,
    registry,
)
from kernelstream.cli.methods import make_estimator as from_the_command_line
from kernelstream.features import OnlineKernelFeatures
from kernelstream.network import ConsensusNetwork
from kernelstream.network._agent import agent_model, settings_known
from kernelstream.parameters import parameters_of
from kernelstream.renamed import RENAMED, with_new_names
from kernelstream.runs._methods import make_estimator as from_a_run
from tests.cli.tools import Tool

OLD = [
    (POLKClassifier, "epsilon", "compression_error"),
    (KernelPolicyEvaluation, "parsimony", "compression_error"),
    (COLKRegressor, "beta", "tracking_rate"),
    (AVMClassifier, "beta", "exact_probability"),
    (AVMClassifier, "rho", "exact_decay"),
    (OnlineKernelFeatures, "budget", "max_points"),
]


@pytest.mark.parametrize(("kind", "old", "new"), OLD)
def test_an_old_name_raises_an_error_with_the_new_one(kind, old, new):
    for refused in (lambda: kind(**{old: 0.1}), lambda: kind().set_params(**{old: 0.1})):
        with pytest.raises(TypeError, match=f"{kind.__name__} has no parameter {old}: it is {new}"):
            refused()


def test_networks_runs_and_options_say_the_new_name_too(monkeypatch, capsys):
    tool = Tool(monkeypatch, capsys)
    with pytest.raises(TypeError, match="it is compression_error now"):
        ConsensusNetwork(nx.path_graph(2), epsilon=0.1)
    with pytest.raises(TypeError, match=r"agent 1 has no parameter parsimony: .*Parsimony"):
        ConsensusNetwork(nx.path_graph(2), agent_settings={1: {"parsimony": 0.1}})
    with pytest.raises(TypeError, match="it is compression_error now"):
        Run(([[0.0], [1.0]], [0, 1]), parameters={"epsilon": 0.1})
    for words, new in {
        "learn x.csv --target y --epsilon 0.1": "--epsilon is --compression-error now",
        "learn x.csv --target y --beta 1": "--beta is --tracking-rate or --exact-probability now",
        "features x.csv --out z.csv --budget 9": "--budget is --max-points now",
    }.items():
        assert new in " ".join(tool(*words.split(), code=2).err.replace("│", " ").split())


def test_no_class_has_a_parameter_of_an_old_name():
    kinds = [kind for method in registry.methods().values() for kind in method.estimators]
    for kind in (*kinds, KernelPolicyEvaluation, OnlineKernelFeatures):
        assert not RENAMED.keys() & parameters_of(kind).keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"epsilon": 0.3, "parsimony": 0.02}, {"compression_error": 0.3}),
        (
            {"epsilon": None, "parsimony": "square"},
            {"compression_error": {"parsimony": [1.0, 2.0]}},
        ),
        ({"average": 0.5}, {"average": True, "average_horizon": 0.5}),
        ({"average": True, "beta": 0.1}, {"average": True, "exact_probability": 0.1}),
        ({"compression_error": "auto"}, {"compression_error": "auto"}),
    ],
)
def test_parameters_of_old_files(old, new):
    assert with_new_names(old, parameters_of(AVMClassifier)) == new


def test_parsimony_is_kept_by_files(tmp_path):
    model = POLKRegressor(compression_error=Parsimony(0.3, 2)).partial_fit([[0.0], [1.0]], [0, 1])
    model.save(tmp_path / "model.ks")
    assert POLKRegressor.load(tmp_path / "model.ks").compression_error == Parsimony(0.3, 2)


#: Where a run differs from the class: it gives the same model every time, and knows its columns.
OF_RUNS = {"random_state": 0, "gamma": 0.5}


@pytest.mark.parametrize("made", [from_the_command_line, from_a_run])
@pytest.mark.parametrize(
    ("name", "task"),
    [
        (name, task)
        for name, method in registry.models().items()
        for task in ("classification", "regression")
        if (method.classifier if task == "classification" else method.regressor)
    ],
)
def test_defaults_are_the_same_on_the_command_line(made, name, task):
    method = registry.models()[name]
    kind = method.classifier if task == "classification" else method.regressor
    known = kind().get_params()
    of_runs = {key: value for key, value in OF_RUNS.items() if key in known}
    assert made(name, task, {}, gamma=0.5).get_params() == {**known, **of_runs}


@pytest.mark.parametrize(("loss", "kind"), [("hinge", POLKClassifier), ("huber", POLKRegressor)])
def test_defaults_are_the_same_in_networks(loss, kind):
    found, expected = agent_model("Ann", {"loss": loss}).get_params(), kind(loss).get_params()
    assert found == expected
    assert set(settings_known(kind)) < set(expected)
    network = ConsensusNetwork(nx.path_graph(2), loss=loss, random_state=0)
    chosen = network._settings[0]
    assert set(chosen) == {"loss", "random_state"}  # all others are the class's own
