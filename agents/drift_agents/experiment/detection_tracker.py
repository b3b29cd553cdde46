"""Whether and when an agent's memory was put right after a drift.

* `DetectionTracker` - follows one agent through its episodes
* `DetectionResult` - what it says about an episode
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from drift_agents.experiment.evaluation_wrapper import NO_PHASE, EvaluationWrapper
from drift_agents.matching.base import Exact, Matching
from drift_agents.memory.base import Memory
from drift_agents.types import Episode, Experience, RecordId, Verdict
from drift_envs.schedule.timeline import Phase


class DetectionResult(NamedTuple):
    """What an episode showed of the drift that began its phase.

    Args:
        delay: the agent's own interactions from the drift to the first realignment that touched what
            it had changed, that one included, if it came in this episode; else `None`.
        exposures: the interactions of the episode, up to then, that could have shown the drift: what
            was done there is answered otherwise since, and memory held something about it. `None`
            where nobody can tell, and where no drift has come yet.
        phase: the phase of the drift that was noticed: that of the episode, or a later one where a
            drift came within the episode.
    """

    delay: int | None = None
    exposures: int | None = None
    phase: str | None = None


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
        world: where the agent plays.
        matching: the task's rule for what counts as the same state; by text if not given.
    """

    def __init__(self, world: EvaluationWrapper, matching: Matching | None = None) -> None:
        self._world = world
        self._matching: Matching = Exact() if matching is None else matching
        self._phase = NO_PHASE
        self._since = 0
        self._noticed = False
        self._written: dict[RecordId, _Written] = {}

    def note(self, episode: Episode, memory: Memory) -> DetectionResult:
        """Follow an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        world = self._world
        if world.oracle is None or world.env.get_wrapper_attr("schedule").clock == "episode_step":
            return DetectionResult()
        known = Counter(map(self._pair, self._written.values()))
        delay: int | None = None
        exposures: int | None = None
        noticed: str | None = None
        self._enter(world.phase)
        for step in episode.trace:
            now = step.experience.now.step
            tick = world.tick_of(now)
            if not self._phase.start <= tick < self._phase.stop:  # a drift within the episode
                self._enter(world.timeline.phase(tick))
            self._since += 1
            verdicts = (*step.checks, step.verdict)
            if self._phase.start > 0:
                exposures = exposures or 0
            if self._phase.start > 0 and not self._noticed:
                exposures = (exposures or 0) + self._is_exposed(step.experience, known, tick)
                self._noticed = any(self._touches(step.experience, verdict, tick) for verdict in verdicts)
                if self._noticed and delay is None:
                    delay, noticed = self._since, self._phase.id
            for verdict in verdicts:
                known.subtract(self._pair(self._written[gone]) for gone in self._gone(verdict))
            written = _Written(step.experience.state, step.experience.action, tick)
            for new in (step.verdict.observed, step.verdict.inserted):
                if new is not None and new not in self._written:
                    self._written[new] = written
                    known[self._pair(written)] += 1
        if episode.closing and episode.trace and self._phase.start > 0 and not self._noticed:
            last = episode.trace[-1].experience
            tick = world.tick_of(last.now.step)
            self._noticed = any(self._touches(last, verdict, tick) for verdict in episode.closing)
            if self._noticed:
                delay = self._since
        self._written = {
            record.id: self._written.get(record.id)
            or _Written(record.state, record.action, world.tick_of(record.now.step))
            for record in memory.records()
        }
        return DetectionResult(delay, exposures, noticed)

    def _enter(self, phase: Phase) -> None:
        if phase.index != self._phase.index:
            self._phase, self._since, self._noticed = phase, 0, False

    def _pair(self, about: _Written) -> Hashable:
        return self._matching.state_key(about.state), about.action

    def _gone(self, verdict: Verdict) -> list[RecordId]:
        return [record_id for record_id in verdict.removed.records if record_id in self._written]

    def _changed(self, about: _Written, tick: int) -> bool:
        """Whether the response is another one than at the last tick before the drift."""
        return bool(self._world.oracle.changed(about.state, about.action, self._phase.start - 1, tick))

    def _is_exposed(self, experience: Experience, known: Mapping[Hashable, int], tick: int) -> bool:
        about = _Written(experience.state, experience.action, tick)
        return known.get(self._pair(about), 0) > 0 and self._changed(about, tick)

    def _touches(self, experience: Experience, verdict: Verdict, tick: int) -> bool:
        """Whether a realignment touches what the drift has changed: what it removed, or what it is about."""
        if not verdict.realigned:
            return False
        state, action = verdict.about or (experience.state, experience.action)
        touched = [self._written[gone] for gone in self._gone(verdict)] or [
            about for about in self._written.values() if (about.state, about.action) == (state, action)
        ]
        return any(about.tick < self._phase.start and self._changed(about, tick) for about in touched)
