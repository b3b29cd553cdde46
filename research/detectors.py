"""Drift detectors on recorded lifetimes: one table, and the page that holds it.

* `DETECTORS` - the rows: detectors of river, a CUSUM test, and this project's own tests
* `SequentialTest`, `SurpriseTest` - the statistics of `glove_passive` and of GLOVE's trigger, as detectors
* `write_table` - scores all of them on a data set, and fills a page
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.analysis.table import Table, to_markdown
from drift_agents.verifier.evidence import change_statistic

from drift_envs.datasets import STREAMS, open_dataset, read_streams
from drift_envs.errors import ArgumentError, needs_extra
from drift_envs.metrics import Cusum, DetectorSummary, DriftDetector, Estimate, score_detector


class SequentialTest:
    """The Shiryaev-Roberts statistic of the verifier `glove_passive`, over the newest values of a stream.

    Each value, rounded to a tenth, is an outcome. At an alarm the values before the most probable place of
    the change are dropped.

    Args:
        alarm: the value of the statistic that fires.
        window: the number of newest values that are tested.

    Example:
        >>> test = SequentialTest()
        >>> for x in [0.0] * 20 + [1.0] * 8:
        ...     test.update(x)
        ...     if test.drift_detected:
        ...         break
        >>> x
        1.0
    """

    def __init__(self, alarm: float = 1000.0, window: int = 80) -> None:
        self.alarm, self.window = alarm, window
        self.drift_detected = False
        self._values: list[float] = []

    def update(self, x: float) -> None:
        """Add a value."""
        self._values = [*self._values[1 - self.window :], round(x, 1)]
        outcomes, codes = np.unique(self._values, return_inverse=True)
        self.drift_detected = False
        if len(outcomes) > 1:
            statistic, split = change_statistic(np.eye(len(outcomes))[codes])
            self.drift_detected = bool(statistic >= self.alarm)
            if self.drift_detected:
                self._values = self._values[split:]


class SurpriseTest:
    """GLOVE's trigger on a stream: one or several values in a row that were rare before (GLOVE, equations 2 and 3).

    Each value, rounded to a tenth, is an outcome. The defaults are those of the verifiers.

    Args:
        epsilon: values with a smaller share of the earlier ones are surprises.
        persistence: the number of surprises in a row that fires.
        minimum: the number of earlier values from which on there are surprises.

    Example:
        >>> test = SurpriseTest()
        >>> for x in [0.0, 0.0, 1.0]:
        ...     test.update(x)
        >>> test.drift_detected
        True
    """

    def __init__(self, epsilon: float = 0.5, persistence: int = 1, minimum: int = 1) -> None:
        self.epsilon, self.persistence, self.minimum = epsilon, persistence, minimum
        self.drift_detected = False
        self._counts: Counter[float] = Counter()
        self._surprises: list[float] = []

    def update(self, x: float) -> None:
        """Add a value."""
        x, total = round(x, 1), self._counts.total()
        self.drift_detected = False
        if total >= self.minimum and self._counts[x] < self.epsilon * total:
            self._surprises.append(x)
            self.drift_detected = len(self._surprises) >= self.persistence
            if self.drift_detected:
                self._counts, self._surprises = Counter(self._surprises), []
        else:
            self._counts.update([*self._surprises, x])
            self._surprises = []


def _river(name: str, **settings: Any) -> Callable[[], DriftDetector]:
    def make() -> DriftDetector:
        with needs_extra("river", "drift"):
            found: DriftDetector = getattr(import_module("river.drift"), name)(**settings)
        return found

    return make


DETECTORS: Mapping[str, Callable[[], DriftDetector]] = {
    "ADWIN": _river("ADWIN"),
    "ADWIN, delta 0.2, tested at each value": _river("ADWIN", delta=0.2, clock=1),
    "Page-Hinkley": _river("PageHinkley"),
    "Page-Hinkley, threshold 3": _river("PageHinkley", min_instances=10, threshold=3.0),
    "KSWIN": _river("KSWIN", seed=0),
    "CUSUM": Cusum,
    "Shiryaev-Roberts, ours": SequentialTest,
    "surprise, ours": SurpriseTest,
    "surprise, persistence 3": lambda: SurpriseTest(persistence=3),
}
"""The rows of the table. Without settings: the library's defaults."""

MARKS = ("<!-- detectors -->\n", "<!-- end -->")


def write_table(
    data: Path, page: Path | None = None, window: int | None = None, note: Callable[[str], object] = lambda text: None
) -> str:
    """Score all detectors on all streams of a data set.

    Args:
        data: the folder of the data set.
        page: a Markdown page whose part between the marks is replaced.
        window: the most steps from a drift to its detection.
        note: gets a line for each row; return values are ignored.

    Returns:
        The table, and what it was played on.

    Raises:
        ArgumentError: if the folder holds no data set, or the page has no marks.
        MissingDependencyError: without river.
    """
    manifest = open_dataset(data).manifest()
    tables = [_sentence(manifest)]
    for kind in STREAMS:
        streams = read_streams(data, kind)
        table = Table(f"Stream {kind}", ("detector", "delay", "false alarms", "missed", "F1"))
        for name, make in DETECTORS.items():
            note(f"{kind}: {name}")
            table.add(name, *_cells(score_detector(make, streams, window)))
        tables.append(to_markdown(table).strip())
    text = "\n\n".join(tables)
    if page is not None:
        _fill(page, text)
    return text


def _sentence(manifest: Mapping[str, Any]) -> str:
    return (
        f"{manifest['lifetimes']} lifetimes of {manifest['episodes']} episodes of {manifest['env']} with "
        f"{manifest['schedule']['name']}, policy `{manifest['policy']}` with {manifest['epsilon']:.0%} random actions. "
        "Means with 95 % bootstrap intervals over lifetimes."
    )


def _cells(summary: DetectorSummary) -> Iterator[str]:
    figures: tuple[tuple[Estimate | None, str], ...] = (
        (summary.delay, ".0f"),
        (summary.false_alarm_rate, ".2f"),
        (summary.missed, ".2f"),
        (summary.f1, ".2f"),
    )
    for value, form in figures:
        if value is None:
            yield "-"
        elif value.n == 1:
            yield f"{value.mean:{form}}"
        else:
            yield f"{value.mean:{form}} [{value.low:{form}}, {value.high:{form}}]"


def _fill(page: Path, text: str) -> None:
    try:
        before, begin, rest = page.read_text("utf-8").partition(MARKS[0])
        _, end, after = rest.partition(MARKS[1])
        if not end:
            raise ArgumentError(f"{page}: should have the marks {MARKS[0].strip()} and {MARKS[1]}")
        page.write_text(f"{before}{begin}{text}\n{end}{after}", "utf-8")
    except OSError as error:
        raise ArgumentError(f"{page}: cannot be read or written: {error.strerror}") from error
