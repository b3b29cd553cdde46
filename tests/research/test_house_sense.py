"""A rule-based message policy in the house: what it does with the messages, and that it wins with them."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.house import HOUSE
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.lessons import read_view
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

import drift_envs  # noqa: F401 - registers the environments
from research.experiments.readers import MessageModel, MessageReader

EPISODES = 12
"""Each of the six tasks comes twice, so that its own way is known the second time."""


@pytest.mark.integration
def test_a_reader_wins_every_task_and_is_shown_scores_of_its_own_task_alone() -> None:
    env = gym.make("DriftHouse-v0", text=True)
    rule = HOUSE.make("matching")
    memory = VanillaMemory(matching=rule)
    policy = MessageReader()
    agent = Agent(policy, memory, matching=rule, recall=Recall(**HOUSE.recall), seed=1)
    episodes = [agent.run_episode(env, seed=0 if number == 0 else None) for number in range(EPISODES)]
    env.close()
    assert [episode.score for episode in episodes] == [1.0] * EPISODES
    renderer, won = LanguageModelPolicy(MessageModel()), set[str]()
    for episode in episodes:
        first = renderer.messages(read_view(episode.trace[0].prompt, HOUSE.name))[1].content
        assert ("Score 1, in " in first) == (episode.task in won), episode.task
        won.add(episode.task)
    again = [episode for number, episode in enumerate(episodes) if episode.task in {e.task for e in episodes[:number]}]
    assert again
    assert all(episode.steps < 20 for episode in again)


def test_what_stood_where_an_episode_ended_is_told_for_other_tasks() -> None:
    def state(task: str, at: str, sees: list[str], holds: str, done: list[str]) -> str:
        return json.dumps(
            {"house": 7, "task": task, "at": at, "door": "none", "sees": sees, "holds": holds, "done": done}
            | {"opened": [], "visited": [], "says": ""}
        )

    took, put = "take mug 1 from shelf 1", "move mug 1 to sofa 1"
    before = state("put a mug in sofa", "sofa 1", ["pillow 2"], "mug 1", [took])
    after = state("put a mug in sofa", "sofa 1", ["pillow 2", "mug 1"], "nothing", [took, put])
    other = "put a pillow in bed"
    view = PromptView(
        other,
        state(other, "nothing", [], "nothing", []),
        ("go to desk 1", "go to sofa 1", "go to bed 1"),
        (),
        (Recollection(before, put, Outcome(after, 1.0, True), 1, 5),),
        step=6,
        environment=HOUSE.name,
    )
    text = "\n".join(message.content for message in LanguageModelPolicy(MessageModel()).messages(view))
    assert f"- score 1: {took}, {put} (seeing pillow 2) at 5" in text
    assert MessageModel().choices(text, view.actions) == ["go to sofa 1"]
