"""The page about features."""

import numpy as np
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from kernelstream.evaluation import FitTrace
from kernelstream.features import OnlineKernelFeatures
from kernelstream.report import write_features_report
from tests.report.test_report import NASTY, Page

SECTIONS = ["run", "headline", "time", "changes", "cost", "picture"]


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return OnlineKernelFeatures(4, max_points=8, random_state=0).partial_fit(X)


def page(tmp_path, model, errors, **parts):
    trace = FitTrace()
    trace.update(errors, updated=len(errors) / 4)
    path = tmp_path / "page.html"
    given = {"title": "T", "facts": {"data": "rows.csv"}, **parts}
    write_features_report(path, trace=trace, model=model, **given)
    return path.read_text()


def test_whole_and_self_contained(tmp_path, model):
    errors = np.concatenate([np.full(900, 0.2), np.full(400, 0.6)])
    text = page(tmp_path, model, errors, sample=np.random.default_rng(0).normal(size=(50, 4)))
    parsed = Page(text)  # closes what it opens
    assert [name for name in parsed.ids if name in SECTIONS] == SECTIONS
    assert text.count('class="mark"') == 1
    assert text.count('class="sample"') == 50
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    for place in ("src=", "href=", "url("):
        assert place not in text


def test_names_from_outside_do_no_harm(tmp_path, model):
    text = page(
        tmp_path, model, np.full(300, 0.1), title=NASTY, facts={NASTY: NASTY}, notes=[NASTY]
    )
    assert "<script" not in text
    Page(text)


def test_nothing_noticed_and_nothing_to_draw(tmp_path, model):
    text = page(tmp_path, model, np.full(500, 0.3))
    assert "None was noticed." in text
    assert 'class="mark"' not in text
    assert "no samples to draw" in text
    assert "Nothing was recorded" in page(tmp_path, model, np.empty(0))


def test_many_changes_are_cut(tmp_path, model):
    errors = np.concatenate([np.full(210, 1.5**step) for step in range(60)])
    text = page(tmp_path, model, errors, sample=np.zeros((5, 4)))
    assert text.count('class="mark"') == 50
    assert "more." in text
