"""Files and models that many tests of the command line start from."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import LEARN, Tool, write_rows

#: It loads machine code, or compiles it: only the server of `tests.cli.tools` should.
collect_ignore = ["server.py"]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> Tool:
    """The command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Tool(monkeypatch, capsys)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A CSV file with categories, gaps and a constant column."""
    return write_rows(tmp_path / "rows.csv", 400)


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs the model below leaves it for the others."""
    return tmp_path_factory.mktemp("learned") / "model.ks"


@pytest.fixture
def model(tool: Tool, rows: Path, learned: Path) -> Path:
    """A model that learned those rows."""
    if not learned.exists():
        tool(*LEARN, "--out", learned)
    return Path(shutil.copy(learned, rows.with_name("model.ks")))
