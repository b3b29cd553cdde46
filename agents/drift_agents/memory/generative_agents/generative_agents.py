"""Generative Agents: a stream of memories, recalled by recency, importance and relevance, and reflected upon.

* `GenerativeAgents` - the memory

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section
4, as GLOVE uses it (appendix B.1). `docs/memories/generative_agents.md` says what is faithful and
what was decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Matching
from drift_agents.memory.generative_agents.reflection_rules import RULES
from drift_agents.memory.generative_agents.stream import AccessRecord, MemoryStream
from drift_agents.memory.ledger import hash_plain
from drift_agents.memory.reflection import IMPORTANCE, INSIGHTS, QUESTIONS, ask_about, number, tell
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

UNITS = ("episode", "step")
RECALLS = ("here", "all")
REFLECT = {"retrieval": 10, "threshold": 150}
"""When the agent reflects, and how much importance it takes if nothing else is said."""
TEMPLATES = "memory/templates/generative_agents_{}.txt"
KEPT = 8192
"""Ratings that are kept: what happened before, word by word, is as important as it was."""


class GenerativeAgents:
    """A stream of memories, recalled by recency, importance and relevance, with reflection (Park et al. 2023).

    The stream holds observations, which are records of transitions, and insights, which are notes
    that cite them. Each gets an importance when it is written. What a question brings up has the
    highest sum of recency, importance and relevance (`drift_agents.memory.generative_agents.importance`). Observations
    of the state that is asked about have relevance 1. There are `k` places for observations and
    `insights` for insights, and each kind is scaled by itself.

    A prompt asks about every known state at every step. The first question at a moment of the
    agent's clock, which is about the state where the agent stands, recalls: it refreshes the last
    access of what it brings up, and brings insights. The others look things up: they bring
    observations alone and leave no trace.

    It reflects either `at retrieval` (GLOVE's reading): when enough of importance was written about
    the state where it stands, it draws insights from what this question brought up. Or at the
    `threshold` (the original): when enough was written anywhere, it asks itself `questions`
    questions about the `recent` latest items, answers each with the `focus` most salient items of
    the whole stream, and draws insights from these.

    An insight falls with its evidence. One that is found again, word by word, is not written twice;
    it then rests on what it was drawn from the last time.

    Args:
        k: observations for each question; positive.
        per: of what there are `k`: of each `action` of the state, of the `state`, or of the whole
            `stream` (the original; insights about other states come up then, too).
        insights: insights for a question that recalls; not negative.
        decay: what is left of recency after an hour, in (0, 1].
        unit: what an hour is, an `episode` or a `step`.
        recalls: which questions recall: `here`, the first one at a moment, or `all`.
        weights: of recency, importance and relevance; not negative.
        ties: which of equally salient items comes first, the `newest` or the `oldest`.
        reflect: `retrieval` or `threshold`.
        threshold: the sum of importance that starts a reflection; 10 at retrieval and 150 at the
            threshold if not given; positive.
        recent: items that questions are asked about; positive.
        questions: questions in one reflection; positive.
        focus: items that answer a question; positive.
        inferred: insights drawn for one question; positive.
        cascade: when an insight falls with its evidence (`drift_agents.memory.citations`).
        model: who rates and reflects; declared rules if not given.
        embedding: what tells how similar texts are; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = GenerativeAgents()
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> memory.trace(0)
        AccessRecord(importance=10, access=0)
        >>> memory.retrieve("a", None, AgentClock(1, 1)).notes[0].text
        'Avoid action "1" in a: it led to hole (score 0; the episode ended).'
    """

    name = "generative_agents"
    needs: frozenset[str] = frozenset()
    supervision = "none"

    def __init__(
        self,
        *,
        k: int = 5,
        per: str = "action",
        insights: int = 3,
        decay: float = 0.995,
        unit: str = "episode",
        recalls: str = "here",
        weights: Sequence[float] = (1.0, 1.0, 1.0),
        ties: str = "newest",
        reflect: str = "retrieval",
        threshold: int | None = None,
        recent: int = 100,
        questions: int = 3,
        focus: int = 30,
        inferred: int = 5,
        cascade: str = "majority",
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        for option, value, known in (
            ("unit", unit, UNITS),
            ("recalls", recalls, RECALLS),
            ("reflect", reflect, tuple(REFLECT)),
        ):
            if value not in known:
                raise ArgumentError(f"`{option}` should be one of {', '.join(known)}. Received {value!r}")
        threshold = REFLECT[reflect] if threshold is None else threshold
        counts = {"k": k, "threshold": threshold, "recent": recent, "questions": questions, "focus": focus}
        for option, count in {**counts, "inferred": inferred, "insights": insights}.items():
            least = 0 if option == "insights" else 1
            if not isinstance(count, int) or isinstance(count, bool) or count < least:
                raise ArgumentError(f"`{option}` should be a whole number, at least {least}. Received {count!r}")
        self.k, self.insights, self.unit, self.recalls = k, insights, unit, recalls
        self.reflect, self.threshold = reflect, threshold
        self.recent, self.questions, self.focus, self.inferred = recent, questions, focus, inferred
        self.model: Model = RuleModel(RULES) if model is None else model
        embedding = HashedEmbedding() if embedding is None else embedding
        self._stream = MemoryStream(per, decay, weights, ties, cascade, embedding, matching)
        self._moment: AgentClock | None = None
        self._ratings: dict[str, int] = {}

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The most salient observations; the first question at a moment recalls them, and insights about them.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        answer = self._stream.answer(state, self.k if k is None else k)
        if self.recalls == "here" and self._moment == now:
            return answer
        self._moment = now
        self._stream.refresh((record.id for record in answer.records), self._hour(now))
        if self.reflect == "retrieval":
            self._reflect_on_place(state, answer.records, now)
        notes = self._stream.choose_insights(state, self.insights)
        self._stream.refresh((note.id for note in notes), self._hour(now))
        return answer._replace(notes=notes)

    def _hour(self, now: AgentClock) -> int:
        hour: int = getattr(now, self.unit)
        return hour

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it with its importance; reflect when that was enough.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(tell(experience.state, experience.action, [(experience.outcome, 1.0)]))
        return self._write(self._stream.ledger.append(experience, now), importance, now)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary, which is an observation like any other.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(tell(state, action, distribution, n))
        return self._write(self._stream.ledger.append_summary(state, action, distribution, n, now), importance, now)

    def _write(self, record_id: RecordId, importance: int, now: AgentClock) -> RecordId:
        stream = self._stream
        stream.write(record_id, AccessRecord(importance, self._hour(now)))
        if self.reflect == "threshold" and stream.importance(stream.fresh) >= self.threshold:
            self._reflect_on_stream(now)
        return record_id

    def _rate(self, text: str) -> int:
        """How important something is."""
        if text not in self._ratings:
            answer = ask(self.model, read_messages(TEMPLATES.format("importance"), memory=text), IMPORTANCE)
            if len(self._ratings) >= KEPT:
                self._ratings.clear()
            self._ratings[text] = answer.data["importance"]
        return self._ratings[text]

    def _reflect_on_place(self, state: str, recalled: Sequence[Record], now: AgentClock) -> None:
        """Draw insights from what the present question brought up, when enough was written about this state."""
        fresh = self._stream.fresh_at(state)
        if self._stream.importance(fresh) < self.threshold:
            return
        self._infer(ask_about(state), sorted(record.id for record in recalled), now)
        self._stream.settle(fresh)

    def _reflect_on_stream(self, now: AgentClock) -> None:
        """Ask questions about the latest items, and draw insights from what answers each."""
        stream = self._stream
        latest = number(map(stream.tell, sorted(stream.traces)[-self.recent :]))
        messages = read_messages(TEMPLATES.format("questions"), number=str(self.questions), statements=latest)
        for question in ask(self.model, messages, QUESTIONS).data["questions"][: self.questions]:
            asked = " ".join(question.split())
            items = stream.choose_items(asked, self.focus)
            stream.refresh(items, self._hour(now))
            self._infer(asked, sorted(items), now)
        stream.settle(list(stream.fresh))

    def _infer(self, question: str, items: Sequence[RecordId], now: AgentClock) -> None:
        """Draw insights from these items, and write them."""
        messages = read_messages(
            TEMPLATES.format("insights"),
            question=question,
            number=str(self.inferred),
            statements=number(map(self._stream.tell, items)),
        )
        for insight in ask(self.model, messages, INSIGHTS).data["insights"][: self.inferred]:
            cited = [items[place - 1] for place in insight["because_of"] if 1 <= place <= len(items)]
            text = " ".join(insight["insight"].split())
            self._stream.write_insight(text, cited, AccessRecord(self._rate(text), self._hour(now)))

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first."""
        return self._stream.ledger.counterparts(state, action)

    def records(self) -> Iterator[Record]:
        """All observations, oldest first."""
        return iter(self._stream.ledger)

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self._stream.ledger.states()

    def notes(self) -> tuple[Note, ...]:
        """All insights, oldest first."""
        return tuple(map(self._stream.note, self._stream.insights))

    def trace(self, item: RecordId) -> AccessRecord | None:
        """How important an item is, and when it was recalled last; `None` if it is not there."""
        return self._stream.traces.get(item)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these observations, and the insights that rested on them."""
        return self._stream.remove(ids)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Nothing: every step was written when it happened."""

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        moment = None if self._moment is None else list(self._moment)
        return {"kind": self.name, "stream": self._stream.snapshot(), "moment": moment}

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        if not isinstance(data, Mapping) or data.get("kind") != self.name:
            raise MemoryStateError(f"not a snapshot of the memory {self.name!r}: {str(data)[:80]!r}")
        try:
            moment = None if data["moment"] is None else AgentClock(*map(int, data["moment"]))
            stream = data["stream"]
            if not isinstance(stream, Mapping):
                raise TypeError(f"`stream` is {stream!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r}: {error!r} in {str(data)[:80]!r}"
            ) from error
        self._stream.restore(stream)
        self._moment = moment

    def content_hash(self) -> str:
        """A hash of the content."""
        return hash_plain(self.snapshot())
