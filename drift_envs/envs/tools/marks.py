"""Marks on pictures of the desk.

* `DeskMarks` - what a drift has changed, beside the database and the calls
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_envs.envs.tools.desk import DESK_KNOBS
from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.envs.tools.picture import MARKS_TOP, write_lines
from drift_envs.knobs import Value
from drift_envs.wrappers.overlay.marks import CHANGED, DrawnMarks

_LONGEST = 110


class DeskMarks(DrawnMarks):
    """What a drift has changed: each knob that differs from its default or from the phase before, which is marked.

    Args:
        env: the desk.
    """

    def __init__(self, env: ServiceDesk) -> None:
        self.env = env

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        now, defaults = self.env.read_knobs(), self.env.knobs.defaults()
        lines = []
        for name in (*DESK_KNOBS, "transient"):
            is_new = old is not None and old.get(name, now[name]) != now[name]
            if is_new or now[name] != defaults[name]:
                lines.append(f"{name}: {_shorten(now[name])}{'  <- new' if is_new else ''}")
        write_lines(surface, lines, MARKS_TOP, CHANGED)


def _shorten(value: Value) -> str:
    shown = ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
    return (shown or "usual") if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
