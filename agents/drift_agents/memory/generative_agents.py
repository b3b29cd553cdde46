"""Generative Agents: a stream of memories, recalled by recency, importance and relevance, and reflected upon.

* `GenerativeAgents` - the memory
* `Trace` - how important an item of the stream is, and when it was recalled last

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section
4, as GLOVE uses it (appendix B.1). `docs/memories/generative_agents.md` says what is faithful and
what was decided here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding, cosine
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching import Matching
from drift_agents.memory.derived import Citations
from drift_agents.memory.reflection import IMPORTANCE, INSIGHTS, QUESTIONS, ask_about, number, tell
from drift_agents.memory.reflection_rules import RULES
from drift_agents.memory.salience import salience
from drift_agents.memory.store import Ledger, hash_plain
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

PER = ("action", "state", "stream")
UNITS = ("episode", "step")
RECALLS = ("here", "all")
REFLECT = {"retrieval": 10, "threshold": 150}
"""When the agent reflects, and how much importance it takes if nothing else is said."""
TEMPLATES = "memory/templates/generative_agents_{}.txt"
KEPT = 8192
"""Ratings that are kept: what happened before, word by word, is as important as it was."""


class Trace(NamedTuple):
    """How important an item of the stream is, and when it was recalled last.

    Args:
        importance: from 1, mundane, to 10, poignant.
        access: the hour in which it was written or recalled last.
    """

    importance: int
    access: int


class GenerativeAgents:
    """A stream of memories, recalled by recency, importance and relevance, and reflected upon (Park et al. 2023).

    The stream holds observations, which are records of transitions, and insights, which are notes
    that cite them. Each gets an importance when it is written. What a question brings up has the
    highest sum of recency, importance and relevance (`drift_agents.memory.salience`), the newer one
    of two that are equal; observations of the state that is asked about have relevance 1. There are
    `k` places for observations and `insights` for insights, and each kind is scaled by itself.

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
        reflect: `retrieval` or `threshold`.
        threshold: the sum of importance that starts a reflection; 10 at retrieval and 150 at the
            threshold if not given; positive.
        recent: items that questions are asked about; positive.
        questions: questions in one reflection; positive.
        focus: items that answer a question; positive.
        inferred: insights drawn for one question; positive.
        cascade: when an insight falls with its evidence (`drift_agents.memory.derived`).
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
        Trace(importance=10, access=0)
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
        options = (("per", per, PER), ("unit", unit, UNITS), ("recalls", recalls, RECALLS))
        for option, value, known in (*options, ("reflect", reflect, tuple(REFLECT))):
            if value not in known:
                raise ArgumentError(f"`{option}` should be one of {', '.join(known)}. Received {value!r}")
        threshold = REFLECT[reflect] if threshold is None else threshold
        counts = {"k": k, "threshold": threshold, "recent": recent, "questions": questions, "focus": focus}
        for option, count in {**counts, "inferred": inferred, "insights": insights}.items():
            least = 0 if option == "insights" else 1
            if not isinstance(count, int) or isinstance(count, bool) or count < least:
                raise ArgumentError(f"`{option}` should be a whole number, at least {least}. Received {count!r}")
        if not _is_number(decay) or not 0 < decay <= 1:
            raise ArgumentError(f"`decay` should be a number in (0, 1]. Received {decay!r}")
        self.k, self.per, self.insights, self.decay, self.unit = k, per, insights, float(decay), unit
        self.recalls, self.weights, self.reflect, self.threshold = recalls, _check_weights(weights), reflect, threshold
        self.recent, self.questions, self.focus, self.inferred = recent, questions, focus, inferred
        self.model: Model = RuleModel(RULES) if model is None else model
        self.embedding: Embedding = HashedEmbedding() if embedding is None else embedding
        self._ledger, self._citations = Ledger(matching), Citations(cascade)
        self._traces: dict[RecordId, Trace] = {}
        self._insights: dict[RecordId, str] = {}
        self._ids: dict[str, RecordId] = {}
        self._fresh: dict[RecordId, None] = {}
        """Observations that were not reflected upon."""
        self._moment: AgentClock | None = None
        self._ratings: dict[str, int] = {}
        # What was answered about a state, by k: most states stay as they are from step to step.
        self._answers: dict[Hashable, dict[int, Retrieved]] = {}
        self._columns: _Columns | None = None

    # -- recalling ---------------------------------------------------------------------------------

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The most salient observations; the first question at a moment recalls them, and insights about them."""
        k = self.k if k is None else k
        answers = self._answers.setdefault(self._ledger.matching.state_key(state), {})
        if k not in answers:
            records = self._choose(state, k)
            answers[k] = Retrieved(records, (1.0,) * len(records))
        answer = answers[k]
        if self.recalls == "here" and self._moment == now:
            return answer
        self._moment = now
        self._refresh((record.id for record in answer.records), now)
        if self.reflect == "retrieval":
            self._reflect_on_place(state, answer.records, now)
        notes = self._choose_insights(state)
        self._refresh((note.id for note in notes), now)
        return answer._replace(notes=notes)

    def _choose(self, state: str, k: int) -> tuple[Record, ...]:
        """The most salient observations, the best first."""
        if self.per == "stream":
            columns = self._read_columns()
            best = self._rank(columns.access, columns.importance, self._place_relevance(state, columns))
            return tuple(columns.records[place] for place in best[:k])
        records = [record for group in self._ledger.at(state).values() for record in group]
        records.sort(key=lambda record: record.id)
        traces = [self._traces[record.id] for record in records]
        # They are all about this state, so relevance tells none from another.
        best = self._rank([t.access for t in traces], [t.importance for t in traces], np.zeros(len(traces)))
        if self.per == "state":
            return tuple(records[place] for place in best[:k])
        places: dict[str, int] = {}
        chosen = []
        for place in best:
            record = records[place]
            taken = places.get(record.action, 0)
            if taken < k:
                places[record.action] = taken + 1
                chosen.append(record)
        return tuple(chosen)

    def _rank(
        self,
        access: Sequence[int] | NDArray[np.int64],
        importance: Sequence[int] | NDArray[np.int64],
        relevance: NDArray[np.float64],
    ) -> list[int]:
        """The places of the items, which are given oldest first, by salience; the newer one of two equals first."""
        scores = salience(access, importance, relevance, self.decay, self.weights)
        newest_first = np.argsort(-scores[::-1], kind="stable")
        return (len(scores) - 1 - newest_first).tolist()

    def _read_columns(self) -> _Columns:
        """The observations as columns, until something changes."""
        if self._columns is None:
            key, texts = self._ledger.matching.state_key, list(self._ledger.states())
            places = {key(text): place for place, text in enumerate(texts)}
            records = tuple(self._ledger)
            traces = [self._traces[record.id] for record in records]
            self._columns = _Columns(
                records,
                np.array([trace.access for trace in traces], np.int64),
                np.array([trace.importance for trace in traces], np.int64),
                np.array([places[key(record.state)] for record in records], np.int64),
                places,
                self.embedding.embed(texts),
            )
        return self._columns

    def _place_relevance(self, text: str, columns: _Columns) -> NDArray[np.float64]:
        """How relevant each observation is to a text: as similar as the state in which it was made."""
        similar = cosine(self.embedding.embed([text])[0], columns.vectors)
        place = columns.places.get(self._ledger.matching.state_key(text))
        if place is not None:
            similar[place] = 1.0
        return similar[columns.place]

    def _choose_insights(self, state: str) -> tuple[Note, ...]:
        """The most salient insights: in the whole stream, or of those that rest on this state's observations."""
        ids = sorted(self._insights if self.per == "stream" else self._about(state)) if self.insights else []
        return tuple(self._note(ids[place]) for place in self._rank_insights(ids, state)[: self.insights])

    def _about(self, state: str) -> set[RecordId]:
        """The insights that rest on observations of this state, through other insights or not."""
        todo = deque(record.id for group in self._ledger.at(state).values() for record in group)
        found: set[RecordId] = set()
        while todo:
            fresh = set(self._citations.citing(todo.popleft())) - found
            found |= fresh
            todo.extend(fresh)
        return found

    def _rank_insights(self, ids: Sequence[RecordId], question: str) -> list[int]:
        if not ids:
            return []
        traces = [self._traces[item] for item in ids]
        vectors = self.embedding.embed([question, *(self._insights[item] for item in ids)])
        relevance = cosine(vectors[0], vectors[1:])
        return self._rank([t.access for t in traces], [t.importance for t in traces], relevance)

    def _refresh(self, ids: Iterable[RecordId], now: AgentClock) -> None:
        """Note when these were recalled."""
        hour: int = getattr(now, self.unit)
        for item in ids:
            trace = self._traces[item]
            if trace.access < hour:
                self._traces[item] = trace._replace(access=hour)
                self._forget_answers(self._ledger.get(item))

    def _forget_answers(self, record: Record | None) -> None:
        """Answers that this observation may stand in are worked out again."""
        if record is None:
            return
        self._columns = None
        if self.per == "stream":
            self._answers.clear()
        else:
            self._answers.pop(self._ledger.matching.state_key(record.state), None)

    # -- writing -----------------------------------------------------------------------------------

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it with its importance; reflect when that was enough.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(tell(experience.state, experience.action, [(experience.outcome, 1.0)]))
        return self._write(self._ledger.append(experience, now), importance, now)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary, which is an observation like any other.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
            ModelError: if the model's answer has the wrong form.
        """
        importance = self._rate(tell(state, action, distribution, n))
        return self._write(self._ledger.append_summary(state, action, distribution, n, now), importance, now)

    def _write(self, record_id: RecordId, importance: int, now: AgentClock) -> RecordId:
        self._traces[record_id] = Trace(importance, getattr(now, self.unit))
        self._fresh[record_id] = None
        self._forget_answers(self._ledger.get(record_id))
        if self.reflect == "threshold" and self._importance(self._fresh) >= self.threshold:
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

    def _importance(self, ids: Iterable[RecordId]) -> int:
        return sum(self._traces[item].importance for item in ids)

    # -- reflecting --------------------------------------------------------------------------------

    def _reflect_on_place(self, state: str, recalled: Sequence[Record], now: AgentClock) -> None:
        """Draw insights from what the present question brought up, when enough was written about this state."""
        here = [record.id for group in self._ledger.at(state).values() for record in group]
        fresh = [item for item in here if item in self._fresh]
        if self._importance(fresh) < self.threshold:
            return
        self._infer(ask_about(state), sorted(record.id for record in recalled), now)
        for item in fresh:
            del self._fresh[item]

    def _reflect_on_stream(self, now: AgentClock) -> None:
        """Ask questions about the latest items, and draw insights from what answers each."""
        latest = sorted(self._traces)[-self.recent :]
        messages = read_messages(
            TEMPLATES.format("questions"), number=str(self.questions), statements=number(map(self._tell, latest))
        )
        questions = ask(self.model, messages, QUESTIONS).data["questions"][: self.questions]
        for question in (" ".join(question.split()) for question in questions):
            items = self._choose_items(question)
            self._refresh(items, now)
            self._infer(question, sorted(items), now)
        self._fresh.clear()

    def _choose_items(self, question: str) -> list[RecordId]:
        """The most salient items of the whole stream, observations and insights together."""
        columns, ids = self._read_columns(), list(self._insights)
        traces = [self._traces[item] for item in ids]
        vectors = self.embedding.embed([question, *self._insights.values()])
        relevance = np.concatenate([self._place_relevance(question, columns), cosine(vectors[0], vectors[1:])])
        best = self._rank(
            np.concatenate([columns.access, np.array([t.access for t in traces], np.int64)]),
            np.concatenate([columns.importance, np.array([t.importance for t in traces], np.int64)]),
            relevance,
        )
        items = [*(record.id for record in columns.records), *ids]
        return [items[place] for place in best[: self.focus]]

    def _infer(self, question: str, items: Sequence[RecordId], now: AgentClock) -> None:
        """Draw insights from these items, and write them."""
        messages = read_messages(
            TEMPLATES.format("insights"),
            question=question,
            number=str(self.inferred),
            statements=number(map(self._tell, items)),
        )
        for insight in ask(self.model, messages, INSIGHTS).data["insights"][: self.inferred]:
            cited = [items[place - 1] for place in insight["because_of"] if 1 <= place <= len(items)]
            self._write_insight(" ".join(insight["insight"].split()), cited, now)

    def _write_insight(self, text: str, cited: Iterable[RecordId], now: AgentClock) -> None:
        """Write an insight, unless it rests on nothing: then nothing could ever take it back."""
        known = self._ids.get(text)
        # What is said anew may not rest on something younger: two insights could hold each other up.
        evidence = [item for item in cited if known is None or item in self._ledger or item < known]
        if not evidence or not text:
            return
        importance = self._rate(text)
        item = self._ledger.new_id() if known is None else known
        self._citations.add(item, evidence)
        self._insights[item], self._ids[text] = text, item
        self._traces[item] = Trace(importance, getattr(now, self.unit))

    def _tell(self, item: RecordId) -> str:
        """An item of the stream as a statement."""
        record = self._ledger.get(item)
        if record is None:
            return self._insights[item]
        return tell(record.state, record.action, record.outcomes, record.n if record.verified else None)

    def _note(self, item: RecordId) -> Note:
        return Note(item, self._insights[item], self._citations.evidence(item))

    # -- what every memory offers ------------------------------------------------------------------

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first."""
        return self._ledger.counterparts(state, action)

    def records(self) -> Iterator[Record]:
        """All observations, oldest first."""
        return iter(self._ledger)

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self._ledger.states()

    def notes(self) -> tuple[Note, ...]:
        """All insights, oldest first."""
        return tuple(self._note(item) for item in self._insights)

    def trace(self, item: RecordId) -> Trace | None:
        """How important an item is, and when it was recalled last; `None` if it is not there."""
        return self._traces.get(item)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these observations, and the insights that rested on them."""
        gone = self._ledger.remove(ids)
        fell = self._citations.fall(gone)
        for item in (*gone, *fell):
            del self._traces[item]
            self._fresh.pop(item, None)
        for item in fell:
            del self._ids[self._insights.pop(item)]
        self._answers.clear()
        self._columns = None
        return Removed(gone, fell)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Nothing: every step was written when it happened."""

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "kind": self.name,
            "ledger": self._ledger.snapshot(),
            "insights": [[item, text, list(self._citations.evidence(item))] for item, text in self._insights.items()],
            "traces": [[item, *trace] for item, trace in sorted(self._traces.items())],
            "fresh": list(self._fresh),
            "moment": None if self._moment is None else list(self._moment),
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        if not isinstance(data, Mapping) or data.get("kind") != self.name:
            raise MemoryStateError(f"not a snapshot of the memory {self.name!r}: {str(data)[:80]!r}")
        ledger = Ledger(self._ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            insights = {int(item): str(text) for item, text, _ in data["insights"]}
            traces = {int(item): Trace(int(importance), int(access)) for item, importance, access in data["traces"]}
            fresh = dict.fromkeys(map(int, data["fresh"]))
            moment = None if data["moment"] is None else AgentClock(*map(int, data["moment"]))
            if sorted([*(record.id for record in ledger), *insights]) != list(traces):
                raise ValueError("every item should have one trace and an id of its own")
            if any(item not in ledger for item in fresh):
                raise ValueError("what is fresh should be an observation")
            citations = Citations(self._citations.cascade)
            for item, _, evidence in data["insights"]:
                if item >= data["ledger"]["next_id"]:
                    raise ValueError("ids should stay below `next_id`")
                citations.add(item, evidence, [i for i in evidence if i not in ledger and i not in insights])
        except (KeyError, TypeError, ValueError) as error:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r}: {error!r} in {str(data)[:80]!r}"
            ) from error
        self._ledger, self._citations, self._traces, self._fresh = ledger, citations, traces, fresh
        self._insights, self._ids = insights, {text: item for item, text in insights.items()}
        self._moment, self._columns = moment, None
        self._answers.clear()

    def content_hash(self) -> str:
        """A hash of the content."""
        return hash_plain(self.snapshot())


class _Columns(NamedTuple):
    """The observations as columns, for questions to the whole stream."""

    records: tuple[Record, ...]
    access: NDArray[np.int64]
    importance: NDArray[np.int64]
    place: NDArray[np.int64]
    """Of each observation, the row of its state in `vectors`."""
    places: dict[Hashable, int]
    vectors: NDArray[np.float64]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Three weights, if they can be meant."""
    fine = not isinstance(weights, str) and isinstance(weights, Sequence) and len(weights) == 3
    if not fine or not all(_is_number(weight) and 0 <= weight < float("inf") for weight in weights):
        raise ArgumentError(f"`weights` should be three finite numbers, not negative. Received {weights!r}")
    return tuple(map(float, weights))
