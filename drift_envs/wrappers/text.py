"""Text environments: states, tasks and actions as text, for language agents.

* `TextObservation` - shows the states of an environment as text
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from drift_envs.checks import check_reward
from drift_envs.knobs import Tunable
from drift_envs.wrappers.describe import find_describer, read_action
from drift_envs.wrappers.internal import InternalWrapper


class TextObservation(InternalWrapper, RecordConstructorArgs):
    """Shows the states of an environment as text.

    The observation is a JSON state as in the GLOVE paper (appendix B.3). Actions stay what they are; `step` takes
    their texts, too. The words for an environment of this package stand in its folder; any other environment with
    small spaces is shown by `drift_envs.wrappers.describe.SpaceDescriber`.

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
        ArgumentError: if the environment's spaces are too large for a text form, and it has none of its own.

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
        describer = find_describer(env)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._describer = describer
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
        self._score = self._describer.score(self._score, check_reward(reward), terminated)
        text, extended = self._describe(observation, info)
        return text, reward, terminated, truncated, extended

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
