"""The far side: an agent of parts plays through the pipe as it plays without one."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import gymnasium as gym
import pytest
from drift_agents.agent import Agent
from drift_agents.environment import find_environment
from drift_agents.errors import AgentProcessError, ArgumentError
from drift_agents.experiment.pipe.player import PipedAgent
from drift_agents.experiment.pipe.worker import Pipe, play
from drift_agents.llm.base import Completion
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import make_policy
from drift_agents.prompt.builder import Recall
from drift_agents.types import Episode, Usage
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.prober.replay import ReplayProber

from drift_envs.wrappers.twin import twin

COUNTED = (
    *("score", "steps", "terminated", "probes", "surprises", "realignments", "invalid_actions"),
    *("tokens_estimated", "loops", "loop_steps", "usage"),
)


def plan(**parts: Any) -> dict[str, Any]:
    given = {"memory": "vanilla", "verifier": "none", "controller": "direct", "team": "solo", "policy": "planner"}
    return {**given, **parts, "matching": None, "recall": {}}


class Thread:
    """A process whose program is a thread of this one."""

    def __init__(self, parts: dict[str, Any]) -> None:
        here, there = os.pipe(), os.pipe()
        self.failures: list[Exception] = []
        self._thread = threading.Thread(target=self._run, args=(parts, here[0], there[1]))
        self._thread.start()
        self._source, self._target = os.fdopen(there[0], "rb"), os.fdopen(here[1], "wb")

    def _run(self, parts: dict[str, Any], source: int, target: int) -> None:
        with os.fdopen(source, "rb") as lines, os.fdopen(target, "wb") as answers, suppress(EOFError):
            try:
                play(parts, Pipe(lines, answers))
            except ArgumentError as error:
                self.failures.append(error)

    def send(self, message: dict[str, Any]) -> None:
        self._target.write(json.dumps(message).encode() + b"\n")
        self._target.flush()

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        line = self._source.readline()
        if not line:
            raise AgentProcessError("ended")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self._target.close()
        self._thread.join(60)
        self._source.close()


def play_piped(parts: dict[str, Any], seeds: Iterable[int], models: Any = None) -> list[tuple[Episode, int]]:
    """Episodes, each with the size of memory after it."""
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:jittered", text=True)
    env.reset(seed=3)
    thread = Thread(parts)
    try:
        agent = PipedAgent(thread, twin(env), "DriftFrozenLake-v0", 7, models)  # type: ignore[arg-type]
        return [
            (agent.run_episode(env, seed, OPTIONS | jump), agent.memory_size)
            for seed, jump in zip(seeds, JUMPS, strict=False)
        ]
    finally:
        thread.close()
        env.close()


OPTIONS = {"drift_clock": "continue"}
JUMPS: list[dict[str, Any]] = [{"drift_tick": 0}, *[{}] * 40]


@pytest.mark.parametrize("verifier", ["none", "glove", "forget"])
def test_an_agent_plays_as_it_does_without_a_pipe(verifier: str) -> None:
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:jittered", text=True)
    env.reset(seed=3)
    declared = find_environment("DriftFrozenLake-v0")
    options = {"prober": ReplayProber(twin(env))} if verifier == "glove" else {}
    agent = Agent(
        make_policy("planner"),
        make_memory("vanilla", matching=declared.make("matching")),
        make_verifier(verifier, **options),
        matching=declared.make("matching"),
        recall=Recall(**declared.recall),
        seed=7,
    )
    expected = []
    for seed, jump in zip(range(32), JUMPS, strict=False):
        episode = agent.run_episode(env, seed, OPTIONS | jump)
        expected.append((episode, len(list(agent.memory.records()))))
    found = play_piped(plan(verifier=verifier), range(32))
    for (one, size), (other, other_size) in zip(found, expected, strict=True):
        assert {name: getattr(one, name) for name in COUNTED} == {name: getattr(other, name) for name in COUNTED}
        assert size == other_size
    if verifier == "glove":
        assert sum(episode.probes.steps for episode, _ in found) > 0, "something was probed"
    env.close()


class Right:
    """A language model that always goes right."""

    name = "right"

    def complete(self, messages: Any, schema: Any, parameters: Any, sample_index: int) -> Completion:
        assert messages[0].role == "system"
        return Completion('{"action": "2"}', {"action": "2"}, Usage(model_calls=1, tokens_in=50, tokens_out=5))


def test_a_language_model_answers_through_the_pipe() -> None:
    parts = plan(policy={"name": "llm", "options": {"model": "right", "base_url": "http://127.0.0.1:1"}})
    ((episode, _),) = play_piped(parts, range(1), {"right": Right()})
    assert episode.usage.model_calls == episode.steps
    assert episode.usage.tokens_in == 50 * episode.steps


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"verifier": {"glove": {"prober": "snapshot"}}}, "the prober 'snapshot' is not available over the pipe"),
        ({"verifier": {"glove": {"prober": "replay_live"}}}, "the prober 'replay_live' is not available"),
        ({"verifier": "base+extra"}, "'base+extra' is not available over the pipe"),
        ({"memory": {"managed": {"initial": 3}}}, "correct executions are not available over the pipe"),
        ({"memory": {"vanilla": {"kk": 3}}}, "did you mean 'k'"),
    ],
)
def test_what_needs_the_evaluators_knowledge_is_refused(parts: dict[str, Any], message: str) -> None:
    thread = Thread(plan(**parts))
    thread.send({"type": "start", "environment": "DriftFrozenLake-v0", "seed": 0})
    with pytest.raises(AgentProcessError):
        thread.receive()
    thread.close()
    (failure,) = thread.failures
    assert message in str(failure)
