"""Units that move or stay, and texts with inputs of their own or hashed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import folder
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import CapWarning, Run
from kernelstream.categories import HashedTexts
from kernelstream.streams import load_dataset

UNITS = ("frozen", "moving")
MODELS = ("polk", "avm", "auto")
#: How texts become inputs: "hashed" as in version 0.1, else how many inputs there are.
TEXTS = ("hashed", 32, 64, 128, 256)


def units() -> None:
    """elec2 with its date, in units that move and in such that are frozen."""
    place = folder()
    if place is None:
        print("elec2 is not there: name its folder in KERNELSTREAM_DATA")
        return
    data = load_dataset("elec2", place)
    n = int(share() * len(data.y_train))
    rows = data.X_train[:n], data.y_train[:n]

    def lines() -> Iterator[list[Any]]:
        for model in MODELS:
            found = (
                _mistakes(rows, "target", model, units=units) for units in ("frozen", "moving")
            )
            yield [model, *found]

    show(
        f"elec2 with its date, {n:,} rows, default settings: mistakes in %, each row predicted "
        "before it was learned from",
        ("model", "frozen units", "moving units"),
        lines(),
    )


def categories() -> None:
    """A class that depends on texts with few and with many values."""
    n = int(share() * 20_000)
    table = _texts(n)

    def lines() -> Iterator[list[Any]]:
        for model in MODELS:
            yield [model, *(_mistakes(table, "label", model, texts=texts) for texts in TEXTS)]

    show(
        f"Texts with 5, 12, 30 and 1000 values and two numbers, {n:,} rows, default settings: "
        "mistakes in %",
        ("model", "256 inputs, hashed", *(f"{count} inputs" for count in TEXTS[1:])),
        lines(),
    )


def _mistakes(rows: Any, target: str, model: str, texts: Any = 128, **settings: Any) -> float:
    buckets = 256 if texts == "hashed" else texts
    run = Run(rows, target, model, task="classification", buckets=buckets, **settings)
    if texts == "hashed":
        run.model.preparation._categories = HashedTexts(buckets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)
        for _ in run:
            pass
    return 100.0 * (1.0 - run.result().metrics["accuracy"])


def _texts(n: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    table, score = {}, random.normal(size=(2, n))
    total = score.sum(axis=0)
    for size, often in ((5, 0.5), (12, 0.5), (30, 0.5), (1000, 1.2)):  # frequencies fall off
        chances = np.arange(1.0, size + 1.0) ** -often
        codes = random.choice(size, n, p=chances / chances.sum())
        table[f"of {size}"] = np.array([f"v{code}" for code in range(size)])[codes]
        total += random.normal(size=size)[codes]
    table |= {"x": score[0], "y": score[1]}
    return pd.DataFrame({**table, "label": np.where(total > 0.0, "yes", "no")})
