"""What may stay in a memory: deletion by how often and how well records served.

* `ADDITIONS`, `DELETIONS`, `COUNTS` - the policies by name
* `ExecutionEntry` - one execution (or verified summary) in memory, and how it served
* `ExecutionLedger` - all of them: a pure state machine, which knows nothing of what the records say
* `size_bound` - how many executions periodical deletion leaves

Source: Xiong et al., "How memory management impacts LLM agents", sections 4.1, 5.1 and 6.2.
`docs/memories/management.md` says how its query-execution pairs map to records of transitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from drift_agents.types import RecordId

ADDITIONS = ("fixed", "all", "coarse", "strict")
"""Which executions are added: none, all, those that a judge calls good, those that reached the threshold."""
DELETIONS = ("none", "periodical", "history", "combined")
"""Which are deleted: none, those seldom retrieved, those that served badly, those of which either is true."""
COUNTS = ("here", "shown")
"""Which retrievals count: of records about the state in which the agent stood, or of all in the prompt."""


@dataclass
class ExecutionEntry:
    """One execution (or verified summary) in memory, and how it served.

    Args:
        key: the id of its first record; it stays when that record goes.
        episode: when it was lived; `None` for a verified summary.
        written: how many executions were over when it was written.
        own: what the evaluator said about the execution itself.
        ids: its records.
        uses: in how many executions it was retrieved.
        total: the sum of what the evaluator said about those.
        recent: the numbers of these executions, as far as the period reaches.
    """

    key: RecordId
    episode: int | None
    written: int
    own: float
    ids: dict[RecordId, None]
    uses: int = 0
    total: float = 0.0
    recent: list[int] = field(default_factory=list)

    @property
    def utility(self) -> float:
        """The mean utility of the executions in which it was retrieved; its own as long as there is none."""
        return self.total / self.uses if self.uses else self.own


class ExecutionLedger:
    """Executions in memory, and how they served.

    Time is the number of executions that are over. An entry is retrieved at most once in an execution.

    Args:
        period: over how many executions retrievals are counted; positive.
        alpha: what was retrieved at most so often in a period goes.
        uses: retrievals from which on the mean utility counts.
        beta: what served with at most this mean utility goes.
        grace: for so many executions periodical deletion leaves an entry alone, and history deletion a
            verified summary.

    Example:
        >>> accounts = ExecutionLedger(period=2, alpha=0, uses=1, beta=0.5, grace=2)
        >>> accounts.write([0, 1], episode=0, own=1.0)
        >>> accounts.write([2], episode=1, own=1.0)
        >>> for utility in (1.0, 0.0):
        ...     accounts.serve([0], utility)
        >>> [entry.key for entry in accounts.seldom()], [entry.key for entry in accounts.bad()]
        ([2], [0])
    """

    def __init__(self, *, period: int, alpha: int, uses: int, beta: float, grace: int) -> None:
        self.period, self.alpha, self.uses, self.beta, self.grace = period, alpha, uses, beta, grace
        self.time = 0
        self._entries: dict[RecordId, ExecutionEntry] = {}
        self._of: dict[RecordId, RecordId] = {}

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def __iter__(self) -> Iterator[ExecutionEntry]:
        """The entries, oldest first."""
        return iter(self._entries.values())

    def __contains__(self, record_id: object) -> bool:
        """Whether a record of that id belongs to an entry."""
        return record_id in self._of

    @property
    def size(self) -> int:
        """How many records there are in all entries together."""
        return len(self._of)

    def write(self, ids: Sequence[RecordId], episode: int | None, own: float) -> None:
        """Add an execution, or records to one that is there already.

        Args:
            ids: its records; nothing happens if there are none.
            episode: when it was lived; `None` for a verified summary.
            own: what the evaluator said about it.
        """
        if not ids:
            return
        there = None if episode is None else next((e for e in self if e.episode == episode), None)
        if there is None:
            there = self._entries[ids[0]] = ExecutionEntry(ids[0], episode, self.time, own, {})
        there.ids.update(dict.fromkeys(ids))
        self._of.update(dict.fromkeys(ids, there.key))

    def forget(self, ids: Iterable[RecordId]) -> None:
        """Records are gone; an entry goes with its last one."""
        for record_id in ids:
            key = self._of.pop(record_id, None)
            if key is None:
                continue
            entry = self._entries[key]
            del entry.ids[record_id]
            if not entry.ids:
                del self._entries[key]

    def serve(self, ids: Iterable[RecordId], utility: float) -> None:
        """An execution is over.

        Args:
            ids: the records that were retrieved during it.
            utility: what the evaluator says about it.
        """
        self.time += 1
        for key in sorted({self._of[record_id] for record_id in ids if record_id in self._of}):
            entry = self._entries[key]
            entry.uses += 1
            entry.total += utility
            entry.recent.append(self.time)
        for entry in self:
            while entry.recent and entry.recent[0] <= self.time - self.period:
                del entry.recent[0]

    def seldom(self) -> list[ExecutionEntry]:
        """What was retrieved at most `alpha` times in the last period (periodical deletion)."""
        return [e for e in self if self.time - e.written >= self.grace and len(e.recent) <= self.alpha]

    def bad(self) -> list[ExecutionEntry]:
        """What was retrieved at least `uses` times, with a mean utility of at most `beta` (history deletion)."""
        return [e for e in self if e.uses >= self.uses and e.utility <= self.beta and not self.is_spared(e)]

    def is_spared(self, entry: ExecutionEntry) -> bool:
        """Whether an entry is a verified summary in its grace period."""
        return entry.episode is None and self.time - entry.written < self.grace

    def worst(self, capacity: int) -> list[ExecutionEntry]:
        """What must go so that at most `capacity` records stay, the worst by mean utility first.

        What is larger than the capacity by itself goes before all others; of equals the oldest goes.
        Verified summaries in their grace period go last.
        """
        left, gone = self.size, []
        ranked = sorted(self, key=lambda e: (len(e.ids) <= capacity, self.is_spared(e), e.utility, e.key))
        for entry in ranked:
            if left <= capacity:
                break
            gone.append(entry)
            left -= len(entry.ids)
        return gone

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "time": self.time,
            "entries": [
                [e.key, e.episode, e.written, float(e.own), list(e.ids), e.uses, float(e.total), list(e.recent)]
                for e in self
            ],
        }

    def restored(self, data: Any) -> ExecutionLedger:
        """Accounts with the same rules and the content of a snapshot.

        Raises:
            KeyError, TypeError, ValueError: if the data is no such snapshot.
        """
        fresh = ExecutionLedger(period=self.period, alpha=self.alpha, uses=self.uses, beta=self.beta, grace=self.grace)
        fresh.time = _whole(data["time"])
        for key, episode, written, own, ids, uses, total, recent in data["entries"]:
            numbers = [_whole(n) for n in (key, written, uses, *ids, *recent, *([] if episode is None else [episode]))]
            if not ids or fresh._of.keys() & set(ids) or key in fresh._entries:
                raise ValueError(f"an execution holds no record, or one of another: {numbers!r}")
            entry = ExecutionEntry(
                key, episode, written, float(own), dict.fromkeys(ids), uses, float(total), list(recent)
            )
            fresh._entries[key] = entry
            fresh._of.update(dict.fromkeys(ids, key))
        return fresh


def size_bound(period: int, alpha: int, retrieved: int, new: int) -> float:
    """How many executions periodical deletion leaves: M <= (t - t') K / (alpha + 1), and the new ones.

    The paper prints alpha (t' - t) K, which is zero at its own alpha = 0. Every old execution was retrieved at
    least alpha + 1 times in the period, and there were at most (t - t') K retrievals.

    Args:
        period: t - t', in executions.
        alpha: as for `ExecutionLedger`.
        retrieved: K, how many executions are retrieved in one execution at the most.
        new: how many were written within the grace period.

    Example:
        >>> size_bound(200, 0, 4, 0), size_bound(300, 1, 3, 10)
        (800.0, 460.0)
    """
    return period * retrieved / (alpha + 1) + new


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} should be a whole number")
    return value
