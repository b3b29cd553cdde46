"""The terms of texts and listings, as the original's Lucene index has them.

* `tokenize` - a text as terms
* `find_stem` - one word as a term
* `find_words` - the words of a text
* `join_fields` - the indexed text of a listing
* `STOP_WORDS` - words that are not indexed

Terms are lower-case words without a possessive `'s` and without Lucene's 33 English stop words, as Porter stems.
"""

from __future__ import annotations

import re
import threading

import Stemmer

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
