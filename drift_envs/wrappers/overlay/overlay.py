"""The truth drawn under a picture, for people who watch.

* `DriftOverlay` - adds a strip with phase, time, score and what changed, and marks on the picture
* `ScreenWindow` - shows the pictures of an environment on the screen
* `describe_change`, `show_value` - one knob's change in a few words
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import HumanRendering

from drift_envs.checks import check_reward
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.internal import InternalWrapper, layers
from drift_envs.wrappers.overlay.marks import find_marks
from drift_envs.wrappers.overlay.strip import draw_strip


class DriftOverlay(InternalWrapper, RecordConstructorArgs):
    """Draws the true drift state on every frame: a strip under it, and marks on it.

    The strip has phase, episode, step and score, what changed, and the schedule with the present
    tick, which is the episode or the step, as the clock counts. On the lake tiles that changed have a
    frame, old holes are dashed rings, and a line shows the agent's way; on the hill an arrow shows the
    engine's force as it is, and a dashed pole where the flag was. In the shop an advertisement's right
    button has a frame, and so have the colours that a task's class means now. With `ansi` the lines
    stand above the text.

    It is for people, not for agents, who must not see such pictures.

    Args:
        env: an environment with a `DriftWrapper` in it.

    Raises:
        ArgumentError: if there is no `DriftWrapper` in it.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> schedule = {"version": 1, "name": "b", "drifts": [{"at": 1, "set": {"slip": 0.5}}]}
        >>> lake = FrozenLake("rgb_array", is_slippery=False, show_prob=False)
        >>> env = DriftOverlay(DriftWrapper(lake, schedule))
        >>> _ = env.reset(seed=0), env.reset()
        >>> env.lines()
        ('phase drift-1, episode 1, step 0, score 0', 'changed: slip 0 -> 0.5')
        >>> env.render().shape
        (317, 256, 3)
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        drift = next((layer for layer in layers(env) if isinstance(layer, DriftWrapper)), None)
        if drift is None:
            raise ArgumentError(f"`env` should have a `DriftWrapper` in it. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._drift = drift
        self._marks = find_marks(env)
        self._score: Any = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, its trail and its score."""
        result = self.env.reset(seed=seed, options=options)
        self._score = 0.0
        self._marks.begin()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and note where it led."""
        result = self.env.step(action)
        reward: Any = result[1]
        terminated, info = result[2], result[4]
        if "score" in info:  # that of the text form
            self._score = float(info["score"])
        else:
            # that of an environment of several objectives is a vector, and so is its score
            self._score = self._marks.score(
                self._score, reward if np.size(reward) > 1 else check_reward(reward), terminated
            )
        self._marks.note(action)
        return result

    def lines(self) -> tuple[str, str]:
        """What the strip says."""
        drift = self._drift
        state, phase, timeline = drift.drift_state, drift.phase, drift.timeline
        times = {
            "episode": f"episode {state.tick}, step {state.step}",
            "step": f"step {state.tick}, episode {state.episode}",
            "episode_step": f"episode {state.episode}, step {state.tick}",
        }
        time = times[timeline.schedule.clock]
        first = f"phase {state.phase}, {time}, score {_show_score(self._score)}"
        old = self._before()
        if old is None:
            return first, "nothing has changed yet" if phase.index == 0 else ""
        new = timeline.values(state.tick)
        changes = [describe_change(name, old[name], new[name]) for name in timeline.names if old[name] != new[name]]
        return first, f"changed: {', '.join(changes)}" if changes else "nothing differs from the phase before"

    def render(self) -> Any:
        """The picture with its marks and its strip."""
        picture = self.env.render()
        if isinstance(picture, str):
            return "\n".join((*self.lines(), picture))
        if not isinstance(picture, np.ndarray):
            return picture
        picture = _as_rgb(picture)
        drift = self._drift
        strip = draw_strip(picture.shape[1], self.lines(), drift.timeline, drift.drift_state.tick)
        return np.concatenate([self._marks.draw(picture, self._before()), strip])

    def _before(self) -> Mapping[str, Value] | None:
        """The knobs at the end of the phase before; `None` in the first one."""
        start = self._drift.phase.start
        return None if start == 0 else self._drift.timeline.values(start - 1)


def _as_rgb(picture: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A picture with three channels, also of one in grey or with a channel of opacity."""
    grey = picture[..., None] if picture.ndim == 2 else picture
    if grey.ndim != 3 or grey.shape[2] not in (1, 3, 4):
        raise ArgumentError(f"a picture should have the shape (height, width, 3). Received one of {picture.shape}")
    return np.repeat(grey, 3, axis=2) if grey.shape[2] == 1 else grey[..., :3]


def _show_score(score: Any) -> str:
    return f"{score:.4g}" if np.ndim(score) == 0 else ", ".join(f"{one:.4g}" for one in np.ravel(score))


class ScreenWindow(InternalWrapper, HumanRendering[Any, Any]):
    """Shows the pictures of an environment on the screen; pickles and copies without the window."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        env.metadata = {"render_fps": 10, **env.metadata}  # Gymnasium refuses environments that state none
        super().__init__(env)

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
