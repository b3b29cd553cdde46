"""Finding listings by words: BM25 as the original's Lucene index has it.

* `SearchIndex` - the index: built from a catalogue, saved beside it, memory-mapped
* `tokenize` - a text as terms
* `MAX_RESULTS` - how many listings a search finds at most

BM25 (Robertson and Zaragoza, 2009) with Lucene's inverse document frequency, k1 = 0.9 and b = 0.4,
over title, description, first bullet point and options. Terms are Lucene's: words of letters and
digits that may hold single dots and apostrophes, in lower case, without a possessive `'s`, without its
33 English stop words, as Porter stems. Equal scores are ordered by the listing's number, as in Lucene.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
from bm25s.tokenization import Tokenized

from webshop_server.catalog import Catalogue
from webshop_server.errors import CatalogueError
from webshop_server.product import Product

K1, B = 0.9, 0.4
MAX_RESULTS = 50
MAX_TERMS = 64
"""The terms of a query that count; what follows is left out."""

_STOP_WORDS_TEXT = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
"""Lucene's English stop words."""

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_INDEX_VERSION = 1


class _Stems:
    """Words to stems, remembered: a stemmer costs more than a look-up, and is not safe to share."""

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
        with self._lock:
            stem = None if bare in STOP_WORDS else self._stemmer.stemWord(bare)
            if len(self._known) > 500_000:
                self._known.clear()
            self._known[word] = stem
        return stem


_stem = _Stems()


def tokenize(text: str) -> list[str]:
    """Give a text as terms.

    Example:
        >>> tokenize("The Men's Running-Shoes, size 10.5")
        ['men', 'run', 'shoe', 'size', '10.5']
    """
    stems = (_stem(word) for word in _WORD.findall(text.lower()))
    return [stem for stem in stems if stem]


def document(product: Product) -> str:
    """Give the text of a listing that is searched: title, description, first bullet point, options."""
    options = " ".join(f"{option.name}: {value}" for option in product.options for value in option.values)
    return " ".join((product.title, product.description, product.bullets[0] if product.bullets else "", options))


class SearchIndex:
    """Finds listings by words.

    Args:
        model: the filled BM25 index.
        size: how many listings it covers.
    """

    def __init__(self, model: bm25s.BM25, size: int) -> None:
        self._vocabulary: dict[str, int] = model.vocab_dict
        scores = model.scores
        self._weights, self._listings, self._starts = scores["data"], scores["indices"], scores["indptr"]
        self._size = size
        self._model = model

    def __len__(self) -> int:
        return self._size

    @property
    def is_empty(self) -> bool:
        """Whether no listing holds a word."""
        return not self._vocabulary

    @classmethod
    def build(cls, products: Iterable[Product]) -> SearchIndex:
        """Make an index in memory.

        Args:
            products: the listings; their numbers are their places in this order.
        """
        vocabulary: dict[str, int] = {}
        documents = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in tokenize(document(product))]
            for product in products
        ]
        model = bm25s.BM25(k1=K1, b=B, method="lucene")
        if vocabulary:
            model.index(Tokenized(ids=documents, vocab=vocabulary), create_empty_token=False, show_progress=False)
        else:
            model.vocab_dict = {}
            empty = np.zeros(0)
            model.scores = {"data": empty, "indices": empty.astype(np.int32), "indptr": np.zeros(1, np.int64)}
        return cls(model, len(documents))

    @classmethod
    def open(cls, catalogue: Catalogue) -> SearchIndex:
        """Give the index of a catalogue: the one beside it, memory-mapped, or a new one.

        Where the place beside the catalogue cannot be written, the index is kept in memory.

        Raises:
            CatalogueError: the index beside the catalogue is damaged.
        """
        place = index_path(catalogue.path)
        mark = {"version": _INDEX_VERSION, "fingerprint": catalogue.fingerprint, "size": len(catalogue)}
        if _read_mark(place) == mark:
            return cls._load(place, len(catalogue))
        index = cls.build(catalogue)
        if index.is_empty:  # nothing to map
            return index
        try:
            index.save(place, mark)
        except OSError:  # a place that cannot be written: it serves from memory
            return index
        return cls._load(place, len(catalogue))

    @classmethod
    def _load(cls, place: Path, size: int) -> SearchIndex:
        try:
            return cls(bm25s.BM25.load(place, mmap=True, show_progress=False), size)
        except (OSError, ValueError, KeyError) as error:
            raise CatalogueError(
                f"the search index `{place}` is damaged: {error}; remove it, and it is made again"
            ) from error

    def save(self, place: Path, mark: dict[str, Any]) -> None:
        """Write the index: into a directory of its own first, so that nobody ever reads half of one."""
        fresh = place.with_name(f"{place.name}.{os.getpid()}.{threading.get_ident()}")
        self._model.save(fresh, show_progress=False)
        (fresh / "mark.json").write_text(json.dumps(mark), encoding="utf-8")
        try:
            os.replace(fresh, place)
        except OSError:  # a directory is in the way: an old index, or one that another process has just made
            if _read_mark(place) != mark:
                shutil.rmtree(place, ignore_errors=True)
                os.replace(fresh, place)
            else:
                shutil.rmtree(fresh)

    def search(self, words: str, limit: int = MAX_RESULTS) -> list[int]:
        """Give the numbers of the best listings, best first.

        Args:
            words: the query; any text.
            limit: how many at most.
        """
        terms = tokenize(words[:4096])[:MAX_TERMS]  # a term that stands twice counts twice, as in Lucene
        numbers = [self._vocabulary[term] for term in terms if term in self._vocabulary]
        if not numbers:
            return []
        scores = np.zeros(self._size, dtype=np.float32)
        for number in numbers:
            start, stop = self._starts[number], self._starts[number + 1]
            scores[self._listings[start:stop]] += self._weights[start:stop]
        return _best(scores, limit)


def _best(scores: np.ndarray, limit: int) -> list[int]:
    """Give the places of the highest positive scores, ties by place."""
    found = np.flatnonzero(scores)
    if len(found) > limit:
        values = scores[found]
        threshold = np.partition(values, len(values) - limit)[len(values) - limit]
        found = found[values >= threshold]
    order = np.lexsort((found, -scores[found]))
    return [int(place) for place in found[order][:limit]]


def index_path(path: Path) -> Path:
    """Give the directory of the index that belongs to the catalogue at `path`."""
    return path.with_name(path.name + ".index")


def _read_mark(place: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads((place / "mark.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
