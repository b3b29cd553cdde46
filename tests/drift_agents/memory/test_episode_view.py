"""What is before an agent's eyes without recall: this episode's own steps and what is verified."""

from __future__ import annotations

import gymnasium as gym
from drift_agents.agent import Agent
from drift_agents.controller.adamem import AdaMem
from drift_agents.matching import Exact
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.memory.views import NO_ID, EpisodeView, freeze
from drift_agents.policy.base import make_policy
from drift_agents.prompt.lessons import read_view
from drift_agents.types import AgentClock, Experience, Outcome

import drift_envs  # noqa: F401 - registers the environments

LINE = {
    "version": 1,
    "name": "l",
    "env": "DriftFrozenLake-v0",
    "clock": "episode",
    "base": {"map": ["SFFG"]},
    "drifts": [],
}
NOW = AgentClock(1, 5)


def step(state: str, after: str, now: AgentClock) -> Experience:
    return Experience(state, "0", Outcome(after, 0.0, False), 0.0, now)


def test_it_shows_verified_summaries_and_the_present_episode() -> None:
    memory = VanillaMemory()
    memory.observe(step("a", "old", AgentClock()), AgentClock())
    memory.insert_summary("a", "1", [(Outcome("b", 0.0, False), 1.0)], 3, AgentClock())
    present = EpisodeView(memory, Exact(), [step("c", "a", NOW), step("a", "new", NOW)])
    records = present.retrieve("a", 1, NOW).records
    assert [(record.outcome.state, record.verified) for record in records] == [("b", True), ("new", False)]
    assert [record.id for record in records] == [1, NO_ID]
    assert list(present.in_mind()) == ["a", "c"]
    assert len(list(present.records())) == 3
    assert present.retrieve("elsewhere", None, NOW).records == ()


def test_a_frozen_memory_is_notified_of_steps() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule=LINE, text=True)
    memory = make_memory("adamem")
    agent = Agent(make_policy("planner"), memory, controller=AdaMem(effort="high"))
    assert agent.run_episode(env, seed=0).score == 1
    frozen: Memory = freeze(memory)
    agent.memory = frozen
    before = [record.id for record in memory.records()]
    episode = agent.run_episode(env)
    assert [record.id for record in memory.records()] == before
    assert [len(read_view(one.prompt).elsewhere) for one in episode.trace] == [0, 1, 2], "the history is in the prompt"
    assert all(NO_ID not in one.retrieved for one in episode.trace)
    thought = episode.trace[2].thought
    assert thought is not None
    assert "similarity 1;" in thought.question, "and in the key"
