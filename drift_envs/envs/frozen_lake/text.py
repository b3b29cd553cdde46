"""The lake in words.

* `LakeDescriber` - its states, tasks and actions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_envs.envs.frozen_lake.env import FrozenLake
from drift_envs.knobs import Value
from drift_envs.wrappers.describe import MAX_LENGTH, TEXT_CHARACTERS, write_number


class LakeDescriber:
    """The words for the lake.

    Args:
        env: the lake.
    """

    actions: tuple[str, ...] = ("0", "1", "2", "3")
    max_length = MAX_LENGTH
    characters = TEXT_CHARACTERS

    def __init__(self, env: FrozenLake) -> None:
        self.env = env
        self._cached_task: tuple[Any, Any, str] = (None, None, "")

    def state(self, observation: int, score: float) -> str:
        """Position, tile and gold.

        Args:
            observation: the state's number.
            score: the gold collected in this episode.
        """
        row, column = divmod(observation, self.env.ncol)
        tile = self.env.map[row][column]
        return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": {write_number(score)}}}'

    def task(self, best: float | None) -> str:
        """What to do on this lake; the sentence is put together once for each map.

        Args:
            best: the highest score there is.
        """
        lake = self.env.map
        if self._cached_task[0] is not lake or self._cached_task[1] != best:
            starts, goals = _places(lake, "S"), _places(lake, "G")
            text = (
                f"You walk over a frozen lake of {len(lake)} rows x {len(lake[0])} columns, "
                f"from {', or '.join(starts)}. Reach the destination with the highest score and avoid holes. "
                f"There are a total of {len(goals)} destination(s): {', '.join(goals)}. "
                f"The highest score is {write_number(best or 0.0)}. Actions: 0 left, 1 down, 2 right, 3 up."
            )
            self._cached_task = (lake, best, text)
        return self._cached_task[2]

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The gold collected so far.

        Args:
            before: the gold before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return before + reward

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """The reward of the best goal.

        Args:
            knobs: the lake's knobs.
        """
        rewards = knobs["goal_rewards"]
        goals = [place.strip("[]").replace(" ", "") for place in _places(knobs["map"], "G")]
        return max((float(rewards.get(goal, self.env.goal_reward)) for goal in goals), default=0.0)


def _places(lake: tuple[str, ...], letter: str) -> list[str]:
    """Where a letter stands on a map, as `[row, column]`."""
    return [
        f"[{row}, {column}]" for row, tiles in enumerate(lake) for column, tile in enumerate(tiles) if tile == letter
    ]
