"""Every generator can be written, and learned from."""

import csv

import pytest

from kernelstream.cli.data import GENERATORS


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_is_written(name, tool, tmp_path):
    out = tmp_path / "rows.csv"
    tool("datasets", "generate", name, "--rows", 40, "--out", out)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    assert list(rows[0])[-1] == GENERATORS[name][1].split()[-1]
    assert all(list(row.values())[-1] for row in rows)
