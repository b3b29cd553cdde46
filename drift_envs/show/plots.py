"""Pictures of what happened around a drift; needs the extra `plots`.

* `returns` - returns or success of the episodes that environments stored, with the drifts
* `stagger`, `write_names` - names of phases that stand close together, in rows
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorWrapper

from drift_envs.checks import check_integer, check_number
from drift_envs.errors import ArgumentError, DriftWarning, UnknownChoiceError, needs_extra
from drift_envs.schedule import Phase, Timeline
from drift_envs.utils.files import prepare_file, write_whole
from drift_envs.wrappers.records import PhaseReturn, VectorPhaseReturns, warn_of_schedules

MOST_POINTS = 5_000
"""Single episodes that are drawn; more would hide the mean."""

NAME_ROWS = 3
"""Rows of names; those that find no room in one are left out."""

MOST_MARKS = 1_000
"""Drifts that get a line; so many would fill a picture."""


class _Lifetime(NamedTuple):
    """What one environment, or one copy of a vector environment, stored.

    Args:
        clock: the unit of its ticks.
        episodes: its finished episodes.
        phases: those that it has visited.
        timeline: its schedule's values, with its seed.
    """

    clock: str
    episodes: Sequence[PhaseReturn]
    phases: Sequence[Phase]
    timeline: Timeline


def returns(
    envs: Any,
    *,
    around: str | None = None,
    success: float | None = None,
    bins: int = 60,
    label: str | None = None,
    axes: Any = None,
    out: str | os.PathLike[str] | None = None,
) -> Any:
    """Plot the returns of episodes over time, with a line where each drift begins, and its ramp shaded.

    The line is the mean of a bin, of several copies or environments the mean of their means. It is broken at a drift,
    so that no mean spans one, and ends where half of the copies have ended. The band is 1.96 standard errors of the
    means of several copies to both sides, cut at the lowest and highest return that was seen. Points are single
    episodes. Time is that of the schedule's clock: episodes, or steps of one copy.

    Copies whose drifts come at different ticks (`rate`, `jitter`) are drawn around their first drift, which is 0.

    Args:
        envs: an environment with `PhaseReturns`, a vector environment with `VectorPhaseReturns`, one of
            Stable-Baselines3 or Gymnasium with `PhaseReturns` in each copy, or a list of these (such as several seeds).
        around: a phase; time is counted from its beginning, and only the phase before it and itself are drawn.
        success: draw the share of episodes with at least this return, in percent, instead of returns.
        bins: of the whole time.
        label: of the line, for a legend.
        axes: Matplotlib's, to draw several learners into one picture; by default those of a new figure.
        out: a file for the picture; folders that are missing are made.

    Returns:
        The axes; their figure is `axes.figure`.

    Raises:
        ArgumentError: if no environment has stored an episode, `axes` or `around` is something else, the clock is
            `episode_step`, or `out` has an ending that Matplotlib does not write, or cannot be written.
        StateError: if writing `out` fails; what was there before stays.
        UnknownChoiceError: if no episode began in the phase of `around`.
        MissingDependencyError: without Matplotlib.

    Warns:
        DriftWarning: if copies of one vector environment have different schedules, no episode has reached the first
            drift, or the time of an environment has gone back: what two learners have played in one environment is
            drawn as one line.

    Example:
        >>> import gymnasium as gym
        >>> from drift_envs.wrappers import PhaseReturns
        >>> env = PhaseReturns(gym.make("DriftFrozenLake-v0", schedule="frozen_lake/implicit"))
        >>> for episode in range(40):
        ...     _ = env.reset(seed=0 if episode == 0 else None)
        ...     while not any(env.step(env.action_space.sample())[2:4]):
        ...         pass
        >>> axes = returns(env)
        >>> axes.get_xlabel(), len(axes.get_lines())
        ('episode', 3)
    """
    with needs_extra("matplotlib", "plots"):
        from matplotlib import pyplot
        from matplotlib.axes import Axes
        from matplotlib.backend_bases import FigureCanvasBase
    check_integer("bins", bins, 1)
    if axes is not None and not isinstance(axes, Axes):
        raise ArgumentError(f"`axes` should be one of Matplotlib's `Axes`. Received {type(axes).__name__}")
    if not (around is None or isinstance(around, str)):
        raise ArgumentError(f"`around` should be the name of a phase. Received {around!r}")
    if out is not None:
        known = FigureCanvasBase.get_supported_filetypes()
        if Path(out).suffix[1:].lower() not in known:
            raise ArgumentError(f"`out` should end in one of .{', .'.join(sorted(known))}. Received {os.fspath(out)!r}")
        prepare_file(Path(out), option="out")
    if success is not None:
        check_number("success", success)
    lifetimes = [lifetime for lifetime in _lifetimes(envs) if lifetime.episodes]
    if not lifetimes:
        raise ArgumentError(
            "`envs` should have stored at least one finished episode (a `TimeLimit` belongs below `PhaseReturns`). "
            "Received none"
        )
    for lifetime in lifetimes:
        ticks = [episode.tick for episode in lifetime.episodes]
        back = next(((one, other) for one, other in itertools.pairwise(ticks) if other < one), None)
        if back is not None:
            warnings.warn(
                f"the time of an environment went back from tick {back[0]} to {back[1]}, and all its episodes are "
                "drawn as one line; make an environment for each learner, and pass a list",
                DriftWarning,
                stacklevel=2,
            )
            break
    clocks = sorted({lifetime.clock for lifetime in lifetimes})
    if clocks not in (["episode"], ["step"]):
        raise ArgumentError(f"`envs` should have one clock, `episode` or `step`. Received {', '.join(clocks)}")
    phases = max((lifetime.phases for lifetime in lifetimes), key=len)
    starts = [phase.start for phase in phases]
    is_shared = all([phase.start for phase in one.phases] == starts[: len(one.phases)] for one in lifetimes)
    full_tick, time_name = lifetimes[0].timeline.full_tick, clocks[0]
    marks = [(phase.start, full_tick(phase), phase.id) for phase in phases[1 : MOST_MARKS + 1]]
    if around is not None or not is_shared:
        lifetimes, name = _align(lifetimes, around)
        _, phase = lifetimes[0].phases
        time_name, marks = (
            f"{clocks[0]}s since the drift",
            [(0, lifetimes[0].timeline.full_tick(phase) - phase.start, name)],
        )
    elif not marks and lifetimes[0].timeline.schedule.drifts:
        last = max(episode.tick for one in lifetimes for episode in one.episodes)
        warnings.warn(f"no episode reached a drift: the last one began at tick {last}", DriftWarning, stacklevel=2)

    copy = np.concatenate([np.full(len(one.episodes), number) for number, one in enumerate(lifetimes)])
    time = np.array([episode.tick for one in lifetimes for episode in one.episodes])
    score = np.array([episode.score for one in lifetimes for episode in one.episodes])
    # Fast copies go on when others have ended: what fewer than half of them reached is left out.
    reached = time <= np.median([max(episode.tick for episode in one.episodes) for one in lifetimes])
    copy, time, score = copy[reached], time[reached], score[reached]
    if success is not None:
        score = 100.0 * (score >= success)
    is_new = axes is None
    if is_new:
        axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")[1]
        axes.spines[["top", "right"]].set_visible(False)
        several = f", mean of {len(lifetimes)}" if len(lifetimes) > 1 else ""
        axes.set(xlabel=time_name, ylabel=("return" if success is None else "success in percent") + several)
    middle, mean, wide = _mean_of_bins(time, score, copy, [start for start, _, _ in marks], bins)
    (line,) = axes.plot(middle, mean, label=label, zorder=3)
    colour = line.get_color()
    if len(lifetimes) > 1:
        low, high = np.clip((mean - wide, mean + wide), score.min(), score.max())
        axes.fill_between(middle, low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
    if success is None and len(time) <= MOST_POINTS:
        axes.plot(time, score, ".", color=colour, markersize=4, alpha=0.3, markeredgewidth=0, zorder=1)
    if is_new:
        end = float(time.max())
        for start, full, _ in marks:
            axes.axvline(start, linestyle="--", color="gray", linewidth=1, zorder=0)
            if start < min(full, end):
                axes.axvspan(start, min(full, end), color="gray", alpha=0.12, linewidth=0, zorder=0)
        left, right = axes.get_xlim()
        write_names(axes, [(start, name) for start, _, name in marks], right - left)
    if label is not None:
        axes.legend(frameon=False)
    if out is not None:
        with write_whole(Path(out)) as part:
            axes.figure.savefig(part)
    return axes


def stagger(marks: Sequence[tuple[float, float]]) -> list[int | None]:
    """The row of each mark, from 0, so that no two overlap, and a line up to a mark crosses no other.

    Args:
        marks: where each begins, in ascending order, and its width.

    Returns:
        The rows; `None` where none of `NAME_ROWS` has room.

    Example:
        >>> stagger([(0, 5), (3, 5), (6, 5), (11, 5)])
        [2, 1, 0, 0]
    """
    rows: list[int | None] = []
    free = [math.inf] * NAME_ROWS  # where the next mark to the right begins, in this row or above it
    for start, width in reversed(marks):
        row = next((row for row, end in enumerate(free) if start + width <= end), None)
        if row is not None:
            free[: row + 1] = [start] * (row + 1)
        rows.append(row)
    return rows[::-1]


def write_names(axes: Any, names: Sequence[tuple[float, str]], span: float) -> int:
    """Write names above axes that are about as wide as a page, each with a line to its place.

    Args:
        axes: Matplotlib's.
        names: the place of each name on the horizontal axis, in ascending order, and the name.
        span: from the left to the right end of that axis.

    Returns:
        How many had no room.
    """
    rows = stagger([(start, span * (0.011 * len(name) + 0.02)) for start, name in names])
    for (start, name), row in zip(names, rows, strict=True):
        if row is not None:
            axes.annotate(
                f" {name}", (start, 1), xycoords=("data", "axes fraction"), xytext=(0, 2 + 11 * row),
                textcoords="offset points", fontsize=8, color="0.45", annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": "0.7", "relpos": (0, 0), "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
    return rows.count(None)


def _lifetimes(envs: Any) -> Iterator[_Lifetime]:
    """What each environment, and each copy of a vector environment, stored."""
    if isinstance(envs, list | tuple):
        for env in envs:
            yield from _lifetimes(env)
        return
    while isinstance(envs, VectorWrapper) and not isinstance(envs, VectorPhaseReturns):
        envs = envs.env
    try:
        if isinstance(envs, gym.Env):
            found, timelines = [envs.get_wrapper_attr("episodes")], [envs.get_wrapper_attr("timeline")]
        elif isinstance(envs, VectorPhaseReturns):
            found, timelines = envs.episodes, envs.unwrapped.get_attr("timeline")  # type: ignore[attr-defined]
        else:
            found, timelines = envs.get_attr("episodes"), envs.get_attr("timeline")
            warn_of_schedules(timelines, "they are drawn as one line")
    except AttributeError as error:
        raise ArgumentError(
            f"`envs` should store its episodes: put `PhaseReturns` around each environment, or `VectorPhaseReturns` "
            f"around a vector environment of `gym.make_vec`. Received {envs}"
        ) from error
    for episodes, timeline in zip(found, timelines, strict=True):
        last = max((episode.tick for episode in episodes), default=0)
        yield _Lifetime(timeline.schedule.clock, episodes, timeline.phases(last + 1), timeline)


def _align(lifetimes: Sequence[_Lifetime], around: str | None) -> tuple[list[_Lifetime], str]:
    """Count time from a phase, and keep what was played in it and in the phase before it.

    Args:
        lifetimes: those to align; one that has not come to the phase is left out.
        around: the phase; `None` for the first drift of each.

    Returns:
        What is left, and the name of the phase.
    """
    found, names = list[_Lifetime](), dict[str, None]()
    for lifetime in lifetimes:
        names |= dict.fromkeys(phase.id for phase in lifetime.phases[1:])
        for before, phase in itertools.pairwise(lifetime.phases):
            if around in (None, phase.id):
                kept = [one for one in lifetime.episodes if before.start <= one.tick < phase.stop]
                shifted = [one._replace(tick=one.tick - phase.start) for one in kept]
                found.append(lifetime._replace(episodes=shifted, phases=(before, phase)))
                break
    if not found:
        last = max(episode.tick for one in lifetimes for episode in one.episodes)
        try:
            first = 0 if around is None else lifetimes[0].timeline.phase_named(around).start
        except UnknownChoiceError:
            first = 0
        later = f", which begins at tick {first}, and the last episode began at tick {last}" if first > last else ""
        raise UnknownChoiceError(
            f"`around` should be a phase that was visited, after the first: {', '.join(names) or 'there is none'}. "
            f"Received {around!r}{later}"
        )
    return found, around or "first drift"


def _mean_of_bins(
    time: np.ndarray, score: np.ndarray, copy: np.ndarray, starts: Sequence[int], bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of each bin, with a gap at each drift.

    Returns:
        The mean time of a bin, the mean score, and half of the interval over copies; each has NaN at a drift.
    """
    width = max((int(time.max()) - int(time.min()) + 1) / bins, 1)
    edges = np.array([min(int(time.min()), *starts, 0), *starts])
    segment = np.searchsorted(edges, time, "right") - 1
    place = ((time - edges[segment]) / width).astype(int)
    rows: list[tuple[float, float, float]] = []
    last = 0
    for part, number in sorted(set(zip(segment.tolist(), place.tolist(), strict=True))):
        if part != last:
            rows.append((np.nan,) * 3)
        last = part
        here = (segment == part) & (place == number)
        totals, counts = np.bincount(copy[here], score[here]), np.bincount(copy[here])
        own = totals[counts > 0] / counts[counts > 0]
        wide = 1.96 * own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0
        rows.append((time[here].mean(), own.mean(), wide))
    middle, mean, wide = np.array(rows).T
    return middle, mean, wide
