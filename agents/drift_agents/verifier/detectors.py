"""Controls that remove records by time or score, independent of their content.

* `SlidingWindow` - keeps the records of the newest interactions only
* `Adwin` - removes all records when ADWIN detects a fall of the episodes' scores
* `PageHinkley` - removes all records when a Page-Hinkley test detects it

The two tests are those of River (the extra `drift`). They represent common drift detectors: monitor one
statistic, and restart when it gets worse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any

from drift_agents.errors import MissingDependencyError
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Verdict
from drift_agents.verifier.base import NoVerifier
from drift_envs.checks import check_count, check_interval


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
    """

    supervision = "own reward"

    def __init__(self) -> None:
        super().__init__()
        self._test = self._make()

    @abstractmethod
    def _make(self) -> Any:
        """A fresh test of River."""

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
        super().__init__()

    def _make(self) -> Any:
        # Scores are few: test at each one, not at every 32nd as for streams.
        return _river().ADWIN(delta=self.delta, clock=1)

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
        super().__init__()

    def _make(self) -> Any:
        return _river().PageHinkley(min_instances=self.minimum, delta=self.delta, threshold=self.threshold, mode="down")

    def _has_fallen(self, score: float) -> bool:
        self._test.update(score)
        return bool(self._test.drift_detected)


def _river() -> Any:
    """River's drift detectors, imported when they are needed.

    Raises:
        MissingDependencyError: if River is not installed.
    """
    try:
        return import_module("river.drift")
    except ModuleNotFoundError as error:
        raise MissingDependencyError('`river` is not installed, run `pip install "drift-envs[drift]"`') from error
