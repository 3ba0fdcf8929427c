"""The package runs where nothing is writable but the temporary folder."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

import kernelstream

NOBODY = 65534

FIRST_STEPS = """
    import os, pathlib
    for folder in (pathlib.Path.home(), {package!r}):
        try:
            pathlib.Path(folder, "probe").touch()
        except OSError:
            pass
        else:
            raise SystemExit(f"{{folder}} is writable: this test shows nothing")
    import kernelstream
    assert kernelstream.__file__.startswith({package!r}), kernelstream.__file__
    if "NUMBA_DISABLE_JIT" in os.environ:
        model = kernelstream.POLKClassifier().partial_fit([[0.0], [1.0], [0.1]], [0, 1, 0])
        print(model.predict([[0.9]]))
    else:
        print(kernelstream.Loss("hinge").value([0.25], [1.0]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_read_only_home_and_package():
    # Not below pytest's own folder, which only its owner may enter.
    root = Path(tempfile.mkdtemp())
    try:
        package, home, temporary = root / "package", root / "home", root / "tmp"
        shutil.copytree(
            Path(kernelstream.__file__).parent,
            package / "kernelstream",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        home.mkdir()
        temporary.mkdir()
        temporary.chmod(0o777)
        for path in (root, *root.rglob("*")):
            if path != temporary:
                path.chmod(0o555 if path.is_dir() else 0o444)
        environment = {
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(package), *dependencies()]),
        }
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        # Something is compiled, and a model learns: to compile that, too, would take half a minute.
        for jit, expected in (({}, "[0.75]"), ({"NUMBA_DISABLE_JIT": "1"}, "[1]")):
            run = subprocess.run(
                [interpreter(), "-c", textwrap.dedent(FIRST_STEPS.format(package=str(package)))],
                env=environment | jit, cwd="/", capture_output=True, text=True, timeout=500,
                check=False, **(as_nobody if os.getuid() == 0 else {}),
            )  # fmt: skip
            assert run.returncode == 0, run.stderr
            assert run.stdout.strip() == expected
            assert list(temporary.rglob("*.nbi")), "the compiled code is not cached"
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(root)


def interpreter():
    """A Python that an unprivileged user may start too, of the same version."""
    if os.getuid() != 0:
        return sys.executable
    same_version = f"python3.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(same_version, path="/usr/local/bin:/usr/bin")):
        if candidate and may_enter(Path(candidate).resolve()):
            return candidate
    pytest.skip("no interpreter that an unprivileged user may start")


def may_enter(path):
    """Whether everybody may read the path and enter the folders above it."""
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in (path, *path.parents))


def dependencies():
    return [folder for folder in sys.path if folder.endswith("site-packages")]


def test_importing_brings_no_heavy_optional_packages():
    code = (
        "import sys, sklearn.base;"  # scikit-learn itself may bring pandas
        "before = set(sys.modules);"
        "import kernelstream;"
        "brought = set(sys.modules) - before;"
        "print(sorted({'matplotlib', 'pandas', 'polars', 'ray', 'torch'} & brought))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
