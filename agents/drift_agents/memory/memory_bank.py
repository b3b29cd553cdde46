"""MemoryBank: what is recalled grows strong, what is not fades.

* `MemoryBank` - the memory
* `MemoryStrength` - how strong a record is, and since when it has been fading
* `retention` - what is left after a time (Ebbinghaus' curve)

Source: Zhong et al., "MemoryBank: Enhancing large language models with long-term memory" (AAAI
2024), as GLOVE uses it (appendix B.1): retention decays the retrieval weights of older experiences.
`docs/memories/memory_bank.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Matching
from drift_agents.memory.citations import Citations
from drift_agents.memory.diary import DAY, RULES, tell_day
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.ledgered import LedgerMemory
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

UNITS = AgentClock._fields
RECALLS = ("here", "all")
PER = ("action", "state")
STRENGTH = 1.0
"""S of what was just written."""
GAIN = 1.0
"""What a recall adds to S."""
FAINTEST = 1e-12
"""The least weight: a record never quite vanishes, and a weight is above zero."""

_Ranked = tuple[float, RecordId, Record]


class MemoryStrength(NamedTuple):
    """How strong a record is, and since when it has been fading.

    Args:
        strength: S, in units of time.
        since: when it was written or recalled last: there t = 0.
    """

    strength: float
    since: AgentClock


def retention(faded: float) -> float:
    """What is left: R = exp(-t / S), never below `FAINTEST`.

    Args:
        faded: t / S, the time since the last recall in units of the strength; not negative.

    Example:
        >>> [round(retention(1 / strength), 3) for strength in (1, 2, 10)]
        [0.368, 0.607, 0.905]
    """
    return max(math.exp(-faded), FAINTEST)


class MemoryBank(LedgerMemory):
    """What is recalled grows strong, what is not fades (Zhong et al. 2024, as in GLOVE's B.1).

    A record begins with strength S = 1. Its weight is the retention R = exp(-t / S), with t the
    time since it was written or recalled last. A recall sets t = 0 and adds 1 to S. A question is
    answered with the `k` records of every action of that state that are retained best (the newer
    one of two that are retained equally well), each with its weight from before the recall. What
    is not in the answer is not recalled. Nothing is deleted.

    A prompt asks about every known state at every step. Were each of these questions a recall,
    nothing would ever fade. So a recall is what the first question at a moment of the agent's clock
    brings up, which is about the state where the agent stands; further questions at the same moment
    look things up. And strength grows at most once in a unit of `recall_unit`.

    Every episode is a day and ends with a summary. The summaries of the last days stand in the
    prompt; they fade with S = 1 and are not strengthened by standing there.

    Args:
        k: records for each question; positive.
        unit: what t counts, `episode` or `step`.
        recall_unit: S grows at most once in an `episode` or a `step`.
        recalls: which questions recall: `here`, the first one at a moment, or `all`.
        per: whether `k` counts records of each `action` of a state, or of a `state` in all.
        days: daily summaries in an answer; not negative, with 0 none are made.
        cascade: when a summary falls with its evidence (`drift_agents.memory.citations`).
        model: who summarises; declared rules if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = MemoryBank()
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock(0, 0))
        >>> memory.observe(fell, AgentClock(0, 0))
        0
        >>> weights = [memory.retrieve("a", None, AgentClock(day, day)).weights for day in (1, 2, 3)]
        >>> [round(weight, 3) for (weight,) in weights]
        [0.368, 0.607, 0.717]
    """

    name = "memory_bank"
    needs: frozenset[str] = frozenset()
    supervision = "none"

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
        for name, count, least in (("k", k, 1), ("days", days, 0)):
            if not isinstance(count, int) or isinstance(count, bool) or count < least:
                raise ArgumentError(f"`{name}` should be a whole number, at least {least}. Received {count!r}")
        options = (("unit", unit, UNITS), ("recall_unit", recall_unit, UNITS), ("recalls", recalls, RECALLS))
        for name, value, known in (*options, ("per", per, PER)):
            if value not in known:
                raise ArgumentError(f"`{name}` should be one of {', '.join(known)}. Received {value!r}")
        self.k, self.unit, self.recall_unit, self.recalls = k, unit, recall_unit, recalls
        self.per, self.days, self.cascade = per, days, cascade
        self.model: Model = RuleModel(RULES) if model is None else model
        self._unit, self._recall_unit = AgentClock._fields.index(unit), AgentClock._fields.index(recall_unit)
        self._ledger = Ledger(matching)
        self._traces: dict[RecordId, MemoryStrength] = {}
        self._diary: dict[RecordId, tuple[Note, AgentClock]] = {}
        self._citations = Citations(cascade)
        self._today: list[RecordId] = []
        self._moment: AgentClock | None = None
        # What was answered, for one unit of time: most states stay as they are from step to step.
        self._answers: dict[Hashable, dict[int, Retrieved]] = {}
        # All records by state and then by action, the best retained first, for the same unit of time:
        # within it, what is written or recalled moves to the front, and nothing else moves.
        self._orders: dict[Hashable, dict[str, list[_Ranked]]] = {}
        self._answered: int | None = None
        # The summaries of the last days as they are told in that unit of time.
        self._told: tuple[Note, ...] | None = None

    def _forget_answers(self) -> None:
        self._answers.clear()
        self._orders.clear()
        self._told = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The `k` best retained records of this state, the best first; the first question at a moment recalls them."""
        k = self.k if k is None else k
        time = now[self._unit]
        if self._answered != time:
            self._forget_answers()
            self._answered = time
        key = self._ledger.matching.state_key(state)
        answers = self._answers.setdefault(key, {})
        if k not in answers:
            answers[k] = self._answer(state, key, k, now)
        answer = answers[k]
        if self.recalls == "all" or self._moment != now:
            self._recall(key, answer.records, now)
        self._moment = now
        return answer

    def _answer(self, state: str, key: Hashable, k: int, now: AgentClock) -> Retrieved:
        orders = self._orders.get(key)
        if orders is None:
            groups = self._ledger.at(state).items()
            orders = self._orders[key] = {action: self._ranked(records, now) for action, records in groups}
        best = sorted(entry for order in orders.values() for entry in order[:k])
        if self.per == "state":
            del best[k:]
        weights = tuple(retention(faded) for faded, _, _ in best)
        return Retrieved(tuple(record for _, _, record in best), weights, self._notes(now))

    def _ranked(self, records: Iterable[Record], now: AgentClock) -> list[_Ranked]:
        """Triples of t / S, the negative id and the record: sorted, what is retained best comes first.

        By t / S, since retention rounds what has faded long ago to the same.
        """
        # The innermost loop of every step: hence no method calls.
        unit, time, traces = self._unit, now[self._unit], self._traces
        ranked = []
        for record in records:
            strength, since = traces[record.id]
            elapsed = time - since[unit]
            ranked.append((elapsed / strength if elapsed > 0 else 0.0, -record.id, record))
        ranked.sort()
        return ranked

    def weight(self, record_id: RecordId, now: AgentClock) -> float:
        """How strongly a record would be recalled at that moment; no side effect.

        Raises:
            ArgumentError: if there is no such record.
        """
        record = self._ledger.get(record_id)
        if record is None:
            raise ArgumentError(f"`record_id` should be the id of a record. Received {record_id!r}")
        ((faded, _, _),) = self._ranked([record], now)
        return retention(faded)

    def _notes(self, now: AgentClock) -> tuple[Note, ...]:
        """The summaries of the last days, the newest first."""
        if self._told is None:
            newest = list(self._diary.values())[: -self.days - 1 : -1]
            time, unit = now[self._unit], self._unit
            weighed = [(note, retention(max(time - day[unit], 0) / STRENGTH)) for note, day in newest]
            self._told = tuple(note._replace(weight=weight) for note, weight in weighed)
        return self._told

    def _recall(self, key: Hashable, records: Iterable[Record], now: AgentClock) -> None:
        """Strengthen what was recalled, and let it fade anew."""
        for record in records:
            strength, since = self._traces[record.id]
            if since >= now:
                continue
            ((faded, _, _),) = self._ranked([record], now)
            if since[self._recall_unit] < now[self._recall_unit]:
                strength += GAIN
            self._traces[record.id] = MemoryStrength(strength, now)
            self._answers.pop(key, None)
            if faded > 0 and key in self._orders:
                order = self._orders[key][record.action]
                del order[bisect_left(order, (faded, -record.id))]
                insort(order, (0.0, -record.id, record))

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it, with strength 1."""
        return self._written(experience.state, self._ledger.append(experience, now), now)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary, with strength 1.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        return self._written(state, self._ledger.append_summary(state, action, distribution, n, now), now)

    def _written(self, state: str, record_id: RecordId, now: AgentClock) -> RecordId:
        key = self._ledger.matching.state_key(state)
        self._answers.pop(key, None)
        record = self._ledger.get(record_id)
        if now[self._unit] != self._answered:
            self._orders.pop(key, None)
        elif record is not None and key in self._orders:
            insort(self._orders[key].setdefault(record.action, []), (0.0, -record_id, record))
        self._traces[record_id] = MemoryStrength(STRENGTH, now)
        self._today.append(record_id)
        return record_id

    def trace(self, record_id: RecordId) -> MemoryStrength | None:
        """How strong a record is, and since when it has been fading; `None` if it is not there."""
        return self._traces.get(record_id)

    def diary(self) -> tuple[Note, ...]:
        """All daily summaries, oldest first, with the weight that they began with."""
        return tuple(note for note, _ in self._diary.values())

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, and the summaries of days of which too little is left."""
        gone = self._ledger.remove(ids)
        for record_id in gone:
            del self._traces[record_id]
        notes = self._citations.fall(gone)
        for note_id in notes:
            del self._diary[note_id]
        self._forget_answers()
        return Removed(gone, notes)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Write the day's summary, which rests on what was written today and is still there.

        Raises:
            ModelError: if the model's answer is no summary.
        """
        written = [record for record_id in self._today if (record := self._ledger.get(record_id)) is not None]
        self._today.clear()
        if not written or not self.days:
            return
        messages = read_messages("memory/templates/memory_bank_day.txt", day=tell_day(result, written))
        summary = ask(self.model, messages, DAY).data["summary"]
        note = Note(self._ledger.new_id(), summary, tuple(record.id for record in written))
        self._diary[note.id] = note, now
        self._citations.add(note.id, note.evidence)
        self._answers.clear()
        self._told = None

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "kind": self.name,
            "ledger": self._ledger.snapshot(),
            "traces": [[record_id, strength, *since] for record_id, (strength, since) in self._traces.items()],
            "diary": [[note.id, note.text, list(note.evidence), *day] for note, day in self._diary.values()],
            "today": list(self._today),
            "moment": None if self._moment is None else list(self._moment),
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        data = self._refuse_other(data)
        ledger = Ledger(self._ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            traces = {_whole(i): MemoryStrength(float(s), _clock(*since)) for i, s, *since in data["traces"]}
            diary = {
                _whole(i): (Note(i, str(text), tuple(map(_whole, evidence))), _clock(*day))
                for i, text, evidence, *day in data["diary"]
            }
            today = [_whole(i) for i in data["today"]]
            moment = None if data["moment"] is None else _clock(*data["moment"])
            if list(traces) != [record.id for record in ledger] or any(not s > 0 for s, _ in traces.values()):
                raise ValueError("every record should have one trace, of positive strength")
            if any(i in ledger or i >= data["ledger"]["next_id"] for i in diary):
                raise ValueError("a summary should have an id of its own")
            citations = Citations(self.cascade)
            for note, _ in diary.values():
                citations.add(note.id, note.evidence, {i for i in note.evidence if i not in ledger})
        except (KeyError, TypeError, ValueError) as error:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r}: {error!r} in {str(data)[:80]!r}"
            ) from error
        self._ledger, self._traces, self._diary, self._citations = ledger, traces, diary, citations
        self._today, self._moment, self._answered = today, moment, None


def _whole(value: Any) -> int:
    """A whole number of a snapshot."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} should be a whole number")
    return value


def _clock(episode: Any, step: Any) -> AgentClock:
    """A moment of a snapshot."""
    return AgentClock(_whole(episode), _whole(step))
