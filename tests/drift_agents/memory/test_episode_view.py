"""What is before an agent's eyes without recall: this episode's own steps and what is verified."""

from __future__ import annotations

import gymnasium as gym
from drift_agents.agent.agent import Agent
from drift_agents.controller.adamem import AdaMem
from drift_agents.controller.base import Direct
from drift_agents.envs.matching import Exact
from drift_agents.memory.base import Memory, NoMemory, make_memory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.memory.views import NO_ID, EpisodeView, MemoryAndEpisode, freeze
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


def test_steps_that_memory_does_not_hold_stand_beside_what_it_recalls() -> None:
    memory = VanillaMemory()
    memory.observe(step("a", "old", AgentClock()), AgentClock())
    memory.observe(step("c", "a", NOW), NOW)
    both = MemoryAndEpisode(memory, Exact(), [step("c", "a", NOW), step("a", "new", NOW._replace(step=6))])
    assert [record.outcome.state for record in both.retrieve("a", None, NOW).records] == ["old", "new"]
    assert [record.outcome.state for record in both.retrieve("c", None, NOW).records] == ["a"], "memory holds it"
    assert both.retrieve("elsewhere", None, NOW).records == ()
    assert list(both.in_mind()) == ["a", "c"]
    assert [record.id for record in both.records()] == [0, 1, NO_ID - 1]


def test_direct_shows_the_steps_of_its_own_episode() -> None:
    """Of a frozen memory and of none; where memory holds them, nothing changes."""
    env = gym.make("DriftFrozenLake-v0", schedule=LINE, text=True)
    for memory, own in ((NoMemory(), [0, 1, 2]), (freeze(VanillaMemory()), [0, 1, 2])):
        for controller, shown in ((Direct(own_steps=True), own), (Direct(), [0, 0, 0])):
            agent = Agent(make_policy("planner"), memory, controller=controller)
            episode = agent.run_episode(env, seed=0)
            views = [read_view(one.prompt) for one in episode.trace]
            assert [len(view.elsewhere) for view in views] == shown
            assert all(one.retrieved == () for one in episode.trace)
    written = [
        Agent(make_policy("planner"), VanillaMemory(), controller=controller).run_episode(env, seed=0)
        for controller in (Direct(own_steps=True), Direct())
    ]
    assert written[0] == written[1]
