"""A memory stream: observations and insights, each with its importance and its last access.

* `MemoryStream` - what `drift_agents.memory.generative_agents.generative_agents` keeps, ranks and forgets
* `AccessRecord` - how important an item of the stream is, and when it was recalled last
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding, cosine
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.matching.base import Matching
from drift_agents.memory.citations import Citations
from drift_agents.memory.generative_agents.columns import ObservationColumns, StateColumns
from drift_agents.memory.generative_agents.importance import salience
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.reflection import tell
from drift_agents.types import Note, Plain, Record, RecordId, Removed, Retrieved

PER = ("action", "state", "stream")
TIES = ("newest", "oldest")


class AccessRecord(NamedTuple):
    """How important an item of the stream is, and when it was recalled last.

    Args:
        importance: from 1, mundane, to 10, poignant.
        access: the hour in which it was written or recalled last.
    """

    importance: int
    access: int


class MemoryStream:
    """Observations and insights, each with its importance and its last access.

    Observations are the records of a ledger. Insights are texts that cite observations and older
    insights, and fall with them. Both draw their numbers from the ledger. Recalling is the caller's
    business: no question leaves a trace here but `refresh`.

    Args:
        per: of what a question brings up so many observations: of each `action` of the state, of
            the `state`, or of the whole `stream`.
        decay: what is left of recency after an hour, in (0, 1].
        weights: of recency, importance and relevance.
        ties: which of equally salient items comes first, the `newest` or the `oldest`.
        cascade: when an insight falls with its evidence.
        embedding: what tells how similar texts are.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if `per`, `decay`, `weights`, `ties` or `cascade` is outside its range.

    Example:
        >>> from drift_agents.embedding.hashed import HashedEmbedding
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> stream = MemoryStream("state", 0.995, (1.0, 1.0, 1.0), "newest", "majority", HashedEmbedding())
        >>> step = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> stream.write(stream.ledger.append(step, AgentClock()), AccessRecord(10, 0))
        >>> stream.write_insight("Avoid 1 in a.", [0], AccessRecord(10, 0))
        >>> stream.choose_insights("a", 3)
        (Note(id=1, text='Avoid 1 in a.', evidence=(0,), weight=1.0),)
        >>> stream.remove([0])
        Removed(records=(0,), notes=(1,))
    """

    def __init__(
        self,
        per: str,
        decay: float,
        weights: Sequence[float],
        ties: str,
        cascade: str,
        embedding: Embedding,
        matching: Matching | None = None,
    ) -> None:
        if per not in PER:
            raise ArgumentError(f"`per` should be one of {', '.join(PER)}. Received {per!r}")
        if ties not in TIES:
            raise ArgumentError(f"`ties` should be one of {', '.join(TIES)}. Received {ties!r}")
        if not _is_number(decay) or not 0 < decay <= 1:
            raise ArgumentError(f"`decay` should be a number in (0, 1]. Received {decay!r}")
        self.per, self.decay, self.weights, self.ties = per, float(decay), _check_weights(weights), ties
        self.embedding = embedding
        self.ledger, self.citations = Ledger(matching), Citations(cascade)
        self.traces: dict[RecordId, AccessRecord] = {}
        self.insights: dict[RecordId, str] = {}
        self.fresh: dict[RecordId, None] = {}
        """Observations that were not reflected upon."""
        self._fresh_at: dict[Hashable, dict[RecordId, None]] = {}
        self._ids: dict[str, RecordId] = {}
        # What was answered about a state, by k: most states stay as they are from step to step.
        self._answers: dict[Hashable, dict[int, Retrieved]] = {}
        self._columns: ObservationColumns | None = None
        self._places: dict[Hashable, StateColumns] = {}
        # By state: the insights that rest on its observations with their relevance, and those that were answered.
        self._resting: dict[Hashable, tuple[list[RecordId], NDArray[np.float64]]] = {}
        self._notes: dict[tuple[Hashable, int], tuple[Note, ...]] = {}

    def write(self, record_id: RecordId, trace: AccessRecord) -> None:
        """Take note of an observation that was appended to the ledger."""
        self.traces[record_id] = trace
        self.fresh[record_id] = None
        record = self.ledger.get(record_id)
        if record is not None:
            key = self.ledger.matching.state_key(record.state)
            self._fresh_at.setdefault(key, {})[record_id] = None
            if key in self._places:
                self._places[key].append(record, *trace)
            self._forget_answers(key)

    def fresh_at(self, state: str) -> list[RecordId]:
        """The observations of a state that were not reflected upon, oldest first."""
        return list(self._fresh_at.get(self.ledger.matching.state_key(state), ()))

    def settle(self, items: Iterable[RecordId]) -> None:
        """Note that these were reflected upon."""
        for item in items:
            self.fresh.pop(item, None)
        self._index_fresh()

    def _index_fresh(self) -> None:
        self._fresh_at.clear()
        for item in sorted(self.fresh):
            record = self.ledger.get(item)
            if record is not None:
                self._fresh_at.setdefault(self.ledger.matching.state_key(record.state), {})[item] = None

    def write_insight(self, text: str, cited: Iterable[RecordId], trace: AccessRecord) -> None:
        """Write an insight, unless it rests on nothing: then nothing could ever take it back.

        Args:
            text: in one line; what is there already, word by word, is not written twice.
            cited: the items that it rests on.
            trace: its importance and the present hour.
        """
        known = self._ids.get(text)
        # What is said anew may not rest on something younger: two insights could hold each other up.
        evidence = [item for item in cited if known is None or item in self.ledger or item < known]
        if not evidence or not text:
            return
        item = self.ledger.new_id() if known is None else known
        self.citations.add(item, evidence)
        self.insights[item], self._ids[text], self.traces[item] = text, item, trace
        self._resting.clear()
        self._notes.clear()

    def refresh(self, items: Iterable[RecordId], hour: int) -> None:
        """Note that these were recalled."""
        for item in items:
            trace = self.traces[item]
            if trace.access < hour:
                self.traces[item] = trace._replace(access=hour)
                record = self.ledger.get(item)
                if record is None:
                    self._notes.clear()
                    continue
                key = self.ledger.matching.state_key(record.state)
                if key in self._places:
                    self._places[key].refresh(item, hour)
                self._forget_answers(key)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these observations, and the insights that rested on them."""
        gone = self.ledger.remove(ids)
        fell = self.citations.fall(gone)
        for item in (*gone, *fell):
            del self.traces[item]
            self.fresh.pop(item, None)
        for item in fell:
            del self._ids[self.insights.pop(item)]
        self._index_fresh()
        self._forget_all_answers()
        return Removed(gone, fell)

    def importance(self, items: Iterable[RecordId]) -> int:
        """The sum of their importance."""
        return sum(self.traces[item].importance for item in items)

    def at(self, state: str) -> list[RecordId]:
        """The observations of a state, oldest first."""
        return sorted(record.id for group in self.ledger.at(state).values() for record in group)

    def tell(self, item: RecordId) -> str:
        """An item as a statement."""
        record = self.ledger.get(item)
        if record is None:
            return self.insights[item]
        return tell(record.state, record.action, record.outcomes, record.n if record.verified else None)

    def note(self, item: RecordId) -> Note:
        """An insight as it stands in an answer."""
        return Note(item, self.insights[item], self.citations.evidence(item))

    def answer(self, state: str, k: int) -> Retrieved:
        """The most salient observations, the best first; `k` of whatever `per` says."""
        answers = self._answers.setdefault(self.ledger.matching.state_key(state), {})
        if k not in answers:
            records = self._choose(state, k)
            answers[k] = Retrieved(records, (1.0,) * len(records))
        return answers[k]

    def choose_insights(self, state: str, number: int) -> tuple[Note, ...]:
        """The most salient insights: of the whole stream, or of those that rest on this state's observations."""
        key = self.ledger.matching.state_key(state)
        notes = self._notes.get((key, number))
        if notes is None:
            items, relevance = self._insights_about(state, key)
            best = self._rank(self._trace_columns(items), relevance) if items and number else []
            notes = tuple(self.note(items[place]) for place in best[:number])
            if key in self._resting:
                self._notes[key, number] = notes
        return notes

    def _insights_about(self, state: str, key: Hashable) -> tuple[list[RecordId], NDArray[np.float64]]:
        """The insights that a question about a state is asked of, and their relevance."""
        if key in self._resting:
            return self._resting[key]
        here = self.at(state)
        items = list(self.insights) if self.per == "stream" else sorted(self.citations.resting(here))
        # States that count as the same ask in the same words, those of the oldest observation.
        oldest = self.ledger.get(here[0]) if here else None
        question = state if oldest is None else oldest.state
        relevance = self._insight_relevance(question, items) if items else np.zeros(0)
        if oldest is not None:
            self._resting[key] = items, relevance
        return items, relevance

    def choose_items(self, question: str, number: int) -> list[RecordId]:
        """The most salient items of the whole stream, observations and insights together."""
        observations, insights = self._read_columns(), list(self.insights)
        similar = cosine(self.embedding.embed([question])[0], observations.vectors)
        relevance = np.concatenate([similar[observations.place], self._insight_relevance(question, insights)])
        both = np.concatenate([observations.traces, self._trace_columns(insights)], axis=1)
        return [int(both[0, place]) for place in self._rank(both, relevance)[:number]]

    def _choose(self, state: str, k: int) -> tuple[Record, ...]:
        """The most salient observations, the best first."""
        if self.per == "stream":
            columns = self._read_columns()
            similar = cosine(self.embedding.embed([state])[0], columns.vectors)
            own = columns.places.get(self.ledger.matching.state_key(state))
            if own is not None:
                similar[own] = 1.0
            best = self._rank(columns.traces, similar[columns.place])
            return tuple(columns.records[place] for place in best[:k])
        key = self.ledger.matching.state_key(state)
        here = self._places.get(key)
        if here is None:
            here = self._places[key] = StateColumns()
            for item in self.at(state):
                record = self.ledger.get(item)
                if record is not None:
                    here.append(record, *self.traces[item])
        # They are all about this state, so relevance tells none from another.
        best = self._rank(here.columns(), np.zeros(len(here.records)))
        if self.per == "state":
            return tuple(here.records[place] for place in best[:k])
        left = {action: min(k, count) for action, count in here.actions.items()}
        wanted, chosen = sum(left.values()), []
        for place in best:
            record = here.records[place]
            if left[record.action]:
                left[record.action] -= 1
                chosen.append(record)
                if len(chosen) == wanted:
                    break
        return tuple(chosen)

    def _rank(self, traces: Iterable[NDArray[np.int64]], relevance: NDArray[np.float64]) -> list[int]:
        """The places of the items by salience, the best first."""
        items, importance, access = traces
        scores = salience(access, importance, relevance, self.decay, self.weights)
        return np.lexsort((-items if self.ties == "newest" else items, -scores)).tolist()

    def _trace_columns(self, items: Sequence[RecordId]) -> NDArray[np.int64]:
        """Id, importance and access of these items; shape (3, n)."""
        return np.array([(item, *self.traces[item]) for item in items], np.int64).reshape(-1, 3).T

    def _insight_relevance(self, question: str, items: Sequence[RecordId]) -> NDArray[np.float64]:
        """How similar these insights are to a question."""
        vectors = self.embedding.embed([question, *(self.insights[item] for item in items)])
        return cosine(vectors[0], vectors[1:])

    def _read_columns(self) -> ObservationColumns:
        """All observations as columns, kept until one changes."""
        if self._columns is None:
            key, texts, records = self.ledger.matching.state_key, list(self.ledger.states()), tuple(self.ledger)
            places = {key(text): place for place, text in enumerate(texts)}
            self._columns = ObservationColumns(
                records,
                self._trace_columns([record.id for record in records]),
                np.array([places[key(record.state)] for record in records], np.int64),
                places,
                self.embedding.embed(texts),
            )
        return self._columns

    def _forget_answers(self, key: Hashable) -> None:
        """Answers that an observation of this state may stand in are worked out again; insights stand in none."""
        self._columns = None
        if self.per == "stream":
            self._answers.clear()
        else:
            self._answers.pop(key, None)

    def _forget_all_answers(self) -> None:
        for known in (self._answers, self._places, self._resting, self._notes):
            known.clear()
        self._columns = None

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "ledger": self.ledger.snapshot(),
            "insights": [[item, text, list(self.citations.evidence(item))] for item, text in self.insights.items()],
            "traces": [[item, *trace] for item, trace in sorted(self.traces.items())],
            "fresh": list(self.fresh),
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of a stream.
        """
        ledger = Ledger(self.ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            insights = {int(item): str(text) for item, text, _ in data["insights"]}
            traces = {
                int(item): AccessRecord(int(importance), int(access)) for item, importance, access in data["traces"]
            }
            fresh = dict.fromkeys(map(int, data["fresh"]))
            if sorted([*(record.id for record in ledger), *insights]) != list(traces):
                raise ValueError("every item should have one trace and an id of its own")
            if any(item not in ledger for item in fresh):
                raise ValueError("what is fresh should be an observation")
            if any(item >= data["ledger"]["next_id"] for item in insights):
                raise ValueError("ids should stay below `next_id`")
            citations = Citations(self.citations.cascade)
            for item, _, cited in data["insights"]:
                evidence = [int(number) for number in cited]
                citations.add(int(item), evidence, [i for i in evidence if i not in ledger and i not in insights])
        except (KeyError, TypeError, ValueError) as error:
            raise MemoryStateError(f"not a snapshot of a stream: {error!r} in {str(data)[:80]!r}") from error
        self.ledger, self.citations, self.traces, self.fresh = ledger, citations, traces, fresh
        self.insights, self._ids = insights, {text: item for item, text in insights.items()}
        self._index_fresh()
        self._forget_all_answers()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Three weights, if they can be meant."""
    fine = not isinstance(weights, str) and isinstance(weights, Sequence) and len(weights) == 3
    if not fine or not all(_is_number(weight) and 0 <= weight < float("inf") for weight in weights):
        raise ArgumentError(f"`weights` should be three finite numbers, not negative. Received {weights!r}")
    return tuple(map(float, weights))
