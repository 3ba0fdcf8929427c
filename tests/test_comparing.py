"""Programs side by side: each as it would do alone, failures that stay with who fails."""

import importlib.util
import json
import sys
import types

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score

from kernelstream import ComparisonRun, Run, compare
from kernelstream.evaluation import Prequential, prequential
from kernelstream.evaluation.programs import OneByOne, PartialFitProgram, Rule
from kernelstream.runs import RunError
from kernelstream.runs._programs import split
from tests.cli.tools import write_rows


def rings(n=600, classes=2):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 2))
    edges = np.quantile(np.hypot(*X.T), np.arange(1, classes) / classes)
    return X, np.digitize(np.hypot(*X.T), edges)


def by_name(result):
    return {each.name: each for each in result.contestants}


# ---- what programs do ---------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [False, True])
def test_ours_does_what_it_does_alone(tmp_path, numbers):
    file = write_rows(tmp_path / "rows.csv", 500, numbers=numbers)
    target = "height" if numbers else "label"
    settings = {"every": 100, "window": 100, "batch_rows": 130, "warm_up": 50}
    alone = Run(file, target, "polk", parameters={"eta0": 0.7}, **settings).run()
    found = by_name(compare(file, target, ["polk(eta0=0.7)", "avm"], **settings))
    one = found["polk(eta0=0.7)"]
    name = "rmse" if numbers else "kappa"
    assert one.values[name] == alone.metrics[name]
    assert one.rows == alone.samples == 500
    columns = alone.trace.to_columns()
    np.testing.assert_array_equal(
        one.trace.to_columns()[f"{name}_window"], columns[f"{name}_window"]
    )
    first = "mae" if numbers else "accuracy"
    rule = found["mean" if numbers else "majority"]
    assert rule.values[first] == alone.baselines["majority"]
    assert found["no change"].values[first] == alone.baselines["no_change"]


def test_partial_fit_goes_row_by_row():
    X, y = rings(120)
    found = by_name(compare((X, y), models=["sklearn:SGDClassifier"], standardise=False))
    model = SGDClassifier(random_state=0).partial_fit(X[:1], y[:1], classes=[0, 1])
    hits = 0
    for i in range(1, len(y)):
        hits += model.predict(X[i : i + 1])[0] == y[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert found["sklearn:SGDClassifier"].values["accuracy"] == pytest.approx(hits / 119)


def test_chunks_make_no_difference():
    X, y = rings(300, 3)
    runs = []
    for cut in (7, 300):
        run = Prequential(
            OneByOne(PartialFitProgram(SGDClassifier(random_state=0), [0, 1, 2])), every=50
        )
        for i in range(0, 300, cut):
            run.update(X[i : i + cut], y[i : i + cut])
        runs.append(run.finish().to_columns())
    np.testing.assert_array_equal(runs[0]["accuracy_window"], runs[1]["accuracy_window"])


def test_rules():
    X, y = np.zeros((6, 1)), np.array(["b", "a", "a", "b", "b", "b"])
    metrics = ["accuracy", "kappa_temporal", "log_loss"]
    trace = prequential(Rule("majority", "classification", metrics), (X, y), metrics=None)
    # Said: b, b (first to get there), a, a, b; shares before: 0, 1/2, 1/3, 2/4, 3/5.
    numbers = trace.summary()
    assert numbers["accuracy"] == pytest.approx(1 / 5)
    shares = np.array([np.finfo(float).eps, 1 / 2, 1 / 3, 2 / 4, 3 / 5])
    assert numbers["log_loss"] == pytest.approx(-np.log(shares).mean())
    last = Rule("no change", "classification", ["accuracy", "kappa_temporal"])
    numbers = prequential(last, (X, y)).summary()
    assert numbers["accuracy"] == pytest.approx(3 / 5)
    assert numbers["kappa_temporal"] == 0.0
    with pytest.raises(ValueError, match="no rule 'mean' for classification"):
        Rule("mean", "classification")


def test_classes_that_come_late_are_predicted_not_learned():
    X, y = rings(300, 3)
    y[:100] = np.minimum(y[:100], 1)
    models = ["sklearn:SGDClassifier", "polk"]
    found = by_name(compare((X, y), models=models, batch_rows=100))
    assert found["sklearn:SGDClassifier"].rows == 300
    assert not found["sklearn:SGDClassifier"].problem


# ---- failures and limits ------------------------------------------------------------------


class Breaks(ClassifierMixin, BaseEstimator):
    """Fails at its 40th row."""

    def __init__(self, rows=40):
        self.rows = rows

    def partial_fit(self, X, y, classes=None):
        self.seen_ = getattr(self, "seen_", 0) + len(X)
        if self.seen_ >= self.rows:
            raise RuntimeError("broken\nfor good")
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Nowhere(RegressorMixin, BaseEstimator):
    def partial_fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.inf)


def test_who_fails_is_out_and_the_others_go_on():
    X, y = rings(700)
    result = compare((X, y), models={"broken": Breaks(), "ours": "polk"}, every=100)
    found = by_name(result)
    assert found["broken"].problem == "failed after row 1: broken for good"
    assert found["ours"].rows == 700
    assert found["ours"].values["accuracy"] > found["majority"].values["accuracy"]
    assert any(note.startswith("broken failed") for note in result.notes)
    late = by_name(compare((X, y), models={"broken": Breaks(400), "ours": "polk"}, every=100))
    assert late["broken"].problem.startswith("failed after row 300")
    assert late["broken"].rows == 300  # the last record
    assert np.isfinite(late["broken"].values["accuracy"])
    assert list(late)[-1] == "broken"


class Unmakeable(Breaks):
    def __init__(self, rows=40):
        raise OSError("no\nlicence")


def test_who_cannot_be_imported_or_made_is_out_and_the_others_go_on(tmp_path, monkeypatch):
    module = types.ModuleType("their_learners")
    module.Theirs, module.Unmakeable = SGDClassifier, Unmakeable
    monkeypatch.setitem(sys.modules, "their_learners", module)
    monkeypatch.setitem(sys.modules, "river", None)
    (tmp_path / "needs_more.py").write_text("import no_such_package_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    names = ["their_learners.Theirs", "their_learners.Unmakeable", "needs_more.Learner"]
    models = [*(f"python:{name}" for name in names), "river:forest.ARFClassifier"]
    run = ComparisonRun(rings(60), models=models)
    result = run.run()
    problems = {each.name.rpartition(".")[2]: each.problem for each in result.contestants}
    assert not problems["Theirs"]
    assert "cannot be made: no licence; " in problems["Unmakeable"]
    assert "cannot be imported: No module named 'no_such_package_at_all'" in problems["Learner"]
    assert "pip install 'kernelstream[river]'" in problems["ARFClassifier"]
    assert all(any(note.startswith(name) for note in result.notes) for name in models[1:])
    result.plot(tmp_path / "picture.png")
    run.write_report(tmp_path / "page.html", result)
    with pytest.raises(RunError, match="no licence"):  # nobody is left
        compare(rings(60), models=models[1:])
    with pytest.raises(RunError, match="did you mean Theirs"):  # a name that does not exist
        compare(rings(60), models=[models[0], "python:their_learners.Thers"])


def test_dense_rows_for_who_takes_no_sparse_ones():
    y = ["a", "b"] * 30
    rows = pd.DataFrame({"x": range(60), "word": y, "target": y})
    models = ["sklearn:GaussianNB", "sklearn:SGDClassifier"]
    found = by_name(compare(rows, models=models))
    assert not any(found[name].problem for name in models)
    assert found["sklearn:SGDClassifier"].values["accuracy"] > 0.8


def test_one_record_is_drawn():
    figure = compare(rings(60), models=["sklearn:SGDClassifier"]).plot()
    markers = {line.get_label(): line.get_marker() for line in figure.axes[0].lines}
    assert markers["sklearn:SGDClassifier"] == "o"


def test_numbers_that_are_none_are_a_failure():
    X, y = rings(100)
    result = compare((X, y * 1.5), models={"away": Nowhere()}, task="regression")
    assert "it predicts inf" in by_name(result)["away"].problem


def test_rows_and_seconds_are_bounds():
    X, y = rings(900)
    result = compare((X, y), models=["polk", "avm"], rows=333, every=100)
    assert result.samples == 333
    assert {each.rows for each in result.contestants} == {333}
    result = compare((X, y), models=["polk"], seconds=0.0, every=100)
    assert by_name(result)["polk"].problem.startswith("out after row 256")
    assert by_name(result)["polk"].rows == 256


def test_a_metric_that_only_some_have(tmp_path):
    models = ["polk(loss=log_loss)", "sklearn:SGDClassifier"]
    run = ComparisonRun(rings(), models=models, metrics=["log_loss"])
    result = run.run()
    assert [each.name for each in result.contestants][:2] == ["polk(loss=log_loss)", "majority"]
    assert result.best_rule.name == "majority"
    assert np.isnan(result.headline(by_name(result)["sklearn:SGDClassifier"]))
    result.plot(tmp_path / "picture.png")
    run.write_report(tmp_path / "page.html", result)


def test_it_can_be_stopped():
    X, y = rings(900)
    run = ComparisonRun((X, y), models=["polk"], batch_rows=300)
    for _ in run:
        run.stop("enough")
    assert run.result().stopped_by == "enough"
    assert run.samples == 300


def test_who_is_no_better_than_a_rule_is_said():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 2)), np.repeat([0, 1], 200)
    result = compare((X, y), models=["polk"])
    assert any("no better than the rule 'no change'" in note for note in result.notes)


# ---- names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("polkk", "did you mean polk"),
        ("polk,polk", "twice"),
        ("moa:kNN", "before the colon stands one of: river, capymoa, sklearn, python"),
        ("sklearn:SGDClassifer", "did you mean sklearn:SGDClassifier"),
        ("sklearn:SVC", "learns with partial_fit"),
        ("polk(eta0)", "write polk"),
        ("polk(eta=1)", "cannot be made"),
        ("polk(eta0=-1)", "cannot be made"),
        ("python:no_such_package.Learner", "no_such_package"),
        ("python:numpy.random.RandomState", "no partial_fit"),
        ("sklearn:SGDRegressor", "predicts numbers"),
        ("", "is empty"),
        ([3], "3"),
    ],
)
def test_wrong_names_have_a_cure(models, message):
    with pytest.raises(RunError, match=message):
        compare(rings(50), models=models)


def test_what_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.setitem(sys.modules, "capymoa", None)
    with pytest.raises(RunError, match=r"pip install 'kernelstream\[river\]'"):
        compare(rings(50), models="river:forest.ARFClassifier")
    monkeypatch.setattr("shutil.which", lambda name: "/bin/java")
    with pytest.raises(RunError, match=r"pip install 'kernelstream\[capymoa\]'"):
        compare(rings(50), models="capymoa:SAMkNN")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RunError, match="install a Java runtime"):
        compare(rings(50), models="capymoa:SAMkNN")


def test_names_are_cut_outside_parentheses():
    text = "polk(eta0=2,alpha=0.1),river:a.B|c.D(x=1,y=2), avm"
    assert split(text) == ["polk(eta0=2,alpha=0.1)", "river:a.B|c.D(x=1,y=2)", "avm"]


def test_any_class_by_its_path(monkeypatch):
    module = types.ModuleType("their_learners")
    module.Theirs = SGDClassifier
    monkeypatch.setitem(sys.modules, "their_learners", module)
    name = "python:their_learners.Theirs(alpha=0.01)"
    assert by_name(compare(rings(80), models=[name]))[name].rows == 80


class Plain:
    """Not derived from anything: repeats the last target."""

    def partial_fit(self, X, y):
        self.last = y[0]

    def predict(self, X):
        return np.full(X.shape[0], getattr(self, "last", 0))


def test_a_class_that_declares_nothing(monkeypatch):
    module = types.ModuleType("their_learners")
    module.Plain = Plain
    monkeypatch.setitem(sys.modules, "their_learners", module)
    X, y = rings(80)
    for targets, metric in ((y, "accuracy"), (X[:, 0], "mae")):
        found = by_name(compare((X, targets), models={"plain": "python:their_learners.Plain"}))
        rule = found["no change"].values[metric]
        assert found["plain"].values[metric] == pytest.approx(rule)


# ---- other packages -----------------------------------------------------------------------


def test_river_equals_its_own_evaluation():
    pytest.importorskip("river")
    from river import evaluate, linear_model, metrics, preprocessing

    X, y = rings(300)

    def make():
        return preprocessing.StandardScaler() | linear_model.LogisticRegression()

    rows = [({"x0": a, "x1": b}, bool(c)) for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    model = make()
    model.learn_one(*rows[0])  # not scored here either
    theirs = evaluate.progressive_val_score(rows[1:], model, metrics.Accuracy())
    ours = prequential(make(), (X, y), ["accuracy", "log_loss"]).summary()
    assert ours["accuracy"] == pytest.approx(theirs.get())
    named = "river:preprocessing.StandardScaler|linear_model.LogisticRegression"
    found = by_name(compare((X, y), models=[named], standardise=False))[named]
    assert found.values["accuracy"] == ours["accuracy"]
    assert found.nbytes > 100
    assert found.package.startswith("River")


def test_river_with_many_classes_numbers_and_mistakes():
    pytest.importorskip("river")
    X, y = rings(200, 4)
    name = "river:linear_model.LogisticRegression"  # knows two classes
    assert not by_name(compare((X, y), models=[name]))[name].problem
    name = "river:tree.HoeffdingTreeRegressor"
    models = [name, "river:linear_model.LinearRegression"]
    found = by_name(compare((X, 1e6 + 1e3 * X[:, 0]), models=models))
    assert found["river:linear_model.LinearRegression"].values["r2"] > 0.3
    with pytest.raises(RunError, match="did you mean ARFClassifier"):
        compare((X, y), models="river:forest.ARFClasifier")
    with pytest.raises(RunError, match="cannot be made"):
        compare((X, y), models="river:forest.ARFClassifier(trees=3)")


def test_capymoa():
    pytest.importorskip("capymoa")
    X, y = rings(200, 3)
    found = by_name(compare((X, y), models=["capymoa:NaiveBayes"]))["capymoa:NaiveBayes"]
    assert found.values["accuracy"] > 0.4
    assert np.isfinite(found.values["log_loss"])
    assert found.nbytes > 100
    numbers = by_name(compare((X, X[:, 0] * 3.0), models=["capymoa:KNNRegressor"]))
    assert numbers["capymoa:KNNRegressor"].values["r2"] > 0.3


# ---- the command --------------------------------------------------------------------------


def test_the_command(tmp_path, capsys, monkeypatch):
    from tests.cli.tools import Tool

    tool = Tool(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv", 400)
    words = ("compare", "rows.csv", "--target", "label", "--models", "polk,sklearn:SGDClassifier")
    shown = tool(*words, "--report", "page.html", "--plot", "picture.png").out
    for word in ("polk", "sklearn:SGDClassifier", "no change", "majority", "kappa", "page.html"):
        assert word in shown
    assert (tmp_path / "picture.png").stat().st_size > 1000
    page = (tmp_path / "page.html").read_text()
    assert "SGDClassifier" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    numbers = json.loads(tool(*words, "--json", "--rows", 200).out)
    assert {each["name"] for each in numbers["programs"]} == {
        "polk", "sklearn:SGDClassifier", "no change", "majority"
    }  # fmt: skip
    assert numbers["samples"] == 200
    assert numbers["programs"][0]["accuracy"] >= numbers["programs"][1]["accuracy"]
    assert "did you mean polk" in tool(*words[:4], "--models", "polkk", code=2).err
    assert "--target" in tool("compare", "rows.csv", "--target", "nothing", code=2).err


def test_names_from_outside_are_escaped_on_the_page(tmp_path):
    X, y = rings(60)
    run = ComparisonRun((X, y), models={"<b>bold</b>": "polk", "bad": Breaks(5)})
    run.write_report(tmp_path / "page.html", run.run())
    page = (tmp_path / "page.html").read_text()
    assert "<b>bold</b>" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "failed after row 1" in page


def test_trees_of_river_see_the_zeros_of_texts(tmp_path):
    """Texts become sparse columns; what a row of River does not name is missing to its trees."""
    tree = pytest.importorskip("river.tree")
    seen = []

    class Watched(tree.HoeffdingTreeClassifier):
        def learn_one(self, x, y, *, w=1.0):
            seen.append(len(x))
            super().learn_one(x, y, w=w)

    random = np.random.default_rng(0)
    lines = [f"{'abc'[c]},{random.normal()},{c == 1}" for c in random.integers(3, size=60)]
    (tmp_path / "rows.csv").write_text("letter,x,y\n" + "\n".join(lines) + "\n")
    run = ComparisonRun(tmp_path / "rows.csv", target="y", models={"tree": Watched()})
    found = by_name(run.run())
    assert not found["tree"].problem
    assert len(set(seen)) == 1
    assert seen[0] > 3


def test_sparse_rows(tmp_path):
    random = np.random.default_rng(0)
    lines = []
    for label in random.integers(2, size=200):
        places = sorted({1 + label, *random.integers(3, 30, size=3).tolist()})
        lines.append(f"{label} " + " ".join(f"{place}:1" for place in places))
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    models = ["polk", "sklearn:SGDClassifier"]
    if importlib.util.find_spec("river"):
        models.append("river:naive_bayes.GaussianNB")
    found = by_name(compare(tmp_path / "rows.svm", models=models))
    for name in models:
        assert not found[name].problem
        assert found[name].values["accuracy"] > found["majority"].values["accuracy"], name


# ---- metrics that not every program has -----------------------------------------------------


def test_auc_of_programs_with_probabilities_leaves_the_others_in():
    pytest.importorskip("river")
    X, y = rings(400, 2)
    models = ["polk", "river:linear_model.LogisticRegression", "sklearn:Perceptron"]
    result = compare((X, y), models=models, metrics=["auc", "accuracy"], window=200)
    found = by_name(result)
    assert not any(each.problem for each in result.contestants)
    assert [each.name for each in result.contestants][:2] == [
        "polk",
        "river:linear_model.LogisticRegression",
    ]
    assert np.isnan(found["sklearn:Perceptron"].values.get("auc", np.nan))
    assert np.isfinite(found["sklearn:Perceptron"].values["accuracy"])
    assert found["polk"].values["auc"] == found["polk"].values["auc_window"]


@pytest.mark.parametrize("labels", [["b", "a"], ["a", "b"]])
def test_auc_of_a_program_is_that_of_its_probabilities(labels):
    linear_model = pytest.importorskip("river.linear_model")
    from kernelstream.evaluation.programs import RiverProgram

    X, y = rings(300, 2)
    y = np.array(labels)[y]
    columns = []
    for cut in (7, 300):
        model = linear_model.LogisticRegression()
        run = Prequential(OneByOne(RiverProgram(model), ["auc"]), every=50, window=300)
        for i in range(0, 300, cut):
            run.update(X[i : i + cut], y[i : i + cut])
        columns.append(run.finish().to_columns()["auc_window"])
    np.testing.assert_array_equal(columns[0], columns[1])
    codes = dict(zip(dict.fromkeys(y.tolist()), (0, 1), strict=True))
    model, said, met = linear_model.LogisticRegression(), [], set()
    for row, label in zip(X, y.tolist(), strict=True):
        x = {str(k): value for k, value in enumerate(row.tolist())}
        share = model.predict_proba_one(x).get(codes["b"], 0.0)
        said.append(share if len(met) == 2 else np.nan)
        model.learn_one(x, codes[label])
        met.add(label)
    usable = ~np.isnan(said)
    expected = roc_auc_score((y == "b")[usable], np.array(said)[usable])
    assert columns[0][-1] == pytest.approx(expected)


def test_a_class_of_river_is_found_without_its_module():
    pytest.importorskip("river")
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows = {"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0.0, "p", "n")}
    result = compare(pd.DataFrame(rows), "y", ["river:GaussianNB", "river:naive_bayes.GaussianNB"])
    assert len(set(result.frame["accuracy"][:2])) == 1
    with pytest.raises(RunError, match=r"river has no 'GausianNB'.*did you mean GaussianNB"):
        compare(pd.DataFrame(rows), "y", ["river:GausianNB"])
