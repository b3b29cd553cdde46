"""Lifetimes for TRL's `GRPOTrainer`, which trains a language model that acts by calling tools.

Nothing of TRL is imported: the trainer calls public methods. That interface of TRL is experimental;
`tests/extras/trl/requirements.txt` has the version that the tests use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drift_envs.integrations.dialogue import TOOL_INSTRUCTIONS, Dialogue
from drift_envs.integrations.lifetime import TextLifetime, lifetime_reward, spread_lifetimes

OVER = "All episodes have ended. No further action is possible."
"""The answer to actions after the end of a lifetime."""


def lifetime_rows(schedules: Sequence[str], lifetimes: int, first_seed: int = 0) -> list[dict[str, Any]]:
    """Rows of a data set for `GRPOTrainer`: each is a lifetime, which `LifetimeRollout.reset` begins.

    Args:
        schedules: shipped schedules or files; each names its environment. Lifetimes take them in turn.
        lifetimes: how many rows.
        first_seed: the seed of the first round of schedules; each further round has the next seed.

    Returns:
        Dictionaries with `prompt` (all that the model is shown of a row), `schedule` and `seed`.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> rows = lifetime_rows(["frozen_lake/explicit:family"], 2, first_seed=5)
        >>> [(row["schedule"], row["seed"]) for row in rows]
        [('frozen_lake/explicit:family', 5), ('frozen_lake/explicit:family', 6)]
    """
    prompt = [{"role": "system", "content": TOOL_INSTRUCTIONS}, {"role": "user", "content": ""}]
    return [
        {"prompt": prompt, "schedule": schedule, "seed": seed}
        for schedule, seed in spread_lifetimes(schedules, lifetimes, first_seed)
    ]


class LifetimeRollout:
    """A lifetime as the rollout of a language model: the only tool is `act`, the reward the mean score of all episodes.

    The trainer offers every public method but `reset` and `get_reward` to the model as a tool.

    Args:
        rounds: the first so many episodes of every phase are played; 2 if neither this nor `episodes` is given.
        episodes: so many episodes are played, during which time goes on.

    Example:
        >>> rollout = LifetimeRollout(episodes=1)
        >>> print(rollout.reset(schedule="frozen_lake/implicit", seed=0).splitlines()[-1])
        Actions: 0 | 1 | 2 | 3
        >>> print(rollout.act("1").splitlines()[0])
        State: {"cur_pos": [1, 0], "tile_type": "F", "gold_collected": 0}
        >>> rollout.get_reward()
        0.0
    """

    def __init__(self, *, rounds: int | None = None, episodes: int | None = None) -> None:
        self._plan: dict[str, Any] = {"rounds": rounds, "episodes": episodes}
        self._life: TextLifetime | None = None
        self._dialogue: Dialogue | None = None
        self._lines: list[dict[str, Any]] = []

    def reset(self, schedule: str, seed: int, **row: Any) -> str:
        """Begin the lifetime of a row.

        Args:
            schedule: what drifts, and where.
            seed: of the instance.
            **row: not used.

        Returns:
            The first state, which belongs behind the row's prompt.

        Raises:
            ArgumentError: an argument breaks a rule.
            ScheduleError: the schedule cannot be used.
        """
        if self._life is not None:
            self._life.close()
        self._lines = []
        self._life = TextLifetime.of_schedule(schedule, seed, self._lines.append, **self._plan)
        self._dialogue = Dialogue(self._life)
        return self._dialogue.open()

    def act(self, action: str) -> str:
        """Take one action and see what it leads to.

        Args:
            action: One of the admissible actions, spelled as it is shown.

        Returns:
            The next state with its admissible actions.
        """
        if self._dialogue is None or self._life is None or self._life.is_over:
            return OVER
        return self._dialogue.reply(action).message

    def get_reward(self) -> float:
        """Mean score of all episodes; those that were not played have 0, an unfinished one what it has so far."""
        if self._life is None:
            return 0.0
        self._life.abandon()
        return lifetime_reward(self._lines, self._life.length or 0)
