"""Generative Agents: a memory stream, ranked by recency, importance and relevance, with reflection.

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section 4, as GLOVE uses
it (appendix B.1). `docs/memories/items.md` says what is faithful and what was decided here.

The rules that answer offline repeat the statements and report contradictions between them. Results that depend on them
show that the mechanism works; they are no evidence about the reflection of a language model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from drift_agents.embedding.base import Embedding, HashedEmbedding
from drift_agents.envs.matching import Matching
from drift_agents.llm.base import Model, Rule, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.memory_stream import AccessRecord, MemoryStream
from drift_agents.memory.transcript import quote_state, render_statement
from drift_agents.memory.transitions import TransitionStoreMemory
from drift_agents.types import CLOCK_UNITS, AgentClock, Experience, Note, Outcome, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_count

RECALLS = ("here", "all")
REFLECT = {"retrieval": 10, "threshold": 150}
"""When the agent reflects -> the default threshold of importance."""
TEMPLATES = "memory/templates/generative_agents_{}.txt"
CACHED_RATINGS = 8192
"""The largest number of cached ratings, by statement."""


class GenerativeAgents(TransitionStoreMemory):
    """A memory stream, ranked by recency, importance and relevance, with reflection (Park et al. 2023).

    The stream holds observations, which are records of transitions, and insights, which are notes
    that cite them. Each has an importance, rated when it is written. A query returns the items with the
    highest sum of recency, importance and relevance (`drift_agents.memory.memory_stream`).
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
        self.unit, self.recalls = check_choice("unit", unit, CLOCK_UNITS), check_choice("recalls", recalls, RECALLS)
        self.reflect = check_choice("reflect", reflect, REFLECT)
        self.threshold = check_count("threshold", REFLECT[reflect] if threshold is None else threshold)
        self.recent, self.questions = check_count("recent", recent), check_count("questions", questions)
        self.focus, self.inferred = check_count("focus", focus), check_count("inferred", inferred)
        self.model: Model = RuleModel(RULES) if model is None else model
        embedding = HashedEmbedding() if embedding is None else embedding
        self._stream = MemoryStream(per, decay, weights, ties, cascade, embedding, matching)
        self.transitions = self._stream.transitions
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

    def retrieve_many(self, states: Sequence[str], k: int | None, now: AgentClock) -> list[Retrieved]:
        """What `retrieve` returns for each of these states."""
        if self.recalls == "here" and self._queried_at == now:
            return self._stream.retrieve_many(states, self.k if k is None else k)
        return [self.retrieve(state, k, now) for state in states]

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
        return self._write(self.transitions.append(experience, now), importance, now)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary as an observation.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(render_statement(state, action, distribution, n))
        return self._write(self.transitions.append_summary(state, action, distribution, n, now), importance, now)

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

    def notes(self) -> tuple[Note, ...]:
        """All insights, oldest first."""
        return tuple(map(self._stream.note, self._stream.insights))

    def access(self, item: RecordId) -> AccessRecord | None:
        """The importance and the last access of an item; `None` for an unknown item."""
        return self._stream.traces.get(item)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these observations, and the insights that depend on them."""
        return self._stream.remove(ids)


IMPORTANCE = object_schema("importance", importance={"type": "integer", "minimum": 1, "maximum": 10})
QUESTIONS = object_schema(
    "reflection_questions", questions={"type": "array", "items": {"type": "string", "minLength": 1}}
)
_INSIGHT = object_schema(
    "",
    insight={"type": "string", "minLength": 1, "maxLength": 4000},
    because_of={"type": "array", "items": {"type": "integer"}},
)
INSIGHTS = object_schema("insights", insights={"type": "array", "items": _INSIGHT})

OUTCOMES = 3
"""The largest number of outcomes in an insight, the last ones."""
STATEMENTS = "\nStatements:\n"
_STATEMENT = re.compile(
    r'(?P<number>\d+)\. In (?P<state>.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<outcomes>.*)'
)
_OUTCOME = re.compile(
    r"(?P<after>.*?) \(score (?P<score>[^;()]+)(?P<ended>; the episode ended)?"
    r"(?:; [^;()]+ responses, verified)?\)(?:, or to |$)"
)
_DETAIL = re.compile(r"\(score (?P<score>[^;()]+)(?P<ended>; the episode ended)?")
_AT_MOST = re.compile(r"^At most: (\d+)$", re.MULTILINE)


def question_about(state: str) -> str:
    """The question about a state.

    Example:
        >>> question_about("a")
        'What follows from each action in a?'
    """
    return f"What follows from each action in {quote_state(state)}?"


def number_statements(statements: Iterable[str]) -> str:
    """Statements as a numbered list.

    Example:
        >>> print(number_statements(["one", "two"]))
        1. one
        2. two
    """
    return "\n".join(f"{place}. {' '.join(text.splitlines())}" for place, text in enumerate(statements, 1))


class Grade(IntEnum):
    """The importance that the rules give to a transition, from 1 (mundane) to 10 (poignant)."""

    NOTHING = 1
    """The state did not change."""
    MOVED = 2
    """The state changed."""
    GAIN = 6
    """The score is positive, and the episode continues."""
    END = 10
    """The episode ended, with or without a score."""


class _ParsedOutcome(NamedTuple):
    """One outcome of a statement."""

    state: str
    score: float
    ended: bool

    @property
    def text(self) -> str:
        end = "; the episode ended" if self.ended else ""
        return f"{self.state} (score {self.score:g}{end})"

    def grade(self, before: str | None) -> Grade:
        if self.ended:
            return Grade.END
        if self.score > 0:
            return Grade.GAIN
        return Grade.NOTHING if self.state == before else Grade.MOVED


class _Statement(NamedTuple):
    """A statement parsed from a numbered list."""

    number: int
    state: str
    action: str
    outcomes: tuple[_ParsedOutcome, ...]

    @property
    def grade(self) -> Grade:
        return max(after.grade(self.state) for after in self.outcomes)


def _read(text: str) -> Iterator[_Statement]:
    """The statements of a list about transitions; other lines are ignored."""
    for line in text.split("\n"):
        found = _STATEMENT.fullmatch(line)
        if found is None:
            continue
        outcomes = tuple(
            _ParsedOutcome(part["after"], _score(part["score"]), part["ended"] is not None)
            for part in _OUTCOME.finditer(found["outcomes"])
        )
        if outcomes:
            yield _Statement(int(found["number"]), found["state"], found["action"], outcomes)


def _score(text: str) -> float:
    """A score; 0 where a text only looks like one."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def rate(text: str) -> dict[str, int]:
    """The rule that answers `IMPORTANCE` offline: the highest grade of its outcomes.

    Args:
        text: a statement or an insight; both have outcomes in the same form.

    Returns:
        JSON by the schema `IMPORTANCE`.

    Example:
        >>> rate('Memory: In a action "1" led to hole (score 0; the episode ended)'), rate("Memory: Mind the ice.")
        ({'importance': 10}, {'importance': 2})
    """
    memory = text.removeprefix("Memory: ")
    statements = [statement.grade for statement in _read(f"1. {memory}")]
    outcomes = [
        _ParsedOutcome("", _score(part["score"]), part["ended"] is not None) for part in _DETAIL.finditer(memory)
    ]
    grades = statements or [after.grade(None) for after in outcomes] or [Grade.MOVED]
    return {"importance": int(max(grades))}


def choose_questions(text: str) -> dict[str, list[str]]:
    """The rule that answers `QUESTIONS` offline: the states with the highest sum of importance.

    Args:
        text: how many questions at most, and the statements.

    Returns:
        JSON by the schema `QUESTIONS`.

    Example:
        >>> text = '''At most: 1
        ... Statements:
        ... 1. In a action "1" led to b (score 0)
        ... 2. In c action "1" led to hole (score 0; the episode ended)'''
        >>> choose_questions(text)
        {'questions': ['What follows from each action in c?']}
    """
    head, _, body = f"\n{text}".partition(STATEMENTS)
    weights: dict[str, int] = {}
    for statement in _read(body):
        weights[statement.state] = weights.get(statement.state, 0) + statement.grade
    ranked = sorted(weights, key=lambda state: -weights[state])
    return {"questions": [question_about(state) for state in ranked[: _at_most(head)]]}


def infer_insights(text: str) -> dict[str, list[dict[str, Any]]]:
    """The rule that answers `INSIGHTS` offline: the outcomes of each action, contradictions first.

    Args:
        text: the question, how many insights at most, and the statements, which were chosen for the question.

    Returns:
        JSON by the schema `INSIGHTS`.

    Example:
        >>> text = '''At most: 5
        ... Statements:
        ... 1. In a action "1" led to b (score 0)
        ... 2. In a action "1" led to hole (score 0; the episode ended)'''
        >>> (insight,) = infer_insights(text)["insights"]
        >>> insight["because_of"]
        [1, 2]
        >>> print(insight["insight"])
        Action "1" in a is not certain: it led to b (score 0), and last to hole (score 0; the episode ended).
    """
    head, _, body = f"\n{text}".partition(STATEMENTS)
    groups: dict[tuple[str, str], list[_Statement]] = {}
    for statement in _read(body):
        groups.setdefault((statement.state, statement.action), []).append(statement)
    found = [_conclude(group) for group in groups.values()]
    found.sort(key=lambda conclusion: conclusion[0])
    return {
        "insights": [{"insight": insight, "because_of": numbers} for _, insight, numbers in found[: _at_most(head)]]
    }


def _conclude(group: Sequence[_Statement]) -> tuple[tuple[bool, int, int], str, list[int]]:
    """The rank, insight and statement numbers of one (state, action)."""
    state, action = group[0].state, group[0].action
    # By the last mention, so that the latest outcome comes last.
    outcomes = list(dict.fromkeys(after.text for one in reversed(group) for after in reversed(one.outcomes)))[::-1]
    last = group[-1].outcomes[0]
    grade = max(statement.grade for statement in group)
    if len(outcomes) > 1:
        *others, newest = outcomes[-OUTCOMES:]
        insight = f"Action {action} in {state} is not certain: it led to {', to '.join(others)}, and last to {newest}."
    elif last.ended and last.score <= 0:
        insight = f"Avoid action {action} in {state}: it led to {last.text}."
    elif last.ended or last.score > 0:
        insight = f"Action {action} in {state} pays: it led to {last.text}."
    elif last.state == state:
        insight = f"Action {action} in {state} changes nothing: {last.text}."
    else:
        insight = f"Action {action} in {state} leads to {last.text}."
    return (len(outcomes) == 1, -grade, -len(group)), insight, [statement.number for statement in group]


def _at_most(head: str) -> int:
    """The number of answers that the text allows."""
    found = _AT_MOST.search(head)
    return int(found[1]) if found else 1


RULES: Mapping[str, Rule] = {
    IMPORTANCE["title"]: rate,
    QUESTIONS["title"]: choose_questions,
    INSIGHTS["title"]: infer_insights,
}
"""The table for `drift_agents.llm.base.RuleModel`."""
