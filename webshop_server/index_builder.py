"""How the index of a catalogue is built: listings become segments of postings, which are sorted and merged into arrays.

A build that was interrupted continues after its last segment. It needs memory for one segment, not for the catalogue.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webshop_server.catalogue import KINDS, Row
from webshop_server.errors import CatalogueError
from webshop_server.product import Product
from webshop_server.progress import Report
from webshop_server.search import compute_norms, compute_rarity, find_stem, find_words, join_fields

_VERSION = 3
_SEGMENT = 50_000
_SEGMENT_TERMS = 8_000_000
"""The maximum number of listings of a segment, and of their terms."""

_CHUNK = 4_000_000
"""Postings that are sorted at a time."""

_KNOWN_WORDS = 1_000_000
_LISTING_BITS, _COUNT_BITS = 27, 12  # of a posting; the 24 bits above are the term
_MAX_COUNT = (1 << _COUNT_BITS) - 1
"""How often a term counts in one listing at most."""

_MAX_TERMS = 1 << 24

RowSource = Callable[[int], Iterable[Row]]
"""Returns the rows of the listings from a number on."""


class GoalTable(NamedTuple):
    """The goals of a kind, by listing.

    Args:
        numbers: the numbers of the listings with goals, ascending; int32, shape (rows,).
        ends: the number of goals up to and including each of them; int64, shape (rows,).
        weights: the weight of each of its goals: the mean inverse frequency of its attributes; float64, shape (rows,);
            empty unless synthetic, where all weights are 1.
    """

    numbers: NDArray[np.int32]
    ends: NDArray[np.int64]
    weights: NDArray[np.float64]


def make_mark(fingerprint: str, size: int) -> dict[str, Any]:
    """Return what an index says of the catalogue to which it belongs."""
    return {"version": _VERSION, "fingerprint": fingerprint, "size": size}


def read_mark(place: Path) -> dict[str, Any] | None:
    """Return the mark of a complete index in a folder, `None` without one."""
    try:
        return dict(json.loads((place / "mark.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def build(place: Path, rows: RowSource, mark: dict[str, Any], report: Report) -> None:
    """Build an index in a folder, or continue to; `mark.json` is written when it is complete."""
    if read_mark(place) != mark:
        source, text = place / "source.json", json.dumps(mark)
        if not source.is_file() or source.read_text(encoding="utf-8") != text:
            for path in place.iterdir():
                if path.name != "lock":
                    path.unlink()
            source.write_text(text, encoding="utf-8")
        builder = _Builder(place)
        for row in rows(builder.count):
            builder.add(row)
            if builder.count % 1000 == 0:
                report(0.9 * builder.count / mark["size"])
        builder.finish(lambda share: report(0.9 + 0.1 * share))
        os.replace(source, place / "mark.json")
    for path in place.glob("segment_*"):
        path.unlink()


class _Numbers(dict[str, int]):
    """The number of each word's term, -1 for a stop word; new terms are numbered in the order of their occurrence."""

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms = {term: number for number, term in enumerate(terms)}

    def __missing__(self, word: str) -> int:
        stem = find_stem(word)
        number = self.terms.setdefault(stem, len(self.terms)) if stem else -1
        if len(self) > _KNOWN_WORDS:
            self.clear()
        self[word] = number
        return number


class _Segment:
    """The listings since the last segment was written."""

    def __init__(self) -> None:
        self.terms, self.ends = array("i"), array("q", (0,))
        self.keys: list[int] = []
        self.goals: list[Sequence[int]] = []
        self.attributes, self.asked = array("i"), array("i")


class _Builder:
    """Builds an index in a folder; continues after the segments that it finds there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.count = 0
        self._parts: list[dict[str, NDArray[Any]]] = []
        terms: list[str] = []
        attributes: list[str] = []
        while (path := self._name(len(self._parts), "npz")).is_file():
            with np.load(path) as file:
                part = dict(file)
            terms += json.loads(part.pop("terms").tobytes())
            attributes += json.loads(part.pop("names").tobytes())
            self._parts.append(part)
            self.count += len(part["lengths"])
        self._numbers = _Numbers(terms)
        self._attributes = {name: number for number, name in enumerate(attributes)}
        self._written = (len(terms), len(attributes))
        self._segment = _Segment()

    def _name(self, number: int, kind: str) -> Path:
        return self.place / f"segment_{number:05d}.{kind}"

    def add(self, row: Row) -> None:
        product, goals = row
        segment = self._segment
        segment.terms.extend(map(self._numbers.__getitem__, find_words(join_fields(product))))
        segment.ends.append(len(segment.terms))
        segment.keys.append(_tie_key(product))
        segment.goals.append(goals)
        names = product.synthetic.attributes if product.synthetic else ()
        segment.attributes.extend([self._attributes.setdefault(name, len(self._attributes)) for name in names])
        segment.asked.append(len(names))
        self.count += 1
        if len(segment.keys) == _SEGMENT or len(segment.terms) > _SEGMENT_TERMS:
            self.flush()

    def flush(self) -> None:
        """Write a segment; a file without an `npz` file beside it was not finished."""
        segment, self._segment = self._segment, _Segment()
        if not segment.keys:
            return
        if len(self._numbers.terms) > _MAX_TERMS or self.count >= 1 << _LISTING_BITS:
            raise CatalogueError(f"an index has at most {_MAX_TERMS} terms and {1 << _LISTING_BITS} listings")
        terms = np.frombuffer(segment.terms, np.int32)
        lengths = np.diff(np.frombuffer(segment.ends, np.int64)).astype(np.int64)
        listings = np.repeat(np.arange(len(segment.keys)), lengths)
        kept = terms >= 0
        terms, listings = terms[kept], listings[kept]
        first = self.count - len(segment.keys)
        postings = (terms.astype(np.int64) << _LISTING_BITS | (listings + first)) << _COUNT_BITS
        postings.sort()
        starts = np.flatnonzero(np.concatenate(([True], postings[1:] != postings[:-1]))) if len(postings) else terms
        counts = np.diff(np.append(starts, len(postings)))
        np.save(self._name(len(self._parts), "npy"), postings[starts] | np.minimum(counts, _MAX_COUNT))
        words, names = list(self._numbers.terms)[self._written[0] :], list(self._attributes)[self._written[1] :]
        part: dict[str, Any] = {
            "lengths": np.bincount(listings, minlength=len(segment.keys)).astype(np.int32),
            "keys": np.array(segment.keys, np.uint64),
            "goals": np.array(segment.goals, np.int32),
            "attributes": np.frombuffer(segment.attributes, np.int32),
            "asked": np.frombuffer(segment.asked, np.int32),
        }
        texts: dict[str, Any] = {"terms": _to_bytes(words), "names": _to_bytes(names)}
        path = self._name(len(self._parts), "npz")
        fresh = path.with_suffix(".fresh.npz")
        np.savez(fresh, **part, **texts)
        os.replace(fresh, path)
        self._parts.append(part)
        self._written = (len(self._numbers.terms), len(self._attributes))

    def finish(self, report: Report) -> None:
        """Merge the segments."""
        self.flush()
        keys, lengths = self._join("keys", np.uint64), self._join("lengths", np.int32)
        order = np.argsort(keys, kind="stable").astype(np.int32)
        norms = compute_norms(lengths)[order]
        np.save(self.place / "order.npy", order)
        np.save(self.place / "norms.npy", norms)
        self._merge(order, norms, int(np.count_nonzero(lengths)), report)
        self._write_goals()
        text = json.dumps(list(self._numbers.terms))
        (self.place / "vocabulary.json").write_text(text, encoding="utf-8")

    def _join(self, name: str, kind: Any) -> NDArray[Any]:
        return np.concatenate([part[name] for part in self._parts]) if self._parts else np.zeros(0, kind)

    def _merge(self, order: NDArray[np.int32], norms: NDArray[np.float32], size: int, report: Report) -> None:
        """Sort the postings of all segments by term and place in the order of ties, a range of terms at a time."""
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=np.int32)
        segments = [np.load(self._name(number, "npy"), mmap_mode="r") for number in range(len(self._parts))]
        terms = len(self._numbers.terms)
        having, most = np.zeros(terms, np.int64), 0
        for segment in segments:
            having += np.bincount(segment >> (_LISTING_BITS + _COUNT_BITS), minlength=terms)
            most = max(most, int(np.max(segment & _MAX_COUNT, initial=0)))
        starts = np.concatenate(([0], np.cumsum(having)))
        rarity = compute_rarity(having, size)
        bounds = np.zeros(terms, np.float32)
        total, kind = int(starts[-1]), np.uint8 if most < 256 else np.uint16
        with (
            _writing(self.place / "listings.npy", np.int32, total) as listings,
            _writing(self.place / "counts.npy", kind, total) as counts,
        ):
            begin = 0
            while begin < terms:
                end = max(int(np.searchsorted(starts, starts[begin] + _CHUNK, side="right")) - 1, begin + 1)
                postings = np.concatenate([_slice(segment, begin, end) for segment in segments])
                found = places[(postings >> _COUNT_BITS) & ((1 << _LISTING_BITS) - 1)]
                high = postings >> (_LISTING_BITS + _COUNT_BITS) << _LISTING_BITS
                postings = (high | found) << _COUNT_BITS | (postings & _MAX_COUNT)
                postings.sort()
                found = (postings >> _COUNT_BITS & ((1 << _LISTING_BITS) - 1)).astype(np.int32)
                often = (postings & _MAX_COUNT).astype(kind)
                listings(found)
                counts(often)
                exact = often.astype(np.float32)
                weights = exact * (np.repeat(rarity[begin:end], having[begin:end]) / (exact + norms[found]))
                bounds[begin:end] = np.maximum.reduceat(weights, starts[begin:end] - starts[begin])
                begin = end
                report(begin / terms)
        for name, values in (("starts", starts), ("rarity", rarity), ("bounds", bounds)):
            np.save(self.place / f"{name}.npy", values)

    def _write_goals(self) -> None:
        goals = self._join("goals", np.int32).reshape(-1, len(KINDS))
        attributes, asked = self._join("attributes", np.int32), self._join("asked", np.int32)
        rows = np.repeat(np.arange(len(asked)), asked)
        frequencies = np.bincount(attributes, goals[rows, 0], minlength=len(self._attributes)).astype(float)
        inverse = np.divide(1.0, frequencies, out=np.zeros_like(frequencies), where=frequencies > 0)
        means = np.bincount(rows, inverse[attributes], minlength=len(asked)) / np.maximum(asked, 1)
        for kind, counts in zip(KINDS, goals.T, strict=True):
            numbers = np.flatnonzero(counts).astype(np.int32)
            weights = means[numbers] if kind == "synthetic" else np.zeros(0)
            table = GoalTable(numbers, np.cumsum(counts[numbers], dtype=np.int64), weights)
            for name, values in table._asdict().items():
                np.save(self.place / f"goals_{kind}_{name}.npy", values)


def _tie_key(product: Product) -> int:
    """The place of a listing among listings of equal score; equal offers share it, and keep their order."""
    name = product.group or product.asin
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _to_bytes(texts: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(texts).encode(), np.uint8)


def _slice(segment: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:
    """Return the postings of a range of terms."""
    shift = _LISTING_BITS + _COUNT_BITS
    first, last = np.searchsorted(segment, np.array((begin, end), np.int64) << shift)
    return segment[first:last]


@contextmanager
def _writing(path: Path, kind: Any, length: int) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write an array in parts."""
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda values: values.tofile(file)
