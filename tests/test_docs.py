"""What the README and the pages show runs."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import kernelstream

ROOT = Path(__file__).parents[1]
# docs/reproduction.md is left to the build: its code is scikit-learn's more than ours.
PAGES = ["README.md", "docs/start.md", "docs/auto.md", "docs/features.md", "docs/avm.md", *sorted(
         f"docs/howto/{p.name}" for p in (ROOT / "docs" / "howto").glob("*.md")
         if p.name != "index.md")]  # fmt: skip


def load_runner():
    """``docs/executed.py``, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("executed", ROOT / "docs" / "executed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_page = load_runner().run_page


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page):
    text = read(page)
    assert len(run_page(text, page)) >= len(text)


def test_output_is_put_below_its_block():
    page = "Before.\n\n```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\nAfter.\n"
    below = "```python\nprint(x + 1)\n```\n\n```text\n2\n```\n"
    assert below in run_page(page)
    assert run_page(page).count("```text") == 1


@pytest.mark.parametrize(
    "block",
    [
        "```python\nraise ValueError\n```\n",
        "```sh\nfalse\n```\n",
        "```sh\nkernelstream inspect no-such-file.ks\n```\n",
        "```sh\nkernelstream --version  # exit code 2\n```\n",
    ],
)
def test_a_block_that_fails_is_noticed(block):
    with pytest.raises(RuntimeError, match="the block on line 3"):
        run_page("\n" + block, "page")


def test_an_expected_failure_shows_its_message():
    text = run_page("```sh\nkernelstream inspect no-such-file.ks  # exit code 2\n```\n")
    assert "there is no file no-such-file.ks" in text


def test_commands_run_the_package_under_test():
    # Not whatever else is installed, though the blocks work in another folder.
    block = f"```sh\n{sys.executable} -c 'import kernelstream; print(kernelstream.__file__)'\n```\n"
    assert str(Path(kernelstream.__file__).resolve()) in run_page(block)


def test_the_build_shows_what_it_is_doing():
    # Without -q Sphinx names each example and page before it runs them.
    recipe = re.search(r"^docs:.*?\n\n", read("Makefile"), re.MULTILINE | re.DOTALL)[0]
    assert "minutes" in recipe
    assert not re.search(r"sphinx.* (-\w*[qQ]\w*|--quiet|--silent) ", recipe)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", read(page))
    missing = [link for link in links if not (ROOT / link).exists()]
    assert links
    assert not missing
