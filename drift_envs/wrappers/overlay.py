"""The truth drawn under a picture, for people who watch: a strip with phase, time, score and changes, and marks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import HumanRendering

from drift_envs.checks import check_reward
from drift_envs.drawing import cut_text, load_pygame, open_font
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.registration import parts_of
from drift_envs.schedule import NEVER, Phase, Timeline
from drift_envs.wrappers.drift import find_drift
from drift_envs.wrappers.internal import InternalWrapper

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

TRAIL = (200, 90, 0)
CHANGED = (200, 30, 90)
GHOST = (90, 100, 110)

MOST = 200
"""The largest number of points of a trail."""


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
        >>> from drift_envs import DriftWrapper
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
        drift = find_drift(env)
        if drift is None:
            raise ArgumentError(f"`env` should have a `DriftWrapper` in it. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._drift = drift
        parts = parts_of(env)
        self._marks: Marks = Marks() if parts is None or parts.marks is None else parts.load("marks")(env.unwrapped)
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

    Example:
        >>> show_value(0.00081), show_value(("red", "yellow")), show_value(None)
        ('0.00081', 'red and yellow', 'default')
    """
    if isinstance(value, tuple):
        return " and ".join(map(str, value)) or "nothing"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "default" if value is None else str(value)
    return f"{value:.4g}"


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


class Marks:
    """What `DriftOverlay` draws on pictures and counts as score: nothing, and the sum of rewards."""

    def begin(self) -> None:
        """An episode has begun."""

    def note(self, action: Any) -> None:
        """A step was made."""

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition, for the strip under the picture.

        Args:
            before: the score before it.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return before + reward

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        return picture


class DrawnMarks(Marks, ABC):
    """Marks that a subclass draws on the picture with pygame."""

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks."""
        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
        self._draw_on(surface, old)
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))

    @abstractmethod
    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        """Draw the marks on a surface of pygame."""
