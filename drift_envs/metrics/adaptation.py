"""Adaptation: recovery after a drift, detection delays of agents and detectors, what probing costs and brings.

The definitions of costs are this project's own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.checks import check_integer, check_interval, check_number
from drift_envs.errors import ArgumentError
from drift_envs.metrics.statistics import RESAMPLES, Estimate, bootstrap, check_numbers

ROUNDING = 1e-9
"""Tolerance for floating-point differences between sums of scores."""

COSTS = ("probe_steps", "probe_resets", "model_calls", "tokens_in", "tokens_out")
"""The fields of `episodes.jsonl` that count costs beyond the steps of an episode."""


class Recovery(NamedTuple):
    """A recovery time.

    Args:
        episodes: the episodes of the phase before the recovery; the length of the phase if there was none.
        is_censored: whether there was none within the phase (right-censored).
    """

    episodes: int
    is_censored: bool


class Recoveries(NamedTuple):
    """A summary of recovery times.

    Args:
        share: the share of instances that recovered within the phase.
        median: the median time in episodes, `None` if half of the instances or more did not recover.
        restricted_mean: the mean time in episodes, with the phase's length for instances that did not
            recover: a lower bound of the true mean.
        n: the number of instances.
    """

    share: float
    median: float | None
    restricted_mean: float
    n: int


def recovery(
    scores: ArrayLike, reference: ArrayLike | float, *, tolerance: float = 0.1, window: int = 5, stay: int = 5
) -> Recovery:
    """The first episode after a drift from which the score is back at the reference, and stays there.

    The idea is that of the NS-Gym competition, the formula this project's own: the first k such that,
    for `stay` consecutive windows beginning at k, the mean score of a window is at least
    (1 - tolerance) times the mean reference of that window. At the end of the phase fewer windows
    suffice if no more fit.

    Args:
        scores: one for each episode from the drift on, shape `(K,)`.
        reference: the score of full recovery: one number, or one for each episode, shape `(K,)`.
        tolerance: in [0, 1), the share of the reference that may be missing.
        window: episodes in a window, at least 1.
        stay: consecutive windows, at least 1.

    Returns:
        The time in episodes, right-censored if there was no recovery.

    Example:
        >>> recovery([0, 0, 1, 1, 1, 1], reference=1.0, window=2, stay=2)
        Recovery(episodes=2, is_censored=False)
        >>> recovery([0, 0, 1, 0, 1, 0], reference=1.0, window=2, stay=2)
        Recovery(episodes=6, is_censored=True)
    """
    check_interval("tolerance", tolerance, "[0, 1)")
    array = check_numbers("scores", scores, least=check_integer("window", window, 1))
    target = check_numbers("reference", np.repeat(reference, len(array)) if np.ndim(reference) == 0 else reference)
    if len(target) != len(array):
        raise ArgumentError(f"`scores` and `reference` should be equally long. Received {len(array)} and {len(target)}")
    kernel = np.ones(window) / window
    recovered = np.convolve(array, kernel, "valid") >= (1 - tolerance) * np.convolve(target, kernel, "valid") - ROUNDING
    windows = check_integer("stay", stay, 1)
    for start in np.flatnonzero(recovered):
        if recovered[start : start + windows].all():
            return Recovery(int(start), False)
    return Recovery(len(array), True)


def summarise_recoveries(recoveries: Sequence[Recovery]) -> Recoveries:
    """Summarise recovery times; no statistic leaves out the censored ones.

    Args:
        recoveries: one for each instance, of phases of equal length.

    Example:
        >>> summarise_recoveries([Recovery(2, False), Recovery(4, False), Recovery(20, True)])
        Recoveries(share=0.6666666666666666, median=4.0, restricted_mean=8.666666666666666, n=3)
    """
    if not recoveries:
        raise ArgumentError("`recoveries` should hold at least 1 recovery. Received 0")
    times = sorted(item.episodes if not item.is_censored else np.inf for item in recoveries)
    middle = float(np.median(times))
    recovered = [not item.is_censored for item in recoveries]
    return Recoveries(
        share=sum(recovered) / len(recovered),
        median=middle if np.isfinite(middle) else None,
        restricted_mean=sum(item.episodes for item in recoveries) / len(recoveries),
        n=len(recoveries),
    )


def retention(before: ArrayLike, after: ArrayLike, window: int = 5) -> float | None:
    """The score just after the drift over the score just before, with the memory frozen.

    NS-Gym calls it resilience. The caller freezes the memory.

    Args:
        before: scores up to the drift, shape `(K,)`.
        after: scores from the drift on, shape `(L,)`.
        window: episodes averaged on each side, at least 1.

    Returns:
        1 if no score was lost; `None` if the score before the drift is 0.

    Example:
        >>> retention([0.0, 1.0, 1.0], [0.5, 0.5, 1.0], window=2)
        0.5
    """
    least = check_integer("window", window, 1)
    old = float(check_numbers("before", before, least=least)[-window:].mean())
    new = float(check_numbers("after", after, least=least)[:window].mean())
    return None if old == 0 else new / old


def recovery_deficit(scores: ArrayLike, reference: float) -> float:
    """The share of the reference score that was lost: the sum of (p_ref - p_k) over K * p_ref.

    The definition is this project's own.

    Args:
        scores: one for each episode of the phase, shape `(K,)`.
        reference: the score of full recovery, above 0.

    Example:
        >>> recovery_deficit([0.0, 0.5, 1.0, 1.0], reference=1.0)
        0.375
    """
    check_interval("reference", reference, "(0, inf)")
    return float((reference - check_numbers("scores", scores)).mean() / reference)


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


class CostKind(NamedTuple):
    """One kind of cost.

    Args:
        per_drift: the mean total over phases that begin with a drift; `None` without such a phase.
        per_stable_episode: the mean over episodes of stable phases; `None` without such an episode.
    """

    per_drift: float | None
    per_stable_episode: float | None


def cost_by_kind(
    rows: Iterable[Mapping[str, Any]], kinds: Sequence[str] = COSTS, stable: str = "source"
) -> dict[str, CostKind]:
    """The costs of one run: per drift, and per episode of stable phases.

    Args:
        rows: the lines of one run, with `phase` and the costs.
        kinds: the fields that count costs.
        stable: the id of stable phases; recurrences (`source#2`) are stable too, since the agent has
            already learned them.

    Example:
        >>> rows = [{"phase": "source", "probe_steps": 2}, {"phase": "drift-1", "probe_steps": 5}]
        >>> rows += [{"phase": "drift-1", "probe_steps": 3}]
        >>> cost_by_kind(rows, ["probe_steps"])
        {'probe_steps': CostKind(per_drift=8.0, per_stable_episode=2.0)}
    """
    lines = list(rows)
    stable_rows = [row for row in lines if row["phase"].split("#")[0] == stable]
    drifted_rows = [row for row in lines if row["phase"].split("#")[0] != stable]
    drifts = len({row["phase"] for row in drifted_rows})
    found = {}
    for kind in kinds:
        found[kind] = CostKind(
            per_drift=float(sum(row[kind] for row in drifted_rows)) / drifts if drifts else None,
            per_stable_episode=float(sum(row[kind] for row in stable_rows)) / len(stable_rows) if stable_rows else None,
        )
    return found


def collected_score(scores: ArrayLike, interactions: ArrayLike, budget: int) -> float:
    """The sum of the scores of all episodes that ended within an interaction budget.

    Agents are ranked at equal *total* interactions, since an agent that probes plays fewer episodes
    with the same budget.

    Args:
        scores: one for each episode, shape `(K,)`.
        interactions: steps, probes, prefixes and retries of each episode, shape `(K,)`.
        budget: the interactions of all episodes together.

    Raises:
        ArgumentError: if the run has fewer interactions than the budget.

    Example:
        >>> collected_score([1.0, 0.0, 1.0], [10, 10, 10], budget=25)
        1.0
    """
    score, spent = check_numbers("scores", scores), np.cumsum(check_numbers("interactions", interactions))
    if len(score) != len(spent):
        raise ArgumentError(
            f"`scores` and `interactions` should be equally long. Received {len(score)} and {len(spent)}"
        )
    if budget > spent[-1]:
        raise ArgumentError(f"`budget` should be at most the run's {spent[-1]:g} interactions. Received {budget!r}")
    return float(score[spent <= budget].sum())


def break_even(our_score: float, our_probes: float, their_score: float, their_probes: float) -> float | None:
    """The price of a probe, in score, at which two agents have the same net score.

    Args:
        our_score: the score of one agent.
        our_probes: its number of probes.
        their_score: the score of the other agent.
        their_probes: its number of probes.

    Returns:
        Below this price the agent with more probes has the higher net score; 0 or less if it never
        has; `None` if both have the same number of probes.

    Example:
        >>> break_even(50.0, 100, 30.0, 0)
        0.2
    """
    return None if our_probes == their_probes else (our_score - their_score) / (our_probes - their_probes)


def recovery_ratio(
    verified: ArrayLike, base: ArrayLike, reset: ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Estimate | None:
    """(verified - base) / (reset - base): the gain of a verifier over the gain of *oracle reset*.

    Args:
        verified: the score of the agent with its verifier, one for each instance, shape `(N,)`.
        base: that of the agent without a verifier, on the same instances.
        reset: that of the agent whose memory is cleared at the drift, on the same instances.
        level: the confidence level, in (0, 1).
        seed: the seed of the resamples.

    Returns:
        The ratio of the means, with a bootstrap interval over instances; `None` if the interval of the
        denominator contains 0, where the ratio is undefined.

    Example:
        >>> ratio = recovery_ratio([0.8, 0.9, 0.85], [0.1, 0.2, 0.0], [0.8, 0.8, 0.9])
        >>> round(ratio.mean, 2)
        1.02
    """
    ours, plain = check_numbers("verified", verified), check_numbers("base", base)
    cleared = check_numbers("reset", reset)
    if not len(ours) == len(plain) == len(cleared):
        raise ArgumentError(
            "`verified`, `base` and `reset` should be equally long. "
            f"Received {len(ours)}, {len(plain)} and {len(cleared)}"
        )
    gain, possible = ours - plain, cleared - plain
    interval = bootstrap(possible, level=level, seed=seed)
    if interval.low <= 0 <= interval.high:
        return None
    mean = float(gain.mean() / possible.mean())
    if np.ptp(gain) == 0 and np.ptp(possible) == 0:
        return Estimate(mean, mean, mean, 1)
    # Not `scipy.stats.bootstrap`: resamples whose denominator is 0 have to be left out, which it cannot do.
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(ours), size=(RESAMPLES, len(ours)))
    denominators = possible[drawn].mean(axis=1)
    is_defined = denominators != 0
    ratios = gain[drawn].mean(axis=1)[is_defined] / denominators[is_defined]
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(mean, float(low), float(high), len(ours))


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
