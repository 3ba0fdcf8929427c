"""Parameters that are declared once: what they accept, what they are for, their default.

A class that inherits from :class:`Parameters` declares each parameter as a field:

    alpha: Annotated[float, Number(least=0.0), "Regularisation.", "Less for more data."] = 1e-6

Constructor, validation, docstring and the options of the command line follow from it. The first
text is what the command line says, too; those after it stand in the docstring only. Beside what it
accepts may stand what is worth trying (:mod:`kernelstream.search`).
"""

from __future__ import annotations

import inspect
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from numbers import Integral, Real
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import numpy as np

from kernelstream import docstrings, renamed
from kernelstream.search import Candidates

# ---- what a parameter accepts -----------------------------------------------------------


class Constraint:
    """A kind of values.

    ``words`` say for errors what is accepted, ``kind`` for docstrings. On a command line
    ``options`` may be typed, or what ``typed`` says: an attribute of classes whose objects can be.
    """

    words = ""
    kind = ""
    options: tuple[str, ...] = ()
    typed = ""
    needed = ""  # what all accepted values have

    def accepts(self, value: Any) -> bool:
        """Whether this is such a value."""
        raise NotImplementedError


class Number(Constraint):
    """A finite number in an interval.

    >>> Number(above=0.0, most=1.0).words, Number(least=0.0).kind
    ('a number above 0 and at most 1', 'float >= 0')
    """

    _type: Any = Real
    _names = "a number", "float"

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        *,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        self._bounds = least, above, most, below
        noun, name = self._names
        bounds = [
            f"{word} {bound:.10g}"
            for word, bound in zip(
                ("of at least", "above", "at most", "below"), self._bounds, strict=True
            )
            if bound is not None
        ]
        self.words = self.typed = f"{noun} {' and '.join(bounds)}".strip()
        low, high = least if above is None else above, most if below is None else below
        if low is not None and high is not None:
            opening, closing = "[" if above is None else "(", "]" if below is None else ")"
            self.kind = f"{name} in {opening}{low:.10g}, {high:.10g}{closing}"
        else:
            signs = zip((">=", ">", "<=", "<"), self._bounds, strict=True)
            self.kind = " ".join([name, *(f"{s} {b:.10g}" for s, b in signs if b is not None)])

    def accepts(self, value: Any) -> bool:
        """Whether it is a number in the interval; truth values are none."""
        if not isinstance(value, self._type) or isinstance(value, bool | np.bool_):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            return False
        compared = zip(
            (operator.ge, operator.gt, operator.le, operator.lt), self._bounds, strict=True
        )
        return math.isfinite(number) and all(
            compare(number, bound) for compare, bound in compared if bound is not None
        )


class Whole(Number):
    """A whole number in an interval.

    >>> Whole(1, 64).words
    'a whole number of at least 1 and at most 64'
    """

    _type = Integral
    _names = "a whole number", "int"


class Words(Constraint):
    """One of some words, and what these have that others lack.

    >>> Words("auto", "scale").words
    "one of 'auto', 'scale'"
    """

    def __init__(self, *options: str, needed: str = "") -> None:
        self.options = options
        self.needed = needed
        lead = f"{needed}: one of " if needed else "one of "
        quoted = ", ".join(map(repr, options))
        self.words = f"{lead}{quoted}" if len(options) > 1 else quoted
        quoted = ", ".join(f'"{word}"' for word in options)
        self.kind = f"{{{quoted}}}" if len(options) > 1 else quoted
        if len(options) > 4:  # the text says which they are
            self.kind = "str"

    def accepts(self, value: Any) -> bool:
        """Whether it is one of the words."""
        return isinstance(value, str) and value in self.options


class Flag(Constraint):
    """True or False."""

    words = "True or False"
    kind = "bool"
    options = ("true", "false")

    def accepts(self, value: Any) -> bool:
        """Whether it is a truth value."""
        return isinstance(value, bool | np.bool_)


class Nothing(Constraint):
    """None."""

    words = kind = "None"
    options = ("none",)

    def accepts(self, value: Any) -> bool:
        """Whether it is None."""
        return value is None


class Instance(Constraint):
    """An object of a class; ``words`` and ``kind`` where its name says too little."""

    def __init__(self, *classes: Any, words: str = "", kind: str = "") -> None:
        self._classes = classes
        names = [each.__name__ for each in classes]
        self.words = words or _alternatives([f"a {name}" for name in names])
        self.kind = kind or _alternatives(names)
        self.typed = getattr(classes[0], "typed", "")

    def accepts(self, value: Any) -> bool:
        """Whether it is such an object."""
        return isinstance(value, self._classes)


class RandomState(Constraint):
    """A seed, a generator, or None: random numbers that nobody can repeat."""

    words = "a whole number from 0 to 4294967295, a RandomState or None"
    kind = "int, RandomState or None"
    typed = "a whole number"

    def accepts(self, value: Any) -> bool:
        """Whether scikit-learn would take it."""
        generator = value is None or isinstance(value, np.random.RandomState)
        return generator or Whole(0, 2**32 - 1).accepts(value)


def _constraints(annotation: Any) -> Iterable[Constraint]:
    """What a type accepts. Numbers and texts are described by constraints of their own, in order.

    >>> for part in _constraints(Annotated[float | Literal["auto"] | None, Number(above=0.0)]):
    ...     print(part.words)
    a number above 0
    'auto'
    None
    """
    described = [part for part in annotation.__metadata__ if not isinstance(part, str | Candidates)]
    given = annotation.__origin__
    for part in get_args(given) if get_origin(given) in (Union, types.UnionType) else (given,):
        if part is types.NoneType:
            yield Nothing()
        elif part is bool:
            yield Flag()
        elif get_origin(part) is Literal:
            yield Words(*get_args(part))
        elif get_origin(part) is Callable:
            yield Instance(Callable, words="a function", kind="callable")
        elif part is Any:
            yield from described
        elif part in (float, int, str):
            if not described:
                raise TypeError(f"{annotation} does not say which of them: Number(), Words(...)")
            yield described.pop(0)
        else:
            yield Instance(get_origin(part) or part)


# ---- a parameter ------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """One parameter of a class."""

    name: str
    type: Any
    constraints: tuple[Constraint, ...]
    summary: str  # for the command line and the docstring
    details: str  # for the docstring alone
    default: Any = MISSING
    positional: bool = False
    candidates: Candidates | None = None  # what a search tries

    @property
    def accepted(self) -> str:
        """All that it accepts, in words."""
        return _alternatives([constraint.words for constraint in self.constraints])

    def accepts(self, value: Any) -> bool:
        """Whether any of the constraints accepts the value."""
        return any(constraint.accepts(value) for constraint in self.constraints)

    @property
    def entry(self) -> str:
        """Its part of a docstring."""
        kind = _alternatives([constraint.kind for constraint in self.constraints])
        default = self.default
        if default is not MISSING:
            shown = f'"{default}"' if isinstance(default, str) else repr(default)
            kind = f"{kind}, default={shown}"
        return docstrings.entry(self.name, kind, f"{self.summary} {self.details}")

    @property
    def in_signature(self) -> inspect.Parameter:
        """Its part of the constructor's signature."""
        kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = inspect.Parameter.empty if self.default is MISSING else self.default
        return inspect.Parameter(
            self.name, kinds[self.positional], default=default, annotation=self.type
        )


def _alternatives(texts: list[str]) -> str:
    """'a, b or c'"""
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _shown(value: Any) -> str:
    """A value in one line, however large it is."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return f"a number of {value.bit_length()} bits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def _is_parameter(name: str) -> bool:
    return not name.startswith("_") and not name.endswith("_")


#: Sections of a docstring that a class has from its bases.
_SHARED = ("Notes", "References")


# ---- classes that have parameters -------------------------------------------------------


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Parameters:
    """Base of classes whose parameters are their fields.

    A subclass becomes a dataclass; names that begin or end with an underscore are never parameters.
    What is learned is declared with ``field(init=False)``, or is a property whose name ends in an
    underscore: both make the docstring's section on attributes. Notes and references are written
    once, in a base class, for all estimators of a method.
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {}
    _declared: ClassVar[Mapping[str, Any]] = {}  # annotations of parameters and learned attributes
    _sections: ClassVar[Mapping[str, str]] = {}  # of the docstring, as written
    _unlisted: ClassVar[tuple[str, ...]] = ()  # attributes of a base that say nothing here

    def __new__(cls, *given: Any, **named: Any) -> Self:
        renamed.refuse_old_names(cls.__name__, cls._parameters, named)
        return super().__new__(cls)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        written, constructor = cls.__dict__.get("__doc__"), cls.__dict__.get("__init__")
        for name in own_annotations(cls):
            given = cls.__dict__.get(name, MISSING)
            if not _is_parameter(name) and not isinstance(given, Field):
                setattr(cls, name, field(init=False, default=given))
        dataclass(kw_only=True, repr=False, eq=False)(cls)
        bases = [base for base in reversed(cls.__mro__[1:]) if issubclass(base, Parameters)]
        cls._declared = {
            name: annotation
            for base in (*bases, cls)
            for name, annotation in (base._declared if base is not cls else _evaluated(cls)).items()
        }
        found = {each.name: _parameter(cls, each) for each in fields(cls) if each.init}  # type: ignore[arg-type]
        cls._parameters = {name: found[name] for name in _in_order(cls, found)}
        shown = [parameter.in_signature for parameter in cls._parameters.values()]
        if constructor is not None:  # a subclass that somebody wrote in the usual way
            shown = list(inspect.signature(constructor).parameters.values())[1:]
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        if written is not None:
            summary, own = docstrings.split(written)
            inherited = {k: v for base in bases for k, v in base._sections.items() if k in _SHARED}
            cls._sections = {**inherited, **own}
            entries = {
                "Parameters": [parameter.entry for parameter in cls._parameters.values()],
                "Attributes": docstrings.attribute_entries(cls, cls._declared, cls._unlisted),
            }
            made = {title: "\n".join(lines) for title, lines in entries.items() if lines}
            cls.__doc__ = docstrings.join(summary, {**cls._sections, **made})

    def _check_values(self) -> None:
        """Refuse values that the declarations do not accept."""
        for name, parameter in self._parameters.items():
            value = getattr(self, name)
            if not parameter.accepts(value):
                raise ValueError(
                    f"{type(self).__name__}: {name} must be {parameter.accepted}; got "
                    f"{_shown(value)}{renamed.hint(name)}"
                )


def parameters_of(kind: type[Any]) -> Mapping[str, Parameter]:
    """The parameters of a class that declares them, by name."""
    return kind._parameters  # type: ignore[no-any-return]


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations of a class without those of its bases; class variables are left out."""
    own = inspect.get_annotations(cls)
    return {
        name: annotation
        for name, annotation in own.items()
        if "ClassVar" not in str(annotation).partition("[")[0]
    }


def _evaluated(cls: type) -> dict[str, Any]:
    """Annotations of the parameters and learned attributes that a class declares itself."""
    names = vars(sys.modules[cls.__module__])
    return {
        name: eval(annotation, names) if isinstance(annotation, str) else annotation
        for name, annotation in own_annotations(cls).items()
        if not name.startswith("_")
    }


def _parameter(cls: type[Parameters], each: Field[Any]) -> Parameter:
    annotation = cls._declared[each.name]
    if get_origin(annotation) is not Annotated:
        raise TypeError(
            f"{cls.__name__}.{each.name} is no parameter: declare it as Annotated[type, ..., "
            "'what it is for']"
        )
    texts = [" ".join(part.split()) for part in annotation.__metadata__ if isinstance(part, str)]
    tried = [part for part in annotation.__metadata__ if isinstance(part, Candidates)]
    return Parameter(
        name=each.name,
        type=annotation.__origin__,
        constraints=tuple(_constraints(annotation)),
        summary=texts[0],
        details=" ".join(texts[1:]),
        default=each.default,
        positional=not each.kw_only,
        candidates=tried[-1] if tried else None,
    )


def _in_order(cls: type, found: Mapping[str, Parameter]) -> list[str]:
    """A method's own parameters, then those of its bases; positional ones before all others.

    A class that only gives another default or text to a parameter leaves it where it was.
    """
    order: list[str] = []
    for base in reversed(cls.__mro__):
        declared = [name for name in own_annotations(base) if name in found]
        order = [name for name in declared if name not in order] + order
    return sorted(order, key=lambda name: not found[name].positional)
