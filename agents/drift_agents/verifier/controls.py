"""Controls: verifiers with a part of GLOVE, or that remove records by majority, time or score.

They measure the effect of each part of GLOVE. In deterministic environments `Overwrite` and GLOVE make identical
decisions, so a table without it cannot show an effect of probing. The tests of the scores are those of River (the extra
`drift`); they represent common drift detectors: monitor one statistic, and restart when it gets worse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any

import numpy as np

from drift_agents.envs.matching import Matching
from drift_agents.errors import needs_extra
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Record, Removed, Verdict
from drift_agents.verifier.base import BaseVerifier, NoVerifier
from drift_agents.verifier.evidence import modes, share
from drift_agents.verifier.probing import DetectedSurprise, SurpriseVerifier, write_all
from drift_envs.checks import check_count, check_interval


class Overwrite(BaseVerifier):
    """The newest outcome of each (state, action) replaces records that differ; no probes.

    A record differs if its most probable outcome is not the same by the matching rule.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import Outcome
        >>> memory, verifier = VanillaMemory(), Overwrite()
        >>> for step, tile in enumerate("FFH"):
        ...     now = AgentClock(0, step)
        ...     verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        >>> [record.outcome.state for record in memory.records()], verdict.removed.records
        (['H'], (0, 1))
    """

    name = "overwrite"

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Remove the records that differ, and write the experience."""
        known = memory.same_transitions(experience.state, experience.action)
        wrong = [record.id for record in known if not is_as_recorded(experience, record, self._matching)]
        removed = memory.remove(wrong) if wrong else Removed()
        return Verdict(
            surprise=bool(wrong),
            statistic=share(experience.transition, known, self._matching)[0] if known else None,
            removed=removed,
            realigned=bool(wrong),
            contradicted=bool(wrong),
            observed=memory.observe(experience, now),
        )


def is_as_recorded(experience: Experience, record: Record, matching: Matching) -> bool:
    """Whether an experience has a record's most probable outcome."""
    new = experience.transition
    return matching.same_outcome(new, new._replace(state=record.state, outcome=record.outcome))


class Forget(SurpriseVerifier):
    """GLOVE's detection without probes: removes the old records, writes the surprising experiences.

    Args:
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the response; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> Forget(epsilon=0.05, persistence=2, minimum=10).supervision
        'none'
    """

    name = "forget"

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        removed = memory.remove([record.id for record in found.same_transitions])
        return Verdict(
            surprise=True,
            statistic=found.share,
            removed=removed,
            realigned=True,
            contradicted=True,
            observed=write_all(found.experiences, memory),
        )


class AnnounceOnly(SurpriseVerifier):
    """GLOVE's detection without probes and without realignment: prompts say since when memory is in doubt.

    The surprising experiences are written beside the old records. It measures what the line of doubt in the
    prompt (`drift_agents.agent.agent.Agent`) does by itself.

    Args:
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the response; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> AnnounceOnly().epsilon
        0.5
    """

    name = "announce_only"

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        return Verdict(
            surprise=True,
            statistic=found.share,
            contradicted=True,
            observed=write_all(found.experiences, memory),
        )


class Majority(BaseVerifier):
    """Memory holds one record of each (state, action): the most frequent outcome of the newest responses.

    The window of a state (by the matching rule) and action holds its newest `window` responses; of equally frequent
    outcomes the one seen last counts. A response with another outcome is kept in the window alone. One with the most
    frequent outcome replaces the record, so that its time is that of the last confirmation. Memory is in doubt when
    the most frequent outcome becomes another one. With a window of 1 or 2 the newest response wins.

    Args:
        window: the number of newest responses that vote; positive.

    Raises:
        ArgumentError: if `window` is not positive.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import Outcome
        >>> memory, verifier = VanillaMemory(), Majority(window=3)
        >>> for step, tile in enumerate("FFHH"):
        ...     now = AgentClock(0, step)
        ...     verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        ...     (record,) = memory.records()
        ...     print(tile, verdict.contradicted, record.outcome.state, record.now.step)
        F False F 0
        F False F 1
        H False F 1
        H True H 3
    """

    name = "majority"

    def __init__(self, *, window: int = 5) -> None:
        super().__init__()
        self.window = check_count("window", window)
        self._responses: dict[tuple[Hashable, str], deque[Experience]] = {}

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule; clear the windows, which depend on it."""
        super().bind(matching, rng)
        self._responses.clear()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Let the experience vote, and write the newest one of the majority if it or the majority is new."""
        key = (self._matching.state_key(experience.state), experience.action)
        responses = self._responses.setdefault(key, deque(maxlen=self.window))
        responses.append(experience)
        believed = self._find_majority(responses)
        known = memory.same_transitions(experience.state, experience.action)
        surprise = bool(known) and not is_as_recorded(experience, known[-1], self._matching)
        contradicted = bool(known) and not is_as_recorded(believed, known[-1], self._matching)
        if known and not contradicted and believed is not experience:
            return Verdict(surprise=surprise)
        return Verdict(
            surprise=surprise,
            removed=memory.remove([record.id for record in known]) if known else Removed(),
            realigned=contradicted,
            contradicted=contradicted,
            observed=memory.observe(believed, believed.now),
        )

    def _find_majority(self, responses: Sequence[Experience]) -> Experience:
        """The newest response with the most frequent outcome."""
        _, places = modes([response.transition for response in responses], self._matching)
        counts = Counter(places)
        newest = {place: index for index, place in enumerate(places)}
        return responses[newest[max(counts, key=lambda place: (counts[place], newest[place]))]]


class SlidingWindow(NoVerifier):
    """Keeps the records of the newest interactions only, whether they are still true or not.

    After each step the records written `size` interactions ago, or earlier, are removed. That is no
    realignment, since nothing was detected; the verdict has the removed records.

    Args:
        size: w, the number of newest interactions that are kept; positive.

    Raises:
        ArgumentError: if `size` is not positive.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import Outcome
        >>> memory, verifier = VanillaMemory(), SlidingWindow(size=2)
        >>> for step, tile in enumerate("FFH"):
        ...     now = AgentClock(0, step)
        ...     verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        >>> [record.outcome.state for record in memory.records()], verdict.removed.records
        (['F', 'H'], (0,))
    """

    name = "window"

    def __init__(self, *, size: int = 200) -> None:
        super().__init__()
        self.size = check_count("size", size)

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, and remove records older than the window."""
        verdict = super().verify(experience, memory, prefix, now)
        limit = now.step - self.size
        # The records come oldest first, so that the first young one ends the search.
        old = [record.id for record in takewhile(lambda record: record.now.step <= limit, memory.records())]
        return verdict._replace(removed=memory.remove(old)) if old else verdict


class ScoreAlarm(NoVerifier, ABC):
    """Writes every experience, and removes all records when a test detects a fall of the scores.

    The test is updated with the score of each episode. An alarm with empty memory is ignored. A removal
    counts as one realignment of all records.

    Args:
        test: one of River's drift detectors.
    """

    supervision = "own reward"

    def __init__(self, test: Any) -> None:
        super().__init__()
        self._test = test

    @abstractmethod
    def _has_fallen(self, score: float) -> bool:
        """Update the test; whether it detects a fall of the scores."""

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Update the test, and remove all records at an alarm."""
        if not self._has_fallen(result.score):
            return ()
        known = list(memory.records())
        if not known:
            return ()
        newest = max(record.now.step for record in known)
        removed = memory.remove([record.id for record in known])
        return (Verdict(surprise=True, removed=removed, realigned=True, contradicted=True, newest=newest),)


class Adwin(ScoreAlarm):
    """Removes all records when ADWIN detects a fall of the episodes' scores (Bifet and Gavalda 2007).

    ADWIN keeps a window of scores and cuts it where the means before and after differ significantly. An
    alarm at a rise of scores is ignored: it only shortens the window. It needs many episodes: with River's
    default `delta` of .002 a fall from 1 to 0 after twenty episodes is not detected within twenty more, with
    .2 it is after twelve. (River 0.21, the last one for Python 3.10, detects it after thirty-one.)

    Args:
        delta: the confidence of a cut, in (0, 1); smaller values make alarms rarer.

    Raises:
        ArgumentError: if `delta` is outside its range.
        MissingDependencyError: if River is not installed.

    Example:
        >>> Adwin(delta=0.1).supervision
        'own reward'
    """

    name = "adwin"

    def __init__(self, *, delta: float = 0.2) -> None:
        self.delta = check_interval("delta", delta, "(0, 1)")
        # Scores are few: test at each one, not at every 32nd as for streams.
        super().__init__(_river().ADWIN(delta=self.delta, clock=1))

    def _has_fallen(self, score: float) -> bool:
        before = self._test.estimation
        self._test.update(score)
        return bool(self._test.drift_detected and self._test.estimation < before)


class PageHinkley(ScoreAlarm):
    """Removes all records when a Page-Hinkley test detects a fall of the scores (Page 1954; Gama et al. 2014).

    The test adds up the deviations of scores below their mean, and detects a fall when the sum exceeds its
    minimum by more than `threshold`. It restarts after each alarm.

    Args:
        threshold: lambda, in scores: 3 is three failures in a row after a perfect past; positive.
        delta: the tolerated deviation below the mean, in (0, 1).
        minimum: the number of episodes before the first alarm; positive.

    Raises:
        ArgumentError: if an option is outside its range.
        MissingDependencyError: if River is not installed.

    Example:
        >>> PageHinkley(threshold=2).threshold
        2.0
    """

    name = "page_hinkley"

    def __init__(self, *, threshold: float = 3.0, delta: float = 0.005, minimum: int = 10) -> None:
        self.threshold = check_interval("threshold", threshold, "(0, inf)")
        self.delta = check_interval("delta", delta, "(0, 1)")
        self.minimum = check_count("minimum", minimum)
        super().__init__(
            _river().PageHinkley(min_instances=self.minimum, delta=self.delta, threshold=self.threshold, mode="down")
        )

    def _has_fallen(self, score: float) -> bool:
        self._test.update(score)
        return bool(self._test.drift_detected)


def _river() -> Any:
    """River's drift detectors, imported when they are needed.

    Raises:
        MissingDependencyError: if River is not installed.
    """
    with needs_extra("river", "drift"):
        return import_module("river.drift")
