"""The memory stream of Generative Agents: observations and insights, ranked by the sum of three scaled scores.

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section 4.1.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drift_agents.embedding.base import Embedding, cosine
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.memory.citations import Citations
from drift_agents.memory.transcript import render_statement
from drift_agents.memory.transitions import AnswerCache, TransitionStore
from drift_agents.types import Note, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_interval, is_number

PER = ("action", "state", "stream")
TIES = ("newest", "oldest")


class MemoryStream:
    """Observations and insights, each with its importance and its last access.

    Observations are the records of a transition store. Insights are texts that cite observations and older
    insights, and are removed with them. Both have numbers of the transition store. Queries have no side effect;
    the caller updates the last access (`refresh`).

    Args:
        per: what `k` limits the observations of: each `action` of the state, the `state`, or the whole
            `stream`.
        decay: the factor of recency in one hour, in (0, 1].
        weights: of recency, importance and relevance.
        ties: which of equally salient items comes first, the `newest` or the `oldest`.
        cascade: when an insight is removed with its evidence.
        embedding: of states, insights and questions.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if `per`, `decay`, `weights`, `ties` or `cascade` is outside its range.

    Example:
        >>> from drift_agents.embedding.base import HashedEmbedding
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> stream = MemoryStream("state", 0.995, (1.0, 1.0, 1.0), "newest", "majority", HashedEmbedding())
        >>> step = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> stream.write(stream.transitions.append(step, AgentClock()), AccessRecord(10, 0))
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
        self.per, self.ties = check_choice("per", per, PER), check_choice("ties", ties, TIES)
        self.decay, self.weights = check_interval("decay", decay, "(0, 1]"), _check_weights(weights)
        self.embedding = embedding
        self.transitions, self.citations = TransitionStore(matching), Citations(cascade)
        self.traces: dict[RecordId, AccessRecord] = {}
        self.insights: dict[RecordId, str] = {}
        self.unreflected: dict[RecordId, None] = {}
        """Observations that no reflection has used."""
        self._unreflected_at: dict[Hashable, dict[RecordId, None]] = {}
        self._ids: dict[str, RecordId] = {}
        # Results by state and k: most states do not change from step to step.
        self._cache = AnswerCache()
        self._columns: ObservationColumns | None = None
        self._state_columns: dict[Hashable, StateColumns] = {}
        # By state: the insights that depend on its observations with their relevance; and results by state and number.
        self._dependent: dict[Hashable, tuple[list[RecordId], NDArray[np.float64]]] = {}
        self._notes: dict[tuple[Hashable, int], tuple[Note, ...]] = {}

    def write(self, record_id: RecordId, trace: AccessRecord) -> None:
        """Add an observation that was appended to the transition store."""
        self.traces[record_id] = trace
        self.unreflected[record_id] = None
        record = self.transitions[record_id]
        key = self.transitions.keys[record.state]
        self._unreflected_at.setdefault(key, {})[record_id] = None
        if key in self._state_columns:
            self._state_columns[key].append(record, *trace)
        self._clear_cache_of(key)

    def unreflected_at(self, state: str) -> list[RecordId]:
        """The observations of a state that no reflection has used, oldest first."""
        return list(self._unreflected_at.get(self.transitions.keys[state], ()))

    def mark_reflected(self, items: Iterable[RecordId]) -> None:
        """Mark observations as used by a reflection."""
        for item in items:
            self.unreflected.pop(item, None)
        self._index_unreflected()

    def _index_unreflected(self) -> None:
        self._unreflected_at.clear()
        for item in sorted(self.unreflected):
            key = self.transitions.keys[self.transitions[item].state]
            self._unreflected_at.setdefault(key, {})[item] = None

    def write_insight(self, text: str, cited: Iterable[RecordId], trace: AccessRecord) -> None:
        """Write an insight, unless it cites nothing: then it could never be removed.

        Args:
            text: in one line; the same text is not written twice.
            cited: the items that it depends on.
            trace: its importance and the present hour.
        """
        known = self._ids.get(text)
        # A known insight may not cite newer items: two insights could cite each other.
        evidence = [item for item in cited if known is None or item in self.transitions or item < known]
        if not evidence or not text:
            return
        item = self.transitions.new_id() if known is None else known
        self.citations.add(item, evidence)
        self.insights[item], self._ids[text], self.traces[item] = text, item, trace
        self._dependent.clear()
        self._notes.clear()

    def refresh(self, items: Iterable[RecordId], hour: int) -> None:
        """Set the last access of items that were recalled."""
        for item in items:
            trace = self.traces[item]
            if trace.access < hour:
                self.traces[item] = trace._replace(access=hour)
                if item in self.insights:
                    self._notes.clear()
                    continue
                key = self.transitions.keys[self.transitions[item].state]
                if key in self._state_columns:
                    self._state_columns[key].refresh(item, hour)
                self._clear_cache_of(key)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these observations, and the insights that depend on them."""
        removed = self.transitions.remove(ids)
        insights = self.citations.remove(removed)
        for item in (*removed, *insights):
            del self.traces[item]
            self.unreflected.pop(item, None)
        for item in insights:
            del self._ids[self.insights.pop(item)]
        self._index_unreflected()
        for cache in (self._cache, self._state_columns, self._dependent, self._notes):
            cache.clear()
        self._columns = None
        return Removed(removed, insights)

    def importance(self, items: Iterable[RecordId]) -> int:
        """The sum of their importance."""
        return sum(self.traces[item].importance for item in items)

    def at(self, state: str) -> list[RecordId]:
        """The observations of a state, oldest first."""
        return sorted(record.id for group in self.transitions.by_action(state).values() for record in group)

    def statement(self, item: RecordId) -> str:
        """An item as a statement."""
        if item in self.insights:
            return self.insights[item]
        record = self.transitions[item]
        return render_statement(record.state, record.action, record.outcomes, record.n if record.verified else None)

    def note(self, item: RecordId) -> Note:
        """An insight as a note."""
        return Note(item, self.insights[item], self.citations.evidence(item))

    def retrieve(self, state: str, k: int) -> Retrieved:
        """The most salient observations, the best first; `k` of what `per` names."""
        return self.retrieve_many((state,), k)[0]

    def retrieve_many(self, states: Sequence[str], k: int) -> list[Retrieved]:
        """What `retrieve` returns for each of these states."""
        keys, cache = self.transitions.keys, self._cache[k]
        return [cache.get(keys[state]) or self._answer(state, k) for state in states]

    def _answer(self, state: str, k: int) -> Retrieved:
        records = self._choose(state, k)
        answer = self._cache[k][self.transitions.keys[state]] = Retrieved(records, (1.0,) * len(records))
        return answer

    def choose_insights(self, state: str, number: int) -> tuple[Note, ...]:
        """The most salient insights: of the whole stream, or of those that depend on observations of this state."""
        key = self.transitions.keys[state]
        notes = self._notes.get((key, number))
        if notes is None:
            items, relevance = self._insights_about(state, key)
            best = self._rank(self._trace_columns(items), relevance) if items and number else []
            notes = tuple(self.note(items[place]) for place in best[:number])
            if key in self._dependent:
                self._notes[key, number] = notes
        return notes

    def _insights_about(self, state: str, key: Hashable) -> tuple[list[RecordId], NDArray[np.float64]]:
        """The insights that are candidates in a state, and their relevance."""
        if key in self._dependent:
            return self._dependent[key]
        here = self.at(state)
        items = list(self.insights) if self.per == "stream" else sorted(self.citations.dependents(here))
        # For equal states the text is that of the oldest observation.
        question = self.transitions[here[0]].state if here else state
        relevance = self._insight_relevance(question, items) if items else np.zeros(0)
        if here:
            self._dependent[key] = items, relevance
        return items, relevance

    def choose_items(self, question: str, number: int) -> list[RecordId]:
        """The most salient items of the whole stream, observations and insights together."""
        observations, insights = self._read_columns(), list(self.insights)
        similar = cosine(self.embedding.embed([question])[0], observations.vectors)
        relevance = np.concatenate([similar[observations.rows], self._insight_relevance(question, insights)])
        both = np.concatenate([observations.traces, self._trace_columns(insights)], axis=1)
        return [int(both[0, place]) for place in self._rank(both, relevance)[:number]]

    def _choose(self, state: str, k: int) -> tuple[Record, ...]:
        """The most salient observations, the best first."""
        if self.per == "stream":
            columns = self._read_columns()
            similar = cosine(self.embedding.embed([state])[0], columns.vectors)
            own = columns.row_of.get(self.transitions.keys[state])
            if own is not None:
                similar[own] = 1.0
            best = self._rank(columns.traces, similar[columns.rows])
            return tuple(columns.records[place] for place in best[:k])
        key = self.transitions.keys[state]
        here = self._state_columns.get(key)
        if here is None:
            here = self._state_columns[key] = StateColumns()
            for item in self.at(state):
                here.append(self.transitions[item], *self.traces[item])
        # All are observations of this state, so their relevance is equal.
        best = self._rank(here.columns(), np.zeros(len(here.records)))
        if self.per == "state":
            return tuple(here.records[place] for place in best[:k])
        remaining = {action: min(k, count) for action, count in here.actions.items()}
        total, chosen = sum(remaining.values()), []
        for place in best:
            record = here.records[place]
            if remaining[record.action]:
                remaining[record.action] -= 1
                chosen.append(record)
                if len(chosen) == total:
                    break
        return tuple(chosen)

    def _rank(self, traces: Iterable[NDArray[np.int64]], relevance: NDArray[np.float64]) -> list[int]:
        """The places of the items by salience, the best first."""
        items, importance, access = traces
        scores = salience(access, importance, relevance, self.decay, self.weights)
        ranked: list[int] = np.lexsort((-items if self.ties == "newest" else items, -scores)).tolist()
        return ranked

    def _trace_columns(self, items: Sequence[RecordId]) -> NDArray[np.int64]:
        """Id, importance and access of these items; shape (3, n)."""
        return np.array([(item, *self.traces[item]) for item in items], np.int64).reshape(-1, 3).T

    def _insight_relevance(self, question: str, items: Sequence[RecordId]) -> NDArray[np.float64]:
        """The similarity of these insights to a question."""
        vectors = self.embedding.embed([question, *(self.insights[item] for item in items)])
        return cosine(vectors[0], vectors[1:])

    def _read_columns(self) -> ObservationColumns:
        """All observations as columns, cached until one changes."""
        if self._columns is None:
            key, records = self.transitions.matching.state_key, tuple(self.transitions)
            texts = list(self.transitions.states())
            row_of = {key(text): row for row, text in enumerate(texts)}
            self._columns = ObservationColumns(
                records,
                self._trace_columns([record.id for record in records]),
                np.array([row_of[key(record.state)] for record in records], np.int64),
                row_of,
                self.embedding.embed(texts),
            )
        return self._columns

    def _clear_cache_of(self, key: Hashable) -> None:
        """Clear the results that may contain observations of this state."""
        self._columns = None
        if self.per == "stream":
            self._cache.clear()
        else:
            self._cache.forget(key)


class AccessRecord(NamedTuple):
    """The importance and the last access of an item.

    Args:
        importance: from 1, mundane, to 10, poignant.
        access: the hour in which it was written or recalled last.
    """

    importance: int
    access: int


DECIMALS = 9
"""Of a score: the last bits of a power differ between machines, and should not decide ties."""


def scaled(values: ArrayLike) -> NDArray[np.float64]:
    """Values between their least (0) and their greatest (1); all 0 when they are equal.

    Args:
        values: shape (n,).

    Example:
        >>> scaled([2, 10, 4]).tolist(), scaled([3, 3]).tolist()
        ([0.0, 1.0, 0.25], [0.0, 0.0])
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        return numbers
    low, high = numbers.min(), numbers.max()
    return (numbers - low) / (high - low) if high > low else np.zeros_like(numbers)


def salience(
    access: Sequence[int] | NDArray[np.int64],
    importance: ArrayLike,
    relevance: ArrayLike,
    decay: float = 0.995,
    weights: Sequence[float] = (1.0, 1.0, 1.0),
) -> NDArray[np.float64]:
    """The score of every item: the weighted sum of its scaled recency, importance and relevance.

    Recency is decay ** (hours since the last access). Scaling removes a common factor of all recencies,
    so hours are counted from the latest access instead of the present: the result is exactly the same at
    any later time.

    Args:
        access: the hour of each item's last access; shape (n,).
        importance: from 1 to 10; shape (n,).
        relevance: similarity to the query, in [-1, 1]; shape (n,).
        decay: the factor of recency in one hour, in (0, 1].
        weights: of recency, importance and relevance.

    Returns:
        Scores from 0 to the sum of the weights, rounded to `DECIMALS`; shape (n,).

    Example:
        >>> salience([0, 10, 10], [10, 1, 1], [1.0, 0.5, 1.0]).tolist()
        [2.0, 1.0, 2.0]
    """
    hours = np.asarray(access, dtype=np.float64)
    if not hours.size:
        return hours
    recency = decay ** (hours.max() - hours)
    parts = zip(weights, (recency, importance, relevance), strict=True)
    return np.round(sum((weight * scaled(part) for weight, part in parts), np.zeros(hours.shape)), DECIMALS)


class StateColumns:
    """The observations of one state, oldest first, as growing columns.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> columns = StateColumns()
        >>> columns.append(Record(7, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock()), 10, 0)
        >>> columns.refresh(7, 3)
        >>> [column.tolist() for column in columns.columns()], columns.actions
        ([[7], [10], [3]], {'1': 1})
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        """The observations."""
        self.actions: dict[str, int] = {}
        """The number of observations of each action."""
        self._items, self._importance, self._access = array("q"), array("q"), array("q")

    def append(self, record: Record, importance: int, access: int) -> None:
        """Add the newest one.

        Args:
            importance: from 1 to 10.
            access: the hour in which it was written or recalled last.
        """
        self.records.append(record)
        self.actions[record.action] = self.actions.get(record.action, 0) + 1
        self._items.append(record.id)
        self._importance.append(importance)
        self._access.append(access)

    def refresh(self, item: RecordId, hour: int) -> None:
        """Set the last access of an observation."""
        self._access[bisect_left(self._items, item)] = hour

    def columns(self) -> Iterator[NDArray[np.int64]]:
        """Id, importance and last access of each; shape (n,) each."""
        return (np.array(column, np.int64) for column in (self._items, self._importance, self._access))


class ObservationColumns(NamedTuple):
    """All observations, for queries to the whole stream.

    Args:
        records: the observations, oldest first.
        traces: id, importance and last access of each; shape (3, n).
        rows: the row of its state in `vectors`, of each; shape (n,).
        row_of: key of a state -> row.
        vectors: of the states; shape (states, dimension).
    """

    records: tuple[Record, ...]
    traces: NDArray[np.int64]
    rows: NDArray[np.int64]
    row_of: dict[Hashable, int]
    vectors: NDArray[np.float64]


def _check_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Three finite weights that are not negative."""
    is_triple = not isinstance(weights, str) and isinstance(weights, Sequence) and len(weights) == 3
    if not is_triple or not all(is_number(weight) and 0 <= weight < float("inf") for weight in weights):
        raise ArgumentError(f"`weights` should be three finite numbers, not negative. Received {weights!r}")
    return tuple(map(float, weights))
