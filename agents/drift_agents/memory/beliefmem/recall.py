"""Which questions a state brings to mind: BeliefMem's alpha(c).

* `Relevance` - how much an attribute has to do with a state, and how stale it is
* `AttributeColumns` - attributes that a question can bring up, with what ranks them
* `words`, `overlap` - the words of a text, and how many two texts share

Source: "BeliefMem", equation 10 and appendix A.3: alpha(c) = sim(o, c) * lambda ^ tau(c), and sim is 0.7
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
from drift_agents.errors import ArgumentError
from drift_agents.memory.beliefmem.belief import BeliefAttribute, check_probability
from drift_agents.types import AgentClock, Record, RecordId

UNITS = AgentClock._fields
KEPT = 4096
"""Questions whose similarities are kept."""
_WORD = re.compile(r"\w+")


def words(text: str) -> frozenset[str]:
    """The words of a text; upper and lower case count the same.

    Example:
        >>> sorted(words('{"cur_pos": [1, 2]}'))
        ['1', '2', 'cur_pos']
    """
    return frozenset(_WORD.findall(text.casefold()))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that both have, of those that one of them has (Jaccard); 0 when there are none.

    Example:
        >>> overlap(frozenset("ab"), frozenset("bc"))
        0.3333333333333333
    """
    either = len(one | other)
    return len(one & other) / either if either else 0.0


class AttributeColumns(NamedTuple):
    """Attributes that a question can bring up, with what ranks them.

    Args:
        attributes: the attributes, n of them.
        ids: their numbers.
        updated: when each was updated last, in the unit of staleness; shape (n,).
        newest: the id of the newest record about each; shape (n,).
    """

    attributes: Sequence[BeliefAttribute]
    ids: tuple[RecordId, ...]
    updated: NDArray[np.int64]
    newest: NDArray[np.int64]


class Relevance:
    """How much an attribute has to do with a state, and how stale it is (equation 10).

    Args:
        embedding: what tells how similar texts are.
        decay: lambda, what is left of an attribute's priority after one unit of time; in (0, 1].
        unit: what staleness counts, `step` or `episode`.
        mix: the share of the cosine in the similarity; the overlap of words has the rest; in [0, 1].

    Raises:
        ArgumentError: if an option is outside its range.
    """

    def __init__(self, embedding: Embedding, decay: float, unit: str, mix: float) -> None:
        if unit not in UNITS:
            raise ArgumentError(f"`unit` should be one of {', '.join(UNITS)}. Received {unit!r}")
        if isinstance(mix, bool) or not isinstance(mix, (int, float)) or not 0 <= mix <= 1:
            raise ArgumentError(f"`mix` should be in the interval [0, 1]. Received {mix!r}")
        self.embedding, self.decay, self.unit, self.mix = embedding, check_probability("decay", decay), unit, float(mix)
        self._unit = UNITS.index(unit)
        self._words: dict[RecordId, frozenset[str]] = {}
        self._vectors: tuple[tuple[RecordId, ...], Vectors] | None = None
        # What was computed for a question, while attributes and their words stay as they are.
        self._similar: dict[str, tuple[tuple[RecordId, ...], NDArray[np.float64]]] = {}

    def read(self, attribute: BeliefAttribute, fresh: Iterable[Record]) -> None:
        """Take note of the words of evidence.

        Args:
            attribute: what the evidence is about; its own words are read when it is new.
            fresh: the evidence, as far as it was not read before.
        """
        known = self._words.get(attribute.id)
        texts = [outcome.state for record in fresh for outcome, _ in record.outcomes]
        more = (known or words(_tell(attribute))).union(*map(words, texts))
        if more != known:
            self._words[attribute.id] = more
            self._similar.clear()

    def forget(self, ids: Iterable[RecordId]) -> None:
        """Forget what was read of these attributes."""
        for item in ids:
            self._words.pop(item, None)
        self._similar.clear()
        self._vectors = None

    def staleness(self, attribute: BeliefAttribute, now: AgentClock) -> int:
        """The time since its last Add or Merge, tau(c)."""
        return max(now[self._unit] - attribute.updated[self._unit], 0)

    def columns(self, attributes: Sequence[BeliefAttribute]) -> AttributeColumns:
        """What ranks these attributes."""
        return AttributeColumns(
            attributes,
            tuple(attribute.id for attribute in attributes),
            np.array([attribute.updated[self._unit] for attribute in attributes], np.int64),
            np.array([attribute.events[-1].record.id for attribute in attributes], np.int64),
        )

    def similarity(self, text: str, columns: AttributeColumns) -> NDArray[np.float64]:
        """The similarity sim(o, c) of every attribute, in [0, 1]; higher means more similar; shape (n,)."""
        done = self._similar.get(text)
        if done is not None and done[0] == columns.ids:
            return done[1].copy()
        if self._vectors is None or self._vectors[0] != columns.ids:
            self._vectors = columns.ids, self.embedding.embed([_tell(attribute) for attribute in columns.attributes])
        near = np.maximum(cosine(self.embedding.embed([text])[0], self._vectors[1]), 0.0)
        asked = words(text)
        shared = np.array([overlap(asked, self._words[item]) for item in columns.ids])
        similar = np.round(self.mix * near + (1.0 - self.mix) * shared, DIGITS)
        if len(self._similar) >= KEPT:
            self._similar.clear()
        self._similar[text] = columns.ids, similar
        return similar.copy()

    def rank(self, columns: AttributeColumns, similar: NDArray[np.float64]) -> list[int]:
        """The places of the attributes, by alpha from high to low; of equals the one updated last comes first.

        By the logarithm of alpha, since lambda ^ tau soon is too small for a number; and without the
        present time, which lowers all alike.

        Args:
            columns: what is ranked.
            similar: their similarities; shape (n,).
        """
        with np.errstate(divide="ignore"):
            priority = np.round(np.log(similar) - columns.updated * math.log(self.decay), DIGITS)
        return np.lexsort((-columns.newest, -priority)).tolist()

    def alpha(self, attribute: BeliefAttribute, similar: float, now: AgentClock) -> float:
        """The priority of an attribute at a moment, equation 10."""
        return similar * self.decay ** self.staleness(attribute, now)


def _tell(attribute: BeliefAttribute) -> str:
    """An attribute as a text."""
    return f"{attribute.state} {attribute.action}"
