"""A risk-sensitive run beside a risk-neutral one: in the report, and in checkpoints."""

import re

import pytest

from kernelstream import DivergenceError, POLKClassifier, load
from tests.cli.tools import write_rows

SETTINGS = {
    False: ("--target", "label", "--eta0", 1, "--compression-error", 0.5, "--max-points", 40),
    True: ("--target", "height", "--eta0", 0.2, "--compression-error", 0.1, "--max-points", 40),
}


def risk_of(path):
    """The numbers of the section on risk."""
    page = path.read_text(encoding="utf-8")
    section = page[page.index('id="risk"') : page.index('id="cost"')]
    table = section[section.index("<tbody>") : section.index("</tbody>")]
    return re.findall(r'number">([^<]*)<', table)


@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
def test_the_report_compares_and_the_run_can_go_on(tool, tmp_path, numbers):
    rows = write_rows(tmp_path / "rows.csv", 2500, numbers=numbers)
    words = ("learn", rows, "--model", "colk", *SETTINGS[numbers], "--batch-rows", 300, "--quiet")
    report = ("--report", "report.html")
    tool(*words, "--out", "alone.ks")
    tool(*words, "--out", "whole.ks", *report)
    fingerprint, risk = load(tmp_path / "whole.ks").fingerprint(), risk_of(tmp_path / "report.html")
    assert load(tmp_path / "alone.ks").fingerprint() == fingerprint
    assert len(risk) == 16
    assert risk[::2] != risk[1::2]  # the model's numbers and the neutral one's
    assert risk[0] == risk[1]  # of as many samples
    assert "variance, weight 0.1" in (tmp_path / "report.html").read_text(encoding="utf-8")

    lines = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join(lines[:1502]))  # an odd number of rows
    tool(*words, *report, "--checkpoint", "place")
    rows.write_bytes(b"".join(lines))
    refused = tool(*words, "--checkpoint", "place", "--resume", code=2)
    assert "--report (True then, None now)" in refused.err
    tool(*words, *report, "--checkpoint", "place", "--resume", "--out", "grown.ks")
    assert load(tmp_path / "grown.ks").fingerprint() == fingerprint
    assert risk_of(tmp_path / "report.html") == risk


def test_a_neutral_model_that_diverges_does_not_end_the_run(tool, rows, tmp_path, monkeypatch):
    def diverge(*_):
        raise DivergenceError("too large")

    monkeypatch.setattr(POLKClassifier, "_pass", diverge)
    words = ("learn", rows, "--target", "label", "--model", "colk", "--report", "report.html")
    assert "no risk-neutral model to compare with: too large" in " ".join(tool(*words).out.split())
    assert len(risk_of(tmp_path / "report.html")) == 8


def test_a_neutral_model_has_no_section_on_risk(tool, rows, tmp_path):
    tool("learn", rows, "--target", "label", "--report", "report.html", "--quiet")
    assert 'id="risk"' not in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("rows", ["1,a\n2,b\n", "1,a\n2,a\n", "1,a\n2,b\n3,c\n4,a\n"])
def test_hardly_any_rows_give_a_report(tool, tmp_path, rows):
    (tmp_path / "few.csv").write_text("x,c\n" + rows, encoding="utf-8")
    words = ("learn", "few.csv", "--target", "c", "--model", "colk", "--risk", "cvar")
    tool(*words, "--report", "report.html", "--quiet")
    assert risk_of(tmp_path / "report.html")[0] in ("0", "1")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "cvar, weight 0.1, level 0.9" in page
