"""Marks on pictures of the desk.

* `DeskMarks` - what a drift has changed, beside the database and the calls
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from drift_envs.drawing import load_pygame
from drift_envs.envs.tools.desk import DESK_KNOBS
from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.envs.tools.picture import MARKS_TOP, write_lines
from drift_envs.knobs import Value
from drift_envs.wrappers.overlay.marks import CHANGED, NoMarks

_LONGEST = 110


class DeskMarks(NoMarks):
    """What a drift has changed: each knob that differs from its default, with those that are new in another colour.

    Args:
        env: the desk.
    """

    def __init__(self, env: ServiceDesk) -> None:
        self.env = env

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The desk with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
        now, defaults = self.env.read_knobs(), self.env.knobs.defaults()
        names = [*DESK_KNOBS, "transient"]
        lines = [
            f"{name}: {_shorten(now[name])}{'' if old is None or old.get(name, now[name]) == now[name] else '  <- new'}"
            for name in names
            if now[name] != defaults[name] or (old is not None and old.get(name, now[name]) != now[name])
        ]
        write_lines(surface, lines, MARKS_TOP, CHANGED)
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))


def _shorten(value: Value) -> str:
    shown = ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
    return (shown or "usual")[:_LONGEST]
