"""Privileged measurements of an episode: regret, truth of memory, audit of written items, and drift detection.

Source of the audit: EDV, section 5.3 (there by people, here by the oracle) and section 5.5.2 (how often each bank is
read, and the score of episodes that read it).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, NamedTuple

from drift_agents.envs.matching import Matching
from drift_agents.experiment.cell_environment import NO_PHASE, EvaluationWrapper
from drift_agents.memory.base import AuditedMemory, Memory, PeekedMemory
from drift_agents.prompt.view import settle
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, RecordId, Verdict
from drift_envs.errors import NoOracleError
from drift_envs.schedule.timeline import Phase


class EpisodeEvaluator:
    """Measures the episodes of one agent, in the order in which they are played.

    Args:
        env: where the agent plays.
        matching: when two states count as the same.
    """

    def __init__(self, env: EvaluationWrapper, matching: Matching) -> None:
        self._audit = ItemAudit(env)
        self._truth = GroundTruth(env)
        self._beliefs = BeliefTracker(env, matching, self._truth.share_of)
        self._detection = DetectionTracker(env)

    def evaluate(self, episode: Episode, memory: Memory) -> dict[str, Any]:
        """Measure an episode that has just ended.

        Args:
            episode: the episode, with its steps.
            memory: the agent's memory after it.

        Returns:
            Fields of a row: those of `EpisodeTruth`, `ItemCounts` and `DetectionResult`, and `still_believed`, the
            share of changed facts that memory still believes (`BeliefTracker`).
        """
        parts = [part.evaluate(episode, memory)._asdict() for part in (self._audit, self._truth, self._detection)]
        now = episode.trace[-1].experience.now if episode.trace else AgentClock()
        return {**parts[0], **parts[1], **parts[2], "still_believed": self._beliefs.evaluate(memory, now)}


class EpisodeTruth(NamedTuple):
    """What an evaluator says at the end of an episode.

    Args:
        memory_size: records about transitions.
        memory_truth_rate: the share of what they say that the environment could answer at this tick;
            `None` when nothing is remembered or no oracle is known.
        false_realignments: realignments that touched nothing that had changed; `None` without oracle.
        regret: the optimum's expected score minus the score; that of a reference controller where no optimum is
            known, `None` where there is neither.
    """

    memory_size: int
    memory_truth_rate: float | None
    false_realignments: int | None
    regret: float | None


class GroundTruth:
    """Keeps track of what is remembered and of what is still true.

    A record's truth is cached until the environment changes, also for records that say the same, which keeps long
    runs cheap.

    Args:
        env: where the agent plays.
    """

    def __init__(self, env: EvaluationWrapper) -> None:
        self._env = env
        self._known: dict[RecordId, Record] = {}
        self._true: dict[RecordId, float] = {}
        self._shares: dict[Hashable, float] = {}
        self._values: Mapping[str, Any] | None = None

    def evaluate(self, episode: Episode, memory: Memory) -> EpisodeTruth:
        """Judge an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        oracle, env = self._env.oracle, self._env
        records = list(memory.records())
        false = rate = regret = None
        if oracle is not None:
            false = self._false_realignments(episode, {record.id: record for record in records})
            rate = self._truth_rate(records)
            with suppress(NoOracleError):  # exact responses without an optimum
                regret = float(oracle.value(env.start)) - episode.score
        self._known = {record.id: record for record in records}
        return EpisodeTruth(len(records), rate, false, regret)

    def _truth_rate(self, records: list[Record]) -> float | None:
        """The share of what the records say that the environment could answer in the next interaction."""
        if not records:
            return None
        tick = self._env.tick
        values = self._env.knobs(tick)
        if values != self._values:
            self._true, self._shares, self._values = {}, {}, values
        true = self._true
        total = 0.0
        for record in records:
            share = true.get(record.id)
            if share is None:
                share = true[record.id] = self.share_of(record, tick)
            total += share
        return total / len(records)

    def share_of(self, record: Record, tick: int) -> float:
        """`EvaluationWrapper.true_share`, computed once for equal content until the environment changes.

        Args:
            tick: the tick of the last evaluation.
        """
        content = (record.state, record.action, record.outcomes)
        if content not in self._shares:
            self._shares[content] = self._env.true_share(record, tick)
        return self._shares[content]

    def _false_realignments(self, episode: Episode, now: Mapping[RecordId, Record]) -> int:
        """Realignments that touched nothing that had changed since memory wrote it down.

        Touched are the records that were removed, and where none was, those about the same state and action.
        """
        false = 0
        written: dict[RecordId, Record] = dict(self._known)
        for clock, about, verdict in episode.verdicts():
            if verdict.realigned:
                tick = self._env.tick_of(clock.step)
                touched = [written[record_id] for record_id in verdict.removed.records if record_id in written]
                touched = touched or [
                    record for record in written.values() if about is None or (record.state, record.action) == about
                ]
                false += not any(self._env.changed(record, tick) for record in touched)
            for record_id in (verdict.observed, verdict.inserted):
                if record_id is not None and about is not None:
                    # One that is gone by now can no longer be read; what it answered is of no account here.
                    written[record_id] = now.get(record_id) or Record(record_id, *about, (), 0, clock)
        return false


class ItemCounts(NamedTuple):
    """What an audit says about an episode.

    Args:
        items: how many items there are after it; `None` for a memory without any.
        item_truth_rate: the share of them whose evidence the environment could still answer, all of it; `None` without
            items or oracle.
        shared_hits: steps at which an item of the shared bank stood in the prompt.
        private_hits: the same of private banks.
    """

    items: int | None
    item_truth_rate: float | None
    shared_hits: int
    private_hits: int


class ItemAudit:
    """Keeps track of the items of a memory.

    An item is true as long as every transition that it cites and that is still held could happen in the
    environment as it is at this tick. What its words say beyond that is not judged.

    Args:
        env: where the agent plays.
    """

    def __init__(self, env: EvaluationWrapper) -> None:
        self._env = env
        self._owners: dict[RecordId, str] = {}
        self._true: dict[RecordId, bool] = {}
        self._values: Mapping[str, Any] | None = None

    def evaluate(self, episode: Episode, memory: Memory) -> ItemCounts:
        """Audit an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        if not isinstance(memory, AuditedMemory):
            return ItemCounts(None, None, 0, 0)
        items = list(memory.audited())
        read = [[self._owners.get(number) for number in step.retrieved] for step in episode.trace]
        shared = sum("" in owners for owners in read)
        private = sum(any(owners) for owners in read)
        self._owners.update((number, owner) for number, owner, _ in items)
        return ItemCounts(len(items), self._truth([evidence for *_, evidence in items], memory), shared, private)

    def _truth(self, items: Sequence[Sequence[RecordId]], memory: Memory) -> float | None:
        """The share of the items that are true, by the records that each rests on."""
        tick = self._env.tick
        if self._env.oracle is None or not items:
            return None
        values = self._env.knobs(tick)
        if values != self._values:
            self._true, self._values = {}, values
        cited = {number for evidence in items for number in evidence}
        missing = cited - set(self._true)
        if missing:
            for record in memory.records():
                if record.id in missing:
                    self._true[record.id] = all(
                        self._env.could_answer(record.state, record.action, outcome, tick)
                        for outcome, _ in record.outcomes
                    )
        return sum(all(self._true.get(number, True) for number in evidence) for evidence in items) / len(items)


class DetectionResult(NamedTuple):
    """What an episode showed of the drift that began its phase.

    Args:
        detection_delay: the agent's own interactions from the drift to the first realignment that touched what
            it had changed, that one included, if it came in this episode; else `None`.
        detected: the phase of the drift that was noticed: that of the episode, or a later one where a
            drift came within the episode.
    """

    detection_delay: int | None = None
    detected: str | None = None


class _Written(NamedTuple):
    """What a record is about, and the tick at which it was written."""

    state: str
    action: str
    tick: int


class DetectionTracker:
    """Follows one agent through its episodes.

    A realignment notices a drift when it touches a record from before the drift whose response is
    another one now than at the last tick before it. Nothing is said about schedules whose ticks
    begin anew with every episode, since their drifts come again and again.

    Args:
        env: where the agent plays.
    """

    def __init__(self, env: EvaluationWrapper) -> None:
        self._env = env
        self._phase = NO_PHASE
        self._since = 0
        self._noticed = False
        self._written: dict[RecordId, _Written] = {}

    def evaluate(self, episode: Episode, memory: Memory) -> DetectionResult:
        """Follow an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        env = self._env
        if env.oracle is None or env.env.get_wrapper_attr("schedule").clock == "episode_step":
            return DetectionResult()
        delay: int | None = None
        noticed: str | None = None
        self._enter(env.phase)
        for step in episode.trace:
            now = step.experience.now.step
            tick = env.tick_of(now)
            if not self._phase.start <= tick < self._phase.stop:  # a drift within the episode
                self._enter(env.timeline.phase(tick))
            self._since += 1
            verdicts = (*step.checks, step.verdict)
            if self._phase.start > 0 and not self._noticed:
                self._noticed = any(self._touches(step.experience, verdict, tick) for verdict in verdicts)
                if self._noticed and delay is None:
                    delay, noticed = self._since, self._phase.id
            written = _Written(step.experience.state, step.experience.action, tick)
            for new in (step.verdict.observed, step.verdict.inserted):
                if new is not None and new not in self._written:
                    self._written[new] = written
        if episode.closing and episode.trace and self._phase.start > 0 and not self._noticed:
            last = episode.trace[-1].experience
            tick = env.tick_of(last.now.step)
            self._noticed = any(self._touches(last, verdict, tick) for verdict in episode.closing)
            if self._noticed and delay is None:
                delay, noticed = self._since, self._phase.id
        self._written = {
            record.id: self._written.get(record.id)
            or _Written(record.state, record.action, env.tick_of(record.now.step))
            for record in memory.records()
        }
        return DetectionResult(delay, noticed)

    def _enter(self, phase: Phase) -> None:
        if phase.index != self._phase.index:
            self._phase, self._since, self._noticed = phase, 0, False

    def _touches(self, experience: Experience, verdict: Verdict, tick: int) -> bool:
        """Whether a realignment touches what the drift has changed: what it removed, or what it is about."""
        if not verdict.realigned:
            return False
        state, action = verdict.about or (experience.state, experience.action)
        touched = [self._written[gone] for gone in verdict.removed.records if gone in self._written] or [
            about for about in self._written.values() if (about.state, about.action) == (state, action)
        ]
        start, oracle = self._phase.start, self._env.oracle
        return any(
            about.tick < start and oracle.changed(about.state, about.action, start - 1, tick) for about in touched
        )


def answer_of(memory: Memory, state: str, action: str, now: AgentClock, matching: Matching) -> Hashable | None:
    """What memory would answer about a state and action: the outcome that most of what it retrieves supports.

    Ties go to the newest, as planners settle them by default. Memories that cannot be read without a side effect
    are judged by all their records.

    Args:
        memory: the memory; nothing is changed.

    Returns:
        The class of the outcome (`outcome_key`), `None` if nothing is retrieved.
    """
    if isinstance(memory, PeekedMemory):
        found = memory.peek(state, now)
        key = matching.state_key(state)
        weighed = [
            (record, weight)
            for record, weight in zip(found.records, found.weights, strict=True)
            if record.action == action and (record.state == state or matching.state_key(record.state) == key)
        ]
    else:
        weighed = [(record, 1.0) for record in memory.same_transitions(state, action)]
    sightings: dict[Hashable, tuple[float, int]] = {}
    for record, weight in weighed:
        for outcome, p in record.outcomes:
            kind = outcome_key(outcome, matching)
            support, last = sightings.get(kind, (0.0, -1))
            sightings[kind] = (support + p * record.n * weight, max(last, record.now.step))
    if not sightings:
        return None
    return settle([(kind, *seen) for kind, seen in sightings.items()], "majority")[0][0]


def outcome_key(outcome: Outcome, matching: Matching) -> Hashable:
    """Equal for outcomes with the same state by the matching rule, the same score and the same end."""
    return matching.state_key(outcome.state), outcome.score, outcome.ended


class BeliefTracker:
    """The share of changed facts of which memory's answer is still the old one.

    A fact is a state and action of which memory had records when the phase began. It has changed if the oracle
    responds otherwise than at the last tick before the phase, and something that memory had was true when it was
    written and no longer is. Memory still believes it while that is its answer. A record that was removed is no
    longer believed.

    Args:
        env: where the agent plays.
        matching: when two states count as the same.
        share_of: the share of a record that is true at a tick (`drift_agents.experiment.evaluator`).
    """

    def __init__(self, env: EvaluationWrapper, matching: Matching, share_of: Callable[[Record, int], float]) -> None:
        self._env, self._matching, self._share_of = env, matching, share_of
        self._known: Mapping[RecordId, Record] = {}
        self._phase: Phase | None = None
        self._before: tuple[Record, ...] = ()
        self._stale: list[tuple[Record, dict[Outcome, None]]] = []
        self._values: Mapping[str, Any] | None = None

    def evaluate(self, memory: Memory, now: AgentClock) -> float | None:
        """The share after an episode.

        Returns:
            `None` before the first drift, without an oracle, and where nothing that memory had has changed.
        """
        env, phase = self._env, self._env.phase
        if env.oracle is None:
            return None
        if self._phase is None or phase.index != self._phase.index:
            self._phase, self._values = phase, None
            self._before = tuple(self._known.values()) if phase.start > 0 else ()
        self._known = {record.id: record for record in memory.records()}
        if not self._before:
            return None
        # A rule may remember the states that it is asked about, and the agent's own should not remember the oracle's.
        matching = deepcopy(self._matching)
        values = env.knobs(env.tick)
        if values != self._values:
            self._values, self._stale = values, self._list_stale(env.tick, matching)
        believed = [
            answer_of(memory, fact.state, fact.action, now, matching) in {outcome_key(one, matching) for one in old}
            for fact, old in self._stale
        ]
        return sum(believed) / len(believed) if believed else None

    def _list_stale(self, tick: int, matching: Matching) -> list[tuple[Record, dict[Outcome, None]]]:
        """The changed facts: the oldest record of each, and the outcomes that were true and are no longer."""
        found: dict[tuple[Hashable, str], tuple[Record, dict[Outcome, None]]] = {}
        oracle, last = self._env.oracle, self._env.phase.start - 1
        for record in self._before:
            # Most still hold.
            if self._share_of(record, tick) < 1.0 and oracle.changed(record.state, record.action, last, tick):
                key = matching.state_key(record.state), record.action
                stale = [one for one, _ in record.outcomes if self._was_true(record, one, tick, matching)]
                if stale:
                    found.setdefault(key, (record, {}))[1].update(dict.fromkeys(stale))
        return list(found.values())

    def _was_true(self, record: Record, outcome: Outcome, tick: int, matching: Matching) -> bool:
        """Whether an outcome was true when it was written, and no true response is of its class now."""
        env, kind = self._env, outcome_key(outcome, matching)
        about = record.state, record.action
        responses = (Outcome(one.state, one.score, one.ended) for one in env.oracle.response(*about, tick))
        now = (outcome, *(one for one in responses if outcome_key(one, matching) == kind))
        if any(env.could_answer(*about, one, tick) for one in now):
            return False
        return env.is_of_another(record) or env.could_answer(*about, outcome, env.tick_of(record.now.step))
