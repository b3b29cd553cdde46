"""Which questions a state brings to mind: BeliefMem's alpha(c).

* `Relevance` - how much an attribute has to do with a state, and how stale it is
* `words` - the words of a text

Source: "BeliefMem", equation 10 and appendix A.3: alpha(c) = sim(o, c) * lambda ^ tau(c), and sim is 0.7
times the cosine of embeddings plus 0.3 times the lexical overlap with attribute and evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import DIGITS, Embedding, Vectors, cosine
from drift_agents.errors import ArgumentError
from drift_agents.memory.belief import Attribute, check_probability
from drift_agents.types import AgentClock, RecordId

UNITS = AgentClock._fields
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
        # The words of an attribute, with how much evidence they were read from.
        self._words: dict[RecordId, tuple[int, frozenset[str]]] = {}
        self._vectors: tuple[tuple[RecordId, ...], Vectors] | None = None

    def forget(self) -> None:
        """Forget what was read of attributes: some are gone, or read otherwise now."""
        self._words.clear()
        self._vectors = None

    def staleness(self, attribute: Attribute, now: AgentClock) -> int:
        """The time since its last Add or Merge, tau(c)."""
        return max(now[self._unit] - attribute.updated[self._unit], 0)

    def similarity(self, text: str, attributes: Sequence[Attribute]) -> NDArray[np.float64]:
        """The similarity of every attribute, sim(o, c), in [0, 1]; higher means more similar; shape (len(attributes),)."""
        ids = tuple(attribute.id for attribute in attributes)
        if self._vectors is None or self._vectors[0] != ids:
            self._vectors = ids, self.embedding.embed([_tell(attribute) for attribute in attributes])
        near = np.maximum(cosine(self.embedding.embed([text])[0], self._vectors[1]), 0.0)
        asked = words(text)
        shared = np.array([overlap(asked, self._read(attribute)) for attribute in attributes])
        return np.round(self.mix * near + (1.0 - self.mix) * shared, DIGITS)

    def rank(self, attributes: Sequence[Attribute], similar: NDArray[np.float64]) -> list[int]:
        """The places of the attributes, by alpha from high to low; of equals the one updated last comes first.

        By the logarithm of alpha, since lambda ^ tau soon is too small for a number; and without the
        present time, which lowers all alike.

        Args:
            attributes: what is ranked.
            similar: their similarities.
        """
        fade = -math.log(self.decay)
        keys = [
            (
                -round(math.log(like) + attribute.updated[self._unit] * fade, DIGITS) if like > 0 else math.inf,
                -attribute.events[-1].record.id,
                place,
            )
            for place, (attribute, like) in enumerate(zip(attributes, similar.tolist(), strict=True))
        ]
        return [place for _, _, place in sorted(keys)]

    def alpha(self, attribute: Attribute, similar: float, now: AgentClock) -> float:
        """The priority of an attribute, alpha(c), by equation 10."""
        return similar * self.decay ** self.staleness(attribute, now)

    def _read(self, attribute: Attribute) -> frozenset[str]:
        """The words of an attribute and of its evidence."""
        read, known = self._words.get(attribute.id, (0, frozenset()))
        if read == 0:
            known = words(_tell(attribute))
        if read < len(attribute.events):
            fresh = [outcome.state for event in attribute.events[read:] for outcome, _ in event.record.outcomes]
            known = known.union(*map(words, fresh))
            self._words[attribute.id] = len(attribute.events), known
        return known


def _tell(attribute: Attribute) -> str:
    """An attribute as a text."""
    return f"{attribute.state} {attribute.action}"
