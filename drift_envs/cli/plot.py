"""The command `plot`: knobs over ticks, in the terminal or as a picture.

* `add_plot` - adds the command
* `draw_text` - the plot as lines of text
* `draw_picture` - the plot as a file, by matplotlib
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from drift_envs.cli.series import LETTERS, KnobSeries, collect, default_stop
from drift_envs.cli.worlds import Commands, ScheduledWorld, open_plan, positive_int, seed_number
from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.schedule import Phase

BLOCKS = " ▁▂▃▄▅▆▇█"
ROWS = 4
"""Lines of text of one numeric curve."""

PICTURES = (".png", ".svg", ".pdf")
MOST_TICKS = 100_000


def add_plot(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `plot`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "plot",
        help="knobs over ticks, in the terminal or as a picture",
        description="Draw the knobs of a schedule over its ticks: as text, or with --out as a picture.",
        epilog="example: drift-envs plot frozen_lake/thaw --out thaw.png",
    )
    parser.add_argument("name", metavar="NAME", help="the name of a shipped schedule, or the path of a file")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a .png, .svg or .pdf file; needs the extra `plots`")
    parser.add_argument("--ticks", type=positive_int, help="how many ticks to draw (default: the first phases)")
    parser.add_argument("--seed", type=seed_number, default=0, help="the instance, where a seed decides (default 0)")
    parser.add_argument("--env", metavar="ID", help="the environment, where the schedule names none")
    parser.set_defaults(run=_plot)
    return parser


def _plot(options: argparse.Namespace, console: Console) -> int:
    if options.out is not None and options.out.suffix.lower() not in PICTURES:
        raise ArgumentError(f"`--out` should end in one of {', '.join(PICTURES)}. Received {str(options.out)!r}")
    plan = open_plan(options.name, options.seed, options.env)
    stop = options.ticks or default_stop(plan)
    if stop > MOST_TICKS:
        raise ArgumentError(f"`--ticks` should be at most {MOST_TICKS}. Received {stop}")
    if options.out is not None:
        draw_picture(plan, stop, options.out)
        print(f"wrote {options.out}")
        return 0
    for line in draw_text(plan, stop, console.width):
        print(line)
    return 0


def draw_text(plan: ScheduledWorld, stop: int, width: int) -> Iterator[str]:
    """The plot as lines of text.

    Args:
        plan: the schedule.
        stop: ticks from 0 up to this one, excluded.
        width: columns of the terminal.

    Yields:
        Lines no wider than `width`, as long as there is room for a curve at all.
    """
    name = plan.schedule.name
    if not plan.timeline.names:
        yield f"{name}: no knob is set and nothing drifts"
        return
    margin = 12
    room = max(width - margin - 1, 20)
    step = -(-stop // room)
    # A short schedule is stretched, so that a phase is wide enough for its name.
    wide = max(1, min(room // stop, 3)) if step == 1 else 1
    ticks = [tick for tick in range(0, stop, step) for _ in range(wide)]
    yield f"{name}, ticks 0 to {stop - 1}" + (f", one column for {step} ticks" if step > 1 else "")
    for series in collect(plan.timeline, ticks):
        yield ""
        yield from _curve(series, margin) if series.is_numeric else _letters(series, margin)
    yield ""
    starts = [(phase, phase.start * wide // step) for phase in plan.timeline.phases(stop)]
    columns = len(ticks)
    yield _ruler(margin, columns, [(column, str(phase.start)) for phase, column in starts])
    yield _names(margin, columns, [(column, phase.id) for phase, column in starts])


def _curve(series: KnobSeries, margin: int) -> Iterator[str]:
    """A curve of blocks, eight steps a line."""
    yield series.label
    low, high = min(series.values), max(series.values)
    if low == high:
        yield f"{low:>{margin - 2}.4g}  " + "─" * len(series.values)
        return
    # One step at the least, so that the lowest value is seen as well.
    levels = [1 + round((value - low) / (high - low) * (8 * ROWS - 1)) for value in series.values]
    for row in reversed(range(ROWS)):
        mark = {ROWS - 1: f"{high:.4g}", 0: f"{low:.4g}"}.get(row, "")
        line = "".join(BLOCKS[min(max(level - 8 * row, 0), 8)] for level in levels)
        yield f"{mark:>{margin - 2}}  {line}".rstrip()


def _letters(series: KnobSeries, margin: int) -> Iterator[str]:
    """A line of letters, one for each value."""
    yield series.label
    yield " " * margin + "".join(series.values)


def _ruler(margin: int, columns: int, marks: list[tuple[int, str]]) -> str:
    """Numbers under the curves, as many as have room beside each other."""
    line = ""
    for column, mark in marks:
        if (not line or column > len(line)) and column + len(mark) <= columns:
            line = line.ljust(column) + mark
    return " " * margin + line


def _names(margin: int, columns: int, marks: list[tuple[int, str]]) -> str:
    """A bar where each phase begins, and its name where it fits before the next one."""
    line = ""
    for (column, name), (following, _) in zip(marks, [*marks[1:], (columns + 1, "")], strict=True):
        line = line[:column].ljust(column) + "|" + (name if len(name) < following - column - 1 else "")
    return " " * margin + line


def draw_picture(plan: ScheduledWorld, stop: int, path: Path) -> None:
    """The plot as a file.

    Args:
        plan: the schedule.
        stop: ticks from 0 up to this one, excluded.
        path: the file; its ending decides the format.

    Raises:
        MissingDependencyError: without matplotlib.
        ArgumentError: if there is nothing to draw.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError('`matplotlib` is not installed, run `pip install "drift-envs[plots]"`') from error
    ticks = list(range(stop))
    curves = collect(plan.timeline, ticks)
    if not curves:
        raise ArgumentError(f"{plan.schedule.name} sets no knob, there is nothing to draw")
    heights = [2.0 if series.is_numeric else 0.7 for series in curves]
    figure = Figure(figsize=(9, 1.2 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(curves), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    phases = plan.timeline.phases(stop)
    for axis, series in zip(axes, curves, strict=True):
        axis.set_ylabel(series.label, rotation=0, ha="right", va="center")
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
    for phase in _apart(phases, stop):
        axes[0].annotate(
            phase.id,
            (phase.start, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, 3),
            textcoords="offset points",
            fontsize=9,
            color="0.35",
        )
    axes[-1].set_xlabel(
        {"episode": "episode", "step": "step", "episode_step": "step of the episode"}[plan.schedule.clock]
    )
    figure.suptitle(plan.schedule.name, fontsize=12)
    figure.savefig(path, dpi=150)


def _draw_bars(axis: Any, series: KnobSeries, stop: int) -> None:
    """Bars of one colour a value."""
    start = 0
    for tick in range(1, stop + 1):
        if tick == stop or series.values[tick] != series.values[start]:
            letter = series.values[start]
            colour = f"C{LETTERS.index(letter) % 10}"
            axis.broken_barh([(start, tick - start)], (0, 1), facecolors=colour, alpha=0.55)
            axis.text((start + tick) / 2, 0.5, letter, ha="center", va="center")
            start = tick
    axis.spines["left"].set_visible(False)
    axis.set_yticks([])
    axis.set_ylim(0, 1)


def _apart(phases: list[Phase], stop: int) -> Iterator[Phase]:
    """The phases whose names have room beside each other."""
    free = 0.0
    for phase in phases:
        if phase.start >= free:
            yield phase
            free = phase.start + stop * (0.012 * len(phase.id) + 0.02)
