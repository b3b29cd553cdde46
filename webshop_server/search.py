"""Full-text search: BM25 with the formula and the terms of the original's Lucene index.

BM25 (Robertson and Zaragoza, 2009) with Lucene's inverse document frequency, k1 = 0.9 and b = 0.4,
over title, description, first bullet point and options. Lengths are rounded as Lucene rounds them. Ties are
ordered by a hash of the listing's asin, so that none is preferred for its place in the catalogue; equal offers
of several sellers keep the order of their offers.

Large catalogues are searched as in MaxScore (Turtle and Flood, 1995): terms with large weights first; when the rest
cannot bring another listing among the results, its postings are looked up for the remaining candidates alone.

Terms are lower-case words without a possessive `'s` and without Lucene's 33 English stop words, as Porter stems.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from webshop_server.product import Product

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


class _Stems:
    """A cache of stems, `None` for stop words; the stemmer is slower than a lookup and not thread-safe."""

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


find_stem = _Stems()


def find_words(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    Example:
        >>> find_words("Running-Shoes, size 10.5")
        ['running', 'shoes', 'size', '10.5']
    """
    return _WORD.findall(text.lower())


def tokenize(text: str) -> list[str]:
    """Split a text into terms.

    Example:
        >>> tokenize("The Men's Running-Shoes, size 10.5")
        ['men', 'run', 'shoe', 'size', '10.5']
    """
    stems = (find_stem(word) for word in find_words(text))
    return [stem for stem in stems if stem]


def join_fields(product: Product) -> str:
    """Return the indexed text of a listing: title, description, first bullet point, options."""
    options = " ".join(f"{name}: {', '.join(values)}" for name, values in product.options)
    return " ".join((product.title, product.description, product.bullets[0] if product.bullets else "", options))


K1, B = 0.9, 0.4
MAX_RESULTS = 50
MAX_TERMS = 64
"""The maximum number of terms of a query; further terms are ignored."""

_FEW = 20_000
"""Catalogues of up to this size are searched without skipping, which is faster there."""

_SAMPLE = 4
"""Candidates whose scores are computed for a lower bound, for each result."""

_SLACK = 1 - 1e-6
"""Scores are rounded to single precision at the end: candidates that are closer than that are kept."""


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


def compute_norms(lengths: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return what the formula adds to a term's frequency in each listing.

    Args:
        lengths: the number of terms of each listing, shape (listings,).
    """
    mean = lengths.sum(dtype=np.int64) / max(int(np.count_nonzero(lengths)), 1)
    norms: NDArray[np.float32] = (K1 * (1 - B + B * round_lengths(lengths) / max(mean, 1))).astype(np.float32)
    return norms


def compute_rarity(having: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """Return Lucene's inverse document frequency.

    Args:
        having: the number of listings with each term, shape (terms,).
        size: the number of listings with any term.
    """
    rarity: NDArray[np.float32] = np.log(1 + (size - having + 0.5) / (having + 0.5)).astype(np.float32)
    return rarity


class Postings(NamedTuple):
    """The arrays of an index, in which listings are numbered in the order of ties.

    Args:
        starts: the offset of each term's postings, and the total; int64, shape (terms + 1,).
        listings: the listings of each term, ascending; int32, shape (postings,).
        counts: how often the term occurs in them; uint8 or uint16, shape (postings,).
        rarity: the inverse document frequency of each term; float32, shape (terms,).
        bounds: the largest contribution of each term to a score; float32, shape (terms,).
        norms: what the formula adds to a term's frequency in each listing; float32, shape (listings,).
        order: the number of each listing in the catalogue; int32, shape (listings,).
    """

    starts: NDArray[np.int64]
    listings: NDArray[np.int32]
    counts: NDArray[np.uint8] | NDArray[np.uint16]
    rarity: NDArray[np.float32]
    bounds: NDArray[np.float32]
    norms: NDArray[np.float32]
    order: NDArray[np.int32]

    def are_consistent(self) -> bool:
        """Whether the shapes fit together."""
        terms, postings, listings = len(self.rarity), len(self.listings), len(self.order)
        lengths = (len(self.starts), int(self.starts[-1]), len(self.counts), len(self.bounds), len(self.norms))
        return lengths == (terms + 1, postings, postings, terms, listings)


class SearchIndex:
    """An inverted index; thread-safe.

    Args:
        vocabulary: the number of each term.
        postings: the arrays.

    Attributes:
        skips: whether postings are skipped, which changes no result; by default in large catalogues.
    """

    def __init__(self, vocabulary: Mapping[str, int], postings: Postings) -> None:
        self._vocabulary = vocabulary
        self._postings = postings
        self._local = threading.local()
        self.skips = len(postings.order) > _FEW

    def __len__(self) -> int:
        return len(self._postings.order)

    def search(self, words: str, limit: int = MAX_RESULTS) -> list[int]:
        """Return the catalogue's numbers of the best listings, best first.

        Args:
            words: the query; any text.
            limit: the maximum number of results.
        """
        terms = tokenize(words[:4096])[:MAX_TERMS]  # a repeated term counts repeatedly, as in Lucene
        numbers = [self._vocabulary[term] for term in terms if term in self._vocabulary]
        if not numbers:
            return []
        score = self._score_best if self.skips else self._score_all
        found, exact = score(numbers, limit)
        scores = exact.astype(np.float32)  # rounded once, as in Lucene: this decides near ties
        if len(scores) > limit:
            best = scores >= _find_largest(scores, limit)
            found, scores = found[best], scores[best]
        ranked = found[np.lexsort((found, -scores))[:limit]]
        return [int(number) for number in self._postings.order[ranked]]

    def _score_all(self, numbers: Sequence[int], limit: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return all listings with a term, and their scores."""
        starts, listings, counts, rarity, _, norms, order = self._postings
        parts = [slice(starts[number], starts[number + 1]) for number in numbers]
        found = np.concatenate([listings[part] for part in parts])
        often = np.concatenate([counts[part] for part in parts]).astype(np.float32)
        rare = rarity[numbers].repeat([part.stop - part.start for part in parts])
        scores: NDArray[Any] = np.bincount(found, often * (rare / (often + norms[found])), minlength=len(order))
        best = np.flatnonzero(scores)
        return best, scores[best]

    def _score_best(self, numbers: Sequence[int], limit: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return listings that include the best ones with all ties, and their scores."""
        repeats = Counter(numbers)
        bounds = {number: float(self._postings.bounds[number]) * count for number, count in repeats.items()}
        terms = sorted(bounds, key=lambda number: -bounds[number])
        rest = [sum(bounds[number] for number in terms[i:]) for i in range(len(terms) + 1)]
        found, scores, threshold, done = self._collect(terms, repeats, rest, limit)
        for i in range(done, len(terms)):
            if len(scores) > limit:
                threshold = max(threshold, float(_find_largest(scores, limit)) * _SLACK)
            candidates = scores + rest[i] >= threshold
            found, scores = found[candidates], scores[candidates]
            if i == done:  # lookups in order are faster
                order = np.argsort(found)
                found, scores = found[order], scores[order]
            self._look_up(terms[i], repeats[terms[i]], found, scores)
        return found, scores

    def _collect(
        self, terms: Sequence[int], repeats: Mapping[int, int], rest: Sequence[float], limit: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], float, int]:
        """Add up terms until the rest of them cannot bring another listing among the best.

        Args:
            terms: the terms, those with large weights first.
            repeats: how often each occurs in the query.
            rest: the largest score from each of the terms on.
            limit: the number of results.

        Returns:
            The listings, their scores so far, a lower bound of the last result's score, and the number of terms used.
        """
        totals = self._take_totals()
        parts: list[NDArray[np.int32]] = []
        threshold, done = 0.0, 0
        for term in terms:
            if threshold > rest[done]:
                break
            listings, scores = self._weigh(term, repeats[term])
            before = totals[listings]
            parts.append(listings[before == 0])
            # In double precision: another order of the terms changes no sum by as much as single precision shows.
            scores += before
            totals[listings] = scores
            done += 1
            if done < len(terms) and len(listings) >= limit:
                if len(listings) > _SAMPLE * limit:
                    listings = listings[np.argpartition(scores, -_SAMPLE * limit)[-_SAMPLE * limit :]]
                sample = np.sort(listings)
                scores = totals[sample]
                for other in terms[done:]:
                    self._look_up(other, repeats[other], sample, scores)
                threshold = max(threshold, float(_find_largest(scores, limit)) * _SLACK)
        found = np.concatenate(parts)
        scores = totals[found]
        totals[found] = 0
        self._local.totals = totals
        return found, scores, threshold, done

    def _take_totals(self) -> NDArray[np.float64]:
        """Return this thread's zeros, one for each listing; allocating them would take longer than a search.

        An interrupted search does not give them back, so that the next one has zeros too.
        """
        totals: NDArray[np.float64] | None = getattr(self._local, "totals", None)
        self._local.totals = None
        return np.zeros(len(self)) if totals is None else totals

    def _weigh(self, term: int, repeats: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the listings of a term, and its contribution to their scores."""
        starts, listings, counts, rarity, _, norms, _ = self._postings
        part = slice(starts[term], starts[term + 1])
        often = counts[part].astype(np.float32)
        weights = often * (rarity[term] / (often + norms[listings[part]]))
        return listings[part], weights.astype(np.float64) * repeats

    def _look_up(self, term: int, repeats: int, found: NDArray[np.int32], scores: NDArray[np.float64]) -> None:
        """Add the contribution of a term to the scores of listings, which ascend."""
        starts, listings, counts, rarity, _, norms, _ = self._postings
        having = listings[starts[term] : starts[term + 1]]
        places = np.searchsorted(having, found)
        places[places == len(having)] = 0
        hits = np.flatnonzero(having[places] == found)
        often = counts[starts[term] + places[hits]].astype(np.float32)
        weights = often * (rarity[term] / (often + norms[found[hits]]))
        scores[hits] += weights.astype(np.float64) * repeats


def _find_largest(scores: NDArray[np.floating], number: int) -> np.floating:
    """Return the largest value of a number, such as the fiftieth largest."""
    value: np.floating = np.partition(scores, len(scores) - number)[len(scores) - number]
    return value
