"""Code blocks of Markdown pages are run, and what they print is put below them.

A page's ``python`` blocks share one namespace, and all its blocks one temporary folder; ``sh``
blocks call ``kernelstream``. Other blocks are left alone. A Sphinx extension, also used by
``tests/test_docs.py``: a block that does not run fails the build and the test.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernelstream

_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_EXPECTED = re.compile(r"# exit code (\d+)$")
_SHELL = re.compile(r"[|&;<>$]")  # what only a shell understands
_WIDTH = "88"  # of printed tables
_SECONDS = 300  # that a block of shell lines may take: a busy machine may compile first


def run_page(text: str, name: str = "page") -> str:
    """The page with the output of each block below it."""
    names: dict[str, Any] = {"__name__": "__main__"}

    def run(match: re.Match[str]) -> str:
        line = text.count("\n", 0, match.start()) + 2  # of the code, for tracebacks
        runner = _run_python if match[1] == "python" else _run_shell
        try:
            output = runner(match[2], names, name, line)
        except Exception as error:
            raise RuntimeError(f"{name}, the block on line {line}: {error!r}") from error
        output = "\n".join(row.rstrip() for row in output.splitlines()).strip("\n")
        return match[0] + (f"\n```text\n{output}\n```\n" if output else "")

    with tempfile.TemporaryDirectory() as folder, _in_folder(Path(folder)):
        return _BLOCK.sub(run, text)


def _run_python(code: str, names: dict[str, Any], name: str, line: int) -> str:
    with _captured() as output:
        exec(compile("\n" * (line - 1) + code, name, "exec"), names)
    return output.getvalue()


def _run_shell(code: str, names: dict[str, Any], name: str, line: int) -> str:
    lines = code.replace("\\\n", " ").splitlines()
    if any(_SHELL.search(text) or not text.startswith("kernelstream ") for text in lines):
        done = subprocess.run(
            ["bash", "-e", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {done.stdout}")
        return done.stdout
    return "".join(_run_command(text) for text in lines)


def _run_command(line: str) -> str:
    """The tool in this process, which has its compiled code at hand."""
    from kernelstream.cli import main

    status: Any = 0
    before, sys.argv = sys.argv, shlex.split(line, comments=True)
    try:
        with _captured() as output:
            try:
                main()
            except SystemExit as end:
                status = end.code or 0
    finally:
        sys.argv = before
    expected = _EXPECTED.search(line)
    if status != (int(expected[1]) if expected else 0):
        raise RuntimeError(f"exit code {status} of {line}: {output.getvalue()}")
    return output.getvalue()


@contextlib.contextmanager
def _captured() -> Iterator[io.StringIO]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Work there, with the command ``kernelstream`` of this interpreter on the path."""
    (folder / "bin").mkdir()
    (folder / "work").mkdir()
    command = folder / "bin" / "kernelstream"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kernelstream "$@"\n')
    command.chmod(0o755)
    # The folder changes and another version may be installed: commands get the one imported here.
    package = Path(kernelstream.__file__).resolve().parents[1]
    settings = {
        "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]),
        "PATH": os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)]),
        "COLUMNS": _WIDTH,
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        with contextlib.chdir(folder / "work"):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _on_source_read(app: Any, docname: str, source: list[str]) -> None:
    if app.env.doc2path(docname).suffix == ".md":
        source[0] = run_page(source[0], docname)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": False}  # the working folder is changed meanwhile
