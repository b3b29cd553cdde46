"""MemoryBank: records that are retrieved gain strength, others fade.

Source: Zhong et al., "MemoryBank: Enhancing large language models with long-term memory" (AAAI
2024), as GLOVE uses it (appendix B.1): retention decays the retrieval weights of older experiences.
`docs/memories/records.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, Rule, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.citations import Citations
from drift_agents.memory.transcript import STEPS, count_runs, read_steps, render_steps, truncate
from drift_agents.memory.transitions import AnswerCache, TransitionStore, TransitionStoreMemory
from drift_agents.types import CLOCK_UNITS, AgentClock, Episode, Note, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_count

RECALLS = ("here", "all")
PER = ("action", "state")
STRENGTH = 1.0
"""S of a new record."""
GAIN = 1.0
"""What a recall adds to S."""
FAINTEST = 1e-12
"""The least weight: weights are positive."""

_Ranked = tuple[float, RecordId, Record]


class MemoryBank(TransitionStoreMemory):
    """Records that are retrieved gain strength, others fade (Zhong et al. 2024, as in GLOVE's B.1).

    A record begins with strength S = 1. Its weight is the retention R = exp(-t / S), with t the
    time since it was written or recalled last. A recall sets t = 0 and adds 1 to S. A query returns
    the `k` records of every action of that state with the highest retention (of equal ones the newest),
    each with its weight from before the recall. Other records are not recalled. None is deleted.

    A prompt queries every known state at every step. If each of these queries were a recall, nothing
    would fade. So only the first query at a time of the agent's clock, which is about the present state,
    recalls; further queries at that time have no effect. Strength grows at most once in a unit of
    `recall_unit`.

    Every episode is a day and ends with a summary. The summaries of the last days are in the prompt;
    they fade with S = 1, and retrieval does not strengthen them.

    Args:
        k: records for each query; positive.
        unit: what t counts, `episode` or `step`.
        recall_unit: S grows at most once in an `episode` or a `step`.
        recalls: which queries recall: `here`, the first one at a time, or `all`.
        per: whether `k` counts records of each `action` of a state, or of a `state` in all.
        days: daily summaries in a result; not negative, with 0 none are made.
        cascade: when a summary is removed with its evidence (`drift_agents.memory.citations`).
        model: summarises; a fixed rule if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Experience, Outcome
        >>> memory = MemoryBank()
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock(0, 0))
        >>> memory.observe(fell, AgentClock(0, 0))
        0
        >>> weights = [memory.retrieve("a", None, AgentClock(day, day)).weights for day in (1, 2, 3)]
        >>> [round(weight, 3) for (weight,) in weights]
        [0.368, 0.607, 0.717]
    """

    name = "memory_bank"

    def __init__(
        self,
        *,
        k: int = 6,
        unit: str = "episode",
        recall_unit: str = "episode",
        recalls: str = "here",
        per: str = "action",
        days: int = 3,
        cascade: str = "majority",
        model: Model | None = None,
        matching: Matching | None = None,
    ) -> None:
        self.k, self.days = check_count("k", k), check_count("days", days, 0)
        self.unit = check_choice("unit", unit, CLOCK_UNITS)
        self.recall_unit = check_choice("recall_unit", recall_unit, CLOCK_UNITS)
        self.recalls, self.per = check_choice("recalls", recalls, RECALLS), check_choice("per", per, PER)
        self.cascade = cascade
        self.model: Model = RuleModel(RULES) if model is None else model
        self._unit, self._recall_unit = CLOCK_UNITS.index(unit), CLOCK_UNITS.index(recall_unit)
        self.transitions = TransitionStore(matching)
        self._strengths: dict[RecordId, MemoryStrength] = {}
        self._summaries: dict[RecordId, tuple[Note, AgentClock]] = {}
        self._citations = Citations(cascade)
        # What was written in the present episode, and the time of the last query.
        self._written: list[RecordId] = []
        self._queried_at: AgentClock | None = None
        # Answers for one unit of time.
        self._cache = AnswerCache()
        # All records by state and then by action, by retention, for the same unit of time: within it,
        # only records that are written or recalled move, to the front.
        self._orders: dict[Hashable, dict[str, list[_Ranked]]] = {}
        self._cached_at: int | None = None
        # The summaries of the last days with their weights in that unit of time.
        self._weighted_summaries: tuple[Note, ...] | None = None

    def _clear_cache(self) -> None:
        self._cache.clear()
        self._orders.clear()
        self._weighted_summaries = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The `k` records of this state with the highest retention; the first query at a time recalls them."""
        key = self.transitions.keys[state]
        retrieved = self._cached(now, k).get(key) or self._answer(state, k, now)
        if self.recalls == "all" or self._queried_at != now:
            self._recall(key, retrieved.records, now)
        self._queried_at = now
        return retrieved

    def retrieve_many(self, states: Sequence[str], k: int | None, now: AgentClock) -> list[Retrieved]:
        """What `retrieve` returns for each of these states."""
        if self.recalls == "all" or self._queried_at != now:
            return [self.retrieve(state, k, now) for state in states]
        keys, cache = self.transitions.keys, self._cached(now, k)
        return [cache.get(keys[state]) or self._answer(state, k, now) for state in states]

    def _cached(self, now: AgentClock, k: int | None) -> dict[Hashable, Retrieved]:
        """The answers with that `k` at that time."""
        if self._cached_at != now[self._unit]:
            self._clear_cache()
            self._cached_at = now[self._unit]
        return self._cache[self.k if k is None else k]

    def _answer(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        key = self.transitions.keys[state]
        if key not in self._orders:
            self._orders[key] = self._rank_actions(state, now)
        answer = self._choose(self._orders[key], self.k if k is None else k)._replace(notes=self._notes(now))
        self._cached(now, k)[key] = answer
        return answer

    def _choose(self, orders: Mapping[str, list[_Ranked]], k: int) -> Retrieved:
        best = sorted(entry for order in orders.values() for entry in order[:k])
        if self.per == "state":
            del best[k:]
        weights = tuple(retention(faded) for faded, _, _ in best)
        return Retrieved(tuple(record for _, _, record in best), weights)

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """The records that `retrieve` would return, which recalls none of them."""
        return self._choose(self._rank_actions(state, now), self.k)

    def _rank_actions(self, state: str, now: AgentClock) -> dict[str, list[_Ranked]]:
        return {action: self._rank(records, now) for action, records in self.transitions.by_action(state).items()}

    def _rank(self, records: Iterable[Record], now: AgentClock) -> list[_Ranked]:
        """Sorted triples of t / S, the negative id and the record: the highest retention comes first.

        By t / S, since small retentions round to the same value.
        """
        # The innermost loop of every step: hence no method calls.
        unit, time, strengths = self._unit, now[self._unit], self._strengths
        ranked = []
        for record in records:
            strength, since = strengths[record.id]
            elapsed = time - since[unit]
            ranked.append((elapsed / strength if elapsed > 0 else 0.0, -record.id, record))
        ranked.sort()
        return ranked

    def weight(self, record_id: RecordId, now: AgentClock) -> float:
        """The retention of a record at that time; no side effect.

        Raises:
            ArgumentError: if there is no such record.
        """
        if record_id not in self.transitions:
            raise ArgumentError(f"`record_id` should be the id of a record. Received {record_id!r}")
        ((faded, _, _),) = self._rank([self.transitions[record_id]], now)
        return retention(faded)

    def _notes(self, now: AgentClock) -> tuple[Note, ...]:
        """The summaries of the last days, the newest first."""
        if self._weighted_summaries is None:
            newest = list(self._summaries.values())[: -self.days - 1 : -1]
            time, unit = now[self._unit], self._unit
            weighted = [(note, retention(max(time - day[unit], 0) / STRENGTH)) for note, day in newest]
            self._weighted_summaries = tuple(note._replace(weight=weight) for note, weight in weighted)
        return self._weighted_summaries

    def _recall(self, key: Hashable, records: Iterable[Record], now: AgentClock) -> None:
        """Strengthen records and reset their time t."""
        for record in records:
            strength, since = self._strengths[record.id]
            if since >= now:
                continue
            ((faded, _, _),) = self._rank([record], now)
            if since[self._recall_unit] < now[self._recall_unit]:
                strength += GAIN
            self._strengths[record.id] = MemoryStrength(strength, now)
            self._cache.forget(key)
            if faded > 0 and key in self._orders:
                order = self._orders[key][record.action]
                del order[bisect_left(order, (faded, -record.id))]
                insort(order, (0.0, -record.id, record))

    def _note_written(self, record: Record) -> None:
        key = self.transitions.keys[record.state]
        self._cache.forget(key)
        if record.now[self._unit] != self._cached_at:
            self._orders.pop(key, None)
        elif key in self._orders:
            insort(self._orders[key].setdefault(record.action, []), (0.0, -record.id, record))
        self._strengths[record.id] = MemoryStrength(STRENGTH, record.now)
        self._written.append(record.id)

    def strength(self, record_id: RecordId) -> MemoryStrength | None:
        """The strength of a record and the time of its last recall; `None` for an unknown record."""
        return self._strengths.get(record_id)

    def summaries(self) -> tuple[Note, ...]:
        """All daily summaries, oldest first, with their initial weight."""
        return tuple(note for note, _ in self._summaries.values())

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, and the summaries that lose too much evidence."""
        removed = self.transitions.remove(ids)
        for record_id in removed:
            del self._strengths[record_id]
        notes = self._citations.remove(removed)
        for note_id in notes:
            del self._summaries[note_id]
        self._clear_cache()
        return Removed(removed, notes)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Write the day's summary, which cites the records of the episode that were not removed.

        Raises:
            ModelError: if the model's answer is no summary.
        """
        # A verifier may have held back a record of an earlier day until now.
        written = [record for record in self.transitions.select(self._written) if record.now.episode == now.episode]
        self._written.clear()
        if not written or not self.days:
            return
        messages = read_messages("memory/templates/memory_bank_day.txt", day=render_steps(result, written))
        summary = ask(self.model, messages, DAY).data["summary"]
        note = Note(self.transitions.new_id(), summary, tuple(record.id for record in written))
        self._summaries[note.id] = note, now
        self._citations.add(note.id, note.evidence)
        self._cache.clear()
        self._weighted_summaries = None


class MemoryStrength(NamedTuple):
    """The strength of a record, and the time of its last recall.

    Args:
        strength: S, in units of time.
        since: when it was written or recalled last: there t = 0.
    """

    strength: float
    since: AgentClock


def retention(faded: float) -> float:
    """The retention R = exp(-t / S), at least `FAINTEST`.

    Args:
        faded: t / S, the time since the last recall in units of the strength; not negative.

    Example:
        >>> [round(retention(1 / strength), 3) for strength in (1, 2, 10)]
        [0.368, 0.607, 0.905]
    """
    return max(math.exp(-faded), FAINTEST)


DAY = object_schema("memory_bank_day", summary={"type": "string", "minLength": 1, "maxLength": 2000})
RUNS = 12
"""The largest number of runs of equal actions in a summary; a longer path is given by its length alone."""
LONGEST = {"state": 200, "action": 60}
"""The largest number of characters in a quoted state or action."""


def summarise_day(text: str) -> dict[str, str]:
    r"""The rule that answers `DAY` offline: the path, its score, and the step that ended it without a score.

    Args:
        text: the result of `drift_agents.memory.transcript.render_steps`.

    Returns:
        JSON by the schema `DAY`.

    Example:
        >>> summarise_day('Task: go.\nSteps:\n- in start action "1" led to hole (score 0; the episode ended)')
        {'summary': 'From start "1" led to score 0. Avoid "1" in start: the episode ended there for nothing.'}
    """
    # From the right, since a task may contain the marker and the lines below it cannot.
    steps = read_steps(text.rpartition(STEPS)[2])
    if not steps:
        return {"summary": "Nothing happened."}
    runs = count_runs(_quote(step, "action") for step in steps)
    if len(runs) > RUNS:
        path = f"a way of {len(steps)} steps"
    else:
        path = ", ".join(action if times == 1 else f"{times} times {action}" for action, times in runs)
    last = steps[-1]
    summary = f"From {_quote(steps[0], 'state')} {path} led to score {last['score']}"
    if not last["ended"]:
        summary += ", without an end"
    elif float(last["score"]) <= 0:
        summary += f". Avoid {_quote(last, 'action')} in {_quote(last, 'state')}: the episode ended there for nothing"
    return {"summary": f"{summary}."}


def _quote(step: re.Match[str], part: str) -> str:
    return truncate(step[part], LONGEST[part])


RULES: Mapping[str, Rule] = {DAY["title"]: summarise_day}
"""The table for `drift_agents.llm.base.RuleModel`."""
