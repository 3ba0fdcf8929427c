"""Texts as inputs: one of their own for values that come again, the others share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from kernelstream.streams.batch import Text

#: Hashes of texts that are kept at hand; when there are more, all are forgotten.
_MOST_HASHES = 2**16
#: A value gets an input of its own when it appears for this time.
APPEARANCES = 3
#: Inputs of all texts by default, and at most where the first rows have many texts.
FEWEST_BUCKETS, MOST_BUCKETS = 128, 256
#: Values that are counted in each shared input.
COUNTED = 32
#: Of these the most frequent that are shown.
SHOWN = 5
#: A column names its rows where, of so many texts in a row, less than this part came before.
NAMING, AGAIN = 256, 0.05
#: Characters of "column=value" that are kept; the rest is replaced by a hash of the whole.
LONGEST = 200
#: Bytes of all of them in the header of a file, and in an array.
LONGEST_HEADER, LONGEST_ARRAY = 2**20, 2**28
#: In place of "=value".
_MISSING = "\0missing"


class HashedTexts:
    """Texts as places among ``buckets``, by "column=value": all texts share all of them."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self._known: dict[str, int] = {}

    def places(
        self, names: Sequence[str], texts: Sequence[Text], learn: bool
    ) -> tuple[NDArray[np.int32], HashedTexts]:
        """(n, texts) the input of each; a missing text is one more value."""
        tokens = [_tokens(name, text) for name, text in zip(names, texts, strict=True)]
        return _by_row(tokens, texts, self.bucket), self

    def bucket(self, token: str) -> int:
        """The place of a token."""
        bucket = self._known.get(token)
        if bucket is None:
            if len(self._known) >= _MOST_HASHES:
                self._known.clear()
            code = murmurhash3_32(token.encode("utf-8", "surrogatepass"), positive=True)
            bucket = self._known[token] = int(code) % self.buckets
        return bucket

    def held(self) -> HashedTexts:
        """The same: nothing is ever learned."""
        return self

    def of_column(self, name: str) -> tuple[dict[str, int], int]:
        """The inputs of texts that have one of their own, and that of a missing text."""
        return {}, self.bucket(name + _MISSING)

    def naming(self) -> list[str]:
        """No column is known to name its rows."""
        return []

    def names(self) -> list[str]:
        """Of the inputs."""
        return [f"text[{place}]" for place in range(self.buckets)]


class Repeats(NamedTuple):
    """How often the texts of a column come again."""

    texts: int = 0  # since the last decision, fewer than NAMING
    again: int = 0  # of these, how many came before
    names: bool = False  # whether hardly any did, last time: it names its rows

    def after(self, again: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Repeats]:
        """(n,) whether the column named its rows at each of the next ones, and after them."""
        now, found = self, np.empty(len(again), bool)
        first = 0
        while first < len(again):
            end = min(len(again), first + NAMING - now.texts)
            found[first:end] = now.names
            count = now.again + int(np.count_nonzero(again[first:end]))
            now = Repeats(now.texts + end - first, count, now.names)
            if now.texts == NAMING:
                now = Repeats(names=count < AGAIN * NAMING)
            first = end
        return found, now


class Categories:
    """Texts as inputs of their own, as long as there is room.

    The first 3/4 of ``buckets`` are given, in order, to values ("column=value") that appear for the
    third time; all others share the rest by hash. In each shared input the most frequent values are
    counted (Misra and Gries): counts are never too large, so that a value seen once, among however
    many of its kind, gets no input of its own. Memory is bounded.

    In a column whose texts hardly ever come again, an order's number or a name, those without an
    input of their own have none at all (place -1): shared, they would be noise.

    Never changed in place.
    """

    def __init__(self, buckets: int, frozen: bool = False) -> None:
        self.buckets, self.frozen = buckets, frozen
        self.room = _room(buckets)
        self.own: dict[str, int] = {}  # in the order they were given
        self.others: dict[int, dict[str, int]] = {}  # counts, by shared input
        self.repeats: dict[str, Repeats] = {}  # by column
        self._hashed = HashedTexts(buckets - self.room)

    def places(
        self, names: Sequence[str], texts: Sequence[Text], learn: bool
    ) -> tuple[NDArray[np.int32], Categories]:
        """(n, texts) the input of each, and the categories after these rows.

        A missing text is one more value.
        """
        tokens = [
            {code: _shortened(token) for code, token in _tokens(name, text).items()}
            for name, text in zip(names, texts, strict=True)
        ]
        found = _by_row(tokens, texts, self._place)
        if not learn or self.frozen:
            for column, name in enumerate(names):
                if name in self.naming():
                    found[(found[:, column] >= self.room) & (texts[column].codes >= 0), column] = -1
            return found, self
        after = self.held(frozen=False)
        again = found < self.room
        rows, columns = np.nonzero(~again)  # row by row
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            token = tokens[column][int(texts[column].codes[row])]
            place, again[row, column] = after._count(token, int(found[row, column]))
            found[row, column] = place
        for column, name in enumerate(names):
            known = np.flatnonzero(texts[column].codes >= 0)
            before = self.repeats.get(name, Repeats())
            named, after.repeats[name] = before.after(again[known, column])
            shared = known[named & (found[known, column] >= self.room)]
            found[shared, column] = -1
        return found, after

    def _place(self, token: str) -> int:
        place = self.own.get(token)
        return self.room + self._hashed.bucket(token) if place is None else place

    def _count(self, token: str, place: int) -> tuple[int, bool]:
        """The place of a value that shared one when the batch began; whether it came before."""
        if token in self.own:
            return self.own[token], True
        counts = self.others.setdefault(place - self.room, {})
        if token in counts or len(counts) < COUNTED:
            counts[token] = counts.get(token, 0) + 1
        else:
            for other in list(counts):
                counts[other] -= 1
                if not counts[other]:
                    del counts[other]
        times = counts.get(token, 0)
        if times < APPEARANCES or len(self.own) == self.room:
            return place, times > 1
        del counts[token]
        self.own[token] = len(self.own)
        return self.own[token], True

    def held(self, frozen: bool = True) -> Categories:
        """A copy that learns nothing more."""
        result = Categories(self.buckets, frozen)
        result.own = self.own.copy()
        result.others = {place: counts.copy() for place, counts in self.others.items()}
        result.repeats = self.repeats.copy()
        result._hashed = self._hashed
        return result

    def of_column(self, name: str) -> tuple[dict[str, int], int]:
        """The inputs of texts that have one of their own, and that of a missing text."""
        start = f"{name}="
        own = {
            token.removeprefix(start): k
            for token, k in self.own.items()
            if token[: len(start)] == start
        }
        return own, self._place(_shortened(name + _MISSING))

    def naming(self) -> list[str]:
        """The columns whose texts hardly ever come again."""
        return [name for name, each in self.repeats.items() if each.names]

    def names(self) -> list[str]:
        """Of the inputs: "column=value", or what is shared."""
        free = [f"text[{place}] (free)" for place in range(len(self.own), self.room)]
        own = [_readable(token) for token in self.own]
        return own + free + [_shared_name(place) for place in range(self._hashed.buckets)]

    def shared(self) -> dict[str, dict[str, int]]:
        """The most frequent values of each shared input, and how often they came at least."""
        return {
            _shared_name(place): {
                _readable(token): count
                for token, count in sorted(counts.items(), key=lambda item: -item[1])[:SHOWN]
            }
            for place, counts in sorted(self.others.items())
            if counts
        }

    def to_header(self) -> dict[str, Any]:
        """What a file holds of them."""
        counts = [pair for _, each in sorted(self.others.items()) for pair in each.items()]
        return {
            "own": list(self.own),
            "others": [list(pair) for pair in counts],
            "repeats": {name: list(each) for name, each in self.repeats.items()},
        }

    def restore(self, header: Any) -> Categories:
        """Read them back; ValueError if they cannot be what was written."""
        header = {"repeats": {}, **header} if isinstance(header, dict) else {}  # files of before
        if set(header) != {"own", "others", "repeats"}:
            raise ValueError("the texts are not those of a preparation")
        repeats = header["repeats"]
        if not isinstance(repeats, dict) or not all(map(_is_repeats, repeats.values())):
            raise ValueError("the texts that come again are not counted")
        self.repeats = {name: Repeats(*each) for name, each in repeats.items()}
        own, others = header["own"], header["others"]
        if not isinstance(own, list) or len(own) > self.room or not all(map(_is_token, own)):
            raise ValueError("the texts do not fit their inputs")
        if not isinstance(others, list) or not all(map(_is_counted, others)):
            raise ValueError("the counts of texts are not valid")
        if len({*own, *(token for token, _ in others)}) < len(own) + len(others):
            raise ValueError("a text is there twice")
        self.own = {token: place for place, token in enumerate(own)}
        for token, count in others:
            self.others.setdefault(self._hashed.bucket(token), {})[token] = count
        if any(len(counts) > COUNTED for counts in self.others.values()):
            raise ValueError("more texts are counted than can be")
        return self


def buckets_for(texts: Sequence[Text]) -> int:
    """So many that all texts that come again among the first rows have an input of their own.

    >>> few, many = ([f"{i}" for i in range(n)] for n in (96, 97))
    >>> [buckets_for([Text(np.tile(np.arange(len(v)), 3), v)]) for v in (few, many)]
    [128, 256]
    """
    again = sum(
        np.count_nonzero(np.bincount(text.codes[text.codes >= 0]) >= APPEARANCES) for text in texts
    )
    buckets = FEWEST_BUCKETS
    while _room(buckets) < again and buckets < MOST_BUCKETS:
        buckets *= 2
    return buckets


def _room(buckets: int) -> int:
    """Inputs that are given to single values."""
    return 3 * buckets // 4


def packed_texts(
    header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A document whose texts are an array where there are too many for the header of a file."""
    written = json.dumps(header["texts"]).encode()
    if len(written) <= LONGEST_HEADER:
        return header, dict(arrays)
    return {**header, "texts": "array"}, {**arrays, "texts": np.frombuffer(written, np.uint8)}


def unpacked_texts(held: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The texts of such a document, wherever they are; ``held`` is what its header holds."""
    if held != "array":
        return held
    if len(arrays["texts"]) > LONGEST_ARRAY:
        raise ValueError("the texts are longer than any that were written")
    return json.loads(arrays["texts"].tobytes())


def _tokens(name: str, text: Text) -> dict[int, str]:
    """ "column=value" of each code that is used; -1 is a missing text."""
    used = np.zeros(len(text.values) + 1, bool)
    used[text.codes] = True  # -1 is the last
    tokens = {code: f"{name}={text.values[code]}" for code in np.flatnonzero(used[:-1]).tolist()}
    return tokens | ({-1: f"{name}{_MISSING}"} if used[-1] else {})


def _by_row(
    tokens: Sequence[Mapping[int, str]], texts: Sequence[Text], place: Callable[[str], int]
) -> NDArray[np.int32]:
    """(n, texts) the place of each."""
    columns = []
    for each, text in zip(tokens, texts, strict=True):
        places = np.zeros(len(text.values) + 1, np.int32)
        for code, token in each.items():
            places[code] = place(token)
        columns.append(places[text.codes])
    return np.stack(columns, axis=1)


def _shortened(token: str) -> str:
    if len(token) <= LONGEST:
        return token
    whole = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{token[: LONGEST - 20]}... {whole}"


def _readable(token: str) -> str:
    return token.replace(_MISSING, " is missing")


def _shared_name(place: int) -> str:
    return f"other texts [{place}]"


def _is_token(token: Any) -> bool:
    return isinstance(token, str) and len(token) <= LONGEST


def _is_repeats(found: Any) -> bool:
    if not isinstance(found, list) or [type(each) for each in found] != [int, int, bool]:
        return False
    return bool(0 <= found[1] <= found[0] < NAMING)


def _is_counted(pair: Any) -> bool:
    if not isinstance(pair, list) or len(pair) != 2 or not _is_token(pair[0]):
        return False
    return type(pair[1]) is int and 0 < pair[1] < 2**53
