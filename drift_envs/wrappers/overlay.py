"""The truth drawn under a picture, for people who watch.

* `DriftOverlay` - adds a strip with phase, tick and what changed
* `Window` - shows the pictures of a world on the screen
* `describe_change`, `show_value` - one knob's change in a few words
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import HumanRendering

from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.knobs import Value
from drift_envs.wrappers.built_in import BuiltIn, layers
from drift_envs.wrappers.drift import DriftWrapper

LINE = 18
"""Height of a line of text, in pixels."""

MARGIN = 3
STRIP = 2 * LINE + 2 * MARGIN
"""Height of the strip, in pixels."""

INK, PAPER = (235, 235, 235), (32, 36, 44)


class DriftOverlay(BuiltIn, RecordConstructorArgs):
    """Adds a strip with phase, tick and what changed under every picture.

    It tells the truth, so that pictures with it are for people, not for agents. With `ansi` the two
    lines stand above the text. Other pictures stay as they are.

    Args:
        env: a world with a `DriftWrapper` in it.

    Raises:
        ArgumentError: if there is no `DriftWrapper` in it.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> schedule = {"version": 1, "name": "b", "drifts": [{"at": 1, "set": {"slip": 0.5}}]}
        >>> lake = FrozenLake("rgb_array", is_slippery=False, show_prob=False)
        >>> env = DriftOverlay(DriftWrapper(lake, schedule))
        >>> _ = env.reset(seed=0), env.reset()
        >>> env.lines()
        ('phase drift-1, tick 1, episode 1', 'changed: slip 0 -> 0.5')
        >>> env.render().shape
        (298, 256, 3)
    """

    def __init__(self, env: gym.Env) -> None:
        drift = next((layer for layer in layers(env) if isinstance(layer, DriftWrapper)), None)
        if drift is None:
            raise ArgumentError(f"`env` should have a `DriftWrapper` in it. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._drift = drift

    def lines(self) -> tuple[str, str]:
        """What the strip says."""
        drift = self._drift
        state, phase, timeline = drift.drift_state, drift.phase, drift.timeline
        first = f"phase {state.phase}, tick {state.tick}, episode {state.episode}"
        if phase.start == 0:
            return first, "nothing has changed yet" if phase.index == 0 else ""
        old, new = timeline.values(phase.start - 1), timeline.values(state.tick)
        changes = [describe_change(name, old[name], new[name]) for name in timeline.names if old[name] != new[name]]
        return first, f"changed: {', '.join(changes)}" if changes else "nothing differs from the phase before"

    def render(self) -> Any:
        """The picture with its strip."""
        picture = self.env.render()
        if isinstance(picture, str):
            return "\n".join((*self.lines(), picture))
        if not isinstance(picture, np.ndarray):
            return picture
        return np.concatenate([picture, self._strip(picture.shape[1])])

    def _strip(self, width: int) -> np.ndarray:
        """The two lines as a picture of shape `(STRIP, width, 3)`; what does not fit is cut."""
        try:
            import pygame
        except ImportError as error:
            raise MissingDependencyError(
                '`pygame` is not installed, run `pip install "gymnasium[toy-text,classic-control]"`'
            ) from error
        if not pygame.font.get_init():  # closing any environment ends all of pygame
            pygame.font.init()
        font = pygame.font.Font(None, LINE)
        strip = pygame.Surface((width, STRIP))
        strip.fill(PAPER)
        for number, line in enumerate(self.lines()):
            strip.blit(font.render(line, True, INK), (2 * MARGIN, MARGIN + number * LINE + 2))
        return np.transpose(pygame.surfarray.array3d(strip), (1, 0, 2))


class Window(BuiltIn, HumanRendering):
    """Shows the pictures of a world on the screen; pickles and copies without the window."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the window."""
        return {**self.__dict__, "window": None, "clock": None}


def describe_change(name: str, old: Value, new: Value) -> str:
    """One knob's change in a few words.

    Args:
        name: the knob.
        old: its value before.
        new: its value now.

    Example:
        >>> describe_change("force", 0.001, 0.0008)
        'force 0.001 -> 0.0008'
        >>> describe_change("map", ("SFF", "FFG"), ("SHF", "HFG"))
        'map (2 tiles)'
        >>> describe_change("sold_out", (), ("offer:0",))
        'sold_out nothing -> offer:0'
    """
    if isinstance(old, tuple) and isinstance(new, tuple) and name == "map":
        if [len(row) for row in old] != [len(row) for row in new]:
            return f"{name} ({len(old)} -> {len(new)} rows)"
        tiles = sum(one != other for one, other in zip("".join(old), "".join(new), strict=True))
        return f"{name} ({tiles} tile{'s' if tiles != 1 else ''})"
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        return ", ".join(f"{name} {key}: {show_value(old.get(key))} -> {show_value(new.get(key))}" for key in keys)
    return f"{name} {show_value(old)} -> {show_value(new)}"


def show_value(value: Value) -> str:
    """A knob's value in a few letters.

    Args:
        value: the value.

    Example:
        >>> show_value(0.00081), show_value(("red", "yellow")), show_value(None)
        ('0.00081', 'red and yellow', 'default')
    """
    if isinstance(value, tuple):
        return " and ".join(map(str, value)) or "nothing"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "default" if value is None else str(value)
    return f"{value:.4g}"
