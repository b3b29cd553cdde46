"""What all ids can have around their environment.

* `WrapperOptions` - news in `info`, texts, pictures that tell the truth
"""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym

from drift_envs.oracle import make_oracle
from drift_envs.wrappers.drift import DriftWrapper, Source
from drift_envs.wrappers.internal import mark_internal
from drift_envs.wrappers.overlay.overlay import DriftOverlay, ScreenWindow
from drift_envs.wrappers.text import TextObservation


class WrapperOptions(NamedTuple):
    """What all ids can have around their environment.

    Args:
        notify: what `info["drift"]` tells.
        text: whether the world is one of text.
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        overlay: whether pictures tell the truth; by default those of `human` do.
    """

    notify: str
    text: bool
    render_mode: str | None
    overlay: bool | None

    def has_overlay(self, schedule: Source) -> bool:
        """Whether pictures tell the truth.

        Args:
            schedule: the schedule; without one there is nothing to tell.
        """
        wanted = self.render_mode == "human" if self.overlay is None else self.overlay
        return wanted and schedule is not None and self.render_mode is not None

    def base_mode(self, schedule: Source) -> str | None:
        """How the innermost environment renders: a window with an overlay shows pictures, it is not drawn directly.

        Args:
            schedule: the schedule.
        """
        return "rgb_array" if self.render_mode == "human" and self.has_overlay(schedule) else self.render_mode

    def wrap(self, env: gym.Env, schedule: Source) -> gym.Env:
        """The environment inside the wrappers of this package.

        Args:
            env: the innermost environment.
            schedule: its schedule.
        """
        world: gym.Env = mark_internal(DriftWrapper(env, schedule, make_oracle, self.notify))
        if self.has_overlay(schedule):
            world = mark_internal(DriftOverlay(world))
            if self.render_mode == "human":
                world = mark_internal(ScreenWindow(world))
        return mark_internal(TextObservation(world)) if self.text else world
