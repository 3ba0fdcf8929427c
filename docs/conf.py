"""How Sphinx builds these pages: ``make docs``."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for executed.py

from kernelstream import __version__

HERE = Path(__file__).parent

project = "kernelstream"
author = "the kernelstream authors"
copyright = author
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "executed",
]
exclude_patterns = ["_build", "gallery/*.py", "gallery/*.ipynb", "gallery/**/*.md5"]
templates_path = ["_templates"]
nitpicky = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_title = f"kernelstream {release}"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5fa5", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#74b6f2", "color-brand-content": "#74b6f2"},
}
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings name types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "ExampleTitleSortKey",
    "backreferences_dir": "reference/generated/backreferences",
    "doc_module": ("kernelstream",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,  # times belong to the benchmarks
    "write_computation_times": False,
    "abort_on_example_error": True,
    "default_thumb_file": None,
}

# Matplotlib's Agg canvas cannot show a figure, which the gallery does not need.
warnings.filterwarnings("ignore", category=UserWarning, message=".*FigureCanvasAgg.*")

#: Documented by scikit-learn, with links into its own pages; of no use on a stream.
_NOT_OURS = re.compile(r"get_metadata_routing|set_output|set_\w+_request")


def _skip(app, what, name, obj, skip, options):
    return True if _NOT_OURS.fullmatch(name) else None


def _write_command_line(app):
    """The reference of the command line, from the tool itself."""
    command = [sys.executable, "-m", "typer", "kernelstream.cli.app", "utils", "docs",
               "--name", "kernelstream", "--title", "Command line"]  # fmt: skip
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (HERE / "reference" / "command_line.md").write_text(page, encoding="utf-8")


def _keep_norms(app, what, name, obj, options, lines):
    """|q| is a norm, not one of reStructuredText's substitutions."""
    for place, line in enumerate(lines):
        if ">>>" not in line:
            parts = line.split("``")  # every other part is a literal
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[place] = "``".join(parts)


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", _write_command_line)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _keep_norms, priority=900)
