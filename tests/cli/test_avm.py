"""What the tool says of AVM: its cells, and the options that it has."""

import json

import pytest

from tests.cli.tools import write_rows


@pytest.fixture
def learn(tool, tmp_path):
    """``learn --model avm`` with more options; more cells than there is room for."""
    write_rows(tmp_path / "rows.csv", 600)

    def learn(*words):
        return tool(
            "learn", "rows.csv", "--target", "label", "--model", "avm", "--max-points", 5,
            "--out", "m.ks", *words,
        )  # fmt: skip

    return learn


def test_a_cap_removes_nothing(tool, learn):
    learn()
    assert "samples outside cells" in tool("inspect", "m.ks").out
    facts = json.loads(tool("inspect", "m.ks", "--json").out)
    assert facts["samples_outside_cells"] > 0
    assert "forced_removals" not in facts
