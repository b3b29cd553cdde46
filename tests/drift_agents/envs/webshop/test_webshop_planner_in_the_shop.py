"""The planner in the shop itself: with and without memory, before and after a drift."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.base import find_environment
from drift_agents.envs.webshop.states import read_shop_state
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import make_policy
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.lessons import read_view
from drift_agents.types import Episode
from drift_agents.verifier.base import NoVerifier, Verifier
from drift_agents.verifier.glove import Glove
from drift_agents.verifier.prober import ReplayProber

import drift_envs

pytestmark = pytest.mark.integration
ROUNDS = 12


def make_agent(env: gym.Env[str, Any], memory: str, verified: bool, seed: int = 0) -> Agent:
    environment = find_environment("DriftWebShop-v0")
    matching = environment.make("matching")
    verifier: Verifier = Glove(prober=ReplayProber(drift_envs.twin(env))) if verified else NoVerifier()
    return Agent(
        make_policy("planner"),
        make_memory(memory, matching=matching),
        verifier,
        matching=matching,
        recall=Recall(**environment.recall),
        seed=seed,
    )


def play(schedule: str, memory: str, verified: bool, seed: int = 0, rounds: int = ROUNDS) -> dict[str, list[Episode]]:
    """The first rounds of every phase."""
    env = gym.make("DriftWebShop-v0", schedule=schedule, text=True)
    agent = make_agent(env, memory, verified, seed)
    phases: dict[str, list[Episode]] = {}
    for phase in ("source", "drift-1"):
        for number in range(rounds):
            options = {"drift_phase": phase} if not number else None
            first = phase == "source" and not number
            episode = agent.run_episode(env, seed=seed if first else None, options=options)
            phases.setdefault(phase, []).append(episode)
    return phases


def score(episodes: list[Episode]) -> float:
    return float(np.mean([episode.score for episode in episodes]))


@pytest.fixture(scope="module")
def explicit() -> dict[tuple[str, bool], dict[str, list[Episode]]]:
    return {
        (memory, verified): play("webshop/explicit", memory, verified)
        for memory in ("none", "vanilla")
        for verified in (False, True)
    }


def test_stale_memory_fails_behind_the_advertisement_and_glove_recovers(explicit: Any) -> None:
    plain, glove = explicit["vanilla", False], explicit["vanilla", True]
    found = 5  # with five buttons, and no way back from a wrong one, the right one is the last of five
    assert score(plain["source"][found:]) > 0.7
    assert score(plain["drift-1"]) == 0
    assert score(glove["drift-1"][found:]) > 0.7
    assert sum(episode.realignments for episode in glove["drift-1"]) >= 1
    assert sum(episode.realignments for episode in glove["source"]) == 0


def test_one_contradiction_mends_the_advertisement_for_all_tasks(explicit: Any) -> None:
    old = explicit["vanilla", True]["drift-1"][0].trace[0].experience.now.episode
    pressed = [
        (episode.task, step.experience.action, step.verdict.realigned)
        for episode in explicit["vanilla", True]["drift-1"]
        for step in episode.trace
        if read_shop_state(step.experience.state).key == ("ad", "0", read_shop_state(step.experience.state).key[-1])
    ]
    assert old == ROUNDS
    assert [action for _, action, realigned in pressed if realigned][:1] == ["click[a]"]
    assert sum(action == "click[a]" for _, action, _ in pressed) == 1
    assert len({task for task, _, _ in pressed}) > 1


def test_a_prompt_holds_what_has_to_do_with_the_task_alone(explicit: Any) -> None:
    for episode in explicit["vanilla", True]["drift-1"]:
        for step in episode.trace:
            here = read_shop_state(step.experience.state)
            for item in (*read_view(step.prompt).here, *read_view(step.prompt).elsewhere):
                there = read_shop_state(item.state)
                assert there.kind == "ad" if here.kind == "ad" else there.instruction == here.instruction


def test_a_colour_that_has_lost_its_meaning() -> None:
    """Each task is bought three times before the drift: one surprise does not make a majority."""
    plain, glove = (play("webshop/implicit", "vanilla", verified, seed=1, rounds=15) for verified in (False, True))
    assert score(plain["source"]) > 0.9
    assert score(plain["drift-1"]) < 0.85
    assert score(glove["drift-1"]) > 0.85


def test_generated_goals_are_bought_where_nothing_drifts() -> None:
    """Eight instances of five goals, four rounds each: 85 % at least."""
    successes = []
    for seed in range(8):
        env = gym.make("DriftWebShop-v0", schedule=None, text=True, pool=5)
        agent = make_agent(env, "vanilla", verified=False, seed=seed)
        successes += [agent.run_episode(env, seed=None if i else seed).score >= 1 for i in range(20)]
    assert np.mean(successes) >= 0.85
