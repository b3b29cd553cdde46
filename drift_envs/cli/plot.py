"""The command `plot`: knobs over ticks, in the terminal or as a picture."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from drift_envs.cli.scheduled import ScheduledEnv, open_schedule
from drift_envs.errors import ArgumentError, needs_extra
from drift_envs.schedule import NEVER, Timeline
from drift_envs.show.plots import stagger, write_names
from drift_envs.utils.files import prepare_file, write_whole

BLOCKS = " ▁▂▃▄▅▆▇█"
ROWS = 4
"""Lines of text of one numeric curve."""

PICTURES = (".png", ".svg", ".pdf")
MAX_TICKS = 100_000

LETTERS = string.ascii_uppercase + string.ascii_lowercase
MAX_PHASES = 6
TAIL, SHARE = 20, 4
"""Of a last phase that never ends: the fewest ticks that are shown, and those before it for each tick that is shown."""


@dataclass(frozen=True)
class KnobSeries:
    """One curve.

    Args:
        label: the knob; for a mapping the knob and the key.
        values: one for each tick drawn: numbers, or letters where the values are not numbers.
        legend: the value of each letter; empty for numbers.
    """

    label: str
    values: tuple[Any, ...]
    legend: tuple[Any, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers."""
        return not self.legend


def plot_schedule(
    console: Console,
    name: str,
    out: Path | None,
    ticks: int | None,
    seed: int,
    env_id: str | None,
    *,
    may_import: bool = False,
) -> None:
    """Print the plot of a schedule, or write it to a file.

    Args:
        console: where the text goes; decides its width.
        name: a shipped schedule, or the path of a file.
        out: the picture; `None` prints text.
        ticks: how many to draw; `None` for those of the first phases.
        seed: of the instance.
        env_id: the environment, for a schedule that names none.
        may_import: whether the module that `env` names may be imported.

    Raises:
        ArgumentError: if the format is unknown or there are too many ticks.
    """
    if out is not None:
        prepare_file(out, PICTURES)
    scheduled = open_schedule(name, seed, env_id, may_import=may_import)
    stop = ticks or default_stop(scheduled)
    if stop > MAX_TICKS:
        raise ArgumentError(f"`--ticks` should be at most {MAX_TICKS}. Received {stop}")
    if out is None:
        for line in draw_text(scheduled, stop, console.width):
            print(line)
    else:
        left_out = draw_picture(scheduled, stop, out)
        print(f"wrote {out}")
        if left_out:
            print(_more(left_out))


def collect_series(timeline: Timeline, ticks: Sequence[int]) -> list[KnobSeries]:
    """The values of a timeline as curves.

    Returns:
        One series for each knob, and one for each key of a mapping knob.
    """
    at = [timeline.values(tick) for tick in ticks]
    series = []
    for name in timeline.names:
        values = [each[name] for each in at]
        if all(isinstance(value, Mapping) for value in values):
            keys = dict.fromkeys(key for value in values for key in value)
            series += [_series(f"{name} {key}", [value.get(key) for value in values]) for key in keys]
        else:
            series.append(_series(name, values))
    return series


def default_stop(scheduled: ScheduledEnv) -> int:
    """The number of ticks that shows what a schedule does: its first phases, and the beginning of the last.

    Drifts that begin later are shown too, as long as these are at most `MAX_TICKS`.
    """
    phases = scheduled.phases(MAX_PHASES)
    last = phases[-1]
    stop = last.stop if last.stop != NEVER else _show_end(scheduled.full_tick(last))
    later = [_show_end(scheduled.full_tick(phase)) for phase in scheduled.main_phases(MAX_PHASES)[len(phases) :]]
    return min(max([stop, *later]), MAX_TICKS)


def _show_end(tick: int) -> int:
    """Where a plot ends whose last change is at a tick: a fifth of its width shows what follows."""
    return tick + max(TAIL, tick // SHARE)


def _series(label: str, values: list[Any]) -> KnobSeries:
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return KnobSeries(label, tuple(float(value) for value in values))
    distinct = tuple(dict.fromkeys(values))
    letters = {value: LETTERS[index % len(LETTERS)] for index, value in enumerate(distinct)}
    return KnobSeries(label, tuple(letters[value] for value in values), distinct)


def draw_text(scheduled: ScheduledEnv, stop: int, width: int) -> Iterator[str]:
    """The plot as lines of text.

    Args:
        scheduled: the schedule.
        stop: ticks from 0 up to this one, excluded.
        width: columns of the terminal.

    Yields:
        Lines no wider than `width`, or than 33 columns if `width` is less.
    """
    name = scheduled.schedule.name
    if not scheduled.timeline.names:
        yield f"{name}: sets no knob and has no drift"
        return
    margin = 12
    room = max(width - margin - 1, 20)
    step = -(-stop // room)
    # A short schedule is stretched, so that a phase is wide enough for its name.
    wide = max(1, min(room // stop, 3)) if step == 1 else 1
    ticks = [tick for tick in range(0, stop, step) for _ in range(wide)]
    yield f"{name}, ticks 0 to {stop - 1}" + (f", one column for {step} ticks" if step > 1 else "")
    for series in collect_series(scheduled.timeline, ticks):
        yield from ("", series.label)
        if series.is_numeric:
            yield from _curve(series, margin)
        else:
            yield " " * margin + "".join(series.values)
    yield ""
    starts = [(phase, phase.start * wide // step) for phase in scheduled.timeline.phases(stop)]
    columns = len(ticks)
    yield _ruler(margin, columns, [(column, str(phase.start)) for phase, column in starts])
    yield from _names(margin, columns, [(column, phase.id) for phase, column in starts])


def _curve(series: KnobSeries, margin: int) -> Iterator[str]:
    """A curve of blocks, eight levels for each line of text."""
    low, high = min(series.values), max(series.values)
    if low == high:
        yield f"{low:>{margin - 2}.4g}  " + "─" * len(series.values)
        return
    # At least one step, so that the lowest value is visible.
    levels = [1 + round((value - low) / (high - low) * (8 * ROWS - 1)) for value in series.values]
    for row in reversed(range(ROWS)):
        mark = {ROWS - 1: f"{high:.4g}", 0: f"{low:.4g}"}.get(row, "")
        line = "".join(BLOCKS[min(max(level - 8 * row, 0), 8)] for level in levels)
        yield f"{mark:>{margin - 2}}  {line}".rstrip()


def _ruler(margin: int, columns: int, marks: list[tuple[int, str]]) -> str:
    """Tick numbers under the curves, those that do not overlap."""
    line = ""
    for column, mark in marks:
        if (not line or column > len(line)) and column + len(mark) <= columns:
            line = line.ljust(column) + mark
    return " " * margin + line


def _names(margin: int, columns: int, marks: list[tuple[int, str]]) -> Iterator[str]:
    """A bar at the start of each phase with its name, in rows where they stand close together."""
    shown = [
        (column, name if len(name) <= columns - column else f"{name[: columns - column - 1]}…")
        for column, name in marks
    ]
    rows = stagger([(column, len(name) + 2) for column, name in shown])
    for row in sorted({row for row in rows if row is not None}):
        line = ""
        for (column, name), own in zip(shown, rows, strict=True):
            if own == row:
                line = f"{line.ljust(column)}|{name}"
        yield " " * margin + line
    if None in rows:
        yield _more(rows.count(None))


def _more(count: int) -> str:
    """What is said of phases whose names have no room."""
    return f"{count} more: `drift-envs show`"


def draw_picture(scheduled: ScheduledEnv, stop: int, path: Path) -> int:
    """The plot as a file.

    Args:
        scheduled: the schedule.
        stop: ticks from 0 up to this one, excluded.
        path: the file; its ending decides the format.

    Returns:
        The number of phases whose names had no room.

    Raises:
        MissingDependencyError: without matplotlib.
        ArgumentError: if there is nothing to draw.
    """
    with needs_extra("matplotlib", "plots"):
        from matplotlib.figure import Figure
    ticks = list(range(stop))
    curves = collect_series(scheduled.timeline, ticks)
    if not curves:
        raise ArgumentError(f"{scheduled.schedule.name} sets no knob; there is nothing to draw")
    heights = [2.0 if series.is_numeric else 0.7 for series in curves]
    figure = Figure(figsize=(9, 1.2 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(curves), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    phases = scheduled.timeline.phases(stop)
    for axis, series in zip(axes, curves, strict=True):
        axis.set_ylabel(series.label, rotation=0, ha="right", va="center", labelpad=10)
        for phase in phases[1:]:
            axis.axvline(phase.start, color="0.8", linewidth=1, zorder=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(0, stop)
        if series.is_numeric:
            axis.step([*ticks, stop], [*series.values, series.values[-1]], where="post", linewidth=1.8)
            axis.margins(y=0.15)
            axis.ticklabel_format(axis="y", useOffset=False)
        else:
            _draw_bars(axis, series, stop)
    left_out = write_names(axes[0], [(phase.start, phase.id) for phase in phases], stop)
    axes[-1].set_xlabel(
        {"episode": "episode", "step": "step", "episode_step": "step of the episode"}[scheduled.schedule.clock]
    )
    figure.suptitle(scheduled.schedule.name, fontsize=12)
    with write_whole(path) as part:
        figure.savefig(part, dpi=150)
    return left_out


def _draw_bars(axis: Any, series: KnobSeries, stop: int) -> None:
    """Bars, one color for each value."""
    start = 0
    for tick in range(1, stop + 1):
        if tick == stop or series.values[tick] != series.values[start]:
            letter = series.values[start]
            color = f"C{LETTERS.index(letter) % 10}"
            axis.broken_barh([(start, tick - start)], (0, 1), facecolors=color, alpha=0.55)
            axis.text((start + tick) / 2, 0.5, letter, ha="center", va="center")
            start = tick
    axis.spines["left"].set_visible(False)
    axis.set_yticks([])
    axis.set_ylim(0, 1)
