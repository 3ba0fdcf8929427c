"""``kernelstream policy``: values from a log of steps."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from kernelstream import KernelPolicyEvaluation, load
from tests.models.test_policy import random_walk


@pytest.fixture
def log(tmp_path):
    """A random walk on five places: V(i) = i / 6."""
    states, rewards, _, ends = random_walk(300)
    episodes = np.concatenate([[0], np.cumsum(ends)[:-1]])
    table = np.column_stack([episodes, states[:, 0], rewards, ends])
    file = tmp_path / "walk.csv"
    np.savetxt(file, table, delimiter=",", header="walk,place,paid,over", comments="")
    return file


OPTIONS = ("--reward", "paid", "--terminal", "over", "--episode", "walk", "--discount", "1",
           "--eta0", "0.05", "--average", "true", "--random-state", "0")  # fmt: skip


def test_the_same_values_as_in_python(tool, log, tmp_path):
    out, values = tmp_path / "value.ks", tmp_path / "values.csv"
    shown = tool("policy", log, *OPTIONS, "--gamma", "30", "--out", out, "--values", values).out
    assert "points" in shown
    model = KernelPolicyEvaluation(1.0, eta0=0.05, average=True, gamma=30.0, random_state=0)
    model.partial_fit(*random_walk(300))
    places = np.arange(1, 6)[:, None] / 6.0
    assert load(out).predict(places) == pytest.approx(model.predict(places), rel=1e-9)
    table = np.loadtxt(values, delimiter=",", skiprows=1)
    assert table[0, 0] == 2  # its line in the file
    assert table[:, 1] == pytest.approx(model.predict(random_walk(300)[0]), rel=1e-9)


def test_the_pieces_that_are_read_do_not_matter(tool, log):
    found = [
        json.loads(tool("policy", log, *OPTIONS, "--json", "--batch-rows", rows).out)
        for rows in ("70", "5000")
    ]
    assert found[0]["gamma"] == found[1]["gamma"]
    assert found[0]["points"] == found[1]["points"]
    assert found[0]["state"] == ["place"]
    assert found[0]["steps"] == len(random_walk(300)[0])


def test_what_is_refused(tool, log):
    for words, message in (
        (("--reward", "gain"), "no column 'gain'"),
        (("--reward", "paid", "--discount", "1"), "discount=1 is for episodes that end"),
        (("--reward", "paid", "--discount", "2"), "--discount 2 is not accepted"),
        (("--reward", "paid", "--method", "td"), "--method td is not accepted"),
        (("--reward", "paid", "--tracking", "momentum"), "is for method='scalar'"),
    ):
        assert message in " ".join(tool("policy", log, *words, code=2).err.split())


def test_states_that_are_too_large_are_refused(tool, tmp_path):
    """Already before gamma is chosen, whose squares would overflow."""
    steps = pa.table({"a": np.arange(20) * 1e200, "reward": np.ones(20)})
    parquet.write_table(steps, tmp_path / "log.parquet")
    refused = tool("policy", tmp_path / "log.parquet", "--reward", "reward", code=2).err
    assert "larger than" in " ".join(refused.split())
