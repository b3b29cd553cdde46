"""Text environments: states, tasks and actions as text, for language agents.

An environment may have words of its own; spaces have a plain form, and environments whose state is a list of numbers,
such as classic control and MuJoCo, name its fields.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from drift_envs.checks import check_reward, check_single
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Tunable, Value
from drift_envs.registration import parts_of
from drift_envs.wrappers.internal import InternalWrapper, is_own

MOST_NUMBERS = 64
"""Observations with more numbers, such as pictures, have no text form."""

MOST_ACTIONS = 64
"""Spaces with more combinations of actions have no text form."""

DIGITS = 2
"""Decimals of numbers in observations, so that nearby states are written alike."""

TEXT_CHARACTERS = string.ascii_letters + string.digits + ' {}[]",:._+-'
"""Every character that a state of numbers and names can hold, as that of lake, cars and physics."""

MAX_LENGTH = 128
"""No observation of lake or car is longer."""

SCORE = "score"
"""The last field of a state: the score so far, so that what a single step pays can be read."""

Numbers = Sequence[float]


class Describer(Protocol):
    """The protocol that `TextObservation` uses.

    Attributes:
        env: the innermost environment.
        max_length: no state is longer.
        characters: every character that a state can hold.
    """

    env: Any
    max_length: int
    characters: str

    @property
    def actions(self) -> tuple[str, ...]:
        """The admissible actions, as text."""
        ...

    def state(self, observation: Any, score: float) -> str:
        """The state as JSON."""
        ...

    def task(self, best: float | None) -> str:
        """The task in words; `best` is the highest score there is."""
        ...

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition."""
        ...

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """The highest score that is possible with these knobs; `None` if it is not known."""
        ...


class TextObservation(InternalWrapper, RecordConstructorArgs):
    """Shows the states of an environment as text.

    The observation is a JSON state as in the GLOVE paper (appendix B.3). Actions stay what they are; `step` takes
    their texts, too. The words for an environment of this package stand in its folder; any other environment with
    small spaces is shown by `drift_envs.wrappers.text.SpaceDescriber`.

    | environment | observation |
    |---|---|
    | lake | `{"cur_pos": [1, 1], "tile_type": "F", "gold_collected": 0.5}` |
    | Minigrid | `{"pos": [1, 1], "facing": "east", "carries": "nothing", ...}`, see docs/minigrid.md |
    | cars | `{"position": -0.477000, "velocity": 0.006800}` |
    | classic control, MuJoCo | `{"angle": 3.01, "angular_velocity": 0.2, "score": 0.01}`, see docs/classic_control.md |
    | any other | `{"observation": [0.02, -0.01, 0.03, 0.04]}` |

    | info | meaning |
    |---|---|
    | `task` | the task in words: size of the lake, destinations, the highest score, what the actions do |
    | `actions` | the admissible actions as numbers in text; of continuous actions a declared grid |
    | `score` | the score so far: the gold collected on the lake, 1.0 for a car at its flag, else the scaled return |

    All keys are there at every step and reset, beside those of the environment. The task never contains
    the map or the reward of a single destination. The highest score is
    that of the schedule's first tick and is never updated: otherwise a change of rewards would show
    in the task. Nor does it say where a car's flag stands. Size and destinations of a lake are those of
    the present map, since they define the task; a schedule that moves them changes the task visibly.

    Args:
        env: the environment, drifting or not.

    Raises:
        ArgumentError: if the environment's spaces are too large for a text form, and it has none of its own, or an
            action of its text form is no element of the action space.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> env = TextObservation(FrozenLake(is_slippery=False, show_prob=False))
        >>> observation, info = env.reset(seed=0)
        >>> observation
        '{"cur_pos": [0, 0], "tile_type": "S", "gold_collected": 0}'
        >>> info["actions"], info["score"]
        (['0', '1', '2', '3'], 0.0)
        >>> for sentence in info["task"].split(". "):
        ...     print(sentence)
        You walk over a frozen lake of 4 rows x 4 columns, from [0, 0]
        Reach the destination with the highest score and avoid holes
        There are a total of 1 destination(s): [3, 3]
        The highest score is 1
        Actions: 0 left, 1 down, 2 right, 3 up.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        check_single(env)
        describer = find_describer(env)
        self._is_unchecked = not has_fixed_actions(describer)
        if not self._is_unchecked:
            check_actions(env.action_space, describer.actions)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._describer = describer
        self._read_reward: Callable[[Any], float] = float if is_own(env) else check_reward
        self._score = 0.0
        self._best: float | None = None
        self.observation_space = spaces.Text(describer.max_length, min_length=1, charset=describer.characters)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: passed on.
            options: passed on.

        Returns:
            The state as text and `info`.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        self._score = 0.0
        if self._best is None or seed is not None:
            if self._is_unchecked:
                check_actions(self.env.action_space, self._describer.actions)
                self._is_unchecked = False
            self._best = self._describer.best_score(self._knobs_at_first())
        return self._describe(observation, info)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step.

        Args:
            action: as without this wrapper, or one of the texts in `info["actions"]`.

        Returns:
            The state as text, reward, whether the episode ended or was cut, and `info`.

        Raises:
            ArgumentError: if the action is a text that is no action.
        """
        if isinstance(action, str):
            action = read_action(self.env.action_space, action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._score = self._describer.score(self._score, self._read_reward(reward), terminated)
        text, extended = self._describe(observation, info)
        return text, reward, terminated, truncated, extended

    @property
    def text_progress(self) -> float:
        """The score so far; set where a training goes on in another process."""
        return self._score

    @text_progress.setter
    def text_progress(self, saved: float) -> None:
        self._score = saved

    def save_episode(self) -> float:
        """The score so far."""
        return self._score

    def load_episode(self, saved: float) -> None:
        """Continue with the score of another episode.

        Args:
            saved: what `save_episode` gave.
        """
        self._score = saved

    def _describe(self, observation: Any, info: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The state as text, and `info` with task, actions and score."""
        describer = self._describer
        extended = {
            **info,
            "task": describer.task(self._best),
            "actions": list(describer.actions),
            "score": self._score,
        }
        return describer.state(observation, self._score), extended

    def _knobs_at_first(self) -> dict[str, Any]:
        """The value of every knob at the schedule's first tick."""
        if self.env.has_wrapper_attr("knobs_at"):
            knobs: dict[str, Any] = self.env.get_wrapper_attr("knobs_at")(0)
            return knobs
        base: Any = self.env.unwrapped
        return base.read_knobs() if isinstance(base, Tunable) else {}


def find_describer(env: gym.Env[Any, Any]) -> Describer:
    """The words for an environment: the describer that its declaration names, else one made from its spaces.

    Raises:
        ArgumentError: if there is none and its spaces are too large, or of another kind.
    """
    parts = parts_of(env)
    if parts is not None and parts.text is not None:
        found: Describer = parts.load("text")(env.unwrapped)
        return found
    return SpaceDescriber(env)


class SpaceDescriber:
    """The words for an environment that has none of its own.

    States are `{"observation": ...}`, with two decimals. The score is the sum of rewards. The actions of a `Box` are
    the corners and the middle of each dimension. An `action_mask` in `info` is not read.

    Args:
        env: the environment, with all wrappers that change its spaces.

    Raises:
        ArgumentError: if an observation has more than `MOST_NUMBERS` numbers, there are more than `MOST_ACTIONS`
            actions, or a space is of another kind.

    Example:
        >>> describer = SpaceDescriber(gym.make("CliffWalking-v1"))
        >>> describer.actions, describer.state(7, 0.0)
        (('0', '1', '2', '3'), '{"observation": 7}')
    """

    max_length = 8192
    characters = "".join(character for character in string.printable if character.isprintable())

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env.unwrapped
        self.actions = list_actions(env.action_space)
        count = _count_numbers(env.observation_space)
        if count > MOST_NUMBERS:
            raise ArgumentError(
                f"`env` should have observations of at most {MOST_NUMBERS} numbers to be shown as text, or a text form "
                f"of its own. Received {env} with {env.observation_space}"
            )
        name = env.spec.id if env.spec is not None else type(self.env).__name__
        self._task = f"You act in {name}. Collect as much reward as possible. Actions: {', '.join(self.actions)}."

    def state(self, observation: Any, score: float) -> str:
        """The observation as JSON.

        Args:
            observation: of the environment.
            score: not used: equal observations are equal states.
        """
        return json.dumps({"observation": _plain(observation)})

    def task(self, best: float | None) -> str:
        """The name of the environment, and its actions.

        Args:
            best: not used; it is not known.
        """
        return self._task

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The sum of rewards.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return before + reward

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """It is not known."""
        return None


def list_actions(space: spaces.Space[Any]) -> tuple[str, ...]:
    """All actions as text, of a `Box` those of a grid.

    Raises:
        ArgumentError: if they are more than `MOST_ACTIONS`, or the space is of another kind.
    """
    if isinstance(space, spaces.Discrete):
        if space.n <= MOST_ACTIONS:
            return tuple(str(number) for number in range(int(space.start), int(space.start + space.n)))
    elif isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)):
        choices = _choices(space)
        if np.prod([len(one) for one in choices]) <= MOST_ACTIONS:
            shape = space.shape or ()
            return tuple(json.dumps(np.reshape(one, shape).tolist()) for one in product(*choices))
    raise ArgumentError(
        f"`env` should have at most {MOST_ACTIONS} actions to be shown as text, or a text form of its own. "
        f"Received {space}"
    )


def _choices(space: spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box) -> list[list[Any]]:
    """The numbers that each place of an action can have."""
    if isinstance(space, spaces.MultiBinary):
        return [[0, 1]] * int(np.prod(space.shape))
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.nvec.shape).ravel().tolist()
        return [
            list(range(start, start + count)) for start, count in zip(starts, space.nvec.ravel().tolist(), strict=True)
        ]
    if not space.is_bounded():
        return [[0] * (MOST_ACTIONS + 1)]  # refused
    bounds = zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True)
    if np.issubdtype(space.dtype, np.integer):
        return [sorted({low, (low + high) // 2, high}) for low, high in bounds]
    return [[low, (low + high) / 2, high] for low, high in bounds]


def _count_numbers(space: spaces.Space[Any]) -> int:
    """The numbers of an observation; more than `MOST_NUMBERS` for a space of another kind."""
    if isinstance(space, spaces.Dict):
        return sum(map(_count_numbers, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return sum(map(_count_numbers, space.spaces))
    if isinstance(space, (spaces.Discrete, spaces.Text)):
        return 1
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return int(np.prod(space.shape))
    return MOST_NUMBERS + 1


def _plain(value: Any) -> Any:
    """An observation as data for JSON; adding 0.0 turns -0.0 into 0.0."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return round(value, DIGITS) + 0.0 if isinstance(value, float) else value


def read_action(space: spaces.Space[Any], action: str) -> Any:
    """An action as text, as an element of the action space.

    Args:
        space: the action space.
        action: the text, as in `info["actions"]`.

    Returns:
        An integer for a `Discrete` space, an array for other spaces of numbers, else the text itself.

    Raises:
        ArgumentError: if the text is no element of the space.

    Example:
        >>> read_action(spaces.Discrete(4), "2")
        2
    """
    if isinstance(space, spaces.Text):
        return action
    try:
        given = json.loads(action)
        found = given if isinstance(space, spaces.Discrete) else _read_array(space, given)
    except (ValueError, TypeError, OverflowError, RecursionError):
        found = None
    if found is None or isinstance(found, bool) or not space.contains(found):
        raise ArgumentError(f"`action` should be an element of {space} or its text. Received {action[:200]!r}")
    return found


def has_fixed_actions(describer: Any) -> bool:
    """Whether the admissible actions are known before a reset; those of a property depend on the state."""
    return not isinstance(getattr(type(describer), "actions", None), property)


def check_actions(space: spaces.Space[Any], actions: Iterable[str]) -> None:
    """Refuse admissible actions that `step` would refuse, such as words of a `Discrete` space.

    Args:
        space: the action space.
        actions: the admissible actions, as text.

    Raises:
        ArgumentError: if one of them is no text of an element of the space.

    Example:
        >>> check_actions(spaces.Discrete(2), ["left", "right"])
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `actions` should be texts of elements of Discrete(2), its numbers; say in \
`task` what they mean. Received 'left'
    """
    for action in actions:
        try:
            read_action(space, action)
        except ArgumentError as error:
            raise ArgumentError(
                f"`actions` should be texts of elements of {space}, its numbers; say in `task` what they mean. "
                f"Received {action!r}"
            ) from error


def _read_array(space: spaces.Space[Any], given: Any) -> np.ndarray:
    """Numbers as an array of a space; whole ones where it has no others, which numpy would cut.

    Raises:
        ValueError: the space has no such numbers.
    """
    numbers = np.array(given)
    found = numbers.astype(space.dtype).reshape(space.shape or ())
    if np.issubdtype(space.dtype, np.integer) and not np.array_equal(found.ravel(), numbers.ravel()):
        raise ValueError(f"{given} is no element of {space}")
    return found


def write_number(value: float) -> str:
    """A number as JSON, whole ones without a point.

    Example:
        >>> write_number(2.0), write_number(0.5)
        ('2', '0.5')
    """
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


def write_fields(names: Iterable[str], numbers: Iterable[float]) -> str:
    """Numbers as a JSON object, with six decimals and one text for 0.

    Example:
        >>> write_fields(["position", "velocity"], [0.5, -1e-9])
        '{"position": 0.500000, "velocity": 0.000000}'
    """
    pairs = zip(names, numbers, strict=True)
    return write_zero("{" + ", ".join([f'"{name}": {number:.6f}' for name, number in pairs]) + "}")


def write_zero(text: str) -> str:
    """A text with numbers of six decimals, in which 0 has no sign."""
    return text.replace("-0.000000", "0.000000")


def _same(numbers: Numbers) -> list[float]:
    return list(numbers)


class FieldText(NamedTuple):
    """Fields, actions, aim and score of one environment.

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

        Raises:
            ArgumentError: if the text is no state of this environment.
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


class FieldDescriber:
    """The words for an environment whose state is a list of numbers.

    Args:
        env: the environment.
        text: its fields, actions, aim and score.
    """

    max_length = 1024
    characters = TEXT_CHARACTERS

    def __init__(self, env: Any, text: FieldText) -> None:
        self.env, self.actions = env, text.actions
        self.text = text

    def state(self, observation: Any, score: float) -> str:
        """The numbers and the score so far, with six decimals.

        Args:
            observation: of the environment.
            score: the score so far.
        """
        numbers = self.text.to_fields(np.asarray(observation, float).tolist())
        return write_fields((*self.text.fields, SCORE), (*numbers, score))

    def task(self, best: float | None) -> str:
        """What to do, and what the actions do.

        Args:
            best: the highest score, if it is known.
        """
        highest = "" if best is None else f" The highest score is {best:g}."
        return f"{self.text.aim}{highest} Actions: {self.text.meaning}."

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition, with six decimals, as states show it.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return round(before + self.text.pay(reward, terminated), 6)

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """The highest score of an undisturbed episode; no knob is read."""
        return self.text.best
