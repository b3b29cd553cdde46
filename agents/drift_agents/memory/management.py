"""Memory management: policies of addition and deletion around any memory.

Source: Xiong et al., "How memory management impacts LLM agents: an empirical study of
experience-following behavior", sections 4.1, 5.1 and 6.2. `docs/memories/management.md` says what is faithful, what
was decided here, and how the paper's query-execution pairs map to records of transitions.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, Rule, RuleModel, ask, object_schema, read_messages
from drift_agents.matching import Exact, Matching
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.transcript import truncate
from drift_agents.registry import MEMORIES, read_named
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Record,
    RecordId,
    Removed,
    Retrieved,
    strongest_supervision,
)
from drift_envs.checks import LARGEST_SEED, check_choice, check_count, check_flag, check_interval

ADDITIONS = ("fixed", "all", "coarse", "strict")
"""Which executions are added: none, all, those judged good, those that reached the threshold."""
DELETIONS = ("none", "periodical", "history", "combined")
"""Which are deleted: none, those seldom retrieved, those of low utility, those of either kind."""
COUNTS = ("here", "shown")
"""Which retrievals count: of records of the present state, or of all records in the prompt."""
JUDGES = ("noisy_oracle", "model")
OPTIONAL = ("follow", "in_mind", "exemplars", "address", "audited", "peek")
"""The methods of the optional protocols, which a managed memory has where its store has them."""
BETAS = {True: 0.3, False: 0.7}
"""The threshold of history deletion with a coarse evaluator, and with a strict one (appendix A.2)."""


class Managed:
    """A memory around a memory, with a policy of addition and one of deletion.

    The paper's record is an execution: a task with all steps taken. Here that is what one episode wrote.
    During an episode its records are in memory and can be retrieved; when it ends they are kept or removed
    together. A verified summary belongs to no execution: it is written at once, as an entry of its own.

    It has the methods of optional protocols (`OPTIONAL`) that its store has. `TeamMemory` is not among these
    protocols, since items written by a team would bypass the policy of addition.

    Args:
        store: the managed memory: a name, or one name with its options, as in `{"vanilla": {"k": 1}}`.
        addition: `fixed`, `all`, `coarse` (a judge) or `strict` (the episode's own result).
        deletion: `none`, `periodical`, `history` or `combined` (either).
        capacity: the largest number of records at the end of an episode. It replaces the rule of history
            deletion: the executions of the lowest mean utility are deleted.
        period: episodes over which periodical deletion counts; positive.
        alpha: periodical deletion removes executions retrieved at most so often in a period.
        uses: the least number of retrievals for history deletion; positive.
        beta: history deletion removes executions with at most this mean utility; .3 with a coarse evaluator
            and .7 with a strict one if not given.
        grace: the number of episodes in which an execution is exempt from periodical deletion, and a
            verified summary from history deletion; a period if not given.
        counts: `here` (retrievals of records of the present state) or `shown` (of all records in the prompt).
        threshold: the least score of a good execution.
        judge: the evaluator of `coarse`: `noisy_oracle` or `model`.
        error_rate: of the noisy oracle, in [0, 1].
        initial: correct executions in memory before the first episode; requires a teacher, and a store that
            writes them.
        noise: the share of these that are made wrong (`rotate_outcomes`), in [0, 1].
        error_free: whether added executions that were not good are replaced by correct ones (the paper's
            error-free variant); requires a teacher.
        teacher: the source of correct executions.
        seed: of the noisy oracle's errors and of the noise.
        model: the judge where `judge` is `model`, and the store's model; fixed rules if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.
        UnknownNameError: if no memory has the store's name.

    Example:
        >>> memory = Managed(addition="strict")
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> memory.end_episode(Episode("Reach the goal.", 0.0, 1, True), AgentClock(0, 1))
        >>> list(memory.records()), memory.dropped
        ([], (0,))
    """

    name = "managed"

    def __init__(
        self,
        *,
        store: str | Mapping[str, Any] = "vanilla",
        addition: str = "all",
        deletion: str = "none",
        capacity: int | None = None,
        period: int = 200,
        alpha: int = 0,
        uses: int = 5,
        beta: float | None = None,
        grace: int | None = None,
        counts: str = "here",
        threshold: float = 1.0,
        judge: str = "noisy_oracle",
        error_rate: float = 0.0,
        initial: int = 0,
        noise: float = 0.0,
        error_free: bool = False,
        teacher: DemonstrationSource | None = None,
        seed: int = 0,
        model: Model | None = None,
        matching: Matching | None = None,
    ) -> None:
        self.addition = check_choice("addition", addition, ADDITIONS)
        self.deletion = check_choice("deletion", deletion, DELETIONS)
        self.capacity = check_count("capacity", capacity, optional=True)
        self.counts, self.judge = check_choice("counts", counts, COUNTS), check_choice("judge", judge, JUDGES)
        self.threshold = check_interval("threshold", threshold, "[0, 1]")
        self.error_rate = check_interval("error_rate", error_rate, "[0, 1]")
        self.seed = check_count("seed", seed, 0, LARGEST_SEED)
        check_count("initial", initial, 0)
        check_interval("noise", noise, "[0, 1]")
        check_flag("error_free", error_free)
        if teacher is not None and not isinstance(teacher, DemonstrationSource):
            raise ArgumentError(f"`teacher` should be a source of demonstrations. Received {teacher!r}")
        if teacher is None and (initial or error_free):
            option = "initial" if initial else "error_free"
            raise ArgumentError(f"`{option}` requires a `teacher`. Received None")
        self.store = make_store(store, model, matching)
        for method in OPTIONAL:
            if hasattr(self.store, method):
                setattr(self, method, getattr(self.store, method))
        inner = getattr(self.store, "model", None)
        rules = {**RULES, **(inner.rules if isinstance(inner, RuleModel) else {})}
        self.model: Model = RuleModel(rules) if model is None else model
        self._matching: Matching = Exact() if matching is None else matching
        self._teacher = teacher if error_free else None
        self.executions = ExecutionStore(
            period=check_count("period", period),
            alpha=check_count("alpha", alpha, 0),
            uses=check_count("uses", uses),
            beta=BETAS[addition == "coarse"] if beta is None else check_interval("beta", beta, "[0, 1]"),
            grace=check_count("grace", period if grace is None else grace, 0),
        )
        deletes = deletion in ("history", "combined") or capacity is not None
        evaluator = "judge" if addition == "coarse" else "own reward" if addition == "strict" or deletes else "none"
        teaching = "privileged" if initial or error_free else "none"
        self.supervision = strongest_supervision(self.store.supervision, evaluator, teaching)
        # What the present episode wrote, by its number, and whether earlier ones were added.
        self._open: dict[int, list[RecordId]] = {}
        self._decided: dict[int, bool] = {}
        # The utility of the last execution.
        self._latest = 1.0
        self.dropped: tuple[RecordId, ...] = ()
        """The records that these policies removed at the last end of an episode."""
        if teacher is not None and initial:
            self._write_demonstrations(teacher.show(initial), float(noise))

    def _write_demonstrations(self, executions: Sequence[Episode], noise: float) -> None:
        """Let the store live through executions before the first episode, numbered up to -1; a share is wrong.

        The result is the demonstrated one in either case: a wrong execution in memory does not say that it is.

        Raises:
            ArgumentError: if the store writes nothing of them.
        """
        random = np.random.default_rng([self.seed, len(executions)])
        wrong = set(random.permutation(len(executions))[: round(noise * len(executions))].tolist())
        for number, execution in enumerate(executions):
            now = AgentClock(number - len(executions))
            steps = [step.experience._replace(now=now) for step in execution.trace]
            written = self._write(rotate_outcomes(steps) if number in wrong else steps)
            self.store.end_episode(execution, now)
            self.executions.write(written, now.episode, own=1.0)
        self._remove_lost_entries()
        if not len(self.executions):
            raise ArgumentError(f"`initial` requires a store that writes executions. {self.store.name!r} wrote none")

    def _write(self, steps: Iterable[Experience]) -> list[RecordId]:
        written = [self.store.observe(step, step.now) for step in steps]
        return [record_id for record_id in written if record_id is not None]

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """Records and notes of the store."""
        return self.store.retrieve(state, k, now)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write an experience of the present episode; of an earlier one only if that was added."""
        episode = experience.now.episode
        if not self._decided.get(episode, True):
            return None
        record_id = self.store.observe(experience, now)
        if record_id is not None:
            if episode in self._decided:
                self.executions.write([record_id], episode, self._latest)
            else:
                self._open.setdefault(episode, []).append(record_id)
        return record_id

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first; those of the present episode too."""
        return self.store.same_transitions(state, action)

    def records(self) -> Iterator[Record]:
        """All records, oldest first; those of the present episode too."""
        return self.store.records()

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and the items that depend on them; other records of their executions stay."""
        removed = self.store.remove(ids)
        self._remove_entries(removed.records)
        return removed

    def _remove_entries(self, ids: Iterable[RecordId]) -> None:
        removed = set(ids)
        self.executions.remove(sorted(removed))
        for episode, written in list(self._open.items()):
            self._open[episode] = [record_id for record_id in written if record_id not in removed]

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write a verifier's summary, whatever the policy of addition.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        record_id = self.store.insert_summary(state, action, distribution, n, now)
        if record_id is not None:
            self.executions.write([record_id], None, 1.0)
        return record_id

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Add or drop the execution, let the store learn, and delete.

        Raises:
            ModelError: if a model judges and its answer has the wrong form.
        """
        evaluation = self._evaluate(result)
        added = self.addition == "all" or (self.addition != "fixed" and evaluation.good)
        self._remove_lost_entries()
        # Before the execution is written, so that its age is counted from now on.
        self.executions.record_uses(self._retrieved(result), evaluation.utility)
        self._latest = evaluation.utility
        dropped, result = self._close(result, now, evaluation, added)
        self.store.end_episode(result, now)
        self._remove_lost_entries()
        self.dropped = (*dropped, *self._delete())

    def _evaluate(self, result: Episode) -> ExecutionJudgement:
        """The judgement of the evaluator, for addition and for deletion, as in the paper."""
        if self.addition != "coarse":
            return strict(result, self.threshold)
        if self.judge == "noisy_oracle":
            return noisy_oracle(result, self.threshold, self.error_rate, self.seed, self.executions.time)
        messages = read_messages("memory/templates/management_judge.txt", execution=render_execution(result))
        good = bool(ask(self.model, messages, JUDGEMENT).data["good"])
        return ExecutionJudgement(good, float(good))

    def _remove_lost_entries(self) -> None:
        """Remove records that the store removed by its own rules."""
        present = {record.id for record in self.store.records()}
        listed = [record_id for entry in self.executions for record_id in entry.ids]
        listed += [record_id for written in self._open.values() for record_id in written]
        self._remove_entries(record_id for record_id in listed if record_id not in present)

    def _retrieved(self, result: Episode) -> set[RecordId]:
        """The records of earlier executions that were retrieved in this one."""
        if self.counts == "shown":
            return {record_id for step in result.trace for record_id in step.retrieved}
        key = self._matching.state_key
        by_state: dict[Hashable, set[RecordId]] = {}
        for record in self.store.records():
            by_state.setdefault(key(record.state), set()).add(record.id)
        found: set[RecordId] = set()
        for step in result.trace:
            found |= by_state.get(key(step.experience.state), set()).intersection(step.retrieved)
        return found

    def _close(
        self, result: Episode, now: AgentClock, evaluation: ExecutionJudgement, added: bool
    ) -> tuple[tuple[RecordId, ...], Episode]:
        """Keep or remove the records of the episode; returns the removed ones, and the episode as it is in memory."""
        is_corrected = added and self._teacher is not None and result.score < self.threshold
        opened, self._open = self._open, {}
        self._decided.update(dict.fromkeys((*opened, now.episode), added))
        dropped: tuple[RecordId, ...] = ()
        for episode, written in opened.items():
            kept = written
            if not added or is_corrected:
                dropped += self.store.remove(written).records
                kept = []
            self.executions.write(kept, episode, evaluation.utility)
        if is_corrected and self._teacher is not None:
            result = self._teacher.correct(result)
            self.executions.write(self._write(step.experience for step in result.trace), now.episode, 1.0)
        return dropped, result

    def _delete(self) -> tuple[RecordId, ...]:
        """Delete by the policies; returns the deleted records."""
        deleted: list[RecordId] = []
        if self.deletion in ("periodical", "combined"):
            deleted += self._drop(self.executions.seldom_used())
        if self.capacity is not None:
            deleted += self._drop(self.executions.worst(self.capacity))
        elif self.deletion in ("history", "combined"):
            deleted += self._drop(self.executions.of_low_utility())
        return tuple(deleted)

    def _drop(self, entries: Iterable[ExecutionEntry]) -> tuple[RecordId, ...]:
        return self.remove([record_id for entry in entries for record_id in entry.ids]).records


def make_store(store: str | Mapping[str, Any], model: Model | None, matching: Matching | None) -> Memory:
    """The memory that is managed.

    Args:
        store: its name, or its name with its options.
        model: its model, if it uses one; its option `model: rules` keeps its fixed rules.

    Raises:
        ArgumentError: if `store` is neither, or the memory does not take one of the options.
        UnknownNameError: if no memory has that name.

    Example:
        >>> make_store({"vanilla": {"k": 1}}, None, None).k
        1
    """
    name, given = read_named("store", store, "a memory's name")
    options = dict(given)
    if "model" in MEMORIES.options(name)[0]:
        own = options.pop("model", None)
        if own not in (None, "rules"):
            raise ArgumentError(f"the option `model` of a store should be 'rules', or left out. Received {own!r}")
        if model is not None and own is None:
            options["model"] = model
    return make_memory(name, **{"matching": matching, **options})


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

    def worst(self, capacity: int) -> list[ExecutionEntry]:
        """The entries to delete so that at most `capacity` records remain, the worst mean utility first.

        Entries larger than the capacity come first, verified summaries in their grace period last; of
        equals the oldest comes first.
        """
        remaining, deleted = self.size, []
        ranked = sorted(self, key=lambda e: (len(e.ids) <= capacity, self.is_exempt(e), e.utility, e.key))
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
