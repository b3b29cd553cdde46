"""Generative Agents: a memory stream, ranked by recency, importance and relevance, with reflection.

* `GenerativeAgents` - the memory

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section
4, as GLOVE uses it (appendix B.1). `docs/memories/generative_agents.md` says what is faithful and
what was decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Matching
from drift_agents.memory.generative_agents.reflection import (
    IMPORTANCE,
    INSIGHTS,
    QUESTIONS,
    RULES,
    number_statements,
    question_about,
)
from drift_agents.memory.generative_agents.stream import AccessRecord, MemoryStream
from drift_agents.memory.transcript import render_statement
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Note,
    Outcome,
    Record,
    RecordId,
    Removed,
    Retrieved,
)
from drift_envs.checks import check_choice, check_count

UNITS = ("episode", "step")
RECALLS = ("here", "all")
REFLECT = {"retrieval": 10, "threshold": 150}
"""When the agent reflects -> the default threshold of importance."""
TEMPLATES = "memory/templates/generative_agents_{}.txt"
CACHED_RATINGS = 8192
"""The largest number of cached ratings, by statement."""


class GenerativeAgents:
    """A memory stream, ranked by recency, importance and relevance, with reflection (Park et al. 2023).

    The stream holds observations, which are records of transitions, and insights, which are notes
    that cite them. Each has an importance, rated when it is written. A query returns the items with the
    highest sum of recency, importance and relevance (`drift_agents.memory.generative_agents.salience`).
    Observations of the queried state have relevance 1. There are `k` places for observations and
    `insights` for insights; each kind is scaled separately.

    A prompt queries every known state at every step. The first query at a time of the agent's clock,
    which is about the present state, recalls: it sets the last access of its results, and returns
    insights. Other queries return observations alone and have no side effect.

    It reflects either `at retrieval` (GLOVE's reading): when the importance written about the present
    state reaches the threshold, it infers insights from the results of this query. Or at the
    `threshold` (the original): when the importance written about any state reaches it, the model asks
    `questions` questions about the `recent` latest items, and infers insights for each from the `focus`
    most salient items of the whole stream.

    An insight is removed with its evidence. The same text is not written twice; the insight then cites
    the evidence of the last inference.

    Args:
        k: observations for each query; positive.
        per: what `k` limits the observations of: each `action` of the state, the `state`, or the whole
            `stream` (the original; insights about other states are retrieved then, too).
        insights: insights for a query that recalls; not negative.
        decay: the factor of recency in one hour, in (0, 1].
        unit: what an hour is, an `episode` or a `step`.
        recalls: which queries recall: `here`, the first one at a time, or `all`.
        weights: of recency, importance and relevance; not negative.
        ties: which of equally salient items comes first, the `newest` or the `oldest`.
        reflect: `retrieval` or `threshold`.
        threshold: the sum of importance that starts a reflection; 10 at retrieval and 150 at the
            threshold if not given; positive.
        recent: items from which questions are made; positive.
        questions: questions in one reflection; positive.
        focus: items that answer a question; positive.
        inferred: insights for one question; positive.
        cascade: when an insight is removed with its evidence (`drift_agents.memory.citations`).
        model: rates and reflects; fixed rules if not given.
        embedding: of states, insights and questions; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = GenerativeAgents()
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> memory.access(0)
        AccessRecord(importance=10, access=0)
        >>> memory.retrieve("a", None, AgentClock(1, 1)).notes[0].text
        'Avoid action "1" in a: it led to hole (score 0; the episode ended).'
    """

    name = "generative_agents"
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
        self.k, self.insights = check_count("k", k), check_count("insights", insights, 0)
        self.unit, self.recalls = check_choice("unit", unit, UNITS), check_choice("recalls", recalls, RECALLS)
        self.reflect = check_choice("reflect", reflect, REFLECT)
        self.threshold = check_count("threshold", REFLECT[reflect] if threshold is None else threshold)
        self.recent, self.questions = check_count("recent", recent), check_count("questions", questions)
        self.focus, self.inferred = check_count("focus", focus), check_count("inferred", inferred)
        self.model: Model = RuleModel(RULES) if model is None else model
        embedding = HashedEmbedding() if embedding is None else embedding
        self._stream = MemoryStream(per, decay, weights, ties, cascade, embedding, matching)
        self._queried_at: AgentClock | None = None
        self._ratings: dict[str, int] = {}

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The most salient observations; the first query at a time recalls them, and returns insights.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        retrieved = self._stream.retrieve(state, self.k if k is None else k)
        if self.recalls == "here" and self._queried_at == now:
            return retrieved
        self._queried_at = now
        self._stream.refresh((record.id for record in retrieved.records), self._hour(now))
        if self.reflect == "retrieval":
            self._reflect_on_state(state, retrieved.records, now)
        notes = self._stream.choose_insights(state, self.insights)
        self._stream.refresh((note.id for note in notes), self._hour(now))
        return retrieved._replace(notes=notes)

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """The observations that `retrieve` would return, which recalls none of them."""
        return self._stream.retrieve(state, self.k)

    def _hour(self, now: AgentClock) -> int:
        hour: int = getattr(now, self.unit)
        return hour

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append an experience with its importance; reflect if the threshold is reached.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(render_statement(experience.state, experience.action, [(experience.outcome, 1.0)]))
        return self._write(self._stream.transitions.append(experience, now), importance, now)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary as an observation.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(render_statement(state, action, distribution, n))
        return self._write(
            self._stream.transitions.append_summary(state, action, distribution, n, now), importance, now
        )

    def _write(self, record_id: RecordId, importance: int, now: AgentClock) -> RecordId:
        stream = self._stream
        stream.write(record_id, AccessRecord(importance, self._hour(now)))
        if self.reflect == "threshold" and stream.importance(stream.unreflected) >= self.threshold:
            self._reflect_on_stream(now)
        return record_id

    def _rate(self, text: str) -> int:
        """The importance of a statement or an insight."""
        if text not in self._ratings:
            completion = ask(self.model, read_messages(TEMPLATES.format("importance"), memory=text), IMPORTANCE)
            if len(self._ratings) >= CACHED_RATINGS:
                self._ratings.clear()
            self._ratings[text] = completion.data["importance"]
        return self._ratings[text]

    def _reflect_on_state(self, state: str, recalled: Sequence[Record], now: AgentClock) -> None:
        """Infer insights from the results of the present query, if the threshold is reached in this state."""
        unreflected = self._stream.unreflected_at(state)
        if self._stream.importance(unreflected) < self.threshold:
            return
        self._infer(question_about(state), sorted(record.id for record in recalled), now)
        self._stream.mark_reflected(unreflected)

    def _reflect_on_stream(self, now: AgentClock) -> None:
        """Generate questions about the latest items, and infer insights from the items retrieved for each."""
        stream = self._stream
        latest = number_statements(map(stream.statement, sorted(stream.traces)[-self.recent :]))
        messages = read_messages(TEMPLATES.format("questions"), number=str(self.questions), statements=latest)
        for question in ask(self.model, messages, QUESTIONS).data["questions"][: self.questions]:
            question = " ".join(question.split())
            items = stream.choose_items(question, self.focus)
            stream.refresh(items, self._hour(now))
            self._infer(question, sorted(items), now)
        stream.mark_reflected(list(stream.unreflected))

    def _infer(self, question: str, items: Sequence[RecordId], now: AgentClock) -> None:
        """Infer insights from these items, and write them."""
        messages = read_messages(
            TEMPLATES.format("insights"),
            question=question,
            number=str(self.inferred),
            statements=number_statements(map(self._stream.statement, items)),
        )
        for insight in ask(self.model, messages, INSIGHTS).data["insights"][: self.inferred]:
            cited = [items[place - 1] for place in insight["because_of"] if 1 <= place <= len(items)]
            text = " ".join(insight["insight"].split())
            self._stream.write_insight(text, cited, AccessRecord(self._rate(text), self._hour(now)))

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        return self._stream.transitions.same_transitions(state, action)

    def records(self) -> Iterator[Record]:
        """All observations, oldest first."""
        return iter(self._stream.transitions)

    def in_mind(self) -> Iterator[str]:
        """One text for every known state, in the order of their oldest record."""
        return self._stream.transitions.states()

    def notes(self) -> tuple[Note, ...]:
        """All insights, oldest first."""
        return tuple(map(self._stream.note, self._stream.insights))

    def access(self, item: RecordId) -> AccessRecord | None:
        """The importance and the last access of an item; `None` for an unknown item."""
        return self._stream.traces.get(item)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these observations, and the insights that depend on them."""
        return self._stream.remove(ids)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Do nothing: every step was written when it happened."""
