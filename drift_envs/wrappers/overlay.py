"""The truth drawn under a picture, for people who watch: a strip with phase, time, score and changes, and marks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import HumanRendering

from drift_envs.checks import check_reward, check_single
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.registration import parts_of
from drift_envs.schedule import NEVER, Phase, Timeline
from drift_envs.show.drawing import cut_text, load_pygame, open_font
from drift_envs.wrappers.drift import find_drift
from drift_envs.wrappers.effects import Effects
from drift_envs.wrappers.internal import InternalWrapper, layers

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

INDENT = 7
"""Pixels from the left edge of a phase to its name, beside the needle."""

AROUND, NARROW = 2, 400
"""Phases shown before and after the present one, and the width below which it is one, whose name has room then."""

TAIL = 20
"""Ticks shown of a phase that never ends, behind the present one."""

TRAIL = (200, 90, 0)
CHANGED = (200, 30, 90)
GHOST = (90, 100, 110)
FORCE = (11, 60, 111)

REACH = 70
"""Pixels of the arrow of an environment's usual force."""

MOST = 200
"""The largest number of points of a trail."""


class DriftOverlay(InternalWrapper, RecordConstructorArgs):
    """Draws the true drift state on every frame: a strip under it, and marks on it.

    The strip has phase, episode, step and score, what changed, and the schedule with the present
    tick, which is the episode or the step, as the clock counts. On the lake tiles that changed have a
    frame, old holes are dashed rings, and a line shows the agent's way; on cars and
    carts an arrow shows the force as it is, a grey one that of the phase before, and on the hill a dashed
    pole shows where the flag was. In the shop an advertisement's right
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
        check_single(env)
        drift = find_drift(env)
        if drift is None:
            raise ArgumentError(f"`env` should have a `DriftWrapper` in it. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._drift = drift
        self._effects = next((layer for layer in layers(env) if isinstance(layer, Effects)), None)
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
        self._marks.note(action if self._effects is None else self._effects.carried_out)
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
        score = ", ".join(f"{one:.4g}" for one in np.ravel(self._score))
        first = f"phase {state.phase}, {time}, score {score}"
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


def draw_strip(width: int, lines: Sequence[str], timeline: Timeline, tick: int) -> np.ndarray:
    """The strip as a picture.

    Args:
        width: how wide, in pixels.
        lines: two lines of text; they are made smaller if they do not fit, and cut in the end. The first one begins
            with the phase, which is left out before the line is cut if the bar shows its whole name.
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
    font, x = open_font(NAMES), float(left)
    for phase, ticks, share in _share_bar(timeline, tick, AROUND if width >= NARROW else 1):
        end = x + share * across
        is_present, room = phase.start <= tick < phase.stop, round(end - x) - INDENT - 2
        colour = PRESENT if is_present else PHASES[phase.index % 2]
        pygame.draw.rect(strip, colour, (round(x), top, max(round(end) - round(x) - 1, 1), BAR))
        strip.blit(font.render(cut_text(font, phase.id, room), True, INK), (round(x) + INDENT, top + 2))
        if is_present:
            needle = round(x + (end - x) * (tick + 0.5 - phase.start) / ticks)
            if font.size(phase.id)[0] <= room and open_font(SMALLEST).size(first)[0] > across:
                first = first.partition(", ")[2]
        x = end
    for number, line in enumerate((first, second)):
        strip.blit(_write(line, across), (left, MARGIN + number * LINE + 1))
    foot = top + BAR + MARGIN
    pygame.draw.polygon(strip, NEEDLE, [(needle - 4, foot), (needle + 4, foot), (needle, top + BAR - 4)])
    pygame.draw.line(strip, NEEDLE, (needle, top), (needle, top + BAR))
    return np.transpose(pygame.surfarray.array3d(strip), (1, 0, 2))


def _share_bar(timeline: Timeline, tick: int, around: int) -> Iterator[tuple[Phase, int, float]]:
    """The phases around a tick, with the ticks shown of each, and their shares of the bar's width.

    Half of the width is in proportion to time, the other half equal, so that a short phase has room for its name.

    Args:
        timeline: the schedule.
        tick: the present tick.
        around: phases before and after the present one.
    """
    shown = [timeline.phase(tick)]
    for _ in range(around):
        if shown[0].start > 0:
            shown.insert(0, timeline.phase(shown[0].start - 1))
        if shown[-1].stop < NEVER:
            shown.append(timeline.phase(shown[-1].stop))
    last = shown[-1]
    end = last.stop if last.stop < NEVER else max(last.start, tick) + TAIL
    for phase in shown:
        ticks = min(phase.stop, end) - phase.start
        yield phase, ticks, (ticks / (end - shown[0].start) + 1 / len(shown)) / 2


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
        """A step was made.

        Args:
            action: the one that was carried out, where an effect exchanges or delays actions.
        """

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


class ForceMarks(DrawnMarks):
    """An arrow for the force of the last action, and a grey one for that of the phase before if it differs.

    Args:
        env: the innermost environment.
    """

    knob: ClassVar[str]
    """The knob of the force."""
    usual: ClassVar[float]
    """The force whose arrow has the length `REACH`."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self._push = 0.0

    def begin(self) -> None:
        """No force acts."""
        self._push = 0.0

    def note(self, action: Any) -> None:
        """Store the push."""
        self._push = self._push_of(action)

    @abstractmethod
    def _push_of(self, action: Any) -> float:
        """The part of the force that an action uses, from -1 (to the left) to 1."""

    def _draw_forces(self, surface: Any, place: tuple[float, float], old: Mapping[str, Value] | None) -> None:
        """Draw both arrows, that of the phase before above the other.

        Args:
            surface: pygame's.
            place: where the present force begins, in pixels.
            old: the knobs of the phase before; `None` in the first one.
        """
        x, y = place
        force = float(getattr(self.env, self.knob))
        before = force if old is None else float(old.get(self.knob, force))  # type: ignore[arg-type]
        if before != force:
            _draw_arrow(surface, (x, y - 16), self._push * before / self.usual, GHOST)
        _draw_arrow(surface, (x, y), self._push * force / self.usual, FORCE)


def _draw_arrow(surface: Any, place: tuple[float, float], force: float, colour: tuple[int, int, int]) -> None:
    """Draw a horizontal arrow, which ends at the edge of the picture if it is longer.

    Args:
        surface: pygame's.
        place: where it begins.
        force: its length, in `REACH`; nothing is drawn at 0.
        colour: its colour.
    """
    if not force:
        return
    pygame = load_pygame()
    x, y = place
    tip, side = min(max(x + REACH * force, 0), surface.get_width()), 1 if force > 0 else -1
    pygame.draw.line(surface, colour, (x, y), (tip - 8 * side, y), 5)
    pygame.draw.polygon(surface, colour, [(tip, y), (tip - 12 * side, y - 8), (tip - 12 * side, y + 8)])
