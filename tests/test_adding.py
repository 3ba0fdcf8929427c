"""Adding a part takes no more files than CONTRIBUTING.md says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]

#: Numbers in fields of eight characters below a line of names.
SOURCE = """
from pathlib import Path

import numpy as np

from kernelstream.streams.batch import Batch, RowSource
from kernelstream.streams.formats import Format, register


class FixedSource(RowSource):
    def __init__(self, path, format, reading):
        super().__init__(path, format, reading)
        cut = [
            [line[i : i + 8].strip() for i in range(0, len(line), 8)]
            for line in Path(path).read_text().splitlines()
        ]
        self._table = dict(zip(cut[0], np.array(cut[1:], float).T, strict=True))
        self._length = len(cut) - 1
        self.schema = dict.fromkeys(reading.choose_columns(path, cut[0]), "number")

    def __next__(self):
        rows = np.arange(self._row, min(self._row + self._batch_rows, self._length))
        if not len(rows):
            raise StopIteration
        self._row += len(rows)
        return Batch({name: self._table[name][rows] for name in self.schema}, lines=rows)


register(Format("fixed", (".fixed",), FixedSource))
"""

TEST = """
from kernelstream.streams import open_stream


def test_rows(tmp_path):
    file = tmp_path / "rows.fixed"
    file.write_text("x       y       \\n1.5     2       \\n")
    assert next(open_stream(file, target="y")).columns["x"].tolist() == [1.5]
"""


def files_to_add(part: str, name: str) -> list[str]:
    """The files that CONTRIBUTING.md lists for a part."""
    (text,) = re.findall(
        rf"^\*\*{part}\*\*: (.*?)\n\n", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S
    )
    return [path.replace("NAME", name) for path in re.findall(r"`([\w/]+/[\w./]+)`", text)]


def test_a_stream_source_takes_two_files(tmp_path):
    unwanted = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=unwanted)
    shutil.copytree(ROOT / "tests" / "streams", tmp_path / "tests" / "streams", ignore=unwanted)
    files = files_to_add("a stream source", "fixed")
    assert len(files) <= 2
    for path, text in zip(files, (SOURCE, TEST), strict=True):
        assert not (tmp_path / path).exists()
        (tmp_path / path).write_text(text)

    X = np.random.default_rng(0).normal(size=(60, 2))
    rows = [("a", "b", "target"), *((*x, float(sum(x) > 0)) for x in X.round(4).tolist())]
    data = tmp_path / "rows.fixed"
    data.write_text("".join("".join(f"{value:<8}" for value in row) + "\n" for row in rows))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_DISABLE_JIT": "1"}
    for words in (
        ["-m", "kernelstream", "learn", str(data), "--task", "classification", "--json"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", files[1]],
    ):
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert '"samples": 60' in done.stdout or "1 passed" in done.stdout
