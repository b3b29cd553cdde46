"""The planner that looks at the prompt, and policies by name."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.policy.base import Policy, make_policy
from drift_agents.policy.planner import Planner
from drift_agents.prompt.view import PromptView
from drift_agents.registry import POLICIES

NEEDED: dict[str, dict[str, Any]] = {"llm": {"model": "any"}}
"""What some policies cannot be made without."""


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_keeps_the_protocol(name: str) -> None:
    policy = make_policy(name, **NEEDED.get(name, {}))
    assert isinstance(policy, Policy)
    assert policy.name == name


@pytest.mark.parametrize(
    "env_id",
    [
        *("DriftFrozenLake-v0", "DriftMountainCar-v0", "DriftMountainCarContinuous-v0", "DriftWebShop-v0"),
        *("DriftCartPole-v0", "DriftAcrobot-v0", "DriftPendulum-v0"),
    ],
)
def test_the_planner_plays_every_world(env_id: str) -> None:
    import drift_envs  # noqa: F401

    world = gym.make(env_id, text=True, schedule=None)
    state, info = world.reset(seed=0)
    view = PromptView(info["task"], state, tuple(info["actions"]))
    assert Planner().decide(view.render(), np.random.default_rng(0)).text in info["actions"]


def test_an_unknown_world_is_refused() -> None:
    text = PromptView("Sail home.", '{"wind": 3}', ("0",)).render()
    with pytest.raises(
        ArgumentError, match=re.escape("no planner is for an environment with the state '{\"wind\": 3}'")
    ):
        Planner().decide(text, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conflict": "mean"}, "`conflict` should be one of"),
        ({"lake": {"risk": 2}}, "`risk` should be in the interval (0, 1]. Received 2"),
        ({"lake": {"wind": 1}}, "the planner 'lake' does not take these options"),
        ({"lake": {"conflict": "max"}}, "`conflict` is given once for all worlds"),
        ({"lake": 3}, "`lake` should map option names to values. Received 3"),
        ({"car": [1]}, "`car` should map option names to values. Received [1]"),
        ({"shop": {"looks": -1}}, "`looks` should be a whole number, at least 0. Received -1"),
        ({"boat": {}}, "the policy 'planner' does not take these options"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_policy("planner", **options)


def test_options_reach_the_planner_they_are_for() -> None:
    """Along a known detour, or straight over unknown ice: `risk` decides."""
    from drift_agents.prompt.view import Recollection
    from drift_agents.types import Outcome

    def state(row: int, column: int) -> str:
        return f'{{"cur_pos": [{row}, {column}], "tile_type": "F", "gold_collected": 0}}'

    way = [((0, 0), "1", (1, 0)), ((1, 0), "2", (1, 1)), ((1, 1), "2", (1, 2)), ((1, 2), "3", (0, 2))]
    recalled = [
        Recollection(state(*a), b, Outcome(state(*c), float(c == (0, 2)), c == (0, 2)), 1.0, 0) for a, b, c in way
    ]
    task = "A lake of 2 rows x 3 columns with 1 destination(s): [0, 2]. The highest score is 1. "
    task += "Actions: 0 left, 1 down, 2 right, 3 up."
    text = PromptView(task, state(0, 0), tuple("0123"), (), tuple(recalled)).render()
    rng = np.random.default_rng(0)
    assert make_policy("planner").decide(text, rng).text == "1"
    assert make_policy("planner", lake={"risk": 1.0}).decide(text, rng).text == "2"


def test_an_unknown_policy_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'planner'"):
        make_policy("planer")


def test_a_random_policy_needs_actions() -> None:
    with pytest.raises(ArgumentError, match="names no admissible action"):
        make_policy("random").decide("nothing", np.random.default_rng(0))
