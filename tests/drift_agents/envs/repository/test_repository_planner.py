"""The planner of repositories, in the environment: what it does by itself, and what memory is worth to it."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import pytest
from drift_agents import Episode, make_agent

import drift_envs  # noqa: F401  registers the ids

pytestmark = pytest.mark.integration  # each submission is a process

ISSUES = 6
"""One of each kind."""


def play(memory: str, verifier: Any = "none", base: Any = (), episodes: int = ISSUES, **drift: Any) -> list[Episode]:
    """Episodes in project 7; `drift` is set after the first six."""
    schedule = {"version": 1, "name": "one", "env": "DriftRepository-v0", "clock": "episode"}
    schedule |= {"base": {"project": 7, **dict(base)}, "tasks": {"pool": ISSUES, "order": "fixed"}}
    if drift:
        schedule["drifts"] = [{"name": "drift", "at": ISSUES, "set": drift}]
    env = gym.make("DriftRepository-v0", schedule=schedule, text=True, held_out=True)
    agent = make_agent(env, memory=memory, verifier=verifier)
    played = [agent.run_episode(env, seed=3 if number == 0 else None) for number in range(episodes)]
    env.close()
    return played


def scores(episodes: list[Episode]) -> list[float]:
    return [round(episode.score, 2) for episode in episodes]


def last(episode: Episode) -> dict[str, Any]:
    return dict(json.loads(episode.trace[-1].experience.outcome.state))


@pytest.mark.parametrize("memory", ["none", "vanilla"])
@pytest.mark.parametrize(
    "base",
    [
        {},
        {"helper": 2, "layout": 1, "fragment": 1, "register": 1, "check_command": 2, "setting": 3},
        {"rounding": 3, "error": 2, "unit": 1, "order": 1},
    ],
)
def test_every_kind_is_solved_at_once(memory: str, base: dict[str, Any]) -> None:
    assert scores(play(memory, base=base)) == [1.0] * ISSUES


def test_what_is_remembered_is_not_looked_up_again() -> None:
    looking, remembering = play("none"), play("vanilla")
    assert sum(one.steps for one in remembering[1:]) <= sum(one.steps for one in looking[1:]) - 4 * (ISSUES - 1)


@pytest.mark.parametrize(
    "drift",
    [
        {"helper": 1},
        {"layout": 1},
        {"fragment": 1},
        {"register": 1},
        {"check_command": 1},
        {"setting": 1},
        {"rounding": 1},
        {"error": 1},
        {"unit": 1},
        {"order": 1},
    ],
    ids=lambda drift: next(iter(drift)),
)
def test_each_drift_costs_little_and_is_then_known(drift: dict[str, Any]) -> None:
    after = scores(play("vanilla", "glove", episodes=3 * ISSUES, **drift))[ISSUES:]
    assert sum(after) >= len(after) - 1.5
    assert after[ISSUES:] == [1.0] * ISSUES


def test_a_document_that_lags_is_corrected_by_the_files() -> None:
    base = {"docs_lag": 4}
    looking = scores(play("none", base=base, episodes=2 * ISSUES, fragment=1))[ISSUES:]
    remembering = scores(play("vanilla", "overwrite", base=base, episodes=2 * ISSUES, fragment=1))[ISSUES:]
    assert looking == [0.67] * 4 + [1.0] * 2
    assert remembering == [0.67, *[1.0] * 5]


def test_a_false_refusal_is_answered_by_a_rerun_where_memory_was_verified() -> None:
    base = {"flaky": 0.3, "rerun_price": 0.05}
    with_glove, without = (play("vanilla", one, base=base, episodes=24) for one in ("glove", "overwrite"))
    assert sum(last(one)["reruns"] for one in with_glove) > sum(last(one)["reruns"] for one in without)
    assert sum(scores(with_glove)) > sum(scores(without))
    assert sum(one.probes.steps for one in with_glove) > 0
