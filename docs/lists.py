"""Write the lists of methods and estimators wherever they are shown: ``make lists``.

A method is a file in ``src/kernelstream/models``. The README's table, the reference and the names
that the package exports follow from what such files register; ``tests/test_registry.py`` checks
that they are current.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import kernelstream
from kernelstream import models, registry

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kernelstream"

#: Other names that ``kernelstream.models`` exports, and their modules.
_FUNCTIONS = {"load": "_files", "merge": "merging"}


def own_methods() -> list[registry.Method]:
    """The methods of this package, without those of other packages that are installed."""
    found = registry.methods().values()
    return [m for m in found if all(k.__module__.startswith("kernelstream.") for k in m.estimators)]


def public_name(kind: type) -> str:
    """What to import an estimator as, within the package."""
    if getattr(kernelstream, kind.__name__, None) is kind:
        return kind.__name__
    return f"{kind.__module__.split('.')[1]}.{kind.__name__}"


def table() -> str:
    """The README's table of methods."""
    rows = ["| method | class, option | what it does | paper |", "| --- | --- | --- | --- |"]
    for method in own_methods():
        names = [*map(public_name, method.estimators), *method.names]
        if method.is_model or method.command:
            names.append(method.command or f"--model {method.name}")
        shown = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| {method.title} | {shown} | {method.description} | {method.paper} |")
    return "\n".join(rows)


def reference() -> str:
    """The estimators that the package exports itself, as a list of the reference."""
    names = [public_name(kind) for method in own_methods() for kind in method.estimators]
    names += [name for method in own_methods() for name in method.names]
    listed = [name for name in dict.fromkeys(names) if name[0].isupper()]
    listed += [name for _, found in estimators() for name in found if name not in listed]
    shown = "\n".join(f"   {name}" for name in listed if name != "KernelExpansion")
    return f"\n.. autosummary::\n   :toctree: generated\n\n{shown}\n"


def estimators() -> Iterator[tuple[str, list[str]]]:
    """Modules of ``kernelstream.models``, and the estimators that each defines."""
    for file in pkgutil.iter_modules(models.__path__):
        if not file.name.startswith("_"):
            found = models.estimators_in(importlib.import_module(f"{models.__name__}.{file.name}"))
            if found:
                yield file.name, sorted(found)


def _names() -> list[str]:
    return sorted([*_FUNCTIONS, *(name for _, found in estimators() for name in found)])


def with_imports(text: str) -> str:
    """``kernelstream/models/__init__.py`` with all estimators."""
    modules = {module: [name] for name, module in _FUNCTIONS.items()} | dict(estimators())
    lines = "".join(
        f"    from kernelstream.models.{module} import {', '.join(names)}\n"
        for module, names in sorted(modules.items())
    )
    homes = {name: module for module, names in modules.items() for name in names}
    entries = "".join(f'    "{name}": "{homes[name]}",\n' for name in sorted(homes))
    for begin, end, body in (
        ("if TYPE_CHECKING:\n", "\n__all__", lines),
        ("_HOMES = {\n", "}\n", entries),
    ):
        start = text.index(begin) + len(begin)
        text = f"{text[:start]}{body}{text[text.index(end, start) :]}"
    return _with_all(text, _names())


def with_names(text: str) -> str:
    """``kernelstream/__init__.py`` with all estimators."""
    before = re.search(r"from kernelstream\.models import \((.*?)\)", text, re.DOTALL)
    listed = re.search(r"__all__ = \[(.*?)\]", text, re.DOTALL)
    if before is None or listed is None:
        raise ValueError("src/kernelstream/__init__.py has lost its lists")
    old = {name.strip() for name in before[1].split(",")}
    others = {name.strip().strip('"') for name in listed[1].split(",")} - old - {""}
    in_order = sorted(
        _names(), key=lambda name: (name[0].islower(), name.lower())
    )  # as ruff has it
    imports = "".join(f"        {name},\n" for name in in_order)
    text = text.replace(before[0], f"from kernelstream.models import (\n{imports}    )")
    return _with_all(text, sorted(others | set(_names())))


def _with_all(text: str, names: list[str]) -> str:
    entries = "".join(f'    "{name}",\n' for name in names)
    return re.sub(r"__all__ = \[.*?\]", f"__all__ = [\n{entries}]", text, count=1, flags=re.DOTALL)


def _between(begin: str, end: str, body: str, text: str) -> str:
    start = text.index(begin) + len(begin)
    return f"{text[:start]}\n{body}\n{text[text.index(end) :]}"


def current() -> dict[Path, str]:
    """Each file that holds a list, as it should be."""
    readme, python = ROOT / "README.md", ROOT / "docs" / "reference" / "python.rst"
    inner, outer = PACKAGE / "models" / "__init__.py", PACKAGE / "__init__.py"
    texts = {path: path.read_text(encoding="utf-8") for path in (readme, python, inner, outer)}
    return {
        readme: _between(
            "<!-- methods: written by make lists -->", "<!-- end of methods -->", table(),
            texts[readme],
        ),
        python: _between(
            ".. methods: written by make lists", ".. end of methods", reference(), texts[python]
        ),
        inner: with_imports(texts[inner]),
        outer: with_names(texts[outer]),
    }  # fmt: skip


if __name__ == "__main__":
    for path, text in current().items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")
