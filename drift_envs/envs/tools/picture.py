"""The desk as a picture, with pygame, which only `render` needs: calls on the left, what was looked up on the right.

* `draw_desk_picture` - an episode as an RGB array
* `write_lines` - lines of text on a picture
* `WIDTH`, `HEIGHT` - its size in pixels
* `MARKS_TOP` - where the place for marks begins
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drift_envs.drawing import cut_text, load_pygame, open_font, wrap_text
from drift_envs.envs.tools.episode import DeskEpisode
from drift_envs.envs.tools.operations import CREDIT

WIDTH, HEIGHT = 960, 720
MARKS_TOP = 640

_PAPER, _INK, _FAINT, _CALL, _PANEL = (250, 248, 244), (40, 40, 46), (120, 120, 128), (28, 94, 140), (255, 255, 255)
_GAP, _LINE, _TOP, _MIDDLE = 10, 18, 96, 480
_REQUEST = 14
"""The letters of the request, in pixels."""
_CHARACTERS = 58
"""The length of a line in a panel."""
_FIELDS = ("street", "city", "status", "declined", "reason", "refunds", "sent", "shipment", "exists", "date")


def draw_desk_picture(episode: DeskEpisode) -> NDArray[np.uint8]:
    """Draw the desk: the request, the calls, and the records that were looked up as they are now.

    Args:
        episode: the episode.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    pygame = load_pygame()
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_PAPER)
    for left in (_GAP, _MIDDLE):
        pygame.draw.rect(surface, _PANEL, (left, _TOP, _MIDDLE - 2 * _GAP, MARKS_TOP - _TOP - _GAP), border_radius=6)
    request = wrap_text(open_font(_REQUEST), f"Request: {episode.request.text}", WIDTH - 4 * _GAP)
    write_lines(surface, request, 10, _INK, size=_REQUEST, step=20)
    for left, title in ((2 * _GAP, "Calls"), (_MIDDLE + _GAP, "Records that were looked up; * written")):
        write_lines(surface, [title], _TOP - _LINE, _FAINT, left=left)
    room = (MARKS_TOP - _TOP - 2 * _GAP) // _LINE
    calls = [
        line
        for call in episode.calls
        for line in textwrap.wrap(_call_words(call), _CHARACTERS, subsequent_indent="   ")
    ]
    answer = textwrap.wrap(f"answer: {json.dumps(episode.answer)}", _CHARACTERS)[:6]
    write_lines(surface, calls[-(room - len(answer) - 1) :], _TOP + _GAP, _CALL)
    below = MARKS_TOP - 2 * _GAP - _LINE * len(answer)
    pygame.draw.line(surface, _PAPER, (2 * _GAP, below - 6), (_MIDDLE - 2 * _GAP, below - 6), 2)
    write_lines(surface, answer, below, _INK)
    write_lines(surface, _record_lines(episode)[:room], _TOP + _GAP, _INK, left=_MIDDLE + _GAP)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


def write_lines(
    surface: Any,
    lines: list[str],
    top: int,
    ink: tuple[int, int, int],
    left: int = 2 * _GAP,
    size: int = 12,
    step: int = _LINE,
) -> None:
    """Write lines of text on a picture.

    Args:
        surface: a surface of pygame.
        lines: the lines.
        top: the upper edge of the first one.
        ink: their colour.
        left: their left edge.
        size: the size of the font.
        step: from one line to the next, in pixels.
    """
    font = open_font(size)
    for number, line in enumerate(lines):
        shown = cut_text(font, line, WIDTH - left - _GAP)
        surface.blit(font.render(shown, True, ink), (left, top + step * number))


def _call_words(text: str) -> str:
    call = json.loads(text)
    return f"{call['tool']}({', '.join(f'{name}={value}' for name, value in call['arguments'].items())})"


def _record_lines(episode: DeskEpisode) -> list[str]:
    """The records that were looked up, with the fields that a write has changed."""
    database, changes = episode.desk.database, dict(episode.state.changes)
    lines = []
    for key in sorted(episode.state.seen | {key for key, _ in changes}):
        record = database.records[key]
        name = record.get("name") or record.get("label") or record.get("status") or record.get("date") or ""
        changed = [f"{field} {_write(episode, changes[key, field])}" for field in _FIELDS if (key, field) in changes]
        lines += textwrap.wrap(
            f"{episode.desk.interface.show_key(key)} {name}{'  *  ' if changed else ''}{', '.join(changed)}",
            _CHARACTERS,
            subsequent_indent="   ",
        )
    return lines


def _write(episode: DeskEpisode, value: Any) -> str:
    """A value that was written: refunds and parcels are pairs of an id and a number or a word."""
    if not isinstance(value, tuple):
        return str(value)
    show = episode.desk.interface.show_key
    return ", ".join(
        f"{one / 100:.2f} to {'store credit' if key == CREDIT else show(key)}"
        if isinstance(one, int)
        else f"{show(key)} {one}"
        for key, one in value
    )
