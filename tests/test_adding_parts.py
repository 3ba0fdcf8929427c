"""A loss or a kernel is added in the files that CONTRIBUTING.md names for it, and in no others."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/kernelstream"

#: file -> texts that occur once in it, and what takes their place
LOSS = {
    f"{PACKAGE}/core/loss.py": {
        "    QUANTILE,\n) = range(11)": "    QUANTILE,\n    LOG_COSH,\n) = range(12)",
        "    if code == HUBER:\n        return 0.5": (
            "    if code == LOG_COSH:\n        return math.log(math.cosh(residual))\n"
            "    if code == HUBER:\n        return 0.5"
        ),
        "    if code == HUBER:\n        return min": (
            "    if code == LOG_COSH:\n        return math.tanh(residual)\n"
            "    if code == HUBER:\n        return min"
        ),
    },
    f"{PACKAGE}/losses.py": {
        '    "quantile": _Row(': (
            '    "log_cosh": _Row(core.LOG_COSH, curvature=lambda _: 1.0),\n    "quantile": _Row('
        ),
    },
    "tests/naive/losses.py": {
        '"huber", "quantile")': '"huber", "quantile", "log_cosh")',
        '            "squared_error": r**2 / 2.0,': (
            '            "squared_error": r**2 / 2.0,\n            "log_cosh": np.log(np.cosh(r)),'
        ),
        '            "squared_error": r,': (
            '            "squared_error": r,\n            "log_cosh": np.tanh(r),'
        ),
    },
}

KERNEL = {
    f"{PACKAGE}/core/kernel.py": {
        "ADD, MULTIPLY, SCALE = range(7, 10)": "ADD, MULTIPLY, SCALE, CAUCHY = range(7, 11)",
        "        elif code == LINEAR:\n": (
            "        elif code == CAUCHY:\n            top += 1\n            for j in range(n):\n"
            "                stack[top, j] = 1.0 / (1.0 + number * work[SQUARES, j])\n"
            "        elif code == LINEAR:\n"
        ),
    },
    f"{PACKAGE}/kernels.py": {
        "@dataclass(frozen=True)\nclass Polynomial(": (
            "@dataclass(frozen=True)\nclass Cauchy(_Radial):\n"
            "\n    _code = core.CAUCHY\n\n\n@dataclass(frozen=True)\nclass Polynomial("
        ),
        '    "linear": Linear,\n': '    "linear": Linear,\n    "cauchy": Cauchy,\n',
    },
    "tests/naive/kernels.py": {
        "def linear():": (
            "def cauchy(gamma):\n"
            "    return lambda x, z: 1.0 / (1.0 + gamma * float(np.sum((x - z) ** 2)))\n\n\n"
            "def linear():"
        ),
    },
}

#: From f = 0 the step of the squared error, whose slope is f - y, tells how long steps are.
USE_LOSS = """
import numpy as np
from kernelstream import POLKRegressor, load
from kernelstream.losses import Loss
from tests.naive.losses import derivative

X, y = np.array([[0.3, -0.7]]), np.array([1.9])
model = POLKRegressor("log_cosh", gamma=0.5).partial_fit(X, y)
known = POLKRegressor("squared_error", gamma=0.5).partial_fit(X, y)
slope = derivative("log_cosh", 0.0, [0.0], y[0])
assert np.allclose(model.predict(X), known.predict(X) * slope / -y, rtol=1e-12), model.predict(X)
assert Loss("log_cosh").curvature == 1.0
"""

USE_KERNEL = """
import numpy as np
from kernelstream import POLKRegressor, load
from tests.naive.kernels import cauchy, matrix

X, y, Z = np.array([[0.3, -0.7]]), np.array([1.9]), np.array([[1.0, 2.0], [-0.5, 0.1]])
model = POLKRegressor(kernel="cauchy", gamma=0.5).partial_fit(X, y)
expected = matrix(cauchy(0.5), Z, X)[:, 0] * model.predict(X)  # f = w k(x, .), and k(x, x) = 1
assert np.allclose(model.predict(Z), expected, rtol=1e-12), model.predict(Z)
assert model.predict(X) != 0.0
"""

SAVE_AND_LOAD = """
model.save("model.ks")
again = load("model.ks")
assert again.fingerprint() == model.fingerprint()
assert again.get_params() == model.get_params()
assert np.array_equal(again.predict(X), model.predict(X))
"""


def listed_files(part):
    """The files that CONTRIBUTING.md tells to touch for a part."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (entry,) = re.findall(rf"^\*\*{part}\*\*:(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    names = re.findall(r"`([\w/]+\.py)`", entry)
    return {name if name.startswith("tests/") else f"{PACKAGE}/{name}" for name in names}


PARTS = {"a loss": LOSS, "a kernel": KERNEL}


def test_adding_a_part_touches_three_files(tmp_path):
    for folder in (PACKAGE, "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=lambda *_: ["__pycache__"])
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for part, changes in PARTS.items():
        assert len(changes) <= 3
        assert listed_files(part) == set(changes)
        for file, replacements in changes.items():
            path = tmp_path / file
            text = path.read_text()
            for old, new in replacements.items():
                assert text.count(old) == 1, f"{file}: {old!r}"
                text = text.replace(old, new)
            path.write_text(text)
    assert not LOSS.keys() & KERNEL.keys()  # each could be added alone

    def run(*arguments):
        path = os.pathsep.join(map(str, (tmp_path / "src", tmp_path)))
        environment = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-c", USE_LOSS + SAVE_AND_LOAD + USE_KERNEL + SAVE_AND_LOAD)
    # The tests of all losses and kernels take them from the tables, too.
    files = ("tests/core/test_loss.py", "tests/core/test_kernel.py")
    said = run("-m", "pytest", "-v", "-n", "0", *files, "-k", "(log_cosh or cauchy) and twin")
    for file, name in zip(files, ("log_cosh", "cauchy"), strict=True):
        assert re.search(rf"{file}::.*{name}.* PASSED", said), said
