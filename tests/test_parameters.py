"""A parameter is declared once; everything else follows."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import kernelstream
from kernelstream import features, registry
from kernelstream.docstrings import documented, split
from kernelstream.kernels import Gaussian, Kernel
from kernelstream.parameters import (
    Flag,
    Instance,
    Nothing,
    Number,
    Parameters,
    RandomState,
    Whole,
    Words,
    parameters_of,
)

Size = Annotated[float | Literal["auto"], Number(above=0.0), "How ``large``.", "And more."]


class Base(Parameters, BaseEstimator):
    """What the models share.

    Notes
    -----
    Said once.

    Examples
    --------
    Not of the others.
    """

    size: Size = "auto"
    steps: Annotated[int, Whole(1, 9), "How many."] = 3
    hidden_: Annotated[int, "(n,): what was learned."] = field(init=False)
    _private: int = field(init=False, default=7)
    _forgotten: int = 8  # without field(init=False) no parameter either

    @property
    def count_(self) -> int:
        """How many there are."""
        return 1


class Model(Base):
    """A model.

    See Also
    --------
    Base : its base.

    Examples
    --------
    >>> 1 + 1
    2
    """

    kind: Annotated[str | Kernel, Words("a", "b"), "Which."] = field(default="a", kw_only=False)
    flag: Annotated[bool | None, "Whether."] = None
    steps: Annotated[int, Whole(2), "How many, here."] = 4
    random_state: Annotated[Any, RandomState(), "Seed."] = None

    count_ = documented(Base.count_, "Another text.")


class Fixed(Model):
    """One whose steps are given."""

    steps: ClassVar[int] = 5
    _unlisted = ("hidden_",)


# What is accepted

CASES = {
    "above": (Number(above=0.0), [1e-300, 1, np.float32(2), np.int64(3)], [0.0, -1, "1", None]),
    "numbers are finite": (Number(), [0.0, -1e300], [np.nan, np.inf, -np.inf, 10**400, 1j]),
    "truth values are no numbers": (Number(least=0.0), [0, 1], [True, False, np.True_]),
    "interval": (Number(least=0.0, below=1.0), [0.0, 0.999], [-1e-9, 1.0]),
    "other interval": (Number(above=0.0, most=1.0), [1.0, 1e-9], [0.0, 1.1]),
    "whole": (Whole(1, 64), [1, 64, np.int8(7)], [0, 65, 2.0, np.float64(3.0), True]),
    "words": (Words("a", "b"), ["a", np.str_("b")], ["c", "", None, ["a"], np.array(["a", "b"])]),
    "flag": (Flag(), [True, np.False_], [0, 1, None, "true"]),
    "nothing": (Nothing(), [None], [0, "", False, np.nan]),
    "instance": (Instance(Kernel), [Gaussian(1.0)], [Gaussian, "rbf", None]),
    "seed": (RandomState(), [None, 0, 2**32 - 1, np.random.RandomState(0)],
             [-1, 2**32, 1.0, "x", np.random.default_rng(0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_accepted(name):
    constraint, good, bad = CASES[name]
    assert [value for value in good if not constraint.accepts(value)] == []
    assert [value for value in bad if constraint.accepts(value)] == []


@pytest.mark.parametrize(
    ("constraint", "words", "kind"),
    [
        (Number(), "a number", "float"),
        (Number(above=0.0), "a number above 0", "float > 0"),
        (Number(most=2.5), "a number at most 2.5", "float <= 2.5"),
        (Number(least=0.0, below=1.0), "a number of at least 0 and below 1", "float in [0, 1)"),
        (Whole(1), "a whole number of at least 1", "int >= 1"),
        (Whole(1, 64), "a whole number of at least 1 and at most 64", "int in [1, 64]"),
        (Words("a", "b"), "one of 'a', 'b'", '{"a", "b"}'),
        (Words("a"), "'a'", '"a"'),
        (Words(*"abcde"), "one of 'a', 'b', 'c', 'd', 'e'", "str"),
        (Flag(), "True or False", "bool"),
        (Instance(Kernel), "a Kernel", "Kernel"),
    ],
)
def test_constraints_in_words(constraint, words, kind):
    assert (constraint.words, constraint.kind) == (words, kind)


# The class that follows


def test_the_constructor_follows_from_the_fields():
    signature = inspect.signature(Model)
    assert list(signature.parameters) == ["kind", "flag", "random_state", "size", "steps"]
    assert signature.parameters["kind"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert signature.parameters["size"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "Annotated" not in str(signature)
    model = Model("b", steps=5)
    assert model.get_params() == {
        "kind": "b", "flag": None, "random_state": None, "size": "auto", "steps": 5,
    }  # fmt: skip
    assert clone(model).get_params() == model.get_params()
    for wrong in ({"stepps": 1}, {"_private": 1}, {"_forgotten": 1}, {"hidden_": 1}):
        with pytest.raises(TypeError, match="unexpected keyword"):
            Model(**wrong)


def test_what_is_learned_is_absent_until_then():
    model = Model()
    assert not hasattr(model, "hidden_")
    assert (model._private, model._forgotten) == (7, 8)
    assert not set(vars(model)) - set(model.get_params())


def test_a_class_variable_takes_a_parameter_away():
    assert "steps" not in parameters_of(Fixed)
    assert Fixed().steps == 5
    with pytest.raises(TypeError, match="steps"):
        Fixed(steps=3)


def test_a_field_without_a_text_is_refused():
    with pytest.raises(TypeError, match=r"Wordless.x is no parameter: declare it as Annotated"):

        class Wordless(Parameters):
            x: int = 3


def test_which_numbers_must_be_declared():
    with pytest.raises(TypeError, match="does not say which of them"):

        class Vague(Parameters):
            x: Annotated[float | None, "Something."] = 3.0


def test_a_subclass_may_have_a_constructor_of_its_own():
    class Own(Model):
        """Made in another way."""

        def __init__(self, size="auto"):
            super().__init__("b", size=size)

    assert list(inspect.signature(Own).parameters) == ["size"]
    assert clone(Own(2.0)).get_params() == {"size": 2.0}
    assert Own().kind == "b"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": -1.0}, "Model: size must be a number above 0 or 'auto'; got -1.0"),
        ({"kind": "c"}, "Model: kind must be one of 'a', 'b' or a Kernel; got 'c'"),
        ({"flag": 1}, "Model: flag must be True or False or None; got 1"),
        ({"steps": 1}, "Model: steps must be a whole number of at least 2; got 1"),
        ({"steps": 1 << 20_000}, "got a number of 20001 bits"),
        ({"size": np.eye(9)}, "got array(["),
        ({"random_state": "x"}, "a RandomState or None; got 'x'"),
    ],
)
def test_errors_name_parameter_value_and_what_is_accepted(parameters, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        Model(**parameters)._check_values()
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 250
    Model()._check_values()


def test_the_docstring_is_complete():
    summary, sections = split(Model.__doc__)
    assert summary == "A model."
    assert list(sections) == ["Parameters", "Attributes", "See Also", "Notes", "Examples"]
    assert (
        'size : float > 0 or "auto", default="auto"\n    How ``large``. And more.' in Model.__doc__
    )
    assert "steps : int >= 2, default=4\n    How many, here." in Model.__doc__
    assert "hidden_ : (n,) int\n    What was learned." in Model.__doc__
    assert "count_ : int\n    Another text." in Model.__doc__
    assert sections["Notes"] == "Said once."
    assert "Not of the others" not in Model.__doc__
    assert "_private" not in Model.__doc__
    assert "hidden_" not in Fixed.__doc__


def test_functions_are_parameters_too():
    class Called(Parameters):
        """Has a function."""

        f: Annotated[Callable[..., Any], "What is called."] = field(kw_only=False)

    assert parameters_of(Called)["f"].accepts(len)
    assert not parameters_of(Called)["f"].accepts(3)
    with pytest.raises(TypeError, match="missing"):
        Called()


# The estimators

ESTIMATORS = {
    *(kind for method in registry.methods().values() for kind in method.estimators),
    kernelstream.CompositionalLearner,
    kernelstream.KernelPolicyEvaluation,
    features.OnlineKernelFeatures,
    features.KernelFeatures,
}


@pytest.mark.parametrize("kind", sorted(ESTIMATORS, key=lambda kind: kind.__name__))
def test_estimators_explain_everything(kind):
    _, sections = split(kind.__doc__)
    assert {"Parameters", "Attributes", "Notes", "References", "Examples"} <= set(sections)
    for name, parameter in parameters_of(kind).items():
        assert f"\n{name} : " in "\n" + sections["Parameters"]
        assert parameter.summary[-1] in ".)", name
        assert ":class:" not in parameter.summary, "the command line shows it as it is"
        if parameter.default is not inspect.Parameter.empty and name not in (
            "inner", "inner_derivative", "outer_derivative",
        ):  # fmt: skip
            assert parameter.accepts(parameter.default), name


def test_every_field_that_a_fitted_model_shows_is_in_its_docstring():
    X, y = kernelstream.make_multidist(100, random_state=0)
    model = kernelstream.AVMClassifier().partial_fit(X, y)
    shown = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    listed = split(type(model).__doc__)[1]["Attributes"]
    assert {"delta_", "classes_", "n_cells_", "nbytes_"} <= shown
    assert [name for name in shown if f"\n{name} : " not in "\n" + listed] == []


CHECKED = """
from kernelstream import POLKClassifier, POLKRegressor
from kernelstream.features import OnlineKernelFeatures
POLKClassifier("log_loss", alpha=1e-3, gamma="scale", max_points=None, average=True)
OnlineKernelFeatures(8, max_points=24)
POLKClassifier(alpha="x")
POLKClassifier(alhpa=1)
POLKRegressor(gamma="widest")
POLKRegressor("huber", "rbf")
POLKRegressor(_plan=None)
"""


@pytest.mark.slow
def test_type_checkers_understand_the_constructors(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "used.py").write_text(CHECKED)
    # Of what has no types only the classes that ours derive from are looked at.
    settings = (
        "[mypy]\nignore_missing_imports = true\n[mypy-sklearn.*]\nfollow_untyped_imports = true\n"
    )
    (tmp_path / "mypy.ini").write_text(settings)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "used.py"], cwd=tmp_path, capture_output=True, text=True
    )
    said = [line for line in run.stdout.splitlines() if line.startswith("used.py")]
    assert [int(line.split(":")[1]) for line in said] == [6, 7, 8, 9, 10], run.stdout + run.stderr
    assert '"alpha" to "POLKClassifier" has incompatible type "str"; expected "float"' in said[0]
    assert 'Unexpected keyword argument "alhpa"' in said[1]
    assert "Too many positional arguments" in said[3]
