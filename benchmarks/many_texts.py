"""Hundreds of texts in a column: how many inputs they should have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import folder
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import StreamModel
from kernelstream.streams import load_dataset

#: Inputs of all texts; None: as the first rows ask for.
INPUTS = (128, 256, 512, None)
SEEDS = range(5)


def main() -> None:
    """The automatic model on generated streams and on real ones, which have fewer texts."""
    n = int(share() * 8000)

    def lines() -> Iterator[list[Any]]:
        for make in (_towns, _codes, _orders, _users, _cells, _connections):
            tables = [make(n, np.random.default_rng(seed)) for seed in SEEDS]
            streams = [rows for rows in tables if rows is not None]
            if streams:
                texts = round(np.mean([_texts(rows) for rows in streams]))
                found = np.array([[_error(rows, k) for k in INPUTS] for rows in streams])
                ratio = found[:, 1] / found[:, 0]
                worst = f"{ratio.min():.3f} to {ratio.max():.3f}"
                yield [make.__name__[1:], texts, *found.mean(axis=0).tolist(), worst]

    show(
        f"Streams with many texts, {n:,} rows, automatic model: mistakes in %, or root mean "
        "squared error in deviations of the target; the first quarter is not counted; "
        "means of five seeds",
        (
            "stream",
            "texts",
            *(f"{inputs} inputs" for inputs in INPUTS[:-1]),
            "default",
            "256 / 128, from seed to seed",
        ),
        lines(),
    )


def _error(rows: pd.DataFrame, inputs: int | None) -> float:
    model = StreamModel.for_rows(rows, "target", buckets=inputs)
    predicted, true = (found[len(rows) // 4 :] for found in model.predict_then_learn(rows))
    if model.task == "classification":
        return 100.0 * float(np.mean(predicted != true))
    return float(np.sqrt(np.mean((predicted - true) ** 2)) / np.std(true))


def _texts(rows: pd.DataFrame) -> int:
    texts = rows.drop(columns="target").select_dtypes(exclude="number")
    return int(texts.nunique().sum())


def _named(name: str, codes: Any) -> list[str]:
    return [f"{name}{code}" for code in codes]


def _towns(n: int, random: np.random.Generator) -> pd.DataFrame:
    """400 towns, few of them large, each with a level of its own; numbers."""
    chances = np.arange(1.0, 401.0) ** -0.8
    town = random.choice(400, n, p=chances / chances.sum())
    a, b = random.normal(size=(2, n))
    target = 2.0 * random.normal(size=400)[town] + a * b + 0.3 * random.normal(size=n)
    return pd.DataFrame({"town": _named("t", town), "a": a, "b": b, "target": target})


def _codes(n: int, random: np.random.Generator) -> pd.DataFrame:
    """300 codes, each of one of three classes; a part of them changes halfway."""
    code, x = random.integers(300, size=n), random.normal(size=n)
    late = np.arange(n) > n // 2
    label = (random.integers(3, size=300)[code] + (x > 0.5) + late * (code % 2)) % 3
    return pd.DataFrame({"code": _named("c", code), "x": x, "target": _named("", label)})


def _orders(n: int, random: np.random.Generator) -> pd.DataFrame:
    """600 products in 12 groups and 16 regions; what is paid."""
    product = random.choice(600, n, p=random.dirichlet(np.full(600, 0.5)))
    region, price = random.integers(16, size=n), random.gamma(2.0, 1.0, n)
    value = random.normal(size=600) + np.repeat(random.normal(size=12), 50)
    target = value[product] * price + np.sin(region) + 0.5 * random.normal(size=n)
    texts = {"product": _named("p", product), "group": _named("g", product // 50)}
    return pd.DataFrame({**texts, "region": _named("r", region), "price": price, "target": target})


def _users(n: int, random: np.random.Generator) -> pd.DataFrame:
    """1000 users, few of them busy, and 20 items: who buys what is a product of tastes."""
    chances = 1.0 / np.arange(1.0, 1001.0)
    user, item = random.choice(1000, n, p=chances / chances.sum()), random.integers(20, size=n)
    x = random.normal(size=n)
    taste = random.normal(size=(1000, 3))[user] * random.normal(size=(20, 3))[item]
    target = np.where(taste.sum(axis=1) + x > 0.0, "buys", "leaves")
    return pd.DataFrame({"user": _named("u", user), "item": _named("i", item), "x": x,
                         "target": target})  # fmt: skip


def _cells(n: int, random: np.random.Generator) -> pd.DataFrame | None:
    """California housing, with quarters of a degree in place of latitude and longitude."""
    place = folder()
    if place is None:
        return None
    data = load_dataset("cadata", place)
    chosen = random.permutation(len(data.y_train))[:n]
    X = data.X_train[chosen]
    cells = np.floor(4.0 * X[:, -2:]).astype(int)
    columns = {f"x{j}": X[:, j].astype(float) for j in range(X.shape[1] - 2)}
    cell = [f"{north} {east}" for north, east in cells.tolist()]
    return pd.DataFrame({**columns, "cell": cell, "target": data.y_train[chosen].astype(float)})


def _connections(n: int, random: np.random.Generator) -> pd.DataFrame | None:
    """KDD 99: three columns of texts and 38 of numbers."""
    place = folder()
    if place is None:
        return None
    with np.load(place / "kddcup99_10pct.npz") as held:
        chosen = np.sort(random.choice(len(held["y"]), n, replace=False))
        X, y = held["X"][chosen], held["y_names"][held["y"][chosen]]
        columns: dict[str, Any] = {f"x{j}": X[:, j].astype(float) for j in range(X.shape[1])}
        for j, name in zip(held["cat_cols"], ("protocol", "service", "flag"), strict=True):
            columns[f"x{j}"] = held[f"vocab_{name}"][X[:, j].astype(int)]
    return pd.DataFrame({**columns, "target": y})
