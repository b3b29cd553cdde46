"""BeliefMem: every conclusion that evidence speaks for, each with a probability.

* `BeliefMem` - the memory
* `ABLATIONS` - what can be left out, as in the paper's table 3

Source: "BeliefMem", sections 3 and 4.2, appendices A, B.3 and C.2. The update of one attribute stands in
`drift_agents.memory.beliefmem.belief`, alpha in `drift_agents.memory.beliefmem.recall`;
`docs/memories/beliefmem.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model, ask
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Matching
from drift_agents.memory.beliefmem.belief import (
    Belief,
    BeliefAttribute,
    BeliefRule,
    Event,
    HeldConclusion,
    Version,
    check_probability,
)
from drift_agents.memory.beliefmem.recall import AttributeColumns, Relevance
from drift_agents.memory.beliefmem.state import plain_attribute, read_attribute
from drift_agents.memory.citations import check_cascade
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.ledgered import LedgerMemory
from drift_agents.memory.reflection import tell
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Note,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
)

PER = ("state", "bank")
ABLATIONS = ("belief", "retrieval", "add", "merge")
STRENGTH: Mapping[str, Any] = {
    "title": "beliefmem_strength",
    "type": "object",
    "properties": {"prob": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["prob"],
    "additionalProperties": False,
}
"""The form of a model's answer: how strongly an observation supports what it shows."""


class BeliefMem(LedgerMemory):
    """Every conclusion that evidence speaks for, each with a probability (BeliefMem, section 3.3).

    An attribute is a state and an action, a conclusion is what follows. An observation of an unknown
    attribute is added with probability clip(strength, .7, .9). One that says the same again raises
    it: p = min(1 - (1 - p)(1 - strength), .99). One that says otherwise lowers every other conclusion
    of that attribute to .25 at the most, and is added beside them. What a probability was before stays
    in the archive.

    A question brings up the `k` attributes of highest alpha(c) = sim(o, c) * decay ^ staleness, each
    with its `candidates` most probable conclusions. A conclusion is told by the newest record that says
    just this, and its probability is that record's weight: so it stands in the prompt, and planners
    count it as much as it is believed.

    What a verifier inserts is evidence like any other, as strong as its responses together. A summary
    of several outcomes is one conclusion ("it is by chance, like this"), which every one of these
    outcomes supports; the weight of its record is p / n, so that its n responses count p in all.

    Every probability follows from the evidence that there is. When a part of it is removed, the rest is
    believed as if that part had never been.

    Args:
        k: attributes for each question; positive.
        per: of what there are `k`: of the `state` that is asked about, or of the whole `bank` (the
            paper's; the agent's prompt asks about every known state, so both fill it alike).
        candidates: conclusions of one attribute in an answer; positive.
        strength: of one observation's evidence; in (0, 1]. Used where no model is given.
        initial: the least and the greatest probability of a new conclusion.
        cap: no conclusion becomes more certain than this.
        contradicted: what a contradicted conclusion keeps at the most.
        decay: lambda, what is left of an attribute's priority after one unit of time; in (0, 1].
        unit: what staleness counts, `step` or `episode`.
        mix: the share of the cosine in sim; the overlap of words has the rest.
        archived: former conclusions of an attribute that an answer tells in words, 0 for none.
        without: what is left out, one of `ABLATIONS`, or `None`.
        cascade: when a conclusion falls with its evidence: with `any` of it, with its `majority`, or
            when nothing is left (`cut`).
        model: who says how strong the evidence of an observation is; the constant if not given.
        embedding: what tells how similar texts are; hashed words and letters if not given.
        matching: when two states, and two outcomes, count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = BeliefMem()
        >>> for time, after in enumerate(["ice", "ice", "hole"]):
        ...     now = AgentClock(0, time)
        ...     _ = memory.observe(Experience("s", "1", Outcome(after, 0.0, False), 0.0, now), now)
        >>> answer = memory.retrieve("s", None, AgentClock(1, 3))
        >>> [(r.outcome.state, w) for r, w in zip(answer.records, answer.weights)]
        [('hole', 0.8), ('ice', 0.25)]
    """

    name = "beliefmem"
    needs: frozenset[str] = frozenset()
    supervision = "none"

    def __init__(
        self,
        *,
        k: int = 20,
        per: str = "state",
        candidates: int = 4,
        strength: float = 0.8,
        initial: tuple[float, float] = (0.7, 0.9),
        cap: float = 0.99,
        contradicted: float = 0.25,
        decay: float = 1.0,
        unit: str = "step",
        mix: float = 0.7,
        archived: int = 0,
        without: str | None = None,
        cascade: str = "cut",
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        for name, count, least in (("k", k, 1), ("candidates", candidates, 1), ("archived", archived, 0)):
            if not isinstance(count, int) or isinstance(count, bool) or count < least:
                raise ArgumentError(f"`{name}` should be a whole number, at least {least}. Received {count!r}")
        if per not in PER:
            raise ArgumentError(f"`per` should be one of {', '.join(PER)}. Received {per!r}")
        if without is not None and without not in ABLATIONS:
            raise ArgumentError(f"`without` should be None or one of {', '.join(ABLATIONS)}. Received {without!r}")
        self.k, self.per, self.candidates, self.archived = k, per, candidates, archived
        self.without, self.cascade = without, check_cascade(cascade)
        self.strength = check_probability("strength", strength)
        self.rule = BeliefRule(initial, cap, contradicted, collapse=without == "belief")
        self.model = model
        self._relevance = Relevance(HashedEmbedding() if embedding is None else embedding, decay, unit, mix)
        self._ledger = Ledger(matching)
        self._attributes: dict[RecordId, BeliefAttribute] = {}
        self._index: dict[Hashable, dict[RecordId, BeliefAttribute]] = {}
        self._cited: dict[RecordId, RecordId] = {}
        # What was answered about a state, by k: most states stay as they are from step to step.
        self._answers: dict[Hashable, dict[int, Retrieved]] = {}
        self._bank: AttributeColumns | None = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The conclusions of the `k` attributes of highest alpha, the most probable first; no side effect.

        Time lowers alpha of all attributes alike, so that an answer does not depend on it.
        """
        k = self.k if k is None else k
        key = self._ledger.matching.state_key(state)
        if key not in self._index:
            return self._answer(state, k) if self.per == "bank" else Retrieved()
        answers = self._answers.setdefault(key, {})
        if k not in answers:
            answers[k] = self._answer(state, k)
        return answers[k]

    def _answer(self, state: str, k: int) -> Retrieved:
        columns, similar = self._compare(state)
        records: list[Record] = []
        weights: list[float] = []
        notes: list[Note] = []
        for place in self._relevance.rank(columns, similar)[:k]:
            attribute = columns.attributes[place]
            for held in self._shown(attribute):
                records.append(held.record)
                p = 1.0 if self.without in ("belief", "retrieval") else held.p
                weights.append(p / held.record.n)
            if self.archived and (text := _tell_archive(attribute, self.archived)):
                notes.append(Note(attribute.id, text, tuple(event.record.id for event in attribute.events)))
        return Retrieved(tuple(records), tuple(weights), tuple(notes))

    def _shown(self, attribute: BeliefAttribute) -> list[HeldConclusion]:
        """The candidates of an attribute that an answer tells."""
        if self.without == "retrieval":
            # Probabilities are not known at retrieval, so they choose nothing either.
            return sorted(attribute.candidates, key=lambda held: -held.evidence[-1])[: self.candidates]
        return attribute.ranked()[: self.candidates]

    def _compare(self, state: str) -> tuple[AttributeColumns, NDArray[np.float64]]:
        """The attributes that a question about a state can bring up, and how similar each is."""
        own = self._index.get(self._ledger.matching.state_key(state), {})
        if self.per == "state":
            return self._relevance.columns(list(own.values())), np.ones(len(own))
        if self._bank is None:
            self._bank = self._relevance.columns(list(self._attributes.values()))
        if own:
            # States that count as the same ask in the same words, those of the oldest record.
            state = min((attribute.events[0].record for attribute in own.values()), key=lambda r: r.id).state
        similar = self._relevance.similarity(state, self._bank)
        similar[[item in own for item in self._bank.ids]] = 1.0
        return self._bank, similar

    def alphas(self, state: str, now: AgentClock) -> tuple[tuple[str, str, float], ...]:
        """The attributes that a question can bring up, as (state, action, alpha), the first ones first; no side effect.

        Args:
            state: what is asked about.
            now: the agent's clock.
        """
        columns, similar = self._compare(state)
        ranked = [(columns.attributes[i], float(similar[i])) for i in self._relevance.rank(columns, similar)]
        return tuple((a.state, a.action, self._relevance.alpha(a, like, now)) for a, like in ranked)

    def beliefs(self, state: str, action: str, at: AgentClock | None = None) -> tuple[Belief, ...]:
        """What is believed to follow from an action, or was believed at some time; the most probable first.

        Args:
            state: the state.
            action: the action.
            at: the moment, what was written in its very step included; the present if not given.
        """
        told = [belief for attribute in self._about(state, action) for belief in attribute.beliefs(at)]
        return tuple(sorted(told, key=lambda belief: (-belief.p, -belief.record.id)))

    def archive(self, state: str, action: str) -> tuple[Version, ...]:
        """Former versions of what is believed to follow from an action, in the order in which they were put away."""
        return tuple(version for attribute in self._about(state, action) for version in attribute.archive)

    def _about(self, state: str, action: str) -> list[BeliefAttribute]:
        """The attributes of a state and an action: one, or with `without="merge"` one for each record."""
        own = self._index.get(self._ledger.matching.state_key(state), {})
        return [attribute for attribute in own.values() if attribute.action == action]

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Add, Merge or contradict; `None` where nothing may be added and nothing is known.

        Raises:
            ModelError: if the model's answer is no strength.
        """
        adds = self.without != "add"
        if not adds and not self._about(experience.state, experience.action):
            return None
        strength = self.strength if self.model is None else self._ask(self.model, experience)
        return self._learn(self._ledger.append(experience, now), strength, adds)

    def _ask(self, model: Model, experience: Experience) -> float:
        """How strong a model finds the evidence of an observation."""
        observation = tell(experience.state, experience.action, [(experience.outcome, 1.0)])
        messages = read_messages("memory/templates/beliefmem_strength.txt", observation=observation)
        return float(ask(model, messages, STRENGTH).data["prob"])

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Add a verified summary, or Merge it: as strong as `n` observations.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        record_id = self._ledger.append_summary(state, action, distribution, n, now)
        return self._learn(record_id, 1.0 - (1.0 - self.strength) ** n, adds=True)

    def _learn(self, record_id: RecordId, strength: float, adds: bool) -> RecordId:
        record = self._ledger.get(record_id)
        if record is None:
            raise MemoryStateError(f"record {record_id} should be in the ledger, and is not")
        known = [] if self.without == "merge" else self._about(record.state, record.action)
        attribute = known[0] if known else BeliefAttribute(self._ledger.new_id())
        attribute.learn(Event(record, strength, adds), self.rule, self._ledger.matching.same_outcome)
        self._keep(attribute)
        self._cited[record_id] = attribute.id
        self._relevance.read(attribute, [record])
        self._bank = None
        if self.per == "bank":
            self._answers.clear()
        else:
            self._answers.pop(self._ledger.matching.state_key(record.state), None)
        return record_id

    def _keep(self, attribute: BeliefAttribute) -> None:
        self._attributes[attribute.id] = attribute
        self._index.setdefault(self._ledger.matching.state_key(attribute.state), {})[attribute.id] = attribute

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; what is believed follows from the rest, and attributes without evidence fall."""
        gone = self._ledger.remove(ids)
        lost: dict[RecordId, set[RecordId]] = {}
        for record_id in gone:
            attribute_id = self._cited.pop(record_id, None)
            if attribute_id is not None:
                lost.setdefault(attribute_id, set()).add(record_id)
        fell = tuple(item for item in sorted(lost) if not self._reconsider(self._attributes[item], lost[item]))
        if lost:
            self._reread(lost)
        return Removed(gone, fell)

    def _reread(self, ids: Iterable[RecordId]) -> None:
        """Forget what was read of these attributes and what was answered, and read those that are left."""
        self._answers.clear()
        self._bank = None
        self._relevance.forget(ids)
        for item in ids:
            if item in self._attributes:
                self._relevance.read(self._attributes[item], (event.record for event in self._attributes[item].events))

    def _reconsider(self, attribute: BeliefAttribute, lost: set[RecordId]) -> bool:
        """Believe what follows from the evidence that is left; returns whether there is any."""
        key = self._ledger.matching.state_key(attribute.state)
        fallen = [held for held in attribute.candidates if self._falls(held, lost)]
        standing = {item for held in attribute.candidates if held not in fallen for item in held.evidence}
        dropped = lost.union(item for held in fallen for item in held.evidence if item not in standing)
        left = [event for event in attribute.events if event.record.id not in dropped]
        for item in dropped:
            self._cited.pop(item, None)
        attribute.relearn(left, self.rule, self._ledger.matching.same_outcome)
        if attribute.candidates:
            return True
        for event in left:
            del self._cited[event.record.id]
        del self._attributes[attribute.id], self._index[key][attribute.id]
        if not self._index[key]:
            del self._index[key]
        return False

    def _falls(self, held: HeldConclusion, lost: set[RecordId]) -> bool:
        """Whether a conclusion falls that loses this evidence."""
        gone = len(lost.intersection(held.evidence))
        if self.cascade == "majority":
            return 2 * gone > len(held.evidence)
        return gone > 0 if self.cascade == "any" else gone == len(held.evidence)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Nothing: every step was written when it happened."""

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "kind": self.name,
            "ledger": self._ledger.snapshot(),
            "attributes": [plain_attribute(attribute) for attribute in self._attributes.values()],
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        self._refuse_other(data)
        ledger = Ledger(self._ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            attributes = [read_attribute(entry, ledger) for entry in data["attributes"]]
            ids = [attribute.id for attribute in attributes]
            cited = {event.record.id: a.id for a in attributes for event in a.events}
            if len(set(ids)) != len(ids) or any(i in ledger or not 0 <= i < data["ledger"]["next_id"] for i in ids):
                raise ValueError("an attribute should have an id of its own")
            if len(cited) != sum(len(attribute.events) for attribute in attributes):
                raise ValueError("a record should be evidence for one attribute alone")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r}: {error!r} in {str(data)[:80]!r}"
            ) from error
        old, self._ledger, self._cited = self._attributes, ledger, cited
        self._attributes, self._index = {}, {}
        for attribute in attributes:
            self._keep(attribute)
        self._reread({**old, **self._attributes})


def _tell_archive(attribute: BeliefAttribute, number: int) -> str:
    """What was believed before the present conclusion, the latest version of each, the newest first; "" for nothing."""
    present = attribute.best.record.id
    latest: dict[str, Version] = {}
    for version in reversed(attribute.archive):
        latest.setdefault(tell(version.record.state, version.record.action, version.record.outcomes), version)
    told = tell(attribute.best.record.state, attribute.best.record.action, attribute.best.record.outcomes)
    past = [(text, version) for text, version in latest.items() if text != told and version.record.id != present]
    return " ".join(
        f"Until step {version.until.step}, with probability {version.p:.2g}: {text}." for text, version in past[:number]
    )
