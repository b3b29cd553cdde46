"""Full-text search: BM25 with the formula and the tokens of the original's Lucene index.

* `SearchIndex` - the index: built from a catalogue, saved beside it, memory-mapped
* `tokenize` - a text as terms
* `join_fields` - the indexed text of a listing
* `round_lengths` - lengths as Lucene stores them, in one byte
* `MAX_RESULTS` - the maximum number of results

BM25 (Robertson and Zaragoza, 2009) with Lucene's inverse document frequency, k1 = 0.9 and b = 0.4,
over title, description, first bullet point and options. Terms are lower-case words without a possessive
`'s` and without Lucene's 33 English stop words, as Porter stems. Lengths are rounded as Lucene rounds
them, and ties are ordered by the listing's number.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import Stemmer
from numpy.typing import NDArray

from webshop_server.catalogue import Catalogue
from webshop_server.errors import CatalogueError
from webshop_server.product import Product

K1, B = 0.9, 0.4
MAX_RESULTS = 50
MAX_TERMS = 64
"""The maximum number of terms of a query; further terms are ignored."""

_STOP_WORDS_TEXT = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
"""Lucene's English stop words."""

# Lucene's tokens: letters, digits and `_`; `.` `:` and apostrophes between letters, `.` `,` `;` and apostrophes
# between digits; every ideograph and pictograph on its own.
_IDEOGRAPH = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PICTOGRAPH = (
    r"\u00a9\u00ae\u203c\u2122\u231a\u231b\u23e9-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612"
    r"\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e"
    r"\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1\u27b0\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    r"\U0001f004-\U0001faff"
)
_WORD = re.compile(
    rf"[^\W_{_IDEOGRAPH}](?:[^\W{_IDEOGRAPH}]|(?<=[^\W\d_])[.:'’‘·：](?=[^\W\d_{_IDEOGRAPH}])|(?<=\d)[.,;'’](?=\d))*"
    rf"|[{_IDEOGRAPH}]|[{_PICTOGRAPH}]\ufe0f?"
)
# Two departures of Porter's own stemmer from his paper, which Lucene shares: -bli becomes -ble, -logi -log.
_MEASURE = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)[^aeiouy]")
_ENDINGS = ((re.compile(r"bl(?:y|i|ies)$"), "ble"), (re.compile(r"log(?:y|i|ies)$"), "log"))
_INDEX_VERSION = 2
_PARTS = ("starts", "listings", "weights")
_CHUNK = 1 << 22
_SORT_CHUNK = 1 << 18


class _Stems:
    """A cache of stems; the stemmer is slower than a lookup and not thread-safe."""

    def __init__(self) -> None:
        self._stemmer = Stemmer.Stemmer("porter", 0)
        self._known: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def __call__(self, word: str) -> str | None:
        try:
            return self._known[word]
        except KeyError:
            pass
        bare = word[:-2] if word.endswith(("'s", "’s")) else word
        for ending, other in _ENDINGS:
            found = ending.search(bare)
            if found and _MEASURE.search(bare, 0, found.start()):
                bare = bare[: found.start()] + other
        with self._lock:
            stem: str | None = bare
            if bare in STOP_WORDS:
                stem = None
            elif len(bare) > 2:
                stem = self._stemmer.stemWord(bare)
            if len(self._known) > 500_000:
                self._known.clear()
            self._known[word] = stem
        return stem


_stem = _Stems()


def tokenize(text: str) -> list[str]:
    """Split a text into terms.

    Example:
        >>> tokenize("The Men's Running-Shoes, size 10.5")
        ['men', 'run', 'shoe', 'size', '10.5']
    """
    stems = (_stem(word) for word in _WORD.findall(text.lower()))
    return [stem for stem in stems if stem]


def join_fields(product: Product) -> str:
    """Return the indexed text of a listing: title, description, first bullet point, options."""
    options = " ".join(f"{option.name}: {', '.join(option.values)}" for option in product.options)
    return " ".join((product.title, product.description, product.bullets[0] if product.bullets else "", options))


def round_lengths(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Round lengths as Lucene stores them: exact up to 40, then 24 plus a number of four significant bits.

    Args:
        lengths: numbers of terms, of any shape.

    Example:
        >>> round_lengths(np.array([7, 40, 41, 100]))
        array([ 7, 40, 40, 96])
    """
    above = np.maximum(lengths - 24, 0).astype(np.int64)
    bits = np.frexp(above.astype(np.float64))[1]
    shift = np.maximum(bits - 4, 0)
    return np.where(lengths < 24, lengths, 24 + ((above >> shift) << shift))


class SearchIndex:
    """An inverted index with the score of every posting.

    Args:
        vocabulary: the number of each term.
        starts: the offset of each term's postings, and the total; int64, shape (terms + 1,).
        listings: the listings' numbers, term by term; int32, shape (postings,).
        weights: the term's contribution to the listing's score; float32, shape (postings,).
        size: the number of listings.
    """

    def __init__(
        self,
        vocabulary: dict[str, int],
        starts: NDArray[np.int64],
        listings: NDArray[np.int32],
        weights: NDArray[np.float32],
        size: int,
    ) -> None:
        self._vocabulary = vocabulary
        self._starts = starts
        self._listings = listings
        self._weights = weights
        self._size = size

    def __len__(self) -> int:
        return self._size

    @classmethod
    def build(cls, products: Iterable[Product]) -> SearchIndex:
        """Build an index in memory.

        Args:
            products: the listings, numbered in this order.
        """
        vocabulary: dict[str, int] = {}
        terms, counts, ends, lengths = array("i"), array("f"), array("q", (0,)), array("i")
        for product in products:
            found = Counter(tokenize(join_fields(product)))
            terms.extend([vocabulary.setdefault(term, len(vocabulary)) for term in found])
            counts.extend(found.values())
            ends.append(len(terms))
            lengths.append(sum(found.values()))
        size = len(lengths)
        if not vocabulary:
            empty = np.zeros(0, np.int32)
            return cls({}, np.zeros(1, np.int64), empty, empty.astype(np.float32), size)
        starts, listings, weights = _by_term(
            np.frombuffer(terms, np.int32),
            np.frombuffer(counts, np.float32),
            np.frombuffer(ends, np.int64),
            len(vocabulary),
        )
        del terms, counts, ends
        exact = np.frombuffer(lengths, np.int32)
        mean = exact.sum() / max(int(np.count_nonzero(exact)), 1)
        norms = (K1 * (1 - B + B * round_lengths(exact) / mean)).astype(np.float32)
        having = np.diff(starts)
        rarity = np.log(1 + (np.count_nonzero(exact) - having + 0.5) / (having + 0.5)).astype(np.float32)
        for begin in range(0, len(weights), _CHUNK):  # in place and in chunks, to limit memory
            part = slice(begin, begin + _CHUNK)
            term = np.searchsorted(starts, np.arange(begin, min(begin + _CHUNK, len(weights))), side="right") - 1
            weights[part] *= rarity[term] / (weights[part] + norms[listings[part]])
        return cls(vocabulary, starts, listings, weights, size)

    @classmethod
    def open(cls, catalogue: Catalogue) -> SearchIndex:
        """Open the index beside a catalogue, memory-mapped, or build and save it.

        If the directory cannot be written, the index is kept in memory.

        Raises:
            CatalogueError: the index beside the catalogue is damaged.
        """
        place = get_index_path(catalogue.path)
        mark = {"version": _INDEX_VERSION, "fingerprint": catalogue.fingerprint, "size": len(catalogue)}
        if _read_metadata(place) == mark:
            return cls._load(place, len(catalogue))
        index = cls.build(catalogue)
        if not len(index._listings):  # an empty file cannot be mapped
            return index
        try:
            index.save(place, mark)
        except OSError:  # the directory cannot be written
            return index
        return cls._load(place, len(catalogue))

    @classmethod
    def _load(cls, place: Path, size: int) -> SearchIndex:
        try:
            vocabulary = json.loads((place / "vocabulary.json").read_text(encoding="utf-8"))
            starts, listings, weights = (np.load(place / f"{part}.npy", mmap_mode="r") for part in _PARTS)
            if not len(starts) == len(vocabulary) + 1 or not starts[-1] == len(listings) == len(weights):
                raise ValueError("its parts do not fit together")
        except (OSError, ValueError, TypeError) as error:
            reason = f"the search index `{place}` is damaged: {error}; remove it, and it is made again"
            raise CatalogueError(reason) from error
        return cls(vocabulary, np.asarray(starts), listings, weights, size)

    def save(self, place: Path, mark: dict[str, object]) -> None:
        """Write the index to a temporary directory, and rename it, so that readers see a complete index."""
        fresh = place.with_name(f"{place.name}.{os.getpid()}.{threading.get_ident()}")
        fresh.mkdir()
        for part in _PARTS:
            np.save(fresh / f"{part}.npy", getattr(self, f"_{part}"))
        (fresh / "vocabulary.json").write_text(json.dumps(self._vocabulary), encoding="utf-8")
        (fresh / "mark.json").write_text(json.dumps(mark), encoding="utf-8")
        try:
            os.replace(fresh, place)
        except OSError:  # an old index exists, or another process has just written one
            if _read_metadata(place) != mark:
                shutil.rmtree(place, ignore_errors=True)
                os.replace(fresh, place)
            else:
                shutil.rmtree(fresh)

    def search(self, words: str, limit: int = MAX_RESULTS) -> list[int]:
        """Return the numbers of the best listings, best first.

        Args:
            words: the query; any text.
            limit: the maximum number of results.
        """
        terms = tokenize(words[:4096])[:MAX_TERMS]  # a repeated term counts repeatedly, as in Lucene
        numbers = [self._vocabulary[term] for term in terms if term in self._vocabulary]
        if not numbers:
            return []
        parts = [slice(self._starts[number], self._starts[number + 1]) for number in numbers]
        listings = np.concatenate([self._listings[part] for part in parts])
        weights = np.concatenate([self._weights[part] for part in parts])
        # Summed in double precision, term by term, and rounded once, as in Lucene: this decides near ties.
        return _best(np.bincount(listings, weights, minlength=self._size).astype(np.float32), limit)


def _best(scores: NDArray[np.float32], limit: int) -> list[int]:
    """Return the indices of the highest positive scores, ties by index."""
    threshold = np.float32(0)
    if len(scores) > limit:
        threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    found = np.flatnonzero(scores >= threshold) if threshold > 0 else np.flatnonzero(scores)
    order = np.lexsort((found, -scores[found]))
    return [int(place) for place in found[order][:limit]]


def get_index_path(path: Path) -> Path:
    """Return the directory of the index of the catalogue at `path`."""
    return path.with_name(path.name + ".index")


def _read_metadata(place: Path) -> dict[str, object] | None:
    try:
        return dict(json.loads((place / "mark.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _by_term(
    terms: NDArray[np.int32], counts: NDArray[np.float32], ends: NDArray[np.int64], number: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Sort the terms of all listings by term, in chunks, to limit memory.

    Args:
        terms: the terms of the first listing, then of the second and so on.
        counts: how often each of them occurs.
        ends: the position at which each listing ends, beginning with 0.
        number: the number of terms.

    Returns:
        The position at which each term begins, and for each term in order its listings and counts.
    """
    starts = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(terms, minlength=number), out=starts[1:])
    free = starts[:-1].copy()  # the next position of each term
    listings, weights = np.empty(len(terms), np.int32), np.empty(len(terms), np.float32)
    for begin in range(0, len(terms), _SORT_CHUNK):
        part = terms[begin : begin + _SORT_CHUNK]
        order = np.argsort(part, kind="stable")
        in_order = part[order]
        place = np.arange(len(part))
        is_first = np.concatenate(([True], in_order[1:] != in_order[:-1]))
        place += free[in_order] - place[is_first][np.cumsum(is_first) - 1]
        listings[place] = np.searchsorted(ends, begin + order, side="right") - 1
        weights[place] = counts[begin + order]
        free[in_order] = place + 1  # the last one of each term holds
    return starts, listings, weights
