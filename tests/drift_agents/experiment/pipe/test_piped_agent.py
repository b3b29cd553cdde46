"""The evaluator's side: what an agent may say, what it is charged, and who counts what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import pytest
from drift_agents.errors import AgentProcessError, ContextLengthError
from drift_agents.experiment.pipe.player import MOST_PROBES, SELF_REPORTED, PipedAgent
from drift_agents.llm.base import Completion
from drift_agents.types import Episode, ProbeCost, Usage
from hypothesis import given

from drift_envs.wrappers.twin import twin

LAKE = {"version": 1, "name": "lake", "env": "DriftFrozenLake-v0", "base": {"map": ["SFG", "FHF"]}}
"""Two steps to the right reach the goal; one to the right and one down is a fall."""
STEP = {"type": "step", "action": "2"}
END = {"type": "end"}


class Script:
    """A process that sends these messages, whatever it is sent."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._left: Iterator[Any] = iter([{"type": "ready"}, *messages])
        self.heard: list[dict[str, Any]] = []
        self.is_open = True

    def send(self, message: dict[str, Any]) -> None:
        self.heard.append(json.loads(json.dumps(message, allow_nan=False)))

    def receive(self, seconds: float | None = None) -> Any:
        message = next(self._left, None)
        if message is None:
            raise AgentProcessError("the agent's process ended")
        return message

    def close(self) -> None:
        self.is_open = False


@pytest.fixture(scope="module")
def lake() -> gym.Env[str, Any]:
    return gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True)


def play(lake: gym.Env[str, Any], *messages: Any, **options: Any) -> tuple[Episode, Script, PipedAgent]:
    script = Script(messages)
    lake.reset(seed=0)
    agent = PipedAgent(script, twin(lake), "DriftFrozenLake-v0", 7, **options)  # type: ignore[arg-type]
    return agent.run_episode(lake), script, agent


def test_an_episode_is_counted_here(lake: gym.Env[str, Any]) -> None:
    episode, script, agent = play(lake, STEP, STEP, {"type": "end", "report": {"memory_size": 5, "surprises": 2}})
    assert (episode.score, episode.steps, episode.terminated) == (1.0, 2, True)
    assert (episode.surprises, agent.memory_size, agent.supervision) == (2, 5, "none")
    assert [message["type"] for message in script.heard] == ["start", "reset", "step", "step"]
    assert script.heard[0] == {"type": "start", "protocol": 1, "environment": "DriftFrozenLake-v0", "seed": 7}


def test_probes_are_played_in_a_copy_and_charged(lake: gym.Env[str, Any]) -> None:
    way = {"type": "probe", "reset": True, "actions": ["2", "1", "0"]}
    goal = {"type": "probe", "reset": True, "actions": ["2"]}
    on = {"type": "probe", "actions": ["2"]}
    episode, script, _ = play(lake, way, goal, STEP, on, STEP, {"type": "probe", "reset": True}, END)
    results = [message["results"] for message in script.heard if message["type"] == "probe"]
    assert [len(found) for found in results] == [3, 2, 1, 1], "an episode of the copy ends at the hole"
    assert results[0][-1]["terminated"]
    assert results[2][0]["reward"] == 1.0
    assert episode.probes == ProbeCost(steps=4, resets=3, falls=1, purchases=1)
    assert (episode.score, episode.steps) == (1.0, 2), "the copy moves nothing"


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([{"type": "step", "action": "9"}], '`action` should be one of the 4 admissible actions. Received "9"'),
        ([{"type": "step", "action": 2}], "`action` should be one of"),
        ([{"type": "step"}], "`action` should be one of"),
        ([{"type": "stop"}], '`type` should be one of step, probe, ask, end. Received "stop"'),
        ([{}], "`type` should be one of"),
        ([END], "`end` should follow the end of the episode"),
        ([STEP, STEP, STEP], "after its last step"),
        ([{"type": "probe", "actions": ["2"]}], "should be reset first"),
        ([{"type": "probe", "reset": True, "actions": ["2", "2"]}, {"type": "probe", "actions": ["2"]}], "reset first"),
        ([{"type": "probe", "reset": 1}], "`reset` should be true or false"),
        ([{"type": "probe", "reset": True, "actions": "2"}], "`actions` a list"),
        ([{"type": "probe", "reset": True, "actions": ["9"]}], "`action` should be one of the 4"),
        ([{"type": "probe", "reset": True, "actions": ["2"] * MOST_PROBES}], "at most 100,000 steps and resets"),
        ([{"type": "ask", "model": "gpt", "messages": []}], "`model` should be one of the entry's: none"),
        ([STEP, STEP, {"type": "end", "report": []}], "`report` should have no other keys"),
        ([STEP, STEP, {"type": "end", "report": {"score": 1}}], "`report` should have no other keys"),
        ([STEP, STEP, {"type": "end", "report": {"surprises": -1}}], "should be whole numbers, at least 0"),
        ([STEP, STEP, {"type": "end", "report": {"surprises": True}}], "should be whole numbers, at least 0"),
        ([STEP, STEP, {"type": "end", "report": {"memory_size": 10**30}}], "should be whole numbers"),
    ],
)
def test_what_breaks_the_protocol_is_refused(lake: gym.Env[str, Any], messages: list[Any], rule: str) -> None:
    with pytest.raises(AgentProcessError) as refused:
        play(lake, *messages)
    assert rule in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_agent_calls_itself_privileged(lake: gym.Env[str, Any]) -> None:
    script = Script([])
    script._left = iter([{"type": "ready", "supervision": "privileged"}])
    with pytest.raises(AgentProcessError, match="`supervision` should be one of none, own reward, judge"):
        PipedAgent(script, twin(lake), "x", 0)  # type: ignore[arg-type]
    assert not script.is_open, "its process is ended"


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["2", "x", "reset", "right"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "action", "actions", "reset", "report", "messages"]), inner),
    ),
    max_leaves=4,
)
KEYS = st.sampled_from(["action", "actions", "reset", "report", "model", "messages", "sample_index", *SELF_REPORTED])
MESSAGES = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(["step", "probe", "ask", "end"]),
    st.dictionaries(KEYS, JSON, max_size=3),
)


@given(messages=st.lists(st.one_of(MESSAGES, st.just(STEP)), max_size=6))
def test_whatever_an_agent_sends_it_plays_or_is_refused(lake: gym.Env[str, Any], messages: list[Any]) -> None:
    try:
        episode, _, _ = play(lake, *messages, models={"right": Echo(lambda: Completion("2"))})
    except AgentProcessError:
        return
    before_the_end = takewhile(lambda message: message["type"] != "end", messages)
    assert episode.steps == sum(message["type"] == "step" for message in before_the_end)


class Echo:
    """A model with prepared answers."""

    name = "right"

    def __init__(self, answer: Callable[[], Completion]) -> None:
        self._answer = answer

    def complete(self, *request: Any) -> Completion:
        return self._answer()


def test_language_models_are_asked_here_and_their_cost_is_counted_here(lake: gym.Env[str, Any]) -> None:
    usage = Usage(model_calls=1, tokens_in=50, tokens_out=5, cost=0.25)
    ask = {"type": "ask", "model": "right", "messages": [["user", "Where?"]]}
    report = {"type": "end", "report": {"reasks": 1}}
    models = {"right": Echo(lambda: Completion('{"action": "2"}', {"action": "2"}, usage))}
    episode, script, _ = play(lake, ask, STEP, ask, STEP, report, models=models)
    assert episode.usage == (usage + usage)._replace(reasks=1)
    reply = next(message for message in script.heard if message["type"] == "reply")
    assert (reply["data"], reply["usage"][:3]) == ({"action": "2"}, [1, 50, 5])


def test_a_prompt_that_is_too_long_is_the_agents_affair(lake: gym.Env[str, Any]) -> None:
    def refuse() -> Completion:
        raise ContextLengthError("too long")

    ask = {"type": "ask", "model": "right", "messages": [["user", "x" * 100]]}
    _, script, _ = play(lake, ask, STEP, STEP, END, models={"right": Echo(refuse)})
    assert {"type": "reply", "error": "too long"} in script.heard
