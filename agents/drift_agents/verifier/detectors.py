"""Controls that forget by time or by score: none of them asks what memory says.

* `SlidingWindow` - memory holds the newest interactions alone
* `Adwin` - wipes memory when ADWIN finds that the episodes' scores have fallen
* `PageHinkley` - wipes memory when a Page-Hinkley test finds it

The two tests come from River (the extra `drift`). They stand for the usual way to meet concept
drift: watch one number, and begin anew when it gets worse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any

from drift_agents.checks import check_integer, check_number
from drift_agents.errors import MissingDependencyError
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Verdict
from drift_agents.verifier.base import NoVerifier


class SlidingWindow(NoVerifier):
    """Keeps the records of the newest interactions only, whether they are still true or not.

    After every step the records that were written `size` interactions ago, or earlier, are removed.
    That finds nothing out, so it is no realignment; what fell stands in the verdict.

    Args:
        size: w, how many of the newest interactions memory may hold; positive.

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
        self.size = check_integer("size", size)

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, and remove what is too old by now."""
        verdict = super().verify(experience, memory, prefix, now)
        limit = now.step - self.size
        # The records come oldest first, so that the first young one ends the search.
        old = [record.id for record in takewhile(lambda record: record.now.step <= limit, memory.records())]
        return verdict._replace(removed=memory.remove(old)) if old else verdict


class ScoreAlarm(NoVerifier, ABC):
    """Writes every experience, and wipes memory when a test says that the scores have fallen.

    The test is fed the score of every episode. An alarm with nothing in memory is none. A wipe
    counts as one realignment, about all of memory.
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
        """Feed the test; whether it says that scores have fallen."""

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Feed the test, and wipe at an alarm."""
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

    ADWIN keeps a window of scores and cuts it where the means before and after differ by more than
    chance allows. It also fires when scores rise, which is no reason to forget: such an alarm only
    shortens its window. It needs many episodes: with River's own `delta` of .002 a fall from 1 to 0
    after twenty episodes is not found within twenty more, with .2 it is after twelve. (River 0.21, the
    last one for Python 3.10, counts otherwise and finds it after thirty-one.)

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
        self.delta = check_number("delta", delta, "(0, 1)")
        super().__init__()

    def _make(self) -> Any:
        # A score is rare: look at every one, not at every 32nd as for streams.
        return _river().ADWIN(delta=self.delta, clock=1)

    def _has_fallen(self, score: float) -> bool:
        before = self._test.estimation
        self._test.update(score)
        return bool(self._test.drift_detected and self._test.estimation < before)


class PageHinkley(ScoreAlarm):
    """Removes all records when a Page-Hinkley test detects a fall of the scores (Page 1954; Gama et al. 2014).

    The test adds up how far scores lie below their mean so far, and fires when the sum has grown by
    more than `threshold`. It starts anew after every alarm.

    Args:
        threshold: lambda, in scores: 3 is three failures in a row after a perfect past; positive.
        delta: how far below the mean is tolerated, in (0, 1).
        minimum: how many episodes must have been seen; positive.

    Raises:
        ArgumentError: if an option is outside its range.
        MissingDependencyError: if River is not installed.

    Example:
        >>> PageHinkley(threshold=2).threshold
        2.0
    """

    name = "page_hinkley"

    def __init__(self, *, threshold: float = 3.0, delta: float = 0.005, minimum: int = 10) -> None:
        self.threshold = check_number("threshold", threshold, "(0, inf)")
        self.delta = check_number("delta", delta, "(0, 1)")
        self.minimum = check_integer("minimum", minimum)
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
