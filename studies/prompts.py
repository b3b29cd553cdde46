"""The prompts of every memory, from real episodes: the page docs/prompts.md.

* `write_prompts` - plays the episodes and writes the page
* `RecordingModel` - keeps the requests of a memory, and the answers of its rules

Each memory plays a lake, a shop and the mountain car before and after a drift, with a policy that reads the messages
of a language model (`drift_agents.policy.message_reader`). The page shows the last decision with a lesson, the last
request of each kind that the memory itself would send to a language model, and the other formats of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from drift_agents.agent import Agent
from drift_agents.controller.adamem import AdaMem
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.rules import RuleModel
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import make_policy
from drift_agents.policy.facts import RANKED
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.message_reader.reader import MessageModel, MessageReader
from drift_agents.prompt.view import parse_prompt
from drift_agents.team.base import Member
from drift_agents.team.edv import EDV
from drift_agents.team.rules import RULES
from drift_agents.team_agent import TeamAgent
from drift_agents.types import Episode, StepTrace, Thought

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

FORMATS: Sequence[tuple[str, dict[str, Any]]] = (
    ("raw", {"format": "raw"}),
    ("paper", {"format": "paper"}),
    ("react", {"format": "react"}),
)
"""The other formats, with the options of the policy."""

SEED = 0

LINES, FEW, WIDE = 60, 20, 800
"""How many lines of a decision are shown, how many of a request, and how many characters of a line."""

LESSONS, KNOWN, ELSEWHERE = "Lessons from experience:", "What is known ", "What is known of other "
"""How the parts of the user message that come from memory begin."""


class World(NamedTuple):
    """What is played in one environment.

    Args:
        title: the heading.
        environment: its id.
        schedule: its schedule; the first drift comes after 20 episodes.
        ticks: the schedule's time at the beginning of each episode.
        ties: which of several equally good actions the policy takes.
    """

    title: str
    environment: str
    schedule: str
    ticks: Sequence[int]
    ties: str


LAKE = World("The lake", "DriftFrozenLake-v0", "frozen_lake/explicit", range(24), "random")
SHOP = World("The shop", "DriftWebShop-v0", "webshop/explicit", (*range(7), 20, 21), "first")
CAR = World("The mountain car", "DriftMountainCar-v0", "mountain_car/reversed", (0, 1, 20), "first")


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


class Shown(NamedTuple):
    """What one memory's episodes gave.

    Args:
        step: the last decision with a lesson; without any the last one with records of the present state.
        thought: the last strategy of the controller, if any.
        model: the requests of the memory.
    """

    step: StepTrace
    thought: Thought | None
    model: RecordingModel

    def render(self, **options: Any) -> list[Message]:
        """The messages of the decision; the arguments are options of the policy `llm`."""
        return LanguageModelPolicy(MessageModel(), **options).messages(parse_prompt(self.step.prompt))


def write_prompts(out: Path | None = None) -> str:
    """Play the episodes and make the page.

    Args:
        out: where it is written, if anywhere.

    Returns:
        The page.
    """
    parts = [
        "# The prompts of every memory",
        "Written by `python -m studies prompts --out docs/prompts.md`, from real episodes before and after a drift "
        f"(seed {SEED}). The policy parses the messages and is no language model; with AdaMEM it is the planner, whose "
        "prompts have no history. Where a memory would send a request to a model, its own rules answer. Shown is the "
        "last decision with a lesson, or with records of the present state where a memory recalls no lessons "
        "(BeliefMem and Synapse never do), in the default format `ranked` ([language models](language_models.md)). "
        "The system message stands once for each environment; in the shop and the car the parts that come from memory "
        f"are enough for the other memories. Of a decision the first {LINES} lines are shown, of other texts {FEW}, of "
        f"a line {WIDE} characters.",
        *_show_lake(),
        *_show_memories(SHOP),
        *_show_memories(CAR),
        *_show_formats(),
    ]
    text = "\n\n".join(parts) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
    return text


def _show_lake() -> list[str]:
    """Every memory's decision, and the requests that it sends to a model."""
    parts = [f"## {LAKE.title}", f"`{LAKE.schedule}`, {len(LAKE.ticks)} episodes; the first drift comes after 20."]
    for place, (name, method) in enumerate(MEMORIES):
        shown = _play(LAKE, name)
        parts += [f"### {method}", "The decision:", _block(shown.render()[place > 0 :], LINES)]
        if shown.thought is not None:
            asked = (Message("system", shown.thought.instructions), Message("user", shown.thought.question))
            parts += ["The request `strategy`:", _block(asked, FEW), _answer(shown.thought.answer)]
        for title, (request, answer) in shown.model.requests.items():
            parts += [f"The request `{title}`:", _block(request, FEW), _answer(answer)]
    return parts


def _show_memories(world: World) -> list[str]:
    """One full decision, and of the other memories the parts of the message that come from them."""
    before = sum(tick < 20 for tick in world.ticks)
    after = len(world.ticks) - before
    parts = [f"## {world.title}", f"`{world.schedule}`, {before} episodes before the drift and {after} after it."]
    for place, (name, method) in enumerate(MEMORIES):
        messages = _play(world, name).render()
        if place == 0:
            parts += [f"{method}, the whole decision:", _block(messages, LINES)]
        else:
            recalled = _recalled(messages[-1].content)
            parts += [f"{method}:", _quote(recalled, FEW)] if recalled else [f"{method}: nothing recalled."]
    return parts


def _show_formats() -> list[str]:
    """The same kind of decision in the other formats, in short, and the worked example."""
    parts = [
        "## Other formats",
        f"The memory is `vanilla`, the episodes are those of the lake: the last user message, {FEW} lines of it. "
        "`paper` and `react` show nothing of the present episode.",
    ]
    for title, options in FORMATS:
        shown = _play(LAKE, "vanilla", options["format"])
        parts += [f"### `{title}`", _block(shown.render(**options)[1:], FEW)]
    shown = _play(LAKE, "vanilla")
    plain, example = (shown.render(examples=is_shown)[1].content for is_shown in (False, True))
    parts += [
        "### Few-shot",
        "With the option `examples: true` the user message begins with a worked example:",
        _quote(example.removesuffix(plain).strip().split("\n"), LINES),
    ]
    return parts


def _play(world: World, name: str, form: str = RANKED) -> Shown:
    env = gym.make(world.environment, schedule=world.schedule, text=True)
    played, model = _play_team(env, world) if name == "consensus" else _play_agent(env, world, name, form)
    env.close()
    steps = [step for episode in played for step in episode.trace]
    thoughts = [step.thought for step in steps if step.thought is not None]
    views = [parse_prompt(step.prompt) for step in steps]
    last = max(range(len(steps)), key=lambda place: (bool(views[place].lessons), bool(views[place].here), place))
    return Shown(steps[last], thoughts[-1] if thoughts else None, model)


def _play_agent(env: gym.Env[str, Any], world: World, name: str, form: str) -> tuple[list[Episode], RecordingModel]:
    memory = make_memory(name)
    rules = getattr(memory, "model", None)
    model = RecordingModel(RuleModel({}) if rules is None else rules)
    if rules is not None:
        memory = make_memory(name, model=model)
    controller = AdaMem() if name == "adamem" else None
    policy = make_policy("planner") if name == "adamem" else MessageReader(format=form, ties=world.ties)
    agent = Agent(policy, memory, controller=controller, seed=SEED)
    return [
        agent.run_episode(env, seed=SEED if not number else None, options={"drift_tick": tick})
        for number, tick in enumerate(world.ticks)
    ], model


def _play_team(env: gym.Env[str, Any], world: World) -> tuple[list[Episode], RecordingModel]:
    model = RecordingModel(RuleModel(RULES))
    members = [Member(f"member {number}", MessageReader(ties="random"), model) for number in range(1, 4)]
    agent = TeamAgent(EDV(members), make_memory("consensus"), seed=SEED)
    *learning, last = world.ticks
    for number, tick in enumerate(learning[::4]):
        agent.construct_episode(env, seed=SEED if not number else None, options={"drift_tick": tick})
    return [agent.run_episode(env, options={"drift_tick": last})], model


def _recalled(text: str) -> list[str]:
    """The lines of a user message that come from memory: lessons and what is known of this state, if anything."""
    parts = [part for part in text.split("\n\n") if part.startswith((LESSONS, KNOWN))]
    own = [part for part in parts if not part.startswith(ELSEWHERE)]
    return "\n\n".join(own or parts).split("\n") if parts else []


def _answer(text: str) -> str:
    return f"Answer of the rules: `{_cut(text)}`"


def _block(messages: Sequence[Message], most: int) -> str:
    return _quote([line for one in messages for line in (f"[{one.role}]", *one.content.split("\n"))], most)


def _quote(lines: Sequence[str], most: int) -> str:
    shown = [_cut(line) for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"... ({len(lines) - most} more lines)")
    return "\n".join(("```text", *shown, "```"))


def _cut(text: str) -> str:
    return text if len(text) <= WIDE else f"{text[:WIDE]} ... ({len(text) - WIDE:,} more characters)"
