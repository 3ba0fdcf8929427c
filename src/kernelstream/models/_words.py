"""What warnings, the command line and reports say about a model; a method adds its own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

#: The end of every note about a cap.
CAP_COSTS = "What that costs depends on the stream: a run with a larger cap shows it"


class InWords:
    """Notes about an estimator: a method that differs overrides them."""

    n_forced_: Any

    #: Why its points cannot be replaced by others; nothing where they can.
    _needs_its_points: ClassVar[str] = ""
    #: Parameters that make a smaller model instead.
    _smaller_with: ClassVar[tuple[tuple[str, str], ...]] = (("a smaller", "max_points"),)

    def _smaller(self, written: Callable[[str], str] = str) -> str:
        """What makes a smaller model, given how a parameter is written."""
        return " or ".join(f"{word} {written(name)}" for word, name in self._smaller_with)

    def _facts(self) -> dict[str, Any]:
        """What its method alone has: names and values."""
        return {}

    def _facts_in_words(self) -> dict[str, str]:
        """The same for people, and more; what is not known yet is left out."""
        return {}

    def _what_it_did(self, importances: Mapping[str, float]) -> str:
        """A sentence for people, given what raw columns matter; nothing where there is none."""
        return ""

    def _forced_facts(self) -> dict[str, int]:
        """What a cap on points or bytes forced."""
        return {"forced_removals": self.n_forced_}

    def _cap_effect(self, cap: str) -> str:
        """What a cap did, given how it is written."""
        return (
            f"{cap} made room {count_of(self.n_forced_, 'time')} by removing a point that the "
            f"error budget would have kept. {CAP_COSTS}"
        )

    def _approximation(self) -> tuple[str, str]:
        """What ``error_spent_`` is, in a heading and a sentence or two."""
        forced = self.n_forced_
        removals = f"; {count_of(forced, 'removal')} beyond the budget, forced by a cap, included"
        return "Error budget", (
            "Points are removed only while the function moves less than the budget allows. This is "
            "how far it moved, in the norm of the function space, summed over all steps"
            f"{removals if forced else ''}."
        )


def cap_note(model: Any, written: Callable[[str, int], str] = "{}={}".format) -> str:
    """What the cap did so far; nothing where it was not reached.

    What that costs is not known: a run with a larger cap shows it, and often it is hardly
    better.

    Parameters
    ----------
    model : fitted estimator of this package
    written : callable
        How a parameter and its value are written.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import POLKRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> print(cap_note(POLKRegressor(max_points=5, compression_error=0.0).partial_fit(X, X[:, 0])))
    max_points=5 made room 14 times by removing a point that the error budget would have kept. \
What that costs depends on the stream: a run with a larger cap shows it
    """
    if not model.n_forced_ or not hasattr(model, "max_bytes"):  # not features: they discard by rule
        return ""
    cap, value = "max_bytes", model.max_bytes
    most = None if model.max_points is None else model.max_points + model.batch_size + model.slack
    if value is None or most == model._capacity_limit(model.n_features_in_):
        cap, value = "max_points", model.max_points
    return model._cap_effect(written(cap, value))  # type: ignore[no-any-return]


def count_of(count: int, what: str) -> str:
    """'1,000 samples'"""
    return f"{count:,} {what}{'s' if count > 1 else ''}"
