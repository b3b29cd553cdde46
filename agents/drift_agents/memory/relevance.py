"""The ranking of attributes for a state: by the similarity of texts and the time since the last update.

Source: "BeliefMem" (the paper's section 3.3, equation 10): alpha(c) = sim(o, c) * lambda ^ tau(c), where sim is 0.7
times the cosine of embeddings plus 0.3 times the lexical overlap with attribute and evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import DIGITS, Embedding, Vectors, cosine
from drift_agents.memory.belief import BeliefAttribute
from drift_agents.types import CLOCK_UNITS, AgentClock, Record, RecordId
from drift_envs.checks import check_choice, check_interval

_WORD = re.compile(r"\w+")

CACHED_TEXTS = 4096
"""The largest number of texts whose similarities are cached."""


def words(text: str) -> frozenset[str]:
    """The words of a text; upper and lower case count the same.

    Example:
        >>> sorted(words('{"cur_pos": [1, 2]}'))
        ['1', '2', 'cur_pos']
    """
    return frozenset(_WORD.findall(text.casefold()))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The Jaccard index of two sets of words; 0 for two empty sets.

    Example:
        >>> overlap(frozenset("ab"), frozenset("bc"))
        0.3333333333333333
    """
    both = len(one & other)
    either = len(one) + len(other) - both
    return both / either if either else 0.0


class AttributeColumns(NamedTuple):
    """Candidate attributes as columns to rank.

    Args:
        attributes: the attributes, n of them.
        ids: their numbers.
        updated: when each was updated last, in the unit of staleness; shape (n,).
        newest: the id of the newest record of each; shape (n,).
    """

    attributes: Sequence[BeliefAttribute]
    ids: tuple[RecordId, ...]
    updated: NDArray[np.int64]
    newest: NDArray[np.int64]


class Relevance:
    """Similarity and staleness of attributes (equation 10).

    Args:
        embedding: of states and attributes.
        decay: lambda, the factor of an attribute's priority in one unit of time; in (0, 1].
        unit: what staleness counts, `step` or `episode`.
        mix: the weight of the cosine in the similarity, in [0, 1]; the overlap of words has 1 - mix.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    def __init__(self, embedding: Embedding, decay: float, unit: str, mix: float) -> None:
        self.embedding, self.unit = embedding, check_choice("unit", unit, CLOCK_UNITS)
        self.decay, self.mix = check_interval("decay", decay, "(0, 1]"), check_interval("mix", mix, "[0, 1]")
        self._unit = CLOCK_UNITS.index(unit)
        self._words: dict[RecordId, frozenset[str]] = {}
        self._vectors: tuple[tuple[RecordId, ...], Vectors] | None = None
        # Similarities by text, until attributes or their words change.
        self._similar: dict[str, tuple[tuple[RecordId, ...], NDArray[np.float64]]] = {}

    def add_words(self, attribute: BeliefAttribute, evidence: Iterable[Record]) -> None:
        """Add the words of evidence to those of its attribute.

        Args:
            attribute: the attribute; the words of its state and action are added when it is new.
        """
        known = self._words.get(attribute.id)
        texts = [outcome.state for record in evidence for outcome, _ in record.outcomes]
        more = (known or words(_text(attribute))).union(*map(words, texts))
        if more != known:
            self._words[attribute.id] = more
            self._similar.clear()

    def remove(self, ids: Iterable[RecordId]) -> None:
        """Remove the words of these attributes."""
        for item in ids:
            self._words.pop(item, None)
        self._similar.clear()
        self._vectors = None

    def staleness(self, attribute: BeliefAttribute, now: AgentClock) -> int:
        """The time since its last Add or Merge, tau(c)."""
        return max(now[self._unit] - attribute.updated[self._unit], 0)

    def columns(self, attributes: Sequence[BeliefAttribute]) -> AttributeColumns:
        """These attributes as columns."""
        return AttributeColumns(
            attributes,
            tuple(attribute.id for attribute in attributes),
            np.array([attribute.updated[self._unit] for attribute in attributes], np.int64),
            np.array([attribute.events[-1].record.id for attribute in attributes], np.int64),
        )

    def similarity(self, text: str, columns: AttributeColumns) -> NDArray[np.float64]:
        """The similarity sim(o, c) of every attribute, in [0, 1]; higher means more similar; shape (n,)."""
        cached = self._similar.get(text)
        if cached is not None and cached[0] == columns.ids:
            return cached[1].copy()
        if self._vectors is None or self._vectors[0] != columns.ids:
            self._vectors = columns.ids, self.embedding.embed([_text(attribute) for attribute in columns.attributes])
        near = np.maximum(cosine(self.embedding.embed([text])[0], self._vectors[1]), 0.0)
        own = words(text)
        shared = np.array([overlap(own, self._words[item]) for item in columns.ids])
        similar = np.round(self.mix * near + (1.0 - self.mix) * shared, DIGITS)
        if len(self._similar) >= CACHED_TEXTS:
            self._similar.clear()
        self._similar[text] = columns.ids, similar
        return similar.copy()

    def rank(self, columns: AttributeColumns, similar: NDArray[np.float64]) -> list[int]:
        """The places of the attributes, by alpha from high to low; of equals the one updated last comes first.

        By the logarithm of alpha, since lambda ^ tau underflows; and without the present time, which is a
        common factor.

        Args:
            similar: their similarities; shape (n,).
        """
        with np.errstate(divide="ignore"):
            priority = np.round(np.log(similar) - columns.updated * math.log(self.decay), DIGITS)
        ranked: list[int] = np.lexsort((-columns.newest, -priority)).tolist()
        return ranked

    def alpha(self, attribute: BeliefAttribute, similar: float, now: AgentClock) -> float:
        """The priority of an attribute at a time, equation 10."""
        return similar * self.decay ** self.staleness(attribute, now)


def _text(attribute: BeliefAttribute) -> str:
    """The state and action of an attribute."""
    return f"{attribute.state} {attribute.action}"
