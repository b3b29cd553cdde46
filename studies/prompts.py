"""The prompts of every memory, from real episodes: the page docs/prompts.md.

* `write_prompts` - plays the episodes and writes the page
* `RecordingModel` - keeps the requests of a memory, and the answers of its rules

Each memory plays lakes whose map changes, with a policy that reads the messages of a language model
(`drift_agents.policy.message_reader`). The page shows the last decision after the drift, and the last request of each
kind that the memory itself would send to a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from drift_agents.agent import Agent
from drift_agents.controller.adamem import AdaMem
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.rules import RuleModel
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import make_policy
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.message_reader.reader import MessageModel, MessageReader
from drift_agents.prompt.view import parse_prompt
from drift_agents.team.base import Member
from drift_agents.team.edv import EDV
from drift_agents.team.rules import RULES
from drift_agents.team_agent import TeamAgent
from drift_agents.types import Episode

import drift_envs  # noqa: F401 - registers the environments

MEMORIES = (
    ("memory_bank", "MemoryBank"),
    ("voyager", "Voyager"),
    ("generative_agents", "Generative Agents"),
    ("beliefmem", "BeliefMem"),
    ("adamem", "AdaMEM"),
    ("consensus", "EDV"),
    ("synapse", "Synapse"),
    ("reasoning_bank", "ReasoningBank"),
)
"""The name of each memory, and of the method that it belongs to."""

SCHEDULE, EPISODES, SEED = "frozen_lake/explicit", 24, 0
"""What is played; the first drift comes after 20 episodes."""

LINES = 60
"""How many lines of a request are shown."""


class RecordingModel:
    """Keeps the last request of each kind, and the answer of the model behind it.

    Args:
        model: the model that answers.

    Example:
        >>> model = RecordingModel(RuleModel({"length": lambda text: {"length": len(text)}}))
        >>> model.complete([Message("user", "four")], {"title": "length"}).data
        {'length': 4}
        >>> list(model.requests)
        ['length']
    """

    def __init__(self, model: Model) -> None:
        self.model, self.name = model, model.name
        self.requests: dict[str, tuple[tuple[Message, ...], str]] = {}

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer, and keep the request."""
        answer = self.model.complete(messages, schema, parameters, sample_index)
        self.requests[str((schema or {}).get("title", "request"))] = (tuple(messages), answer.text)
        return answer


def write_prompts(out: Path | None = None) -> str:
    """Play the episodes and make the page.

    Args:
        out: where it is written, if anywhere.

    Returns:
        The page.
    """
    parts = [
        "# The prompts of every memory",
        "Written by `python -m studies prompts --out docs/prompts.md`, from episodes on "
        f"`{SCHEDULE}` (seed {SEED}, {EPISODES} episodes; the first drift comes after 20). The policy parses the "
        "messages and is no language model (with AdaMEM it is the planner, whose prompts have no history); where a "
        "memory would send a request to a model, its own rules answer. For each memory the page shows the last "
        "decision with a lesson, in the format `ranked` ([language models](language_models.md)), and the last request "
        f"of each kind that the memory sends to a model. Of longer texts the first {LINES} lines are shown.",
    ]
    for name, method in MEMORIES:
        parts += [f"## {method}", *_show(name)]
    text = "\n\n".join(parts) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
    return text


def _show(name: str) -> list[str]:
    world = gym.make("DriftFrozenLake-v0", schedule=SCHEDULE, text=True)
    if name == "consensus":
        episode, model = _play_team(world)
    else:
        episode, model = _play_agent(world, name)
    world.close()
    writer = LanguageModelPolicy(MessageModel())
    shown = [step for step in episode.trace if parse_prompt(step.prompt).lessons] or list(episode.trace)
    messages = writer.messages(parse_prompt(shown[-1].prompt))
    parts = ["The decision:", _block(messages)]
    thoughts = [step.thought for step in episode.trace if step.thought is not None]
    if thoughts:
        asked = (Message("system", thoughts[-1].instructions), Message("user", thoughts[-1].question))
        parts += ["The request `strategy`:", _block(asked), f"Answer of the rules: `{thoughts[-1].answer}`"]
    for title, (request, answer) in model.requests.items():
        parts += [f"The request `{title}`:", _block(request), f"Answer of the rules: `{answer}`"]
    return parts


def _play_agent(world: gym.Env[str, Any], name: str) -> tuple[Episode, RecordingModel]:
    memory = make_memory(name)
    rules = getattr(memory, "model", None)
    model = RecordingModel(RuleModel({}) if rules is None else rules)
    if rules is not None:
        memory = make_memory(name, model=model)
    controller = AdaMem() if name == "adamem" else None
    policy = make_policy("planner") if name == "adamem" else MessageReader()
    agent = Agent(policy, memory, controller=controller, seed=SEED)
    played = [agent.run_episode(world, seed=SEED if number == 0 else None) for number in range(EPISODES)]
    return played[-1], model


def _play_team(world: gym.Env[str, Any]) -> tuple[Episode, RecordingModel]:
    model = RecordingModel(RuleModel(RULES))
    members = [Member(f"member {number}", MessageReader(ties="random"), model) for number in range(1, 4)]
    agent = TeamAgent(EDV(members), make_memory("consensus"), seed=SEED)
    for number in range(EPISODES // 4):
        agent.construct_episode(world, seed=SEED if number == 0 else None, options={"drift_tick": number})
    return agent.run_episode(world, options={"drift_tick": EPISODES}), model


def _block(messages: Sequence[Message]) -> str:
    lines = [line for message in messages for line in (f"[{message.role}]", *message.content.split("\n"))]
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"... ({len(lines) - LINES} more lines)"]
    return "\n".join(("```text", *lines, "```"))
