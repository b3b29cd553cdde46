"""The rows of the board, and the twelve configurations of each.

* `LearnerRow`, `ROWS` - a learner with its treatment, and what is tuned
* `find_row` - a row by its name
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from baselines import dqn, ppo, q_learning, recurrent_ppo, rl_squared
from baselines.environments import BoardEnv
from drift_envs.errors import ArgumentError

CONFIGURATIONS = 12
"""Configurations that are tried for each row, in each environment."""

Configuration = dict[str, float]


def grid(**values: Sequence[float]) -> tuple[Configuration, ...]:
    """All combinations of values."""
    return tuple(dict(zip(values, each, strict=True)) for each in product(*values.values()))


@dataclass(frozen=True)
class LearnerRow:
    """A learner of the board.

    Args:
        name: its name in files.
        label: its name in tables.
        module: the learner, see `common.Learner`.
        settings: the class of its settings.
        fixed: the values of its settings that make the variant.
        configurations: the values that are tried.
        privileged: what it is given that no agent sees.
        tabular: whether it needs observations that are indices.
        both: of RL squared: whether nets are trained with both sides of the drift.
    """

    name: str
    label: str
    module: Any
    settings: Any
    fixed: Mapping[str, float] = field(default_factory=dict)
    configurations: tuple[Configuration, ...] = ()
    privileged: str = ""
    tabular: bool = False
    both: bool = True

    @property
    def has_nets(self) -> bool:
        """Whether nets are trained before the lifetimes of the board."""
        return self.module is rl_squared

    def plays(self, env: BoardEnv) -> bool:
        """Whether it can play in an environment."""
        return env.tabular or not self.tabular


_RATES = (3e-4, 1e-3, 3e-3, 6e-3)
_BONUSES = (0.003, 0.01, 0.03)
_PLAIN = grid(rate=_RATES, bonus=_BONUSES)
_FEW = {"rate": (1e-3, 3e-3), "bonus": (0.01, 0.03)}

ROWS = (
    LearnerRow("ppo", "PPO", ppo, ppo.PPOSettings, {}, _PLAIN),
    LearnerRow(
        "ppo_told", "PPO, restarted at drifts", ppo, ppo.PPOSettings, {"told": 1.0}, _PLAIN, privileged="told of drifts"
    ),
    LearnerRow(
        "ppo_sees", "PPO, sees phase and knobs", ppo, ppo.PPOSettings, {"sees": 1.0}, _PLAIN, privileged="phase, knobs"
    ),
    LearnerRow(
        "ppo_page_hinkley",
        "PPO, restarted by Page-Hinkley",
        ppo,
        ppo.PPOSettings,
        {"page_hinkley": 1.0},
        grid(**_FEW, threshold=(0.5, 1.0, 2.0)),
    ),
    LearnerRow(
        "ppo_adwin",
        "PPO, restarted by ADWIN",
        ppo,
        ppo.PPOSettings,
        {"adwin": 1.0},
        grid(**_FEW, confidence=(0.002, 0.05, 0.3)),
    ),
    LearnerRow(
        "shrink_and_perturb",
        "Shrink and Perturb",
        ppo,
        ppo.PPOSettings,
        {},
        tuple({**each, "noise": 1 - each["shrink"]} for each in grid(**_FEW, shrink=(0.9, 0.97, 0.99))),
    ),
    LearnerRow("regenerative", "L2 towards the start", ppo, ppo.PPOSettings, {}, grid(**_FEW, pull=(1e-4, 1e-3, 1e-2))),
    LearnerRow(
        "continual_backprop",
        "Continual Backprop",
        ppo,
        ppo.PPOSettings,
        {},
        grid(**_FEW, replacement=(1e-3, 1e-2, 5e-2)),
    ),
    LearnerRow("recurrent_ppo", "Recurrent PPO", recurrent_ppo, recurrent_ppo.RecurrentSettings, {}, _PLAIN),
    LearnerRow(
        "rl_squared",
        "RL², both sides",
        rl_squared,
        rl_squared.MetaSettings,
        {},
        grid(rate=(1e-3, 3e-3), bonus=(0.02,)),
    ),
    LearnerRow("rl_squared_one", "RL², one side", rl_squared, rl_squared.MetaSettings, {}, (), both=False),
    LearnerRow(
        "dqn_long",
        "DQN, long replay",
        dqn,
        dqn.DQNSettings,
        {"kept": float(dqn.LONG)},
        grid(rate=(3e-4, 1e-3, 3e-3), explore=(0.02, 0.1), follow=(0.005, 0.05)),
    ),
    LearnerRow(
        "dqn_short",
        "DQN, short replay",
        dqn,
        dqn.DQNSettings,
        {"kept": float(dqn.SHORT)},
        grid(rate=(3e-4, 1e-3, 3e-3), explore=(0.02, 0.1), follow=(0.005, 0.05)),
    ),
    LearnerRow(
        "q_learning",
        "Q-learning",
        q_learning,
        q_learning.QSettings,
        {},
        grid(rate=(0.1, 0.3, 0.6), explore=(0.01, 0.05), hope=(0.5, 1.0)),
        tabular=True,
    ),
)
"""RL squared tries two configurations, since each is a net; its one-sided nets have the best of the others."""


def find_row(name: str) -> LearnerRow:
    """A row by its name.

    Raises:
        ArgumentError: if there is none of that name.
    """
    for row in ROWS:
        if row.name == name:
            return row
    raise ArgumentError(f"`learner` should be one of {', '.join(row.name for row in ROWS)}. Received {name!r}")
