"""Executions, the unit of memory management: their store with retrievals and utilities, their judgement, their source.

Source: Xiong et al., "How memory management impacts LLM agents", sections 4.1 and 5.1, appendix A.2.
`drift_agents.memory.management` adds and deletes executions; here they are counted, judged and demonstrated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.llm.base import Rule, object_schema
from drift_agents.memory.transcript import truncate
from drift_agents.types import (
    Episode,
    Experience,
    RecordId,
)

TIES = ("oldest", "newest")
"""Which of the executions with equal utility is deleted first at a capacity; the paper does not say."""


@dataclass
class ExecutionEntry:
    """One execution (or verified summary) with its retrievals and its utility.

    Args:
        key: the id of its first record; it stays the same when that record is removed.
        episode: its episode; `None` for a verified summary.
        written: the number of executions finished when it was written.
        own: the utility of the execution itself.
        ids: its records.
        uses: in how many executions it was retrieved.
        total: the sum of the utilities of those.
        recent: the numbers of those within the period.
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
        """The mean utility of the executions in which it was retrieved; its own if there is none."""
        return self.total / self.uses if self.uses else self.own


class ExecutionStore:
    """Executions in memory, with their retrievals and utilities.

    Time is the number of finished executions. An entry is retrieved at most once in an execution.

    Args:
        period: the number of executions over which retrievals are counted; positive.
        alpha: periodical deletion removes entries retrieved at most so often in a period.
        uses: the least number of retrievals for history deletion.
        beta: history deletion removes entries with at most this mean utility.
        grace: the number of executions in which an entry is exempt from periodical deletion, and a
            verified summary from history deletion.

    Example:
        >>> executions = ExecutionStore(period=2, alpha=0, uses=1, beta=0.5, grace=2)
        >>> executions.write([0, 1], episode=0, own=1.0)
        >>> executions.write([2], episode=1, own=1.0)
        >>> for utility in (1.0, 0.0):
        ...     executions.record_uses([0], utility)
        >>> [entry.key for entry in executions.seldom_used()], [entry.key for entry in executions.of_low_utility()]
        ([2], [0])
    """

    def __init__(self, *, period: int, alpha: int, uses: int, beta: float, grace: int) -> None:
        self.period, self.alpha, self.uses, self.beta, self.grace = period, alpha, uses, beta, grace
        self.time = 0
        self._entries: dict[RecordId, ExecutionEntry] = {}
        self._entry_of: dict[RecordId, RecordId] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ExecutionEntry]:
        """The entries, oldest first."""
        return iter(self._entries.values())

    @property
    def size(self) -> int:
        """The number of records in all entries together."""
        return len(self._entry_of)

    def write(self, ids: Sequence[RecordId], episode: int | None, own: float) -> None:
        """Add an execution, or records to a stored one.

        Args:
            ids: its records; nothing happens if there are none.
            episode: its episode; `None` for a verified summary.
        """
        if not ids:
            return
        entry = None if episode is None else next((e for e in self if e.episode == episode), None)
        if entry is None:
            entry = self._entries[ids[0]] = ExecutionEntry(ids[0], episode, self.time, own, {})
        entry.ids.update(dict.fromkeys(ids))
        self._entry_of.update(dict.fromkeys(ids, entry.key))

    def remove(self, ids: Iterable[RecordId]) -> None:
        """Remove records; an entry is removed with its last one."""
        for record_id in ids:
            key = self._entry_of.pop(record_id, None)
            if key is None:
                continue
            entry = self._entries[key]
            del entry.ids[record_id]
            if not entry.ids:
                del self._entries[key]

    def record_uses(self, ids: Iterable[RecordId], utility: float) -> None:
        """Record the retrievals of a finished execution.

        Args:
            ids: the records that were retrieved in it.
        """
        self.time += 1
        for key in sorted({self._entry_of[record_id] for record_id in ids if record_id in self._entry_of}):
            entry = self._entries[key]
            entry.uses += 1
            entry.total += utility
            entry.recent.append(self.time)
        for entry in self:
            while entry.recent and entry.recent[0] <= self.time - self.period:
                del entry.recent[0]

    def seldom_used(self) -> list[ExecutionEntry]:
        """Entries retrieved at most `alpha` times in the last period (periodical deletion)."""
        return [e for e in self if self.time - e.written >= self.grace and len(e.recent) <= self.alpha]

    def of_low_utility(self) -> list[ExecutionEntry]:
        """Entries retrieved at least `uses` times, with a mean utility of at most `beta` (history deletion)."""
        return [e for e in self if e.uses >= self.uses and e.utility <= self.beta and not self.is_exempt(e)]

    def is_exempt(self, entry: ExecutionEntry) -> bool:
        """Whether an entry is a verified summary in its grace period."""
        return entry.episode is None and self.time - entry.written < self.grace

    def worst(self, capacity: int, ties: str = "oldest") -> list[ExecutionEntry]:
        """The entries to delete so that at most `capacity` records remain, the worst mean utility first.

        Entries larger than the capacity come first, verified summaries in their grace period last.

        Args:
            ties: which of equals comes first, one of `TIES`.
        """
        remaining, deleted, sign = self.size, [], 1 if ties == "oldest" else -1
        ranked = sorted(self, key=lambda e: (len(e.ids) <= capacity, self.is_exempt(e), e.utility, sign * e.key))
        for entry in ranked:
            if remaining <= capacity:
                break
            deleted.append(entry)
            remaining -= len(entry.ids)
        return deleted


ENDED, RAN_OUT = "The episode ended.", "Time ran out."


JUDGEMENT = object_schema(
    "management_judgement", reasoning={"type": "string", "maxLength": 4000}, good={"type": "boolean"}
)


class ExecutionJudgement(NamedTuple):
    """The result of an evaluator.

    Args:
        good: whether the execution should be added.
        utility: of the records that were retrieved in it, in [0, 1].
    """

    good: bool
    utility: float


def strict(result: Episode, threshold: float) -> ExecutionJudgement:
    """The evaluation by the score: good from the threshold on; the utility is the score.

    Args:
        threshold: the least score of a good execution.

    Example:
        >>> strict(Episode("go", 0.5, 3, True), 1.0)
        ExecutionJudgement(good=False, utility=0.5)
    """
    return ExecutionJudgement(result.score >= threshold, min(max(float(result.score), 0.0), 1.0))


def noisy_oracle(result: Episode, threshold: float, error_rate: float, seed: int, number: int) -> ExecutionJudgement:
    """Whether the score reaches the threshold, wrong with a given rate.

    Args:
        threshold: the least score of a good execution.
        error_rate: the probability of the opposite judgement, in [0, 1].
        number: of the execution; each has an independent draw.

    Example:
        >>> noisy_oracle(Episode("go", 0.0, 3, True), 1.0, error_rate=1.0, seed=0, number=1)
        ExecutionJudgement(good=True, utility=1.0)
    """
    is_wrong = np.random.default_rng([seed, number]).random() < error_rate
    good = (result.score >= threshold) != bool(is_wrong)
    return ExecutionJudgement(good, float(good))


def render_execution(result: Episode) -> str:
    """The text of an execution, without the score.

    Args:
        result: the episode with its steps.

    Example:
        >>> print(render_execution(Episode("Reach the goal.", 0.0, 1, True)))
        Task: Reach the goal.
        Steps:
        The episode ended.
    """
    lines = [
        f"- in {truncate(step.experience.state)} action {json.dumps(step.experience.action, ensure_ascii=False)} "
        f"led to {truncate(step.experience.outcome.state)}"
        for step in result.trace
    ]
    return "\n".join([f"Task: {result.task}", "Steps:", *lines, ENDED if result.terminated else RAN_OUT])


def judge_by_end(text: str) -> dict[str, Any]:
    r"""The rule that answers `JUDGEMENT` offline: good if the episode ended before the time limit.

    That is the paper's coarse evaluator for EHRAgent: the agent's own signal of completion.

    Args:
        text: the result of `render_execution`.

    Example:
        >>> judge_by_end("Task: go.\nSteps:\nTime ran out.")["good"]
        False
    """
    good = text.rstrip().endswith(ENDED)
    return {"reasoning": "It came to an end." if good else "It did not come to an end.", "good": good}


RULES: Mapping[str, Rule] = {JUDGEMENT["title"]: judge_by_end}
"""The table for `drift_agents.llm.base.RuleModel`."""


@runtime_checkable
class DemonstrationSource(Protocol):
    """A privileged source of correct executions; agents have no access to it.

    An execution is an episode with its steps: task, score and end are part of what a store learns from.
    """

    def show(self, count: int) -> Sequence[Episode]:
        """`count` correct executions, for memory before the first episode, which sets their times."""
        ...

    def correct(self, result: Episode) -> Episode:
        """The correct execution of the task of this episode, at its times."""
        ...


def rotate_outcomes(execution: Sequence[Experience]) -> list[Experience]:
    """A wrong execution: every step has the outcome of the next one, the last that of the first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> steps = [Experience(s, "1", Outcome(t, 0.0, False), 0.0, AgentClock()) for s, t in ("ab", "bc")]
        >>> [step.outcome.state for step in rotate_outcomes(steps)]
        ['c', 'b']
    """
    pairs = [*pairwise(execution), *((execution[-1], execution[0]) for _ in execution[:1])]
    return [step._replace(outcome=after.outcome, reward=after.reward) for step, after in pairs]
