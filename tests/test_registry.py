"""A method registers itself once, and is then everywhere."""

import importlib
import importlib.util
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import kernelstream
from kernelstream import (
    batch,
    evaluation,
    features,
    kernels,
    models,
    network,
    registry,
    report,
    runs,
    streams,
)
from kernelstream.cli.methods import METHODS, method_options
from kernelstream.parameters import parameters_of
from kernelstream.registry import DEFAULT, Method, register

ROOT = Path(__file__).parents[1]
SOURCE = Path(kernelstream.__file__).parents[1]


def in_order(names):
    """The default method, then the others by name."""
    return sorted(names, key=lambda name: (name != DEFAULT, name))


@pytest.fixture(scope="module")
def lists():
    """``docs/lists.py``, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("lists", ROOT / "docs" / "lists.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_estimators_have_a_method():
    registered = {kind for method in registry.methods().values() for kind in method.estimators}
    named = {name for method in registry.methods().values() for name in method.names}
    for file in pkgutil.iter_modules(models.__path__, "kernelstream.models."):
        if not file.name.rpartition(".")[2].startswith("_"):
            for name, kind in models.estimators_in(importlib.import_module(file.name)).items():
                assert kind in registered or name in named, name


@pytest.mark.parametrize("method", registry.methods().values(), ids=lambda method: method.name)
def test_what_a_method_says_is_true(method):
    assert method.title
    assert method.description
    assert "|" not in method.description + method.paper  # cells of a table
    for kind in method.estimators:
        assert set(method.try_first) <= set(parameters_of(kind))
    for name in method.names:
        place = kernelstream
        for part in name.split("."):
            place = getattr(place, part)
    if method.is_model:
        assert method.try_first or method.name == registry.DEFAULT  # nothing to choose
        assert method.name == method.name.lower()
        assert method.paper or method.name == registry.DEFAULT
    if method.without_risk:
        assert registry.methods()[method.without_risk].is_model


def test_the_default_comes_first():
    assert next(iter(registry.methods())) == registry.DEFAULT
    assert set(METHODS) == set(registry.models())
    assert {"polk", "avm", "colk"} <= set(METHODS)


def test_the_method_of_an_estimator():
    class Derived(models.AVMClassifier):
        pass

    assert registry.method_of(models.AVMRegressor).name == "avm"
    assert registry.method_of(Derived).name == "avm"
    assert registry.method_of(dict) is None


def test_a_name_can_be_taken_once():
    polk = registry.methods()["polk"]
    assert register(polk) is polk  # again: the module was imported again
    with pytest.raises(ValueError, match="there is a method 'polk' already, POLK"):
        register(Method(name="polk", title="P", description="", classifier=models.AVMClassifier))
    assert registry.methods()["polk"] is polk


def test_lists_are_current(lists):
    old = [path for path, text in lists.current().items() if path.read_text("utf-8") != text]
    assert not old, "run make lists"


def test_outdated_lists_are_noticed(lists, monkeypatch):
    found = dict(registry.methods())
    renamed = Method(name="new", title="NEW", description="does something", paper="Somebody")
    monkeypatch.setattr(registry, "methods", lambda: {**found, "new": renamed})
    assert "| NEW |  | does something | Somebody |" in lists.table()
    monkeypatch.setattr(lists, "estimators", lambda: iter([("new", ["NewClassifier"])]))
    texts = {path.name: text for path, text in lists.current().items()}
    assert (
        "from kernelstream.models.new import NewClassifier\n"
        in lists.current()[lists.PACKAGE / "models" / "__init__.py"]
    )
    outer = lists.current()[lists.PACKAGE / "__init__.py"]
    assert outer.count("NewClassifier") == 2
    assert '"Preparation"' in outer
    assert '"NewClassifier"' in outer
    assert "   NewClassifier\n" in texts["python.rst"]


def test_all_public_names_are_in_the_reference():
    text = (ROOT / "docs" / "reference" / "python.rst").read_text("utf-8")
    listed = {line.strip().rpartition(".")[2] for line in text.splitlines() if line[:3] == "   "}
    homes = (kernelstream, batch, evaluation, features, network, report, runs, streams)
    public = {name for home in homes for name in home.__all__}
    public |= {
        name
        for name, kind in vars(kernels).items()
        if isinstance(kind, type) and issubclass(kind, kernels.Kernel) and name[0] != "_"
    }
    no_pages = {"__version__", "METRICS", "Column"}  # a text, a table and a type
    assert sorted(public - listed - no_pages) == []


def test_options_know_every_parameter():
    options = method_options()
    for method in METHODS.values():
        for kind in method.estimators:
            assert set(parameters_of(kind)) - {"n_epochs", "shuffle"} <= set(options)
        assert method.name in options["gamma"] or "1 / inputs" in options["gamma"]


# Methods of other packages, and new files

PLUGIN = '''
"""A method of another package."""

from typing import Annotated

from kernelstream.models.polk import POLKClassifier
from kernelstream.parameters import Whole
from kernelstream.registry import Method, register


class EchoClassifier(POLKClassifier):
    """Learns as POLK does.

    Examples
    --------
    >>> EchoClassifier().echoes
    2
    """

    echoes: Annotated[int, Whole(1, 9), "How often it is heard."] = 2


register(
    Method(
        name="echo",
        title="Echo",
        description="POLK once more",
        classifier=EchoClassifier,
        try_first=("gamma", "echoes"),
    )
)
'''


def python(code, *folders, cwd=None):
    """What a fresh process prints."""
    path = os.pathsep.join(map(str, [*folders, SOURCE]))
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def install(folder, module, code):
    """A package as pip would leave it."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{module} = {module}\n")


def test_methods_of_other_packages_join(tmp_path):
    install(tmp_path, "echoing", PLUGIN)
    said = python(
        """
        import json
        from kernelstream.cli.methods import METHODS, make_estimator, method_options
        from kernelstream.cli.app import app
        model = make_estimator("echo", "classification", {"echoes": "3"})
        model.partial_fit([[0.0], [1.0]], [0, 1]).save("echo.ks")
        try:
            make_estimator("echo", "regression", {})
        except Exception as error:
            refused = str(error)
        print(json.dumps([list(METHODS), model.echoes, method_options()["echoes"], refused]))
        """,
        tmp_path,
        cwd=tmp_path,
    )
    names, echoes, text, refused = json.loads(said)
    assert names == in_order({*METHODS, "echo"})
    assert echoes == 3
    assert text == "How often it is heard. \\[echo: 2]"
    assert refused.startswith("--model echo does not learn regression; take another --model (auto")
    # Its files load in a process that has not imported it.
    code = "import kernelstream; print(kernelstream.load('echo.ks').echoes)"
    assert python(code, tmp_path, cwd=tmp_path) == "3\n"


def test_another_package_that_does_not_work_is_named_and_left_out(tmp_path):
    install(tmp_path, "broken", "raise RuntimeError('no licence')")
    said = python(
        """
        import warnings
        from kernelstream import registry
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(*registry.models())
        print(*(w.message for w in caught if w.category is RuntimeWarning))
        """,
        tmp_path,
    )
    assert said.startswith(" ".join(METHODS))
    assert "the method 'broken' of another package (broken) cannot be used" in said
    assert "no licence" in said


def test_a_new_file_is_a_new_method(tmp_path):
    """Without an edit to any list; ``make lists`` then writes them."""
    for name in ("README.md", "docs/lists.py", "docs/reference/python.rst"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    package, caches = tmp_path / "src" / "kernelstream", shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "kernelstream", package, ignore=caches)
    (package / "models" / "echo.py").write_text(PLUGIN)
    look = """
        import kernelstream
        from kernelstream.cli.methods import METHODS, method_options
        print(kernelstream.__file__, kernelstream.EchoClassifier().echoes, *METHODS)
        print(method_options()["echoes"], "EchoClassifier" in kernelstream.__all__)
        """
    before = python(look, package.parent)
    assert str(package) in before
    assert " ".join(["2", *in_order({*METHODS, "echo"})]) + "\n" in before
    assert "How often it is heard. \\[echo: 2] False\n" in before
    script = str(tmp_path / "docs" / "lists.py")
    python(f"import runpy; runpy.run_path({script!r}, run_name='__main__')", package.parent)
    assert python(look, package.parent) == before.replace("False", "True")
    readme, python_rst = (tmp_path / name for name in ("README.md", "docs/reference/python.rst"))
    assert "| Echo | `EchoClassifier`, `--model echo` | POLK once more |" in readme.read_text()
    assert "   EchoClassifier\n" in python_rst.read_text()
    assert (package / "models" / "__init__.py").read_text().count("EchoClassifier") == 3
