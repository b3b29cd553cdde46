"""Detection of drifts: delays and false alarms, of agents that realign their memory and of detectors on streams."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from drift_envs.checks import check_integer, check_number
from drift_envs.errors import ArgumentError
from drift_envs.metrics.statistics import Estimate, bootstrap


class Realignment(NamedTuple):
    """A realignment of a memory.

    Args:
        time: the number of interactions before it.
        is_true: whether it touched a pair of state and action whose response had changed.
    """

    time: int
    is_true: bool


class Detection(NamedTuple):
    """Detection delays and error rates of one run.

    Args:
        delays: for each drift the interactions until the first true realignment, `None` if there was none
            before the next drift or the end.
        exposures: for each drift the visits of changed pairs until then, or until the next drift if
            there was no true realignment: the number of opportunities to detect it.
        false_alarms: realignments that touched no changed pair, also after a drift.
        false_alarm_rate: false alarms per 1,000 interactions.
        precision: the share of realignments that were true; `None` without realignments.
        recall: the share of drifts that were detected; `None` without drifts.
    """

    delays: tuple[int | None, ...]
    exposures: tuple[int, ...]
    false_alarms: int
    false_alarm_rate: float
    precision: float | None
    recall: float | None


def detect(
    drifts: Sequence[int],
    realignments: Sequence[Realignment],
    interactions: int,
    exposures: Sequence[int] = (),
) -> Detection:
    """Compute detection delays and error rates of one run.

    The terms are those of CapyMOA's drift evaluator and of river; the definition of a detection is this
    project's own: a realignment that touches a pair of state and action whose response has changed.

    Args:
        drifts: the interactions before each drift, ascending.
        realignments: the realignments of the memory, ascending.
        interactions: all interactions of the run, probes included, at least 1.
        exposures: the interactions at which a changed pair was visited for which the memory had
            records, ascending.

    Example:
        >>> run = [Realignment(40, False), Realignment(130, True), Realignment(180, True)]
        >>> found = detect([100, 300], run, interactions=400, exposures=[110, 130, 350])
        >>> found.delays, found.exposures, found.recall
        ((30, None), (2, 1), 0.5)
        >>> found.false_alarms, found.false_alarm_rate, round(found.precision, 2)
        (1, 2.5, 0.67)
    """
    times = [item.time for item in realignments]
    for name, values in (("drifts", drifts), ("realignments", times), ("exposures", exposures)):
        if list(values) != sorted(values):
            raise ArgumentError(f"`{name}` should be ascending. Received {list(values)!r}")
    check_integer("interactions", interactions, 1)
    delays: list[int | None] = []
    visits: list[int] = []
    for start, stop in zip(drifts, [*drifts, interactions][1:], strict=True):
        hits = [item.time for item in realignments if item.is_true and start <= item.time < stop]
        delays.append(hits[0] - start if hits else None)
        last = bisect_right(exposures, hits[0]) if hits else bisect_left(exposures, stop)
        visits.append(max(0, last - bisect_left(exposures, start)))
    false = sum(not item.is_true for item in realignments)
    detected = sum(delay is not None for delay in delays)
    return Detection(
        delays=tuple(delays),
        exposures=tuple(visits),
        false_alarms=false,
        false_alarm_rate=1000.0 * false / interactions,
        precision=(len(realignments) - false) / len(realignments) if realignments else None,
        recall=detected / len(drifts) if drifts else None,
    )


class DriftDetector(Protocol):
    """The interface of river's detectors; one that has fired starts anew by itself."""

    drift_detected: bool

    def update(self, x: float) -> Any:
        """Add a value; `drift_detected` tells afterwards whether the detector fires."""
        ...


class Stream(NamedTuple):
    """Values in the order of time.

    Args:
        values: shape `(N,)`.
        steps: for each value the steps of the environment before it is known, ascending, shape `(N,)`.
        drifts: the steps before each drift, ascending.
        length: the steps of the whole stream.
    """

    values: np.ndarray
    steps: np.ndarray
    drifts: tuple[int, ...]
    length: int


class DetectorScore(NamedTuple):
    """The score of a detector on one stream.

    Args:
        delay: the mean steps from a drift to its detection, over detected drifts; `None` if there is none.
        false_alarm_rate: false alarms per 1,000 steps.
        missed: the share of drifts that were not detected; `None` without drifts.
        f1: the harmonic mean of precision and recall of alarms; `None` without drifts.
    """

    delay: float | None
    false_alarm_rate: float
    missed: float | None
    f1: float | None


class DetectorSummary(NamedTuple):
    """Scores of a detector over streams, each with its 95 % interval; `None` if no stream has the figure.

    Args:
        delay: steps from a drift to its detection, over streams in which a drift was detected.
        false_alarm_rate: false alarms per 1,000 steps.
        missed: the share of drifts that were not detected.
        f1: the harmonic mean of precision and recall of alarms.
        streams: how many.
    """

    delay: Estimate | None
    false_alarm_rate: Estimate
    missed: Estimate | None
    f1: Estimate | None
    streams: int


def find_alarms(detector: DriftDetector, stream: Stream) -> list[int]:
    """The steps at which a detector fires.

    Args:
        detector: a fresh one; it is updated with all values.
        stream: the stream.

    Raises:
        ArgumentError: if the detector has not river's interface.

    Example:
        >>> stream = Stream(np.repeat([0.0, 1.0], 50), np.arange(1, 101), (50,), 100)
        >>> find_alarms(Cusum(threshold=20), stream)
        [53]
    """
    if not callable(getattr(detector, "update", None)) or not hasattr(detector, "drift_detected"):
        raise ArgumentError(f"`detector` should have `update(x)` and `drift_detected`. Received {detector!r}")
    alarms = []
    for step, value in zip(stream.steps.tolist(), stream.values.tolist(), strict=True):
        detector.update(value)
        if detector.drift_detected:
            alarms.append(step)
    return alarms


def score_alarms(alarms: Sequence[int], stream: Stream, window: int | None = None) -> DetectorScore:
    """The score of the alarms of one stream.

    The first alarm after a drift detects it, if it comes before the next drift and within the window. Every other alarm
    is false, a second one after the same drift too. F1 is 2 d / (alarms + drifts) with d detected drifts.

    Args:
        alarms: the steps at which the detector fired, ascending.
        stream: the stream.
        window: the most steps from a drift to its detection; `None` for all until the next drift.

    Example:
        >>> stream = Stream(np.zeros(1000), np.arange(1, 1001), (300, 600), 1000)
        >>> score_alarms([100, 320, 330, 650], stream, window=40)
        DetectorScore(delay=20.0, false_alarm_rate=3.0, missed=0.5, f1=0.3333333333333333)
    """
    if window is not None:
        check_integer("window", window, 1)
    begins = np.array(stream.drifts, int)
    detected: set[int] = set()
    marks = []
    for step in alarms:
        last = step - 1  # the step that was seen last
        index = int(np.searchsorted(begins, last, side="right")) - 1
        is_true = index >= 0 and index not in detected and (window is None or step - begins[index] <= window)
        if is_true:
            detected.add(index)
        marks.append(Realignment(last, is_true))
    found = detect(stream.drifts, marks, stream.length)
    delays = [delay + 1 for delay in found.delays if delay is not None]
    drifts = len(stream.drifts)
    return DetectorScore(
        delay=float(np.mean(delays)) if delays else None,
        false_alarm_rate=found.false_alarm_rate,
        missed=None if found.recall is None else 1 - found.recall,
        f1=2 * len(delays) / (len(marks) + drifts) if drifts else None,
    )


def score_detector(
    make: Callable[[], DriftDetector], streams: Sequence[Stream], window: int | None = None, seed: int = 0
) -> DetectorSummary:
    """Play a detector over streams.

    Args:
        make: returns a fresh detector; called for each stream.
        streams: at least one.
        window: the most steps from a drift to its detection; `None` for all until the next drift.
        seed: of the bootstrap.

    Raises:
        ArgumentError: if there is no stream, or the detector has not river's interface.

    Example:
        >>> stream = Stream(np.repeat([0.0, 1.0], 50), np.arange(1, 101), (50,), 100)
        >>> found = score_detector(lambda: Cusum(threshold=20), [stream, stream])
        >>> print(found.delay, found.f1, sep="; ")
        3 (one value); 1 (one value)
    """
    if not streams:
        raise ArgumentError("`streams` should hold at least 1 stream. Received 0")
    scores = [score_alarms(find_alarms(make(), stream), stream, window) for stream in streams]

    def estimate(name: str) -> Estimate | None:
        values = [value for value in (getattr(score, name) for score in scores) if value is not None]
        return bootstrap(values, seed=seed) if values else None

    false = bootstrap([score.false_alarm_rate for score in scores], seed=seed)
    return DetectorSummary(estimate("delay"), false, estimate("missed"), estimate("f1"), len(streams))


class Cusum:
    """A two-sided cumulative sum test (Page 1954, doi:10.1093/biomet/41.1-2.100).

    Sums up the deviations from the running mean beyond `drift`, in units of the running standard deviation, upwards and
    downwards, and fires when one of the sums exceeds `threshold`. It starts anew after it has fired.

    Args:
        threshold: h, in standard deviations; positive.
        drift: k, the deviation that does not count, in standard deviations; not negative.
        minimum: values before it can fire; at least 2.
        least_deviation: the smallest standard deviation that is assumed, for streams that are constant at first.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> test = Cusum()
        >>> for x in [0.0, 1.0] * 30 + [5.0]:
        ...     test.update(x)
        >>> test.drift_detected
        True
    """

    def __init__(
        self, threshold: float = 8.0, drift: float = 0.5, minimum: int = 30, least_deviation: float = 0.1
    ) -> None:
        self.threshold = check_number("threshold", threshold, 0)
        self.drift = check_number("drift", drift, 0)
        self.minimum = check_integer("minimum", minimum, 2)
        self.least_deviation = check_number("least_deviation", least_deviation, 0)
        self.drift_detected = False
        self._restart()

    def _restart(self) -> None:
        self._count, self._mean, self._squares = 0, 0.0, 0.0
        self._up = self._down = 0.0

    def update(self, x: float) -> None:
        """Add a value."""
        if self.drift_detected:
            self._restart()
        self.drift_detected = False
        if self._count >= self.minimum:  # before the value changes the mean
            spread = max((self._squares / (self._count - 1)) ** 0.5, self.least_deviation)
            deviation = (x - self._mean) / spread if spread else 0.0
            self._up = max(0.0, self._up + deviation - self.drift)
            self._down = max(0.0, self._down - deviation - self.drift)
            self.drift_detected = max(self._up, self._down) > self.threshold
        self._count += 1
        change = x - self._mean
        self._mean += change / self._count
        self._squares += change * (x - self._mean)
