"""Texts: inputs of their own for values that come again, bounded whatever comes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.categories import NAMING, SHOWN, Categories
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text
from tests.test_preparation import in_pieces, reload, same


def texts(**columns):
    """A batch; None is a missing text."""
    made = {}
    for name, column in columns.items():
        values = sorted({value for value in column if value is not None})
        codes = [-1 if value is None else values.index(value) for value in column]
        made[name] = Text(np.array(codes, np.int32), values)
    return Batch(made, lines=np.arange(len(next(iter(made.values())))))


def features(preparation, batch, learn=True):
    """Name of the input of each row's text."""
    X = preparation.transform(batch, learn=learn)
    assert X.data.tolist() == [1.0] * len(batch)
    names = preparation.feature_names_out
    return [names[place] for place in X.indices]


def test_a_value_gets_an_input_when_it_comes_for_the_third_time():
    preparation = Preparation({"c": "text"}, buckets=8)
    found = features(preparation, texts(c=["red", "red", "red", "red", "blue", None]))
    assert [name.startswith("other texts") for name in found] == [True, True, False, False] + [
        True
    ] * 2
    assert found[2] == found[3] == "c=red"
    assert features(preparation, texts(c=[None, None, "blue"]))[1] == "c is missing"
    names = preparation.feature_names_out
    assert names[:3] == ["c=red", "c is missing", "text[2] (free)"]
    assert names[6:] == ["other texts [0]", "other texts [1]"]
    counted = {text: n for each in preparation.shared_texts.values() for text, n in each.items()}
    assert counted == {"c=blue": 2}
    # Predicting counts nothing.
    assert features(preparation, texts(c=["blue"] * 5), learn=False)[4].startswith("other texts")


def test_columns_do_not_share_their_values():
    preparation = Preparation({"c": "text", "d": "text"}, buckets=8)
    preparation.transform(texts(c=["x"] * 3, d=["x"] * 3), learn=True)
    assert preparation.feature_names_out[:2] == ["c=x", "d=x"]


def test_a_value_that_comes_late_finds_room_among_many_seen_once():
    random = np.random.default_rng(0)
    column = [f"id {k}" for k in range(5000)]
    for place in random.choice(np.arange(4000, 5000), 400, replace=False):
        column[place] = "late"
    preparation = Preparation({"c": "text"}, buckets=16)
    preparation.transform(texts(c=column), learn=True)
    assert preparation.feature_names_out[:2] == ["c=late", "text[1] (free)"]
    size = len(str(preparation.to_document()[0]))
    preparation.transform(texts(c=[f"more {k}" for k in range(5000)]), learn=True)
    assert len(str(preparation.to_document()[0])) < 1.5 * size


def test_when_there_is_no_more_room_values_share_and_are_counted():
    column = [f"v{k % 40}" for k in range(400)]
    preparation = Preparation({"c": "text"}, buckets=8)
    preparation.transform(texts(c=column), learn=True)
    names = preparation.feature_names_out
    assert sum(name.startswith("c=") for name in names) == 6
    shared = preparation.shared_texts
    assert set(shared) <= {"other texts [0]", "other texts [1]"}
    preparation.transform(texts(c=["often"] * 300), learn=True)
    (place,) = (k for k, each in preparation.shared_texts.items() if "c=often" in each)
    assert next(iter(preparation.shared_texts[place])) == "c=often"
    assert all(len(each) <= SHOWN for each in preparation.shared_texts.values())
    assert preparation.width == 8


def test_texts_that_hardly_ever_come_again_have_no_input():
    ids = [f"id {k}" for k in range(700)]
    ids[300:700:40] = [None] * 10
    cities = ["Ulm", "Bonn", "Kiel", "Jena"] * 175
    batch = texts(id=ids, city=cities)
    preparation = Preparation({"id": "text", "city": "text"}, buckets=16)
    found = preparation.transform(batch, learn=True)
    counts = found.sum(axis=1)
    assert (counts[:NAMING] == 2).all()
    assert (counts[NAMING:300] == 1).all()
    missing = np.array([name is None for name in ids])
    assert (counts[missing] == 2).all()
    assert (counts[300:][~missing[300:]] == 1).all()
    assert found.has_canonical_format
    assert preparation.naming_columns == ["id"]
    # In any pieces, and where nothing is learned.
    pieces = Preparation({"id": "text", "city": "text"}, buckets=16)
    got = []
    for piece in in_pieces(batch, [100, 255, 256, 511, 600]):
        got.append(pieces.transform(piece, learn=True).toarray())
        pieces = reload(pieces)
    assert np.array_equal(np.concatenate(got), found.toarray())
    assert pieces.to_document()[0] == preparation.to_document()[0]
    again = preparation.transform(texts(id=["id 1", "new", None], city=["Ulm"] * 3))
    assert again.sum(axis=1).tolist() == [1.0, 1.0, 2.0]
    assert same(
        again,
        preparation.frozen_copy().transform(texts(id=["id 1", "new", None], city=["Ulm"] * 3)),
    )
    # A value of its own stays one, and a column whose values come again counts again.
    preparation.transform(texts(id=["often"] * 3, city=["Ulm"] * 3), learn=True)
    assert "id=often" in preparation.feature_names_out
    assert preparation.naming_columns == ["id"]
    preparation.transform(texts(id=["often"] * 512, city=["Ulm"] * 512), learn=True)
    assert preparation.naming_columns == []
    assert preparation.transform(texts(id=["new"], city=["Ulm"])).sum() == 2.0


def test_files_of_before_do_not_know_how_often_texts_come_again():
    categories = Categories(8).restore({"own": ["c=a"], "others": [["c=b", 1]]})
    assert categories.naming() == []
    assert categories.to_header()["repeats"] == {}


@settings(max_examples=25)
@given(
    column=st.lists(st.sampled_from([None, *"abcdefghijkl", "\ud800", "long" * 100]), min_size=2),
    cuts=st.lists(st.integers(1, 50), max_size=5),
    buckets=st.sampled_from([1, 2, 8]),
)
def test_any_chunking_gives_the_same_bits(column, cuts, buckets):
    batch = texts(c=column, d=column[::-1])
    whole, pieces = (Preparation({"c": "text", "d": "text"}, buckets=buckets) for _ in range(2))
    expected = whole.transform(batch, learn=True).toarray()
    got = []
    for piece in in_pieces(batch, [place for place in cuts if place < len(batch)]):
        got.append(pieces.transform(piece, learn=True).toarray())
        pieces = reload(pieces)
    assert np.array_equal(np.concatenate(got), expected)
    assert pieces.to_document()[0] == reload(whole).to_document()[0] == whole.to_document()[0]
    assert same(pieces.transform(batch), whole.transform(batch))


def test_long_texts_take_bounded_room():
    preparation = Preparation({"c": "text"}, buckets=8)
    long = "x" * 100_000
    preparation.transform(texts(c=[long, long + "y", long] * 3), learn=True)
    assert sum(name.startswith("c=x") for name in preparation.feature_names_out) == 2
    assert len(str(preparation.to_document()[0])) < 2000


@pytest.mark.parametrize(
    "header",
    [
        None, {"own": []}, {"own": ["a"] * 7, "others": []}, {"own": [1], "others": []},
        {"own": ["a", "a"], "others": []}, {"own": ["a"], "others": [["a", 1]]},
        {"own": ["a" * 999], "others": []}, {"own": [], "others": [["a", 0]]},
        {"own": [], "others": [["a"]]}, {"own": [], "others": {"a": 1}},
        {"own": [], "others": [[str(k), 1] for k in range(99)]},
        {"own": [], "others": [], "repeats": []},
        {"own": [], "others": [], "repeats": {"c": [1, 2, True]}},
        {"own": [], "others": [], "repeats": {"c": [256, 2, True]}},
    ],
)  # fmt: skip
def test_malicious_headers(header):
    with pytest.raises(ValueError, match="text"):
        Categories(8).restore(header)
