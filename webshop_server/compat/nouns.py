"""The nouns of a title as the original counts them.

* `count_nouns` - by rule
* `load_tagger` - by a model of spaCy, as the original does

The original takes nouns and names from spaCy, whose model is a download. In titles, where most words are capitalised,
it tags nearly every word as a noun or a name; hence the rule: every word of two letters or more that is neither a
function word nor one of a few words of measure. Only the thresholds 0, 0.1 and 0.2 of the share of common nouns enter
the score.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from webshop_server.checks import refuse
from webshop_server.errors import ArgumentError

MODEL = "en_core_web_sm"
"""The original's model."""

_TAGS = ("NOUN", "PROPN")
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’](?=[^\W\d_]))*")
_NO_NOUNS_TEXT = """
a all an and are as at be but by can do each for from full has have how if in into is it its made men's mens more most
no non not of on one onto or our out over pcs per so than that the their them these they this those to under up us
very via vs was we were what when which who will with within without women's womens x you your
"""
_NO_NOUNS = frozenset(_NO_NOUNS_TEXT.split())


@lru_cache(maxsize=65536)
def count_nouns(title: str) -> tuple[str, ...]:
    """Return the nouns of a title in lower case, each as often as it occurs.

    Example:
        >>> count_nouns("2 Prong Power Cord for JBL Bar 3.1 Bar 2.1")
        ('prong', 'power', 'cord', 'jbl', 'bar', 'bar')
    """
    words = (word.lower() for word in _WORD.findall(title))
    return tuple(word for word in words if len(word) > 1 and word not in _NO_NOUNS)


def load_tagger(model: str = MODEL) -> Callable[[str], tuple[str, ...]]:
    """Return a function like `count_nouns` that takes the nouns from a model of spaCy.

    Args:
        model: the name of an installed model.

    Raises:
        ArgumentError: spaCy is not installed, or no such model.
    """
    try:
        import spacy
    except ImportError as error:
        raise ArgumentError("`spacy` is not installed, run `pip install spacy`") from error
    try:
        language = spacy.load(model, disable=["parser", "ner", "lemmatizer"])
    except OSError as error:
        raise refuse("model", "an installed model of spaCy", model, ArgumentError) from error

    @lru_cache(maxsize=65536)
    def count(title: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in language(title) if token.pos_ in _TAGS)

    return count
