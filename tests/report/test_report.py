"""The page: whole, safe and complete, whatever model and record it is about."""

import builtins
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from kernelstream import (
    AutoClassifier,
    AutoRegressor,
    AVMClassifier,
    POLKClassifier,
    POLKRegressor,
    make_multidist,
    make_regression_outliers,
)
from kernelstream.evaluation import LossDistribution, prequential
from kernelstream.kernels import Linear, Polynomial
from kernelstream.report import write_report
from kernelstream.report.charts import MINUS, MISSING, compact

SECTIONS = ["run", "headline", "time", "cost", "budget", "points", "picture"]
AUTOMATIC = ["run", "headline", "time", "told", "cost", "picture"]
VOID = {"meta", "br", "hr", "img", "input", "link"}
NASTY = "<script>alert('x')</script>&\"$\\foo{$"


class Record:
    def __init__(self, **columns):
        self.columns = columns

    def to_columns(self):
        return {name: np.asarray(values) for name, values in self.columns.items()}


def record(metric="accuracy", n=50, **changed):
    rng = np.random.default_rng(0)
    columns = {
        "samples": 100 * np.arange(1, n + 1),
        "seconds": 0.01 * np.arange(1, n + 1),
        "model_order": np.minimum(5 + np.arange(n), 40),
        "bytes": np.full(n, 12_000),
        "error_spent": 0.1 * np.arange(n),
        metric: 0.9 + 0.01 * rng.normal(size=n),
        f"{metric}_window": 0.92 + 0.01 * rng.normal(size=n),
        f"{metric}_fading": 0.91 + 0.01 * rng.normal(size=n),
        "no_change": np.full(n, 0.2),
        "no_change_window": np.full(n, 0.2),
        "majority": np.full(n, 0.3),
        "majority_window": np.full(n, 0.3),
    }
    return Record(**{**columns, **changed})


class Page(HTMLParser):
    """Tags that open and close in order, attributes, ids and text."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.open, self.tags, self.attributes, self.ids, self.words = [], [], [], [], []
        self.lines = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "path" and dict(attrs).get("class", "").startswith("line"):
            self.lines.append(dict(attrs)["d"])
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def written(tmp_path, model, trace=None, **more):
    path = tmp_path / "report.html"
    more = {"title": "A run", "facts": {"data": "some"}, **more}
    write_report(path, trace=record() if trace is None else trace, model=model, **more)
    page = Page(path.read_text(encoding="utf-8"))
    expected = AUTOMATIC if hasattr(model, "experts_") else SECTIONS
    assert [part for part in page.ids if part in {*SECTIONS, *AUTOMATIC}] == expected
    assert len(set(page.ids)) == len(page.ids)
    assert "script" not in page.tags
    assert not re.search(r"https?://|@import|url\((?!#)", page.source)
    links = [v for name, v in page.attributes if name in ("href", "src", "xlink:href")]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert page.tags.count("title") == page.tags.count("desc") + 1  # the page's, and each chart's
    return page


@pytest.fixture(scope="module")
def plane():
    X, y = make_multidist(1000, random_state=0)
    return POLKClassifier().partial_fit(X, y), X, y


@pytest.fixture(scope="module")
def ten():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    return POLKClassifier().partial_fit(X, y), X, y


def test_two_features_and_classes(tmp_path, plane):
    model, X, y = plane
    page = written(
        tmp_path,
        model,
        title="Five kinds",
        facts={"command": "run it", "parameters": {"eta0": 0.5}, "columns": ["p", "q"]},
        feature_names=["pressure", "heat"],
        target="kind",
        sample=(X, y),
        notes=["12 rows were skipped"],
    )
    for words in (
        "Five kinds",
        "run it",
        "eta0 0.5",
        "p, q",
        "12 rows were skipped",
        "What the model decides where",
        "↑ heat",
        "pressure →",
        "votes for (kind)",
        f"around {model.model_order_} stored points",
    ):
        assert words in page.text
    assert "data:image/png" in page.source


def test_ten_features_and_classes(tmp_path, ten):
    model, X, _ = ten
    page = written(tmp_path, model, sample=X)
    assert "first component, " in page.text
    assert page.tags.count("circle") == model.model_order_ + 600
    assert "x0" in page.text


def test_one_feature_and_numbers(tmp_path):
    X, y = make_regression_outliers(500, random_state=0)
    model = POLKRegressor(gamma=40.0).partial_fit(X, y)
    page = written(
        tmp_path, model, record("rmse"), sample=(X, y), feature_names=["hour"], target="load"
    )
    assert "The fitted curve" in page.text
    assert "↑ load" in page.text
    assert "hour →" in page.text
    assert "Lift over the mean" in page.text
    assert "higher" in page.text


@pytest.mark.parametrize("with_targets", [False, True])
def test_two_features_and_numbers(tmp_path, with_targets):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = POLKRegressor().partial_fit(X, X[:, 0] * X[:, 1])
    sample = (X, X[:, 0] * X[:, 1]) if with_targets else X
    page = written(tmp_path, model, record("mae"), sample=sample)
    assert "What the model predicts where" in page.text


@pytest.mark.parametrize("labels", [[0, 1], ["x", "y", "z"]])
def test_one_feature_and_classes(tmp_path, labels):
    X = np.linspace(0, 1, 90)[:, None]
    y = np.repeat(labels, 90 // len(labels))
    model = POLKClassifier(gamma=20.0).partial_fit(X, y)
    assert "Score of each class" in written(tmp_path, model, sample=X).text


def test_more_features_and_numbers_without_samples(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 4))
    model = POLKRegressor().partial_fit(X, X.sum(axis=1))
    page = written(tmp_path, model, record("r2"))
    assert page.tags.count("circle") == model.model_order_
    assert "linear-gradient" in page.source


def test_text_from_the_data_is_shown_and_never_obeyed(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, NASTY, "_other")
    model = POLKClassifier().partial_fit(X, y)
    page = written(
        tmp_path,
        model,
        record(**{NASTY: np.zeros(50)}),
        title=NASTY,
        facts={NASTY: NASTY, "more": {NASTY: NASTY}, "long": NASTY * 50},
        feature_names=[NASTY, "\udce9"],
        target=NASTY,
        notes=[NASTY],
        sample=(X, y),
    )
    assert page.text.count(NASTY) > 60


def test_numbers_of_the_headline(tmp_path, plane):
    model, *_ = plane
    text = written(tmp_path, model, record(accuracy=np.full(50, 0.95))).text
    assert "95.0 %" in text
    assert "+75.0 points baseline 20.0 %" in text
    assert "+65.0 points baseline 30.0 %" in text
    assert "10k 100 µs per sample" in text
    error = record("error", error=np.full(50, 0.25))
    text = written(tmp_path, model, error).text
    assert MINUS + "5.0 points baseline 20.0 %" in text  # worse than saying the last label again
    assert "+5.0 points baseline 30.0 %" in text
    text = written(tmp_path, model, record("rmse", rmse=np.full(50, 0.15))).text
    assert "+25.0 % baseline 0.2" in text
    text = written(tmp_path, model, record("kappa", kappa=np.full(50, 0.5))).text
    assert "+0.3 baseline 0.2" in text
    text = written(tmp_path, model, record("surprise", surprise=np.full(50, 0.5))).text
    assert "Difference to no change +0.3" in text


def test_the_first_metric_is_the_headline_and_all_are_listed(tmp_path, plane):
    model, *_ = plane
    trace = record("kappa", balanced_accuracy=np.full(50, 0.625))
    text = written(tmp_path, model, trace).text
    assert "Kappa, lately" in text
    assert f"balanced accuracy 62.5 % {MISSING} {MISSING}" in text


@pytest.mark.parametrize(
    "trace",
    [
        Record(),
        Record(samples=[], accuracy=[], accuracy_window=[]),
        record(n=1),
        record(n=2, accuracy=[np.nan, np.nan], accuracy_window=[np.inf, -np.inf]),
        record(**{name: np.full(50, np.nan) for name in record().columns}),
        record(seconds=np.zeros(50), samples=np.full(50, 100)),
        record(seconds=-np.arange(50.0)),
        Record(samples=[100, 200]),
        record(accuracy=np.r_[np.full(49, 0.5), 1e300]),
    ],
    ids=[
        "nothing",
        "no rows",
        "one row",
        "not finite",
        "all NaN",
        "clock stands",
        "clock goes back",
        "no metric",
        "huge",
    ],
)
def test_degenerate_records(tmp_path, plane, trace):
    model, X, y = plane
    page = written(tmp_path, model, trace, sample=(X, y))
    assert "nan" not in page.text.lower()
    assert not any("nan" in path or "inf" in path for path in page.lines)


def test_samples_held_out_have_a_curve_a_card_and_the_regularised_risk(tmp_path):
    X, y = make_multidist(400, random_state=0)
    model = POLKClassifier()
    trace = prequential(model, (X[:300], y[:300]), every=100, held_out=(X[300:], y[300:]))
    path = tmp_path / "page.html"
    write_report(path, title="t", facts={}, trace=trace, model=model)
    text = path.read_text()
    columns = trace.to_columns()
    for part in ("Accuracy, held out", "accuracy, held out", "Regularised risk", "on the stream"):
        assert part in text
    assert f"{100.0 * columns['held_out'][-1]:.1f}" in text
    assert ">held out risk<" not in text  # no metric of the stream

    plain = prequential(POLKClassifier(), (X, y), every=100)
    write_report(path, title="t", facts={}, trace=plain, model=model)
    assert "Regularised risk" not in path.read_text()


def test_risk_beside_another_model(tmp_path, plane):
    model, _, _ = plane
    rng = np.random.default_rng(0)
    heavy, light = LossDistribution(), LossDistribution()
    heavy.update(rng.exponential(size=5000) ** 2)
    light.update(rng.exponential(size=5000))
    page = written(tmp_path, model, losses={"this one": heavy, "the <other>": light})
    assert "risk" in page.ids
    for words in ("the <other>", "standard deviation", "CVaR 95 % (mean of the worst)",
                  "Mean of the worst losses", compact(heavy.cvar(0.9)),
                  compact(light.semideviation)):  # fmt: skip
        assert words in page.text
    assert "Risk" not in written(tmp_path, model).text


@pytest.mark.parametrize("losses", [[], [0.0], [2.0], [1e-20, 1e200]])
def test_risk_of_few_losses(tmp_path, plane, losses):
    collected = LossDistribution()
    collected.update(losses)
    assert "risk" in written(tmp_path, plane[0], losses={"model": collected}).ids


def test_a_model_of_one_point(tmp_path):
    for features in (1, 2, 5):
        model = POLKClassifier().partial_fit(np.zeros((1, features)), ["only"])
        assert "1 stored point." in written(tmp_path, model, Record()).text
        model = POLKRegressor().partial_fit(np.ones((1, features)), [2.0])
        assert "1 stored point." in written(tmp_path, model, Record()).text


def test_a_model_without_points(tmp_path):
    model = POLKClassifier().partial_fit(
        np.zeros((1, 3)), ["a"], classes=["a", "b"], sample_weight=[0.0]
    )
    assert model.model_order_ == 0
    assert "stores no points" in written(tmp_path, model).text


def test_sparse_and_wide(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 3000), density=0.01, format="csr", random_state=rng)
    y = rng.integers(0, 2, 80)
    model = POLKClassifier(kernel=Linear() + Polynomial(gamma=0.1, degree=2)).partial_fit(X, y)
    page = written(tmp_path, model, sample=X)
    assert re.search(r"and \d+ more", page.text)
    assert page.tags.count("circle") == model.model_order_ + 80


def test_huge_entries(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 4)) * 1e120
    model = POLKRegressor(kernel="laplacian", gamma=1e-120).partial_fit(X, np.arange(30.0))
    page = written(tmp_path, model, record("mae"), sample=X)
    assert "nan" not in page.source


@pytest.mark.parametrize("features", [2, 3])
def test_the_legend_of_a_thousand_classes_is_short(tmp_path, features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, features))
    labels = np.repeat(np.arange(1000), 3)
    model = POLKClassifier(max_points=60).partial_fit(np.repeat(X, 3, axis=0), labels)
    page = written(tmp_path, model, sample=X[:50])
    assert "other classes" in page.text
    assert page.source.count('class="swatch square"') <= 7


def test_features_of_very_different_scale(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e5]
    model = POLKClassifier().partial_fit(X, X[:, 0] > 0)
    assert "aspect-ratio: 6.000 / 4.500" in written(tmp_path, model, sample=X).source


def test_long_records_are_thinned_out_but_keep_their_spikes(tmp_path, plane):
    n = 20_000
    window = np.full(n, 0.9)
    window[12_345] = 0.1
    page = written(tmp_path, plane[0], record(n=n, accuracy_window=window))
    assert max(path.count("L") for path in page.lines) <= 600
    windowed = re.findall(r",([\d.]+)", page.lines[3])
    assert sum(float(down) > 900.0 for down in windowed) == 1
    assert len(page.source) < 500_000


def test_long_facts_are_folded(tmp_path, plane):
    page = written(tmp_path, plane[0], facts={"remark": "word " * 5000})
    assert "details" in page.tags


def test_forced_removals_are_noted(tmp_path):
    X, y = make_multidist(300, random_state=0)
    model = POLKClassifier(max_points=5, compression_error=0.0).partial_fit(X, y)
    page = written(tmp_path, model).text
    assert f"max_points=5 made room {model.n_forced_} times by removing a point" in page
    assert "What that costs depends on the stream: a run with a larger cap shows it." in page


@pytest.mark.filterwarnings("ignore::kernelstream.errors.CapWarning")
def test_avm_has_cells_and_no_budget(tmp_path):
    X, y = make_multidist(300, random_state=0)
    model = AVMClassifier(max_points=5).partial_fit(X, y)
    page = written(tmp_path, model).text
    assert f"max_points=5 left no room for the cells of {model.n_forced_} samples" in page
    assert "kernelstream diameter what a larger delta would do" in page
    assert f"the cell that it lies in (delta {model.delta_:.3g})" in page
    assert not [word for word in ("budget", "remov", "allowed per step") if word in page]


def test_the_same_run_gives_the_same_page(tmp_path, plane):
    model, X, y = plane
    first = written(tmp_path, model, sample=(X, y)).source
    assert written(tmp_path, model, sample=(X, y)).source == first


def test_the_model_and_the_sample_stay_as_they_were(tmp_path, ten):
    model, X, _ = ten
    before, given = model.dual_coef_, X.copy()
    written(tmp_path, model, sample=X)
    assert np.array_equal(model.dual_coef_, before)
    assert np.array_equal(X, given)


def test_an_old_page_stays_if_writing_fails(tmp_path, plane, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def no_space(*args):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="no space"):
            written(tmp_path, plane[0])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_wrong_names_and_samples_are_refused(tmp_path, plane):
    model, X, _ = plane
    with pytest.raises(ValueError, match="holds 3 names, the model has 2"):
        written(tmp_path, model, feature_names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"sample must be X or \(X, y\)"):
        written(tmp_path, model, sample=X[0])
    with pytest.raises(ValueError, match="sample has 3 features, the model has 2"):
        written(tmp_path, model, sample=np.zeros((4, 3)))
    with pytest.raises(ValueError, match="4 rows and 3 targets"):
        written(tmp_path, model, sample=(np.zeros((4, 2)), [0, 1, 2]))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named(tmp_path, plane, monkeypatch, package):
    real_import = builtins.__import__

    def without_it(name, *args, **kwargs):
        if name == package:
            raise ImportError(name, name=name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_it)
    with pytest.raises(ImportError, match=rf"needs {package}.*pip install 'kernelstream\[cli\]'"):
        written(tmp_path, plane[0])


@pytest.mark.parametrize("features", [1, 2, 4])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_model_of_many_experts(tmp_path, features, numbers):
    X = np.random.default_rng(0).normal(size=(600, features))
    y = np.sin(2.0 * X[:, 0])
    model = AutoRegressor(random_state=0) if numbers else AutoClassifier(random_state=0)
    model.partial_fit(X, y if numbers else y > 0.0)
    metric = "rmse" if numbers else "accuracy"
    page = written(
        tmp_path, model, record(metric), sample=(X, y if numbers else y > 0.0),
        what_it_did="Mostly <experts>.", frozen={"rows": 1234, metric: 0.5},
    )  # fmt: skip
    for words in ("What the model did", "Mostly <experts>.", "Shares of the experts", "x0",
                  "Which columns matter", "Saved model", "not learned from them"):  # fmt: skip
        assert words in page.text
    assert 'class="swatch stored' not in page.source
    areas = re.findall(r'class="area" fill="(#\w+)" d="M([^"]*)Z"', page.source)
    assert len(areas) == min(8, len(model.history_) - 1)
    corners = [tuple(map(float, spot.split(","))) for _, path in areas for spot in path.split("L")]
    assert all(-0.1 <= value <= 1000.1 for spot in corners for value in spot)
    assert "picture-chart-title" in page.ids


def test_a_model_of_many_experts_without_samples(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = AutoClassifier(random_state=0).partial_fit(X, X[:, 0] > 0.0)
    page = written(tmp_path, model)
    assert "There are no samples to draw." in page.text
    assert "Saved model" not in page.text
