"""The language model as the policy: its prompts, and the use of its answers."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.errors import ArgumentError, ContextLengthError, ModelUnavailableError
from drift_agents.llm.base import Completion
from drift_agents.llm.budget import Meter
from drift_agents.llm.reask import ReaskingModel
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import Reply, make_policy
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome, Usage

import drift_envs  # noqa: F401 - registers the environments
from tests.drift_agents.llm.scripted import ScriptedModel

SEEN = tuple(Recollection('{"at": 1}', "0", Outcome('{"at": 0}', 0.0, False), 1.0, last) for last in range(8))
VIEW = PromptView("Any task.", '{"at": 1}', ("0", "1"), SEEN)
LAKE = {
    "version": 1,
    "name": "line",
    "env": "DriftFrozenLake-v0",
    "clock": "episode",
    "base": {"map": ["SFG", "FFF"]},
    "drifts": [],
}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_request_names_the_admissible_actions() -> None:
    script = ScriptedModel(['{"action": "1"}'])
    reply = LanguageModelPolicy(script, max_tokens=20, parameters={"top_p": 0.9}).decide(VIEW, rng())
    assert (reply.text, reply.model_calls, reply.reasks, reply.dropped_records) == ("1", 1, 0, 0)
    (question,) = script.requests
    assert question.schema is not None
    assert question.schema["properties"] == {"action": {"type": "string", "enum": ["0", "1"]}}
    assert question.parameters == {"temperature": 0.0, "max_tokens": 20, "top_p": 0.9}
    assert question.messages[0].content.splitlines()[1] == "Goal: Any task."


def test_reasons_come_before_the_action() -> None:
    script = ScriptedModel(['{"reasoning": "Why not.", "action": "1"}'])
    assert LanguageModelPolicy(script, reason=True).decide(VIEW, rng()).text == "1"
    assert script.requests[0].schema is not None
    assert list(script.requests[0].schema["properties"]) == ["reasoning", "action"]


def test_what_the_server_is_to_choose_is_not_sent() -> None:
    script = ScriptedModel(["0"])
    LanguageModelPolicy(script, temperature=None, max_tokens=None).decide(VIEW, rng())
    assert script.requests[0].parameters == {}
    assert script.requests[0].sample_index > 0


def test_no_request_is_sent_for_a_single_action() -> None:
    view = PromptView("Any task.", '{"at": 1}', ("search[sofa]",))
    assert LanguageModelPolicy(ScriptedModel([])).decide(view, rng()) == Reply("search[sofa]")


def test_equal_prompts_are_one_question_at_temperature_0_and_samples_else() -> None:
    greedy, warm = ScriptedModel(["0"] * 4), ScriptedModel(["0"] * 4)
    for script, temperature in ((greedy, 0.0), (warm, 0.7)):
        draws = rng()
        for _ in range(2):
            LanguageModelPolicy(script, temperature=temperature).decide(VIEW, draws)
        LanguageModelPolicy(script, temperature=temperature).decide(VIEW, rng())
    assert [question.sample_index for question in greedy.requests[:3]] == [0, 0, 0]
    first, second, again = (question.sample_index for question in warm.requests)
    assert first != second
    assert first == again


def test_a_prompt_that_is_too_long_loses_its_oldest_records() -> None:
    def answer(messages: Any) -> Any:
        return ContextLengthError("too long") if messages[-1].content.count("\n- ") > 2 else '{"action": "1"}'

    script = ScriptedModel(answer)
    reply = LanguageModelPolicy(script, format="full").decide(VIEW, rng())
    assert (reply.text, reply.dropped_records) == ("1", 6)
    shown = re.findall(r"last at step (\d)", script.requests[-1].messages[-1].content)
    assert shown == ["6", "7"]
    assert [question.messages[-1].content.count("\n- ") for question in script.requests] == [8, 4, 2]


def test_a_prompt_that_is_too_long_without_any_record_is_an_error() -> None:
    with pytest.raises(ContextLengthError, match="too long"):
        LanguageModelPolicy(ScriptedModel(lambda _: ContextLengthError("too long")), format="full").decide(VIEW, rng())


def test_with_a_bound_of_its_own_it_leaves_out_no_more_than_it_must() -> None:
    script = ScriptedModel(lambda _: "0")
    dropped = []
    for context in (10, 150, 200, 10_000):
        policy = LanguageModelPolicy(script, format="full", context=context, max_tokens=20)
        dropped.append(policy.decide(VIEW, rng()).dropped_records)
    assert dropped[0] == 8
    assert dropped[0] > dropped[1] > dropped[2] > dropped[3] == 0
    # One record more would not have fitted.
    length = [sum(len(m.content) for m in question.messages) / 4 for question in script.requests]
    line = len(SEEN[0].line()) / 4
    assert length[1] + 20 <= 150 < length[1] + 20 + line + 4


def test_an_answer_that_names_no_action_is_counted_and_the_episode_goes_on() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True)
    lines = ["Right!", '{"action": "9"}', '{"action": ', '{"action": "2"}', "2"]
    episode = Agent(LanguageModelPolicy(ScriptedModel(lines))).run_episode(env, seed=0)
    assert (episode.score, episode.steps, episode.invalid_actions) == (1.0, 3, 1)
    assert (episode.model_calls, episode.reasks) == (5, 2)
    assert episode.trace[0].reply == '{"action": '


@pytest.mark.parametrize(("text", "finish"), [("", "empty"), ("I can't help with that.", "refusal")])
def test_a_model_that_never_answers_plays_all_the_same(text: str, finish: str) -> None:
    env = gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True, max_episode_steps=4)
    script = ScriptedModel(lambda _: Completion(text, None, Usage(1), finish))
    episode = Agent(LanguageModelPolicy(script)).run_episode(env, seed=0)
    assert (episode.steps, episode.invalid_actions, episode.model_calls, episode.reasks) == (4, 4, 12, 8)


def test_the_usage_of_memory_is_part_of_the_episode() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True)
    meter, rules = Meter(), make_memory("memory_bank").model  # type: ignore[attr-defined]
    diary = ScriptedModel(['{"summary": "Going right leads to the goal."}', "?", "?", "?"])
    memory = make_memory("memory_bank", model=ReaskingModel(diary, rules=rules, meter=meter))
    agent = Agent(LanguageModelPolicy(ScriptedModel(lambda _: "2")), memory, meter=meter)
    first, second = agent.run_episode(env, seed=0), agent.run_episode(env)
    assert (first.model_calls, first.fallbacks) == (2 + 1, 0)
    assert (second.model_calls, second.reasks, second.fallbacks) == (2 + 3, 2, 1)
    assert "Going right leads to the goal." in second.trace[0].prompt


def test_a_dead_server_ends_the_episode() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True)
    with pytest.raises(ModelUnavailableError, match="dead"):
        Agent(LanguageModelPolicy(ScriptedModel([ModelUnavailableError("dead")]))).run_episode(env, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 3}, "`model` should be the name of a language model, or a model. Received 3"),
        (
            {"model": ScriptedModel([]), "base_url": "http://a/v1"},
            "belong to a model's name. Received a model beside them",
        ),
        (
            {"format": "haiku"},
            "`format` should be one of brief, ranked, raw, paper, full, react. Received 'haiku'",
        ),
        ({"order": "best"}, "`order` should be one of memory, oldest, newest, shuffled. Received 'best'"),
        ({"temperature": 3}, "`temperature` should be in the interval [0, 2], or None. Received 3"),
        ({"max_tokens": 0}, "`max_tokens` should be a whole number, at least 1, or None. Received 0"),
        ({"context": "long"}, "`context` should be a whole number, at least 1, or None. Received 'long'"),
        ({"parameters": [1]}, "`parameters` should map names to values. Received [1]"),
        ({"price": 1}, "`price` should be two numbers"),
    ],
)
def test_invalid_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_policy("llm", **{"model": "tiny", **options})
