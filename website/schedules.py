"""Shipped schedules on the site: their kinds, and a drawing of the knobs that each drives.

* `Shipped`, `read_shipped` - a schedule as the pages show it
* `KINDS` - the kinds, in the order of the page
* `page` - the page of all schedules by kind
* `section` - a schedule on the page of its environment
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, NamedTuple

from drift_envs.cli.plot import KnobSeries, collect_series, default_stop
from drift_envs.cli.scheduled import ScheduledEnv, read_schedule
from drift_envs.envs.make import knob_table_of
from drift_envs.registration import IDS
from drift_envs.schedule import Schedule, Timeline, load_schedule
from website.shipped import read_table

KINDS = {
    "Drifts within an episode": "The clock counts steps, so that values change while an episode is played.",
    "Gets weaker or smaller slowly": "A number falls a little at each tick, as an engine that tires.",
    "Gets stronger or larger slowly": "A number rises a little at each tick.",
    "Changes slowly": "Values move a little at each tick.",
    "Old and new alternate for a while": "Each tick draws the old or the new value, the new one more and more often.",
    "Wanders": "A random walk.",
    "Changes at random times": "The times are drawn from the seed.",
    "Comes back again and again": "The same change recurs, as on weekends.",
    "Changes and comes back": "A change that is undone after a while.",
    "Responses become false": "Single responses are false, while the environment stays as it is.",
    "Changes several times": "Sudden changes, one after the other.",
    "Changes once": "One sudden change, which stays.",
    "Nothing drifts": "For memory that is filled elsewhere.",
    "Controls": "No drift matters; rankings leave them out. A learner should lose nothing here.",
}
"""Each with a sentence about it."""

MOST_CURVES = 6
"""Curves of one drawing."""
POINTS = 240
"""Ticks of one drawing, at the most."""
LEFT, WIDTH, SMALL = 170, 560, 140
"""Pixels: the room for labels, the width of curves, and that of a drawing in a table."""
COLOURS = ("#00897b", "#ff7043", "#5c6bc0", "#c0a000", "#8e24aa", "#6d4c41")
"""Of values that are no numbers, in the order in which they occur."""


class Shipped(NamedTuple):
    """A schedule as the pages show it.

    Args:
        name: its name.
        env_id: the environment that it names.
        kind: one of `KINDS`.
        text: its description.
        times: its clock and drifts in words.
        drawing: its knobs over time, as SVG.
        small: the same for a table.
    """

    name: str
    env_id: str
    kind: str
    text: str
    times: str
    drawing: str
    small: str

    @property
    def anchor(self) -> str:
        """Of its section."""
        return self.name.replace("/", "-").replace(":", "-")


@cache
def read_shipped() -> tuple[Shipped, ...]:
    """All schedules that have a row in the table of `website.shipped`."""
    return tuple(_read(name) for name in read_table())


def _read(name: str) -> Shipped:
    schedule = load_schedule(name)
    env_id = str(schedule.env)
    table = IDS[env_id].knob_table  # without the environment, whose extra need not be installed
    try:
        schedule = read_schedule(name, table)
        timeline = Timeline(schedule, table, schedule.seed or 0)
    except ValueError:  # it drives knobs of the wrapper
        table = knob_table_of(env_id)
        schedule = read_schedule(name, table)
        timeline = Timeline(schedule, table, schedule.seed or 0)
    scheduled = ScheduledEnv(schedule, env_id, timeline, None)
    stop = default_stop(scheduled)
    ticks = range(0, stop, -(-stop // POINTS))
    curves = collect_series(timeline, ticks)
    return Shipped(
        name,
        env_id,
        _kind(scheduled),
        schedule.description or "",
        _times(schedule),
        _draw(scheduled, curves, stop),
        _draw_small(curves),
    )


def _kind(scheduled: ScheduledEnv) -> str:
    schedule = scheduled.schedule
    drifts = schedule.drifts
    if not drifts:
        return "Nothing drifts"
    if schedule.control:
        return "Controls"
    if schedule.clock != "episode":
        return "Drifts within an episode"
    for drift in drifts:
        if drift.kind == "incremental":
            return _direction(scheduled, drift.name)
    if any(drift.kind == "gradual" for drift in drifts):
        return "Old and new alternate for a while"
    if any(drift.walk for drift in drifts):
        return "Wanders"
    if any(drift.rate is not None or drift.jitter for drift in drifts):
        return "Changes at random times"
    if any(drift.every is not None for drift in drifts):
        return "Comes back again and again"
    if any(drift.duration is not None for drift in drifts) or _returns(scheduled):
        return "Changes and comes back"
    if all(set(drift.set) == {"transient"} for drift in drifts):
        return "Responses become false"
    return "Changes once" if len(drifts) == 1 else "Changes several times"


def _direction(scheduled: ScheduledEnv, drift: str) -> str:
    """Whether the first number that a slow drift changes falls or rises."""
    phase = scheduled.timeline.phase_named(drift)
    before = scheduled.timeline.values(max(phase.start - 1, 0))
    after = scheduled.timeline.values(scheduled.full_tick(phase))
    for name, value in after.items():
        if isinstance(value, (int, float)) and value != before[name]:
            return "Gets weaker or smaller slowly" if value < before[name] else "Gets stronger or larger slowly"
    return "Changes slowly"


def _returns(scheduled: ScheduledEnv) -> bool:
    """Whether the last phase has the values of the first one."""
    phases = scheduled.phases(MOST_CURVES)
    return len(phases) > 2 and scheduled.timeline.values(phases[-1].start) == scheduled.timeline.values(0)


def _times(schedule: Schedule) -> str:
    unit = {"episode": "episode", "step": "step", "episode_step": "step of the episode"}[schedule.clock]
    words = []
    for drift in schedule.drifts[:MOST_CURVES]:
        when = f"at {unit} {drift.at}" if drift.at is not None else "from the start"
        if drift.every is not None:
            when = f"every {drift.every} {unit}s"
        elif drift.rate is not None:
            when = f"with probability {drift.rate:g} at each {unit}"
        if drift.jitter:
            when += f", up to {drift.jitter} earlier or later"
        how = {"sudden": "", "incremental": f", over {drift.over}", "gradual": f", drawn over {drift.over}"}[drift.kind]
        undone = "" if drift.duration is None else f", for {drift.duration}"
        words.append(f"`{drift.name}` {when}{how}{undone}")
    rest = len(schedule.drifts) - len(words)
    return "; ".join(words) + (f"; and {rest} more drifts" if rest else "")


def _draw(scheduled: ScheduledEnv, curves: Sequence[KnobSeries], stop: int) -> str:
    """Curves with their labels, phases and first ticks."""
    changing = [one for one in curves if len(set(one.values)) > 1] or list(curves)
    shown, top, parts = changing[:MOST_CURVES], 18.0, []
    for curve in shown:
        height = 40 if curve.is_numeric else 18
        parts.append(_label(curve.label, top + height / 2))
        parts += _curve(curve, LEFT, top, WIDTH, height, with_numbers=True)
        top += height + 8
    if hidden := len(changing) - len(shown):
        parts.append(_label(f"and {hidden} more", top + 6))
        top += 18
    free = -1.0
    for phase in scheduled.timeline.phases(stop):
        x = LEFT + WIDTH * phase.start / stop
        parts.append(f'<path class="phase" d="M{x:.1f} 14V{top:.1f}"/>')
        if x >= free:
            parts.append(f'<text x="{x + 2:.1f}" y="11">{escape(phase.id)}</text>')
            parts.append(f'<text x="{x + 2:.1f}" y="{top + 12:.1f}">{phase.start}</text>')
            free = x + 7 * max(len(phase.id), 4) + 8
    unit = {"episode": "episode", "step": "step", "episode_step": "step of the episode"}[scheduled.schedule.clock]
    parts.append(f'<text class="name" x="{LEFT - 8}" y="{top + 12:.1f}">{unit}</text>')
    return _svg(LEFT + WIDTH + 60, top + 18, "sketch", parts)


def _draw_small(curves: Sequence[KnobSeries]) -> str:
    """The first curve that changes, or the first of all, without words."""
    shown = [one for one in curves if len(set(one.values)) > 1] or curves
    return _svg(SMALL, 26, "sketch small", _curve(shown[0], 1, 3, SMALL - 2, 20)) if shown else ""


def _label(text: str, y: float) -> str:
    short = text if len(text) < 25 else f"{text[:23]}…"
    return f'<text class="name" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(short)}</text>'


def _curve(
    curve: KnobSeries, left: float, top: float, width: float, height: float, with_numbers: bool = False
) -> Iterator[str]:
    """A line of numbers, or bars of other values."""
    values = curve.values
    each = width / len(values)
    starts = [index for index, value in enumerate(values) if not index or value != values[index - 1]]
    if not curve.is_numeric:
        order = {value: index for index, value in enumerate(dict.fromkeys(values))}
        for start, stop in zip(starts, [*starts[1:], len(values)], strict=True):
            colour = COLOURS[order[values[start]] % len(COLOURS)]
            yield (
                f'<rect x="{left + start * each:.1f}" y="{top:.1f}" width="{(stop - start) * each:.1f}" '
                f'height="{height}" fill="{colour}"/>'
            )
        return
    low, high = min(values), max(values)
    scale = (height - 4) / (high - low) if high > low else 0
    heights = {value: top + height - 2 - (value - low) * scale for value in set(values)}
    path = f"M{left:.1f} {heights[values[0]]:.1f}"
    for start in starts[1:]:
        path += f"H{left + start * each:.1f}V{heights[values[start]]:.1f}"
    yield f'<path class="curve" d="{path}H{left + width:.1f}"/>'
    if with_numbers:
        for value in dict.fromkeys((low, high)):
            yield f'<text x="{left + width + 6:.1f}" y="{heights[value] + 4:.1f}">{value:.4g}</text>'


def _svg(width: float, height: float, style: str, parts: Iterable[str]) -> str:
    return (
        f'<svg class="{style}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def section(one: Shipped) -> Iterator[str]:
    """A schedule on the page of its environment, in Markdown."""
    _, kind, _, table, loss, _ = read_table()[one.name]
    yield f"### {one.name} {{ #{one.anchor} }}"
    yield ""
    yield one.text
    yield ""
    yield one.drawing
    yield ""
    facts: list[Any] = [one.kind, kind if kind != "control" else "", one.times]
    facts += [f"changes {table} of the table", f"loss {loss}"] if table else []
    yield ". ".join(str(fact) for fact in facts if fact) + "."
    yield ""


def page() -> str:
    """The page of all schedules by kind, in Markdown."""
    lines = [
        "# Shipped schedules",
        "All schedules of the package, by what they do. `gym.make(ID, schedule=NAME)` plays one; a name leads to its",
        "times and costs on the page of its environment. [The format](schedules.md) is for schedules of your own.",
    ]
    for kind, meaning in KINDS.items():
        found = [one for one in read_shipped() if one.kind == kind]
        if found:
            lines += [
                "",
                f"## {kind}",
                meaning,
                "",
                "| schedule | what it drives, over time | in words |",
                "|---|---|---|",
            ]
            lines += [
                f"| [`{one.name}`](environments/{one.env_id}.md#{one.anchor}) | {one.small} | {one.text} |"
                for one in found
            ]
    return "\n".join(lines) + "\n"
