"""Memory management: policies of addition and deletion around any memory.

Source: Xiong et al., "How memory management impacts LLM agents: an empirical study of
experience-following behavior", sections 4.1, 5.1 and 6.2. `docs/memories/management.md` says what is faithful, what
was decided here, and how the paper's query-execution pairs map to records of transitions. The executions themselves
are in `drift_agents.memory.executions`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.envs.matching import Exact, Matching
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, RuleModel, ask, read_messages
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.executions import (
    JUDGEMENT,
    RULES,
    TIES,
    DemonstrationSource,
    ExecutionEntry,
    ExecutionJudgement,
    ExecutionStore,
    noisy_oracle,
    render_execution,
    rotate_outcomes,
    strict,
)
from drift_agents.prompt.retrieval import retrieve_many
from drift_agents.registry.parts import read_named
from drift_agents.registry.tables import MEMORIES
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
        ties: which of equal utility are deleted first, one of `TIES`.
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
        ties: str = "oldest",
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
        self.ties = check_choice("ties", ties, TIES)
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

    def retrieve_many(self, states: Sequence[str], k: int | None, now: AgentClock) -> Sequence[Retrieved]:
        """Records and notes of the store for each of these states."""
        return retrieve_many(self.store, states, k, now)

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
            deleted += self._drop(self.executions.worst(self.capacity, self.ties))
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
