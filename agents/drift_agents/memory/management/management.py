"""Memory management: what is added to a memory, and what is deleted, whatever memory it is.

* `Managed` - a memory around a memory, with a policy of addition and one of deletion

Source: Xiong et al., "How memory management impacts LLM agents: an empirical study of
experience-following behavior". `docs/memories/management.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Exact, Matching
from drift_agents.memory.ledger import hash_plain
from drift_agents.memory.management.judge import (
    JUDGEMENT,
    RULES,
    ExecutionJudgement,
    noisy_oracle,
    strict,
    tell_execution,
)
from drift_agents.memory.management.parts import DemonstrationSource, exchanged, make_store, rules_of
from drift_agents.memory.management.rules import ADDITIONS, COUNTS, DELETIONS, ExecutionEntry, ExecutionLedger
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
)

OFFERS = ("follow", "in_mind", "exemplars", "address", "audited")
"""What the store is asked in the place of the managed memory: steps are told to it, and it knows what is in mind,
which parts of earlier episodes are like the present, who acts, and what its items rest on. A team that writes
items itself (`attend`) is not among them: no policy of addition would be asked."""

JUDGES = ("noisy_oracle", "model")
BETAS = {True: 0.3, False: 0.7}
"""The threshold of history deletion with a coarse evaluator, and with a strict one (appendix A.2)."""
_SUPERVISION = ("none", "own reward", "judge", "privileged")


class Managed:
    """A memory around a memory, with a policy of addition and one of deletion.

    The paper's record is an execution: a task with all that was done about it. Here that is what one
    episode wrote. While an episode lasts its records are in memory and can be recalled (they are
    what the agent knows of the task under way); when it ends they stay or go together. A verified
    summary is nobody's execution: it is written at once, and is an entry of its own.

    Args:
        store: the memory around which this one stands: a name, or one name with its options, as in
            `{"vanilla": {"k": 1}}`.
        addition: `fixed`, `all`, `coarse` (a judge) or `strict` (the episode's own result).
        deletion: `none`, `periodical`, `history` or `combined` (either).
        capacity: the most records that memory may hold when an episode is over. With it, the rule of
            history deletion gives way to this one: the worst executions by mean utility go.
        period: episodes over which periodical deletion counts; positive.
        alpha: an execution retrieved at most so often in a period goes.
        uses: retrievals from which on the mean utility counts; positive.
        beta: an execution with at most this mean utility goes; .3 with a coarse evaluator and .7 with
            a strict one if not given.
        grace: for so many episodes periodical deletion leaves an execution alone, and history
            deletion a verified summary; a period if not given.
        counts: `here` (retrievals of records about the state in which the agent stood) or `shown`
            (of everything in the prompt).
        threshold: the least score of a good execution.
        judge: who answers for `coarse`: `noisy_oracle` or `model`.
        error_rate: how often the noisy oracle is wrong, in [0, 1].
        initial: correct executions in memory before the first episode; needs a teacher.
        noise: the share of these whose outcomes are exchanged among each other, in [0, 1].
        error_free: whether added executions that were not good are replaced by correct ones (the paper's
            error-free variant); needs a teacher.
        teacher: who knows correct executions.
        seed: of the noisy oracle's errors and of the noise.
        model: who judges where `judge` is `model`, and what the store asks; declared rules if not given.
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
        for name, value, known in (
            ("addition", addition, ADDITIONS),
            ("deletion", deletion, DELETIONS),
            ("counts", counts, COUNTS),
            ("judge", judge, JUDGES),
        ):
            if value not in known:
                raise ArgumentError(f"`{name}` should be one of {', '.join(known)}. Received {value!r}")
        for name, number, least in (
            ("capacity", capacity, 1),
            ("period", period, 1),
            ("alpha", alpha, 0),
            ("uses", uses, 1),
            ("grace", grace, 0),
            ("initial", initial, 0),
            ("seed", seed, 0),
        ):
            if number is not None and (type(number) is not int or number < least):
                raise ArgumentError(f"`{name}` should be a whole number, at least {least}. Received {number!r}")
        for name, share in (("beta", beta), ("threshold", threshold), ("error_rate", error_rate), ("noise", noise)):
            is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
            if share is not None and not (is_number and 0 <= share <= 1):
                raise ArgumentError(f"`{name}` should be a number in [0, 1]. Received {share!r}")
        if not isinstance(error_free, bool):
            raise ArgumentError(f"`error_free` should be true or false. Received {error_free!r}")
        if teacher is None and (initial or error_free):
            wanted = "initial" if initial else "error_free"
            raise ArgumentError(f"`{wanted}` needs a `teacher` who knows correct executions, and there is none")
        self.addition, self.deletion, self.capacity, self.counts = addition, deletion, capacity, counts
        self.threshold, self.judge, self.error_rate, self.seed = float(threshold), judge, float(error_rate), seed
        self.store = make_store(store, model, matching)
        # What a memory may offer beside the protocol, this one offers when its store does.
        for name in OFFERS:
            if callable(offer := getattr(self.store, name, None)):
                setattr(self, name, offer)
        own: Model = RuleModel({**RULES, **rules_of(self.store)})
        self.model: Model = own if model is None else model
        self._matching: Matching = Exact() if matching is None else matching
        self._teacher = teacher if error_free else None
        self.accounts = ExecutionLedger(
            period=period,
            alpha=alpha,
            uses=uses,
            beta=BETAS[addition == "coarse"] if beta is None else float(beta),
            grace=period if grace is None else grace,
        )
        self.needs: frozenset[str] = self.store.needs | self._needs()
        self.supervision = self._supervision(bool(initial) or error_free)
        # What the episode under way wrote, by its number, and which of those before it were added.
        self._open: dict[int, list[RecordId]] = {}
        self._decided: dict[int, bool] = {}
        self.dropped: tuple[RecordId, ...] = ()
        """What the last end of an episode took out of memory, by these policies alone."""
        if teacher is not None and initial:
            self._learn_first(teacher.show(initial), float(noise))

    @property
    def _evaluates(self) -> bool:
        """Whether anybody is asked what an execution was worth."""
        deletes = self.deletion in ("history", "combined") or self.capacity is not None
        return self.addition in ("coarse", "strict") or deletes

    def _needs(self) -> frozenset[str]:
        told = {"judge"} if self.addition == "coarse" and self.judge == "model" else {"outcome"}
        return frozenset(told) if self._evaluates else frozenset()

    def _supervision(self, is_taught: bool) -> str:
        """The strongest of what store, evaluator and teacher tell."""
        told = "none" if not self._evaluates else "judge" if self.addition == "coarse" else "own reward"
        return max(self.store.supervision, told, "privileged" if is_taught else "none", key=_SUPERVISION.index)

    def _learn_first(self, executions: Sequence[Sequence[Experience]], noise: float) -> None:
        """Write what is known before the first episode; a share of the executions is wrong."""
        random = np.random.default_rng([self.seed, len(executions)])
        wrong = set(random.permutation(len(executions))[: round(noise * len(executions))].tolist())
        for number, execution in enumerate(executions):
            steps = exchanged(execution) if number in wrong else execution
            self.accounts.write(self._write(steps), episode=-1 - number, own=1.0)

    def _write(self, steps: Iterable[Experience]) -> list[RecordId]:
        written = [self.store.observe(step, step.now) for step in steps]
        return [record_id for record_id in written if record_id is not None]

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What the store recalls."""
        return self.store.retrieve(state, k, now)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write it until the episode's end decides; after that, do as was decided."""
        episode = experience.now.episode
        if not self._decided.get(episode, True):
            return None
        record_id = self.store.observe(experience, now)
        if record_id is not None:
            if episode in self._decided:
                self.accounts.write([record_id], episode, self._latest)
            else:
                self._open.setdefault(episode, []).append(record_id)
        return record_id

    _latest = 1.0
    """What the evaluator said about the last execution."""

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first; those of the episode under way too."""
        return self.store.counterparts(state, action)

    def records(self) -> Iterator[Record]:
        """All records, oldest first; those of the episode under way too."""
        return self.store.records()

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self.store.states()

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and what rests on them; what is left of their executions stays."""
        removed = self.store.remove(ids)
        self._forget(removed.records)
        return removed

    def _forget(self, ids: Iterable[RecordId]) -> None:
        gone = set(ids)
        self.accounts.forget(sorted(gone))
        for episode, written in list(self._open.items()):
            self._open[episode] = [record_id for record_id in written if record_id not in gone]

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write what a verifier found out: no policy of addition is asked.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        record_id = self.store.insert_summary(state, action, distribution, n, now)
        if record_id is not None:
            self.accounts.write([record_id], None, 1.0)
        return record_id

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Decide about the execution, let the store learn, and delete.

        Raises:
            ModelError: if a model judges and its answer does not have the form that it should have.
        """
        evaluation = self._evaluate(result)
        added = self.addition == "all" or (self.addition != "fixed" and evaluation.good)
        self._sweep()
        served = self._retrieved(result)
        # Of the present moment, so that what it wrote counts as new from now on.
        self.accounts.serve(served, evaluation.utility)
        self._latest = evaluation.utility
        dropped = self._close(result, now, evaluation, added)
        self.store.end_episode(result, now)
        self._sweep()
        self.dropped = (*dropped, *self._delete())

    def _evaluate(self, result: Episode) -> ExecutionJudgement:
        """What the evaluator says; the same one for addition and for deletion, as in the paper."""
        if self.addition != "coarse":
            return strict(result, self.threshold)
        if self.judge == "noisy_oracle":
            return noisy_oracle(result, self.threshold, self.error_rate, self.seed, self.accounts.time)
        messages = read_messages("memory/templates/management_judge.txt", execution=tell_execution(result))
        good = bool(ask(self.model, messages, JUDGEMENT).data["good"])
        return ExecutionJudgement(good, float(good))

    def _sweep(self) -> None:
        """Forget what the store dropped by its own rules."""
        there = {record.id for record in self.store.records()}
        held = [record_id for entry in self.accounts for record_id in entry.ids]
        held += [record_id for written in self._open.values() for record_id in written]
        self._forget(record_id for record_id in held if record_id not in there)

    def _retrieved(self, result: Episode) -> set[RecordId]:
        """The records of earlier executions that were retrieved in this one."""
        if self.counts == "shown":
            return {record_id for step in result.trace for record_id in step.retrieved}
        key = self._matching.state_key
        at: dict[Hashable, set[RecordId]] = {}
        for record in self.store.records():
            at.setdefault(key(record.state), set()).add(record.id)
        found: set[RecordId] = set()
        for step in result.trace:
            found |= at.get(key(step.experience.state), set()).intersection(step.retrieved)
        return found

    def _close(
        self, result: Episode, now: AgentClock, evaluation: ExecutionJudgement, added: bool
    ) -> tuple[RecordId, ...]:
        """Keep what was written meanwhile, or take it out; returns what was taken out."""
        opened, self._open = self._open, {}
        self._decided.update(dict.fromkeys((*opened, now.episode), added))
        dropped: tuple[RecordId, ...] = ()
        for episode, written in opened.items():
            kept = written
            if not added or (self._teacher is not None and result.score < self.threshold):
                dropped += self.store.remove(written).records
                kept = []
            self.accounts.write(kept, episode, evaluation.utility)
        if added and self._teacher is not None and result.score < self.threshold:
            self.accounts.write(self._write(self._teacher.correct(result)), now.episode, 1.0)
        return dropped

    def _delete(self) -> tuple[RecordId, ...]:
        """Delete by the policies; returns what went."""
        gone: list[RecordId] = []
        if self.deletion in ("periodical", "combined"):
            gone += self._drop(self.accounts.seldom())
        if self.capacity is not None:
            gone += self._drop(self.accounts.worst(self.capacity))
        elif self.deletion in ("history", "combined"):
            gone += self._drop(self.accounts.bad())
        return tuple(gone)

    def _drop(self, entries: Iterable[ExecutionEntry]) -> tuple[RecordId, ...]:
        return self.remove([record_id for entry in entries for record_id in entry.ids]).records

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "kind": self.name,
            "store": self.store.snapshot(),
            "accounts": self.accounts.snapshot(),
            "open": [[episode, list(ids)] for episode, ids in self._open.items()],
            "decided": [[episode, added] for episode, added in self._decided.items()],
            "latest": self._latest,
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory, with this store.
        """
        if not isinstance(data, Mapping) or data.get("kind") != self.name:
            raise MemoryStateError(f"not a snapshot of the memory {self.name!r}: {str(data)[:80]!r}")
        try:
            accounts = self.accounts.restored(data["accounts"])
            opened = {int(episode): [int(record_id) for record_id in ids] for episode, ids in data["open"]}
            decided = {int(episode): bool(added) for episode, added in data["decided"]}
            latest = float(data["latest"])
        except (KeyError, TypeError, ValueError) as error:
            raise MemoryStateError(f"not a snapshot of the memory {self.name!r}: {error!r}") from error
        self.store.restore(data.get("store", {}))
        self.accounts, self._open, self._decided, self._latest = accounts, opened, decided, latest
        self.dropped = ()

    def content_hash(self) -> str:
        """A hash of the content."""
        return hash_plain(self.snapshot())
