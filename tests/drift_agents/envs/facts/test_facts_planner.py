"""The planner for facts, and BeliefMem on what it is told."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents import Agent, make_memory
from drift_agents.envs.facts.planner import FactsMatching, FactsPlanner
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import PromptView
from drift_agents.types import AgentClock, Experience, Outcome


def day(*heard: str, asked: int = 0, number: int = 4) -> str:
    return json.dumps({"day": number, "heard": heard, "asked": asked, "question": "What is Ana's office?"})


SAID, TOLD = "Ana's office is bolitu.", "Asked today: Ana's office is nofeze."
ACTIONS = ("bolitu", "nofeze", "ask", "pass")


@pytest.mark.parametrize(
    ("asks", "state", "action"),
    [
        ("doubt", day(SAID), "bolitu"),
        ("doubt", day(), "ask"),
        ("doubt", day(SAID, TOLD, asked=1), "nofeze"),
        ("always", day(SAID), "ask"),
        ("always", day(SAID, TOLD, asked=1), "nofeze"),
        ("never", day(SAID), "bolitu"),
        ("never", day(), "pass"),
    ],
)
def test_when_it_asks(asks: str, state: str, action: str) -> None:
    view = PromptView("What is Ana's office?", state, ACTIONS)
    assert FactsPlanner(asks=asks).decide(view, np.random.default_rng(0)).text == action


def test_another_rule_of_asking_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`asks` should be"):
        FactsPlanner(asks="sometimes")


def test_beliefmem_holds_several_values_and_follows_the_one_that_is_told_again() -> None:
    memory = make_memory("beliefmem", matching=FactsMatching())
    leaders = []
    for number, value in enumerate(("bolitu", "bolitu", "nofeze", "nofeze")):
        now = AgentClock(number, number)
        after = Outcome(day(f"Asked today: Ana's office is {value}.", asked=1, number=number), -0.1, False)
        memory.observe(Experience(day(number=number), "ask", after, -0.1, now), now)
        found = memory.retrieve(day(number=9), None, AgentClock(9, 9))
        values = [json.loads(record.outcome.state)["heard"][0].split()[-1].rstrip(".") for record in found.records]
        leaders.append(values[0])
        assert set(values) == ({"bolitu"} if number < 2 else {"bolitu", "nofeze"})
        assert all(0 < weight < 1 for weight in found.weights)
    assert leaders == ["bolitu", "bolitu", "bolitu", "nofeze"], "one contradiction can be a false answer"


@pytest.mark.parametrize("name", ["vanilla", "beliefmem"])
def test_memories_are_right_again_after_a_silent_change(name: str) -> None:
    env: Any = gym.make("DriftFacts-v0", schedule="facts/implicit:transient", text=True)
    options = {"order": "newest"} if name == "vanilla" else {}
    memory = make_memory(name, matching=FactsMatching(), **options)
    agent = Agent(FactsPlanner(), memory, matching=FactsMatching())
    scores = [agent.run_episode(env, seed=3 if number == 0 else None).score for number in range(40)]
    assert np.mean(scores[:20]) > 0.9
    assert np.mean(scores[28:]) > 0.75
