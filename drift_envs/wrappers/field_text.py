"""Text descriptions of worlds whose state is a list of numbers: classic control and MuJoCo.

* `FieldText` - fields, actions, aim and score of one world
* `FIELD_TEXTS` - those of every world that has a text form, by the name of its class
* `FieldDescriber` - the words for such a world
* `find_field_text` - the row for an environment
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value

SCORE = "score"
"""The last field of a state: the score so far, so that what a single step pays can be read."""

Numbers = Sequence[float]


def _same(numbers: Numbers) -> list[float]:
    return list(numbers)


class FieldText(NamedTuple):
    """Fields, actions, aim and score of one world.

    The score of a step is (reward + offset) / scale, or 1 for a step that ends the episode at a goal.

    Args:
        fields: the names of the numbers, angles in radians from -pi to pi.
        actions: the admissible actions, as text.
        aim: what to do, and when an episode ends.
        meaning: what the actions do.
        scale: divides rewards.
        offset: added to the reward of each step.
        best: the highest score; `None` if it is not known.
        ends_at_goal: whether the score is 1 at a goal, and 0 before.
        to_fields: the numbers of an observation.
        to_observation: the observation that shows these numbers.
    """

    fields: tuple[str, ...]
    actions: tuple[str, ...]
    aim: str
    meaning: str
    scale: float
    offset: float = 0.0
    best: float | None = None
    ends_at_goal: bool = False
    to_fields: Callable[[Numbers], list[float]] = _same
    to_observation: Callable[[Numbers], list[float]] = _same

    def read(self, state: str) -> tuple[list[float], float]:
        """The observation and the score that a text shows.

        Args:
            state: a state as text.

        Raises:
            ArgumentError: if the text is no state of this world.
        """
        try:
            data = json.loads(state)
            numbers, score = [float(data[field]) for field in self.fields], float(data[SCORE])
        except (ValueError, TypeError, KeyError):
            numbers, score = [], math.nan
        if not all(map(math.isfinite, (*numbers, score))):
            raise ArgumentError(
                f"`state` should be a JSON object with the numbers {', '.join((*self.fields, SCORE))}. "
                f"Received {state[:200]!r}"
            )
        return self.to_observation(numbers), score

    def pay(self, reward: float, terminated: bool) -> float:
        """What a step adds to the score.

        Args:
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return float(terminated) if self.ends_at_goal else (reward + self.offset) / self.scale


def _pendulum_fields(seen: Numbers) -> list[float]:
    cosine, sine, velocity = seen
    return [math.atan2(sine, cosine), velocity]


def _pendulum_observation(numbers: Numbers) -> list[float]:
    angle, velocity = numbers
    return [math.cos(angle), math.sin(angle), velocity]


def _acrobot_fields(seen: Numbers) -> list[float]:
    cos1, sin1, cos2, sin2, *velocities = seen
    return [math.atan2(sin1, cos1), math.atan2(sin2, cos2), *velocities]


def _acrobot_observation(numbers: Numbers) -> list[float]:
    one, other, *velocities = numbers
    return [math.cos(one), math.sin(one), math.cos(other), math.sin(other), *velocities]


def _reacher_fields(seen: Numbers) -> list[float]:
    cos1, cos2, sin1, sin2, *rest = seen
    return [math.atan2(sin1, cos1), math.atan2(sin2, cos2), *rest[:4]]


def _reacher_observation(numbers: Numbers) -> list[float]:
    """The way to the target, the last two numbers of an observation, follows from the others."""
    one, other, target_x, target_y, *velocities = numbers
    x = 0.1 * math.cos(one) + 0.11 * math.cos(one + other)
    y = 0.1 * math.sin(one) + 0.11 * math.sin(one + other)
    cosines, sines = [math.cos(one), math.cos(other)], [math.sin(one), math.sin(other)]
    return [*cosines, *sines, target_x, target_y, *velocities, x - target_x, y - target_y]


def _vectors(*choices: Numbers) -> tuple[str, ...]:
    """Every combination of one number of each list, as text."""
    return tuple(json.dumps([float(number) for number in one]) for one in product(*choices))


_LIMBS = ("back_thigh", "back_shin", "back_foot", "front_thigh", "front_shin", "front_foot")
_LEGS = tuple(
    json.dumps([float(back)] * 3 + [float(front)] * 3) for back in (-1, 0, 1) for front in (-1, 0, 1)
)  # each leg's three actuators as one
_PENDULUM_COST = math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2

FIELD_TEXTS = {
    "CartPole": FieldText(
        ("cart_position", "cart_velocity", "pole_angle", "pole_velocity"),
        ("0", "1"),
        "A pole stands on a cart. Keep it upright: each step pays, and the episode ends when the pole leans by more "
        "than 0.2095 or the cart is farther than 2.4 from the middle.",
        "0 and 1 push the cart with the same force to opposite sides",
        500.0,
        best=1.0,
    ),
    "Acrobot": FieldText(
        ("angle_1", "angle_2", "velocity_1", "velocity_2"),
        ("0", "1", "2"),
        "Two links of length 1 hang from a pivot, with a motor at the joint between them. Swing the tip to a height of "
        "1 above the pivot. `angle_1` is that of the upper link, 0 where it hangs down; `angle_2` is that of the lower "
        "link relative to the upper one.",
        "torques of the motor to one side, none, and to the other side",
        1.0,
        best=1.0,
        ends_at_goal=True,
        to_fields=_acrobot_fields,
        to_observation=_acrobot_observation,
    ),
    "Pendulum": FieldText(
        ("angle", "angular_velocity"),
        ("-2.0", "-1.0", "0.0", "1.0", "2.0"),
        "A pendulum with a motor at its pivot, too weak to lift it at once; `angle` is 0 where it stands upright. Each "
        "step pays by angle, velocity and torque.",
        "the torque of the motor, from -2.0 to 2.0",
        2 * _PENDULUM_COST * 200,
        _PENDULUM_COST,
        best=0.5,
        to_fields=_pendulum_fields,
        to_observation=_pendulum_observation,
    ),
    "InvertedPendulum": FieldText(
        ("slider_position", "pole_angle", "slider_velocity", "pole_velocity"),
        ("-3.0", "-1.0", "0.0", "1.0", "3.0"),
        "A pole stands on a slider. Each step is paid, and the episode ends when the pole leans by more than 0.2.",
        "the force on the slider, from -3.0 to 3.0",
        1000.0,
        best=1.0,
    ),
    "Reacher": FieldText(
        ("joint_1", "joint_2", "target_x", "target_y", "joint_velocity_1", "joint_velocity_2"),
        _vectors((-0.3, 0, 0.3), (-0.3, 0, 0.3)),
        "An arm of two links, of 0.1 and 0.11 in length, turns about the origin; a target is seen. Each step costs the "
        "distance of the tip from the point that pays, and the squares of the torques.",
        "the torques of both joints",
        50.0,
        1.0,
        best=1.0,
        to_fields=_reacher_fields,
        to_observation=_reacher_observation,
    ),
    "HalfCheetah": FieldText(
        (
            *("height", "pitch", *_LIMBS),
            *("velocity_x", "velocity_z", "velocity_pitch", *(f"velocity_{limb}" for limb in _LIMBS)),
        ),
        _LEGS,
        "A runner with two legs. Speed along the ground is paid, torques cost.",
        "the torques of the three joints of the back leg and of the front leg",
        1000.0,
    ),
    "Hopper": FieldText(
        (
            *("height", "pitch", "thigh", "leg", "foot"),
            *("velocity_x", "velocity_z", "velocity_pitch", "velocity_thigh", "velocity_leg", "velocity_foot"),
        ),
        ("[0.0, 0.0, 0.0]", *_vectors((-1, 1), (-1, 1), (-1, 1))),
        "A leg that hops. Speed along the ground and each step are paid, torques cost, and the episode ends with a "
        "fall.",
        "the torques of thigh, leg and foot",
        1000.0,
    ),
}
"""By the name of the class."""


def find_field_text(env: Any) -> FieldText | None:
    """The row of `FIELD_TEXTS` for an innermost environment; `None` if it has none.

    Args:
        env: the environment.
    """
    base = type(env)
    return FIELD_TEXTS.get(base.__name__) if base.__module__.startswith("drift_envs.envs.") else None


class FieldDescriber:
    """The words for a world whose state is a list of numbers.

    Args:
        env: the world.
        text: its fields, actions, aim and score.
    """

    max_length = 1024
    characters = string.ascii_letters + string.digits + ' {}[]",:._+-'

    def __init__(self, env: Any, text: FieldText) -> None:
        self.env, self.actions = env, text.actions
        self._text = text

    def state(self, observation: Any, score: float) -> str:
        """The numbers and the score so far, with six decimals.

        Args:
            observation: of the environment.
            score: the score so far.
        """
        numbers = self._text.to_fields(np.asarray(observation, float).tolist())
        pairs = zip((*self._text.fields, SCORE), (*numbers, score), strict=True)
        # adding 0.0 turns -0.0 into 0.0
        return "{" + ", ".join(f'"{name}": {round(number, 6) + 0.0:.6f}' for name, number in pairs) + "}"

    def task(self, best: float | None) -> str:
        """What to do, and what the actions do.

        Args:
            best: the highest score, if it is known.
        """
        highest = "" if best is None else f" The highest score is {best:g}."
        return f"{self._text.aim}{highest} Actions: {self._text.meaning}."

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition, with six decimals, as states show it.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return round(before + self._text.pay(reward, terminated), 6)

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """The highest score of an undisturbed episode; no knob is read.

        Args:
            knobs: the world's knobs.
        """
        return self._text.best
