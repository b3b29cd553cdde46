"""The strip under a picture: two lines of text, and the schedule with the present tick.

* `draw_strip` - the strip as a picture
* `blocks` - the phases around a tick, and where they stand
* `STRIP` - its height
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_envs.drawing import cut_text, load_pygame, open_font
from drift_envs.schedule import NEVER, Phase, Timeline

LINE = 18
"""Height of a line of text, in pixels."""

MARGIN = 3
BAR = 16
"""Height of the schedule, in pixels."""

STRIP = 2 * LINE + BAR + 3 * MARGIN
"""Height of the strip, in pixels."""

INK, PAPER = (235, 235, 235), (32, 36, 44)
PHASES = ((66, 78, 98), (84, 98, 120))
"""Phases take turns with these two, so that neighbours differ."""

PRESENT = (40, 96, 160)
NEEDLE = (255, 210, 63)
LETTERS, SMALLEST, NAMES = 12, 10, 10
"""Sizes of letters, in pixels: of lines, of lines at which they are cut rather than made smaller, of phases' names."""

AROUND = 2
"""Phases shown before and after the present one."""

TAIL = 20
"""Ticks shown of a phase that never ends, behind the present one."""


class PhaseBlock(NamedTuple):
    """A phase and where it stands.

    Args:
        phase: the phase.
        left: where it begins, as a share of the width.
        right: where it ends.
        is_present: whether it holds the present tick.
    """

    phase: Phase
    left: float
    right: float
    is_present: bool


def blocks(timeline: Timeline, tick: int) -> tuple[tuple[PhaseBlock, ...], float]:
    """The phases around a tick, and where the tick stands between them.

    Args:
        timeline: the timeline.
        tick: the present tick.

    Returns:
        The blocks from left to right, and the place of the tick as a share of the width.
    """
    shown = [timeline.phase(tick)]
    for _ in range(AROUND):
        if shown[0].start > 0:
            shown.insert(0, timeline.phase(shown[0].start - 1))
        if shown[-1].stop < NEVER:
            shown.append(timeline.phase(shown[-1].stop))
    begin, last = shown[0].start, shown[-1]
    end = last.stop if last.stop < NEVER else max(last.start, tick) + TAIL
    width = end - begin
    found = tuple(
        PhaseBlock(
            phase,
            (phase.start - begin) / width,
            (min(phase.stop, end) - begin) / width,
            phase.start <= tick < phase.stop,
        )
        for phase in shown
    )
    return found, (tick + 0.5 - begin) / width


def draw_strip(width: int, lines: Sequence[str], timeline: Timeline, tick: int) -> np.ndarray:
    """The strip as a picture.

    Args:
        width: how wide, in pixels.
        lines: two lines of text; they are made smaller if they do not fit, and cut in the end. The first one begins
            with the phase, which is left out before the line is cut, since the bar shows it.
        timeline: the schedule.
        tick: the present tick.

    Returns:
        An array of shape `(STRIP, width, 3)`.

    Raises:
        MissingDependencyError: without pygame.
    """
    pygame = load_pygame()
    strip = pygame.Surface((width, STRIP))
    strip.fill(PAPER)
    top, left, across = 2 * LINE + MARGIN, 2 * MARGIN, width - 4 * MARGIN
    first, second = lines
    if open_font(SMALLEST).size(first)[0] > across:
        first = first.partition(", ")[2]
    for number, line in enumerate((first, second)):
        strip.blit(_write(line, across), (left, MARGIN + number * LINE + 1))
    shown, needle = blocks(timeline, tick)
    for block in shown:
        x, end = left + round(block.left * across), left + round(block.right * across)
        colour = PRESENT if block.is_present else PHASES[block.phase.index % 2]
        pygame.draw.rect(strip, colour, (x, top, max(end - x - 1, 1), BAR))
        font = open_font(NAMES)
        if font.size(block.phase.id)[0] <= end - x - 9:
            strip.blit(font.render(block.phase.id, True, INK), (x + 7, top + 2))  # beside the needle
    x = left + round(needle * across)
    pygame.draw.polygon(strip, NEEDLE, [(x - 4, top + BAR + MARGIN), (x + 4, top + BAR + MARGIN), (x, top + BAR - 4)])
    pygame.draw.line(strip, NEEDLE, (x, top), (x, top + BAR))
    return np.transpose(pygame.surfarray.array3d(strip), (1, 0, 2))


def _write(text: str, width: int) -> Any:
    """A line of text, in the largest letters in which it fits."""
    fonts = [open_font(size) for size in range(LETTERS, SMALLEST - 1, -1)]
    font = next((font for font in fonts if font.size(text)[0] <= width), fonts[-1])
    return font.render(cut_text(font, text, width), True, INK)
