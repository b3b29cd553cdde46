"""The mountain cars with knobs, in words, and their marks on pictures."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

from drift_envs.checks import check_action, check_force, check_number
from drift_envs.envs.poison import PoisonedEnv, poison_knob, poison_rule
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.show.drawing import load_pygame
from drift_envs.wrappers.overlay import GHOST, MOST, TRAIL, ForceMarks
from drift_envs.wrappers.text import MAX_LENGTH, TEXT_CHARACTERS, write_number, write_zero

_GRAVITY = Knob("gravity", 0.0025, (0.0, 0.01), "pull of the valley, in velocity a step")
_TRANSIENT = Knob(
    "transient", 0.0, (0.0, 1.0), "probability that a step executes another action, drawn uniformly, in this step only"
)

MOUNTAIN_CAR_KNOBS = KnobTable(
    (
        Knob("force", 0.001, (-0.01, 0.01), "push of the engine, in velocity a step; negative reverses the controls"),
        _GRAVITY,
        Knob("goal_position", 0.5, (-0.3, 0.6), "position of the flag"),
        _TRANSIENT,
        poison_knob("disable the engine in a cell of position (width 0.1) and velocity (0.01)"),
    ),
    rule=poison_rule,
)

MOUNTAIN_CAR_CONTINUOUS_KNOBS = KnobTable(
    (
        Knob("power", 0.0015, (-0.01, 0.01), "push of the engine at full force; negative reverses the controls"),
        _GRAVITY,
        Knob("goal_position", 0.45, (-0.3, 0.6), "position of the flag"),
        _TRANSIENT,
        poison_knob("disable the engine in a cell of position (width 0.1) and velocity (0.01)"),
    ),
    rule=poison_rule,
)

POISON_CELL = (0.1, 0.01)
"""Position and velocity of a cell that `poison_after` counts visits of."""


class _KnobCar(PoisonedEnv):
    """Knobs, state and drawing surfaces of both cars."""

    surfaces: ClassVar[tuple[str, ...]] = ("screen", "clock", "surf")
    state_names: ClassVar[tuple[str, ...]] = ("state",)
    # Gymnasium's constructors set the knobs one by one, and each time all values are checked together.
    _force: float = 0.001  # of the discrete car
    _power: float = 0.0015  # of the continuous car
    _gravity: float = 0.0025
    _goal_position: float = 0.5
    _transient: float = 0.0
    render: Callable[[], Any]  # Gymnasium's has no annotations

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        # Called at each step of a ramp: written out, this takes half of the time of a loop with `setattr`.
        if "force" in values:
            self._force = values["force"]
        if "power" in values:
            self._power = values["power"]
        if "gravity" in values:
            self._gravity = values["gravity"]
        if "goal_position" in values:
            self._goal_position = values["goal_position"]
        if "transient" in values:
            self._transient = values["transient"]
        if "poison_after" in values:
            self._poison_after = values["poison_after"]

    def _begin_visits(self) -> None:
        """Begin an episode in the present cell, which counts when it is entered again."""
        self._clear_visits()
        self._cell = _find_cell(self.state) if self._poison_after else None

    def _is_dead(self) -> bool:
        """Whether the engine has no effect in the present cell, which is visited if it was just entered."""
        cell = _find_cell(self.state)
        if cell == self._cell:
            return self.visits.count(cell) >= self._poison_after
        self._cell = cell
        return self.visits.note(cell) >= self._poison_after

    state: Any
    _cell: tuple[int, int] | None = None

    def save_state(self) -> dict[str, Any]:
        """Position and velocity, and how often each cell was visited."""
        return {**super().save_state(), "cell": self._cell, "visits": self._save_visits()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        self.state, self._cell = state["state"], state["cell"]
        self._load_visits(state["visits"])


_LOW, _HIGH = -0.6, -0.4
"""The default bounds of the start position."""


def read_bounds(options: Mapping[str, Any] | None) -> tuple[float, float]:
    """The bounds of the start position.

    Args:
        options: of `reset`: `low` and `high`, by default -0.6 and -0.4.

    Raises:
        ArgumentError: if one is no number, or the lower one is above the other.

    Example:
        >>> read_bounds({"low": -0.5})
        (-0.5, -0.4)
    """
    given = options or {}
    low, high = (check_number(name, given.get(name, own), -1e6, 1e6) for name, own in (("low", _LOW), ("high", _HIGH)))
    if low > high:
        raise ArgumentError(f"Lower bound `low` should be at most `high`, {high:g}. Received {low:g}")
    return low, high


def _find_cell(state: Any) -> tuple[int, int]:
    return math.floor(float(state[0]) / POISON_CELL[0]), math.floor(float(state[1]) / POISON_CELL[1])


class MountainCar(_KnobCar, MountainCarEnv):
    """Gymnasium's mountain car with knobs for force, gravity, goal position and transient responses.

    With all knobs at their defaults it is bit-identical to `gymnasium`'s `MountainCarEnv`: same seed,
    same trajectory, rewards, spaces and `info`. `step` uses plain floats, which is several times faster.

    Knobs, with defaults and bounds: `drift-envs list --env DriftMountainCar-v0`.

    A false response (`transient`) is the response to one of the two other actions, each with probability
    one half. `info` does not mark it.

    In a cell of position (.1) and velocity (.01) that was entered `poison_after` times in this episode, by this
    instance or a twin, the engine has no effect. `reset` clears the counts, a twin's `reset` does not.

    | action | meaning | observation | meaning |
    |---|---|---|---|
    | 0, 1, 2 | push left, nothing, push right | `Box(2)` | position (-1.2 to 0.6), velocity (-0.07 to 0.07 a step) |

    The reward is -1 a step. `info` is empty.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        goal_velocity: minimum velocity at the flag for the episode to terminate.

    Example:
        >>> env = MountainCar()
        >>> _ = env.reset(seed=0)
        >>> env.force = -0.001
        >>> env.read_knobs()
        {'force': -0.001, 'gravity': 0.0025, 'goal_position': 0.5, 'transient': 0.0, 'poison_after': 0}
    """

    knobs: ClassVar[KnobTable] = MOUNTAIN_CAR_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftMountainCar-v0"]

    def __init__(self, render_mode: str | None = None, goal_velocity: float = 0) -> None:
        self._transient = 0.0
        self._poison_after, self._cell = 0, None  # read at each step and reset: found faster here than in the class
        MountainCarEnv.__init__(self, render_mode, goal_velocity)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in the valley at velocity 0.

        Args:
            seed: seed of the environment's generator.
            options: `low` and `high` bound the start position (defaults -0.6 and -0.4).

        Returns:
            Position and velocity, shape `(2,)`, and an empty `info`.
        """
        low, high = read_bounds(options) if options else (_LOW, _HIGH)
        gym.Env.reset(self, seed=seed)
        self.state = (float(self.np_random.uniform(low=low, high=high)), 0.0)
        if self._cell is not None or self._poison_after:
            self._begin_visits()
        if self.render_mode == "human":
            self.render()
        return np.array(self.state, dtype=np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply one push.

        Args:
            action: 0 left, 1 nothing, 2 right.

        Returns:
            Position and velocity, shape `(2,)`, the reward -1, whether the flag was reached,
            `False`, and an empty `info`.

        Raises:
            ArgumentError: if the action is not 0, 1 or 2.
        """
        if action.__class__ is not int or not 0 <= action <= 2:
            action = check_action(action, 3)
        push = action - 1
        if self._transient:
            push = self._draw_response(push)
        if self._poison_after and self._is_dead():
            push = 0
        position, velocity = self.state
        velocity += push * self._force + math.cos(3 * position) * (-self._gravity)
        if velocity > self.max_speed:
            velocity = self.max_speed
        elif velocity < -self.max_speed:
            velocity = -self.max_speed
        position += velocity
        if position > self.max_position:
            position = self.max_position
        elif position <= self.min_position:
            position = self.min_position
            if velocity < 0:
                velocity = 0.0
        self.state = (position, velocity)
        terminated = position >= self._goal_position and velocity >= self.goal_velocity
        if self.render_mode == "human":
            self.render()
        return np.array((position, velocity), dtype=np.float32), -1.0, terminated, False, {}

    def _draw_response(self, push: int) -> int:
        """Return the given push or, with probability `transient`, the push of another action."""
        chance = self.np_random.random() / self._transient
        if chance >= 1.0:
            return push
        # Below the threshold the number is again uniform in [0, 1) and selects one of the two others.
        return _OTHER_PUSHES[push][chance >= 0.5]


class MountainCarContinuous(_KnobCar, Continuous_MountainCarEnv):
    """Gymnasium's continuous mountain car with knobs for power, gravity, goal position and transient responses.

    With all knobs at their defaults it is bit-identical to `gymnasium`'s `Continuous_MountainCarEnv`,
    where gravity is a constant in the code. `step` uses plain floats, rounded where Gymnasium's expressions round;
    these roundings and the observation's array keep it from being as fast as the discrete car.

    Knobs, with defaults and bounds: `drift-envs list --env DriftMountainCarContinuous-v0`.

    A false response (`transient`) is the response to a force drawn uniformly from -1 to 1. The reward is
    computed from the given force and `info` does not mark it. `poison_after` is as for `MountainCar`.

    | action | meaning | observation | meaning |
    |---|---|---|---|
    | `Box(1)` | force, -1 to 1 | `Box(2)` | position (-1.2 to 0.6), velocity (-0.07 to 0.07 a step) |

    The reward is 100 at the flag, less a tenth of the squared force at every step. `info` is empty.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        goal_velocity: minimum velocity at the flag for the episode to terminate.

    Example:
        >>> env = MountainCarContinuous()
        >>> _ = env.reset(seed=0)
        >>> env.set_knobs({"power": 0.001, "gravity": 0.003})
        >>> env.power, env.gravity
        (0.001, 0.003)
    """

    knobs: ClassVar[KnobTable] = MOUNTAIN_CAR_CONTINUOUS_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftMountainCarContinuous-v0"]

    def __init__(self, render_mode: str | None = None, goal_velocity: float = 0) -> None:
        self._transient = 0.0
        self._poison_after, self._cell = 0, None  # read at each step and reset: found faster here than in the class
        self._gravity = 0.0025
        # what is written into them is rounded to their precision, faster than by NumPy's scalars
        self._single, self._double = array(_SINGLE, [0.0]), array("d", [0.0])
        Continuous_MountainCarEnv.__init__(self, render_mode, goal_velocity)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in the valley at velocity 0, as Gymnasium does."""
        if options:
            read_bounds(options)
        start, info = Continuous_MountainCarEnv.reset(self, seed=seed, options=options)
        if self._cell is not None or self._poison_after:
            self._begin_visits()
        return start, info

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        super().set_knobs(values)
        self._single[0] = self._power
        self._single_power = self._single[0]

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply one push.

        Args:
            action: the force, shape `(1,)`, clipped to [-1, 1].

        Returns:
            Position and velocity, shape `(2,)`, the reward, whether the flag was reached, `False`,
            and an empty `info`.

        Raises:
            ArgumentError: if the action is not a sequence of one finite number.
        """
        if action.__class__ is np.ndarray and action.dtype.char == "f" and action.shape == (1,):
            given, is_single, is_double = action.item(), True, False
        else:  # all other forms of a number; they are slower
            number = check_force(action)[0]
            given, is_single = float(number), isinstance(number, np.float32)
            is_double = isinstance(number, np.generic) and not is_single
        if not -_LARGEST < given < _LARGEST:
            raise ArgumentError(f"`action` should be a sequence of one finite number. Received {action!r}")
        cost = math.pow(given, 2) * 0.1
        force = given
        if force > self.max_action:
            force = self.max_action
        elif force < self.min_action:
            force = self.min_action
        if self._transient:
            force = self._draw_response(force)
        if self._poison_after and self._is_dead():
            force = 0.0
        if force is not given:  # a Python float, which takes the precision of what it is added to
            is_single = is_double = False
        single, double, state = self._single, self._double, self.state
        # Plain floats, rounded where Gymnasium's mixture of single and double precision rounds.
        if state.__class__ is not np.ndarray:
            state = np.array(state, float)  # set by hand
        position, velocity = state.tolist()
        own = single if state.dtype.char == "f" else double
        rounded = double if is_double else own
        own[0] = 3 * position
        pull = self._gravity * math.cos(own[0])
        if is_single:
            single[0] = force * self._single_power
            push = single[0]
            single[0] = pull
            single[0] = push - single[0]
            rounded[0] = velocity + single[0]
        else:
            rounded[0] = force * self._power - pull
            rounded[0] = velocity + rounded[0]
        velocity = rounded[0]
        # A limit is rounded before it is compared. The first comparison, with a margin, saves that in most steps.
        fastest = self.max_speed
        if not -fastest < velocity < fastest:
            limit = fastest if velocity > 0 else -fastest
            rounded[0] = limit
            if abs(velocity) > abs(rounded[0]):
                rounded = own  # the limit is a Python float too
                rounded[0] = limit
                velocity = rounded[0]
        rounded[0] = position + velocity
        position = rounded[0]
        if position >= self.max_position:
            rounded[0] = self.max_position
            position = min(position, rounded[0])
        elif position <= self.min_position + _MARGIN:
            rounded[0] = self.min_position
            position = max(position, rounded[0])
            if position == rounded[0] and velocity < 0.0:
                velocity = 0.0
        terminated = False
        if position >= self._goal_position - _MARGIN:
            rounded[0] = self._goal_position
            if position >= rounded[0]:
                rounded[0] = self.goal_velocity
                terminated = velocity >= rounded[0]
        reward = (100.0 if terminated else 0) - cost
        self.state = seen = np.array((position, velocity), _FLOAT32)
        if self.render_mode == "human":
            self.render()
        return seen, reward, terminated, False, {}

    def _draw_response(self, force: float) -> float:
        """Return the given force or, with probability `transient`, one drawn uniformly."""
        chance = self.np_random.random() / self._transient
        # Below the threshold the number is again uniform in [0, 1).
        return force if chance >= 1.0 else 2.0 * chance - 1.0


_FLOAT32 = np.dtype(np.float32)
_SINGLE = "d" if (np.float32(1.0) * 1.0).dtype == np.float64 else "f"
"""The precision of a `float32` times a Python float: double before NumPy 2."""
_LARGEST = 1e154
"""Forces below it have a finite square."""
_MARGIN = 1e-6
"""More than the rounding to single precision changes a position."""
_OTHER_PUSHES = {-1: (0, 1), 0: (-1, 1), 1: (-1, 0)}


FORCES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The forces that the continuous car's text form offers."""


class CarDescriber:
    """The words for the cars.

    Args:
        env: the car.
        actions: its admissible actions.
        meaning: what they do.
    """

    max_length = MAX_LENGTH
    characters = TEXT_CHARACTERS

    def __init__(self, env: MountainCar | MountainCarContinuous, actions: tuple[str, ...], meaning: str) -> None:
        self.env = env
        self.actions = actions
        self._meaning = meaning
        self._cached_task = ""

    def state(self, observation: np.ndarray, score: float) -> str:
        """Position and velocity with six decimals, so that a change of 0.0002 in the force stays visible.

        Args:
            observation: position and velocity, shape `(2,)`.
            score: not used.
        """
        position, velocity = observation.tolist()
        return write_zero(f'{{"position": {position:.6f}, "velocity": {velocity:.6f}}}')

    def task(self, best: float | None) -> str:
        """What to do in this valley; the position of the flag is left out, since it may move.

        Args:
            best: the highest score there is.
        """
        if not self._cached_task:
            self._cached_task = (
                "You drive a car in a valley. Its engine may be too weak to climb straight up. Reach the flag, "
                f"somewhere to the right; the valley goes from {self.env.min_position:g} to "
                f"{self.env.max_position:g}. The highest score is {write_number(best or 0.0)}, for reaching the flag. "
                f"Actions: {self._meaning}."
            )
        return self._cached_task

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """One at the flag.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode, which only the flag does.
        """
        return 1.0 if terminated else before

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """One, for reaching the flag.

        Args:
            knobs: the car's knobs.
        """
        return 1.0


def describe_car(env: MountainCar) -> CarDescriber:
    """The words for the car with three actions."""
    return CarDescriber(env, ("0", "1", "2"), "0 push left, 1 do nothing, 2 push right")


def describe_continuous_car(env: MountainCarContinuous) -> CarDescriber:
    """The words for the car with a force between -1 and 1."""
    forces = tuple(f"{force:.1f}" for force in FORCES)
    return CarDescriber(env, forces, "the force of a push, from -1.0 (full left) to 1.0 (full right)")


class CarMarks(ForceMarks):
    """Arrows for what the engine does, a ghost of a flag that has moved, and the car's trajectory.

    Args:
        env: the car.
    """

    knob: ClassVar[str] = "force"
    usual: ClassVar[float] = 0.001

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._places: list[float] = []

    def begin(self) -> None:
        """Start a new trail; no force acts."""
        super().begin()
        self._places = [float(self.env.state[0])]

    def note(self, action: Any) -> None:
        """Extend the trail, and store the push."""
        super().note(action)
        self._places = [*self._places[1 - MOST :], float(self.env.state[0])]

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """One at the flag, as in the text form."""
        return float(terminated)

    def _push_of(self, action: Any) -> float:
        return int(action) - 1

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        width, height = surface.get_size()
        flag = float(self.env.goal_position)
        before = flag if old is None else float(old.get("goal_position", flag))
        if before != flag:
            x, y = self._pixel(before, width, height)
            for part in range(0, 50, 10):
                pygame.draw.line(surface, GHOST, (x, y - part), (x, y - part - 5), 3)
        if len(self._places) > 1:
            # Above the car, where the way back does not hide the way there behind the hill's line.
            points = [(x, y - 30) for x, y in (self._pixel(place, width, height) for place in self._places)]
            pygame.draw.lines(surface, TRAIL, False, points, 3)
        x, y = self._pixel(self._places[-1], width, height)
        self._draw_forces(surface, (x, y - 50), old)

    def _pixel(self, position: float, width: int, height: int) -> tuple[float, float]:
        """Where Gymnasium draws the ground at a position."""
        scale = width / (self.env.max_position - self.env.min_position)
        ground = np.sin(3 * position) * 0.45 + 0.55
        return (position - self.env.min_position) * scale, height - ground * scale - 10


class ContinuousCarMarks(CarMarks):
    """The same for the continuous car.

    Args:
        env: the car.
    """

    knob: ClassVar[str] = "power"
    usual: ClassVar[float] = 0.0015

    def _push_of(self, action: Any) -> float:
        return float(np.clip(np.ravel(action)[0], -1, 1))
