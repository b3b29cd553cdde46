"""A language model that requests memory beside its action, and makes strategies."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.controller.adamem import RETRIEVED, STRATEGY, AdaMem, make_strategy
from drift_agents.llm.base import Completion, Message, RuleModel
from drift_agents.memory.base import make_memory
from drift_agents.memory.trajectory import AdaMemMemory
from drift_agents.policy.base import LanguagePolicy, SideQuestion
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView
from drift_agents.types import Usage

import drift_envs  # noqa: F401 - registers the environments
from tests.drift_agents.llm.scripted import ScriptedModel

VIEW = PromptView("Any task.", '{"at": 1}', ("0", "1"), lessons=("Go left.",))
ASIDE = SideQuestion("refresh", "Is a refresh necessary?")
LINE = {"version": 1, "env": "DriftFrozenLake-v0", "clock": "episode", "base": {"map": ["SFG"]}, "drifts": []}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("said", "action", "wants"),
    [
        ('{"action": "1", "refresh": true}', "1", True),
        ('{"action": "1", "refresh": false}', "1", False),
    ],
)
def test_the_side_question_is_answered_with_the_action(said: str, action: str, wants: bool) -> None:
    script = ScriptedModel([said])
    policy = LanguageModelPolicy(script)
    assert isinstance(policy, LanguagePolicy)
    reply, asked = policy.decide_and_say(VIEW, ASIDE, rng())
    assert (reply.text, asked, reply.model_calls) == (action, wants, 1)
    (question,) = script.requests
    assert question.schema is not None
    assert question.schema["required"] == ["action", "refresh"]
    assert question.messages[1].content.endswith(ASIDE.text)


def test_reasons_for_the_side_answer_come_before_it() -> None:
    """AdaMEM, B.2: action, `memory_request_rationale`, `request_memory`."""
    script = ScriptedModel(['{"action": "1", "why": "It is unclear.", "ask": true}'])
    aside = SideQuestion("ask", "Ask?", "why")
    assert LanguageModelPolicy(script).decide_and_say(VIEW, aside, rng())[1]
    (question,) = script.requests
    assert question.schema is not None
    assert question.schema["required"] == ["action", "why", "ask"]


def test_a_missing_side_answer_is_requested_again_and_then_counts_as_no() -> None:
    policy = LanguageModelPolicy(ScriptedModel(['{"action": "1"}', "I go.", '{"action": "1"}']), reasks=2)
    reply, asked = policy.decide_and_say(VIEW, ASIDE, rng())
    assert (asked, reply.model_calls, reply.reasks) == (False, 3, 2)


def test_react_requests_reasons_first_and_shows_strategies() -> None:
    script = ScriptedModel(['{"reasoning": "Why not.", "action": "1"}'])
    assert LanguageModelPolicy(script, format="react").decide(VIEW, rng()).text == "1"
    (question,) = script.requests
    assert question.schema is not None
    assert list(question.schema["properties"]) == ["reasoning", "action"]
    assert "Below are some strategy items" in question.messages[1].content
    assert "Go left." in question.messages[1].content


def test_a_strategy_that_cannot_be_used_is_made_by_the_rule() -> None:
    rules = RuleModel({STRATEGY["title"]: make_strategy})
    messages = [Message("user", f"{RETRIEVED}None.")]
    policy = LanguageModelPolicy(ScriptedModel(["No."]), reasks=0)
    answer = policy.answer(messages, STRATEGY, rules, rng())
    assert (answer.data, answer.fallbacks, answer.model_calls) == (make_strategy(RETRIEVED), 1, 1)


class SideAnswerModel:
    """A model that always goes right; whether it asks, and what it makes of memory, is fixed."""

    name = "mind"

    def __init__(self) -> None:
        self.questions: list[tuple[str, str]] = []

    def complete(self, messages: Any, schema: Any = None, parameters: Any = None, sample_index: int = 0) -> Completion:
        self.questions.append((schema["title"], messages[-1].content))
        data: dict[str, Any] = {"reasoning": "Right."}
        if schema["title"] == STRATEGY["title"]:
            data["strategy"] = ["Keep right."]
        else:
            data = {
                "action": "2",
                **{name: True for name in ("request_memory", "refresh") if name in schema["properties"]},
            }
        return Completion(json.dumps(data), data, Usage(1, 100, 5))


@pytest.mark.parametrize(("effort", "calls", "strategies"), [("high", 6, 2), ("low", 6, 2), ("max", 4, 2)])
def test_on_a_lake_it_plays_algorithm_1(effort: str, calls: int, strategies: int) -> None:
    env = gym.make("DriftFrozenLake-v0", schedule={"name": "line", **LINE}, text=True)
    mind = SideAnswerModel()
    agent = Agent(LanguageModelPolicy(mind), AdaMemMemory(), controller=AdaMem(effort=effort))
    agent.run_episode(env, seed=0)
    mind.questions.clear()
    episode = agent.run_episode(env)
    assert (episode.score, episode.steps) == (1.0, 2)
    assert (episode.model_calls, episode.tokens_in, episode.refreshes) == (calls, 100 * calls, strategies)
    asked = [title for title, _ in mind.questions]
    assert asked == [*(["action"] if effort != "max" else []), STRATEGY["title"], "action"] * 2
    first, last = mind.questions[0][1], mind.questions[-1][1]
    assert ("memory_request_rationale" in first) == (effort == "high")
    assert "Keep right." in last
    assert "What is known" not in last.split("Keep right.")[1], "what was retrieved stands in no other prompt"


@pytest.mark.parametrize("memory", ["none", "vanilla", "adamem"])
def test_react_shows_the_steps_of_its_own_episode_with_any_memory(memory: str) -> None:
    """AdaMEM, B.1: the baseline without memory has the history of its episode, and counts its own steps."""
    env = gym.make("DriftFrozenLake-v0", schedule={"name": "line", **LINE}, text=True)
    mind = SideAnswerModel()
    agent = Agent(LanguageModelPolicy(mind, format="react"), make_memory(memory))
    agent.run_episode(env, seed=0)
    mind.questions.clear()
    agent.run_episode(env)
    first, second = (text for _, text in mind.questions)
    assert "already taken 0 step(s)" in first
    assert "[Observation" not in first
    assert "already taken 1 step(s)" in second, "of this episode, not of the agent's life"
    assert '[Observation 1: {"cur_pos": [0, 0]' in second
    assert "Action 1: 2]" in second
    assert "You are now at step 2 " in second


def test_the_state_of_an_adaptive_controller_holds_the_episode_once() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule={"name": "line", **LINE}, text=True)
    mind = SideAnswerModel()
    Agent(LanguageModelPolicy(mind, format="react"), AdaMemMemory(), controller=AdaMem(effort="max")).run_episode(env)
    last = mind.questions[-1][1]
    assert last.count("[Observation 1: ") == 1
    assert "Below are observations" not in last
