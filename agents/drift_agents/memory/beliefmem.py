"""BeliefMem: every conclusion that evidence supports, each with a probability.

Source: "BeliefMem", sections 3 and 4.2, appendices A, B.3 and C.2. The update of one attribute is in
`drift_agents.memory.belief`, its priority alpha in `drift_agents.memory.relevance`; `docs/memories/beliefmem.md` says
what is faithful and what was decided here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding, HashedEmbedding
from drift_agents.envs.matching import Matching
from drift_agents.llm.base import Model, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.belief import Belief, BeliefAttribute, BeliefRule, Event, Extracted, HeldConclusion, Version
from drift_agents.memory.citations import check_cascade
from drift_agents.memory.relevance import AttributeColumns, Relevance
from drift_agents.memory.transcript import render_statement
from drift_agents.memory.transitions import AnswerCache, TransitionStore, TransitionStoreMemory
from drift_agents.types import AgentClock, Experience, Note, Outcome, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_count, check_interval

PER = ("state", "bank")
ABLATIONS = ("belief", "retrieval", "add", "merge")
_CANDIDATE = object_schema("", conclusion={"type": "string"}, prob={"type": "number", "minimum": 0, "maximum": 1})
CANDIDATES = object_schema("beliefmem_candidates", candidates={"type": "array", "items": _CANDIDATE})
"""The schema of the model's answer (figure 6): the conclusions that an observation supports, each with its strength."""


class BeliefMem(TransitionStoreMemory):
    """Every conclusion that evidence supports, each with a probability (BeliefMem, section 3.3).

    An attribute c is a state and an action, a conclusion h its outcome. One observation supports a set of
    conclusions, each with a strength: its outcome with `strength` (the environment has changed), and, when it is
    the first to contradict the most probable conclusion, that one with `one_off` (this response was false).
    With a `model`, the set and its strengths are extracted as in the paper's figure 6; a conclusion that is no
    outcome is kept in words, and stands in the notes.

    A supported conclusion that is new has p = clip(strength, .7, .9), a known one gets
    p = min(1 - (1 - p)(1 - strength), .99). All others of the attribute fall to at most .25. Former
    probabilities are archived.

    A query returns the `k` attributes of highest alpha(c) = sim(o, c) * decay ^ staleness, each with its
    `candidates` most probable conclusions. A conclusion is represented by the newest record that states
    exactly it, with its probability as weight: so it is in the prompt, and planners weigh it.

    A verified summary is evidence as strong as its responses together. A summary of several outcomes is
    one conclusion (a distribution), which every one of these outcomes supports; the weight of its record
    is p / n, so that its n responses weigh p together.

    Every probability is a function of the present evidence: after a removal, beliefs are as if the removed
    evidence had never been written.

    Args:
        k: attributes for each query; positive.
        per: what `k` limits the attributes of: the whole `bank`, which a prompt queries once, for the present
            state (the paper's), or the queried `state`, where a prompt queries every known state.
        candidates: conclusions of one attribute in a result; positive.
        strength: of one observation as evidence; in (0, 1]. Used where no model is given.
        initial: the least and the greatest probability of a new conclusion.
        cap: the greatest probability of a conclusion.
        contradicted: the greatest probability of a contradicted conclusion.
        one_off: the strength of a contradicting response as evidence that it was false; in [0, 1], 0 for one
            conclusion an observation. Not in the paper, where a language model rates it.
        decay: lambda, the factor of an attribute's priority in one unit of time; in (0, 1]. The paper has .1 in
            ALFWorld and .5 in conversations.
        unit: what staleness counts, `step` or `episode`.
        mix: the weight of the cosine in sim; the overlap of words has 1 - mix.
        archived: former conclusions of an attribute that a result includes as notes, 0 for none.
        without: an ablation, one of `ABLATIONS`, or `None`.
        cascade: when a conclusion is removed with its evidence: with `any` of it, with its `majority`, or
            with all of it (`cut`).
        model: extracts the conclusions that an observation supports; rules if not given, or if it finds none.
        embedding: of states and attributes; hashed words and letters if not given.
        matching: when two states, and two outcomes, count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = BeliefMem()
        >>> for time, after in enumerate(["ice", "ice", "hole"]):
        ...     now = AgentClock(0, time)
        ...     _ = memory.observe(Experience("s", "1", Outcome(after, 0.0, False), 0.0, now), now)
        >>> retrieved = memory.retrieve("s", None, AgentClock(1, 3))
        >>> [(r.outcome.state, round(w, 3)) for r, w in zip(retrieved.records, retrieved.weights)]
        [('ice', 0.968), ('hole', 0.8)]
    """

    name = "beliefmem"

    def __init__(
        self,
        *,
        k: int = 20,
        per: str = "bank",
        candidates: int = 4,
        strength: float = 0.8,
        initial: tuple[float, float] = (0.7, 0.9),
        cap: float = 0.99,
        contradicted: float = 0.25,
        one_off: float = 0.2,
        decay: float = 0.1,
        unit: str = "step",
        mix: float = 0.7,
        archived: int = 0,
        without: str | None = None,
        cascade: str = "cut",
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        self.k, self.candidates = check_count("k", k), check_count("candidates", candidates)
        self.archived, self.per = check_count("archived", archived, 0), check_choice("per", per, PER)
        self.without = check_choice("without", without, ABLATIONS, optional=True)
        self.cascade = check_cascade(cascade)
        self.strength = check_interval("strength", strength, "(0, 1]")
        self.rule = BeliefRule(initial, cap, contradicted, one_off, collapse=without == "belief")
        self.model = model
        self._relevance = Relevance(HashedEmbedding() if embedding is None else embedding, decay, unit, mix)
        self.transitions = TransitionStore(matching)
        self._attributes: dict[RecordId, BeliefAttribute] = {}
        self._index: dict[Hashable, dict[RecordId, BeliefAttribute]] = {}
        self._cited: dict[RecordId, RecordId] = {}
        self._cache = AnswerCache()
        self._bank: AttributeColumns | None = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The conclusions of the `k` attributes of highest alpha, the most probable first; no side effect.

        The present time is a common factor of all alphas, so the result does not depend on it.
        """
        k = self.k if k is None else k
        key = self.transitions.keys[state]
        if key not in self._index:
            return self._retrieve_uncached(state, k) if self.per == "bank" else Retrieved()
        answers = self._cache[k]
        if key not in answers:
            answers[key] = self._retrieve_uncached(state, k)
        return answers[key]

    def in_mind(self) -> Iterator[str]:
        """No further state for a bank, which one query reads; else every known state."""
        return iter(()) if self.per == "bank" else super().in_mind()

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """What `retrieve` returns."""
        return self.retrieve(state, None, now)

    def _retrieve_uncached(self, state: str, k: int) -> Retrieved:
        columns, similar = self._compare(state)
        records: list[Record] = []
        weights: list[float] = []
        notes: list[Note] = []
        for place in self._relevance.rank(columns, similar)[:k]:
            attribute = columns.attributes[place]
            texts: list[str] = []
            for held in self._shown(attribute):
                p = 1.0 if self.without in ("belief", "retrieval") else held.p
                if held.words:
                    texts.append(held.words if p == 1.0 else f"With probability {p:.2g}: {held.words}")
                else:
                    records.append(held.record)
                    weights.append(p / held.record.n)
            texts += _render_archive(attribute, self.archived)
            if texts:
                evidence = tuple(event.record.id for event in attribute.events)
                notes.append(Note(attribute.id, " ".join(texts), evidence))
        return Retrieved(tuple(records), tuple(weights), tuple(notes))

    def _shown(self, attribute: BeliefAttribute) -> list[HeldConclusion]:
        """The conclusions of an attribute in a result."""
        if self.without == "retrieval":
            # Without probabilities at retrieval, the newest conclusions are chosen.
            return sorted(attribute.candidates, key=lambda held: -held.evidence[-1])[: self.candidates]
        return attribute.ranked()[: self.candidates]

    def _compare(self, state: str) -> tuple[AttributeColumns, NDArray[np.float64]]:
        """The candidate attributes for a state, and the similarity of each."""
        own = self._index.get(self.transitions.keys[state], {})
        if self.per == "state":
            return self._relevance.columns(list(own.values())), np.ones(len(own))
        if self._bank is None:
            self._bank = self._relevance.columns(list(self._attributes.values()))
        if own:
            # For equal states the text is that of the oldest record.
            state = min((attribute.events[0].record for attribute in own.values()), key=lambda r: r.id).state
        similar = self._relevance.similarity(state, self._bank)
        similar[[item in own for item in self._bank.ids]] = 1.0
        return self._bank, similar

    def alphas(self, state: str, now: AgentClock) -> tuple[tuple[str, str, float], ...]:
        """The candidate attributes as (state, action, alpha), in ranked order; no side effect."""
        columns, similar = self._compare(state)
        ranked = [(columns.attributes[i], float(similar[i])) for i in self._relevance.rank(columns, similar)]
        return tuple((a.state, a.action, self._relevance.alpha(a, like, now)) for a, like in ranked)

    def beliefs(self, state: str, action: str, at: AgentClock | None = None) -> tuple[Belief, ...]:
        """The beliefs about an action now, or at an earlier time; the most probable first.

        Args:
            at: the time, the evidence of its own step included; now if not given.
        """
        beliefs = [belief for attribute in self._attributes_of(state, action) for belief in attribute.beliefs(at)]
        return tuple(sorted(beliefs, key=lambda belief: (-belief.p, -belief.record.id)))

    def archive(self, state: str, action: str) -> tuple[Version, ...]:
        """Former versions of the conclusions about an action, in the order in which they were archived."""
        return tuple(version for attribute in self._attributes_of(state, action) for version in attribute.archive)

    def _attributes_of(self, state: str, action: str) -> list[BeliefAttribute]:
        """The attributes of a state and an action: one, or with `without="merge"` one for each record."""
        own = self._index.get(self.transitions.keys[state], {})
        return [attribute for attribute in own.values() if attribute.action == action]

    @property
    def rules(self) -> RuleModel:
        """What answers where a language model's answer cannot be used: no candidates, so that the rules decide."""
        return RuleModel({str(CANDIDATES["title"]): lambda _: {"candidates": []}})

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Add, Merge or contradict; `None` for an unknown attribute without Add.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        adds = self.without != "add"
        if not adds and not self._attributes_of(experience.state, experience.action):
            return None
        extracted = () if self.model is None else self._extract(self.model, experience)
        return self._learn(self.transitions.append(experience, now), self.strength, adds, extracted)

    def _extract(self, model: Model, experience: Experience) -> Extracted:
        """The conclusions that an observation supports and their strengths, by the model."""
        observation = render_statement(experience.state, experience.action, [(experience.outcome, 1.0)])
        attributes = [] if self.without == "merge" else self._attributes_of(experience.state, experience.action)
        known = [f"- {held.text}" for attribute in attributes for held in attribute.ranked()]
        messages = read_messages(
            "memory/templates/beliefmem_candidates.txt", observation=observation, known="\n".join(known) or "- none"
        )
        found = ask(model, messages, CANDIDATES).data["candidates"]
        return tuple((one["conclusion"], float(one["prob"])) for one in found if one["conclusion"].strip())

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Add a verified summary, or Merge it: as strong as `n` observations.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        record_id = self.transitions.append_summary(state, action, distribution, n, now)
        return self._learn(record_id, 1.0 - (1.0 - self.strength) ** n, adds=True)

    def _learn(self, record_id: RecordId, strength: float, adds: bool, extracted: Extracted = ()) -> RecordId:
        record = self.transitions[record_id]
        attributes = [] if self.without == "merge" else self._attributes_of(record.state, record.action)
        attribute = attributes[0] if attributes else BeliefAttribute(self.transitions.new_id())
        attribute.learn(Event(record, strength, adds, extracted), self.rule, self.transitions.matching.same_outcome)
        self._attributes[attribute.id] = attribute
        self._index.setdefault(self.transitions.keys[attribute.state], {})[attribute.id] = attribute
        self._cited[record_id] = attribute.id
        self._relevance.add_words(attribute, [record])
        self._bank = None
        if self.per == "bank":
            self._cache.clear()
        else:
            self._cache.forget(self.transitions.keys[record.state])
        return record_id

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, recompute beliefs from the rest, and remove attributes without evidence."""
        removed = self.transitions.remove(ids)
        lost: dict[RecordId, set[RecordId]] = {}
        for record_id in removed:
            attribute_id = self._cited.pop(record_id, None)
            if attribute_id is not None:
                lost.setdefault(attribute_id, set()).add(record_id)
        items = tuple(item for item in sorted(lost) if not self._relearn(self._attributes[item], lost[item]))
        if lost:
            self._refresh(lost)
        return Removed(removed, items)

    def _refresh(self, ids: Iterable[RecordId]) -> None:
        """Clear caches, and recompute the words of these attributes."""
        self._cache.clear()
        self._bank = None
        self._relevance.remove(ids)
        for item in ids:
            if (attribute := self._attributes.get(item)) is not None:
                self._relevance.add_words(attribute, (event.record for event in attribute.events))

    def _relearn(self, attribute: BeliefAttribute, lost: set[RecordId]) -> bool:
        """Recompute an attribute without lost evidence; returns whether any conclusion remains."""
        key = self.transitions.keys[attribute.state]
        refuted = [held for held in attribute.candidates if self._is_removed(held, lost)]
        remaining = {item for held in attribute.candidates if held not in refuted for item in held.evidence}
        dropped = lost.union(item for held in refuted for item in held.evidence if item not in remaining)
        events = [event for event in attribute.events if event.record.id not in dropped]
        for item in dropped:
            self._cited.pop(item, None)
        attribute.relearn(events, self.rule, self.transitions.matching.same_outcome)
        if attribute.candidates:
            return True
        for event in events:
            del self._cited[event.record.id]
        del self._attributes[attribute.id], self._index[key][attribute.id]
        if not self._index[key]:
            del self._index[key]
        return False

    def _is_removed(self, held: HeldConclusion, lost: set[RecordId]) -> bool:
        """Whether a conclusion that loses this evidence is removed."""
        count = len(lost.intersection(held.evidence))
        if self.cascade == "majority":
            return 2 * count > len(held.evidence)
        return count > 0 if self.cascade == "any" else count == len(held.evidence)


def _render_archive(attribute: BeliefAttribute, number: int) -> list[str]:
    """The former conclusions in words, the latest version of each, the newest first."""
    if not number or not attribute.candidates:
        return []
    best = attribute.best
    latest: dict[str, Version] = {}
    for version in reversed(attribute.archive):
        latest.setdefault(version.text, version)
    past = [(text, one) for text, one in latest.items() if text != best.text and one.record.id != best.record.id]
    return [f"Until step {one.until.step}, with probability {one.p:.2g}: {text}." for text, one in past[:number]]
