"""The planner of the service desk, in the environment: what it does by itself, and what memory is worth to it."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents import Agent, Episode, make_memory, make_policy
from drift_agents.envs.tools import TOOLS
from drift_agents.envs.tools.planner import ToolsPlanner
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import PromptView

import drift_envs  # noqa: F401  registers the ids

EPISODES = 8
"""As many as there are recurring requests: each comes once."""


def play(
    base: dict[str, Any], memory: str = "none", rounds: int = 1, held_out: bool = False, **drift: Any
) -> list[Episode]:
    """Episodes in a shop with these knobs; `drift` is set after the first round."""
    schedule = {"version": 1, "name": "one", "env": "DriftTools-v0", "clock": "episode", "base": {"shop": 7, **base}}
    schedule["tasks"] = {"pool": EPISODES, "order": "fixed"}
    if drift:
        schedule["drifts"] = [{"name": "drift", "at": EPISODES, "set": drift}]
    env = gym.make("DriftTools-v0", schedule=schedule, text=True, held_out=held_out)
    rule = TOOLS.make("matching")
    made = make_memory(memory, **({} if memory == "none" else {"matching": rule}))
    agent = Agent(make_policy("planner", conflict="newest"), made, matching=rule, seed=0)
    episodes = [agent.run_episode(env, seed=3 if number == 0 else None) for number in range(rounds * EPISODES)]
    env.close()
    return episodes


def score(episodes: list[Episode]) -> float:
    return float(np.mean([episode.score for episode in episodes]))


@pytest.mark.parametrize(
    "base",
    [
        {},
        {"names": {"find_customer": "lookup", "refund": "pay_back", "refund.amount": "value", "finish": "close"}},
        {"types": {"id": "number", "date": "day_first"}, "required": {"refund": "email", "finish": "confirm"}},
        {"split": ["return_item", "refund", "update_address"]},
        {"merged": ["open_account", "ship_item"]},
        {"order": "oldest", "errors": "numbers"},
        {"stale": 2},
        {"transient": 0.2},
        {"silent": {"refund": 1, "return_item": 1, "send_item": 1, "cancel_order": 1}},
        {"policy": {"return_days": 10, "approval_limit": 60}, "page": {"return_days": 10, "approval_limit": 60}},
    ],
    ids=lambda base: next(iter(base), "usual"),
)
def test_what_can_be_seen_needs_no_memory(base: dict[str, Any]) -> None:
    assert score(play(base)) == 1.0


def test_wordings_that_are_held_out_are_met() -> None:
    assert score(play({}, held_out=True)) == 1.0


@pytest.mark.parametrize(
    "base",
    [
        {"units": "cents"},
        {"enum": {"damaged": "changed_mind", "changed_mind": "damaged"}},
        {"defaults": {"refund": "credit"}},
    ],
    ids=lambda base: next(iter(base)),
)
def test_what_cannot_be_seen_is_learned_from_failures(base: dict[str, Any]) -> None:
    assert score(play(base)) < 0.8
    learned = play(base, "vanilla", rounds=3)
    assert score(learned[-EPISODES:]) == 1.0


@pytest.mark.integration
def test_what_worked_is_not_checked_again_and_a_drift_costs_until_it_is_known() -> None:
    episodes = play({}, "vanilla", rounds=4, units="cents")
    first, at_drift, last = episodes[:EPISODES], episodes[EPISODES : 2 * EPISODES], episodes[-EPISODES:]
    assert score(first) == score(last) == 1.0
    assert score(at_drift) < 1.0
    assert sum(episode.steps for episode in last) < sum(episode.steps for episode in first)


def test_a_lesson_that_is_no_desk_is_refused_and_an_unknown_request_is_left_to_records() -> None:
    with pytest.raises(ArgumentError, match="the state should be one of a service desk"):
        ToolsPlanner().decide(PromptView("x", '{"at": 1}', ("a",)), np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="`checks` should be"):
        ToolsPlanner(checks="no")  # type: ignore[arg-type]
    state = json.dumps({"shop": 7, "request": "Sing.", "records": {}, "calls": [], "answer": {}})
    view = PromptView("x", state, ('{"tool": "finish", "arguments": {}}',))
    assert ToolsPlanner().decide(view, np.random.default_rng(0)).text == view.actions[0]
