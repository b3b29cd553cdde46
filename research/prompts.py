"""What a language model reads, one example of each format: the page docs/research/prompts.md.

* `write_prompts` - plays the episodes and writes the page

For each format a policy that reads these messages (`research.experiments.readers`) plays a lake before and after
a drift. The page shows the messages of the last decision at which the memory held records of the present state.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import gymnasium as gym
from drift_agents.agent.agent import Agent
from drift_agents.envs.base import environment_of
from drift_agents.llm.base import Message
from drift_agents.memory.base import make_memory
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.messages import FORMATS
from drift_agents.prompt.lessons import read_view

import drift_envs  # noqa: F401 - registers the environments
from research.experiments.readers import MessageModel, MessageReader

SCHEDULE, SEED = "frozen_lake/explicit", 0
TICKS = range(24)
"""The schedule's time at the beginning of each episode; the first drift comes after 20."""

LINES = {"ranked": 9, "raw": 6, "paper": 24, "full": 3, "react": 4}
"""How many lines of the user message are shown; of the default format all, of `full` those that `paper` lacks."""


def write_prompts(out: Path | None = None) -> str:
    """Play the episodes and make the page.

    Args:
        out: where it is written, if anywhere.

    Returns:
        The page.
    """
    parts = [
        "# Prompts",
        "For people who choose a format of the prompt, or want to see what a language model reads: an example of each "
        "format of the policy [`llm`](../language_models.md#what-the-model-reads), at the last decision with known "
        "outcomes. `python -m research prompts --out docs/research/prompts.md` writes this page: "
        f"{len(TICKS)} episodes of `{SCHEDULE}` with seed {SEED} and vanilla memory, the first drift after 20, played "
        "by rules. The default format is shown with both messages, the others with the first lines of the user "
        "message.",
    ]
    paper: list[str] = []
    for form in FORMATS:
        system, user = _last_decision(form)
        if form == BRIEF:
            shown = ["[system]", *system.content.split("\n"), "[user]", *user.content.split("\n")]
            parts += [f"## `{form}` (default)", _quote(shown)]
        else:
            lines = user.content.split("\n")
            paper = lines if form == "paper" else paper
            both = takewhile(lambda pair: pair[0] == pair[1], zip(paper, lines, strict=False))
            shared = len(list(both)) if form == "full" else 0
            parts += [f"## `{form}`", *(["After the lines of `paper`:"] if shared else [])]
            parts += [_quote(lines[shared:], LINES[form])]
    text = "\n\n".join(parts) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
    return text


def _last_decision(form: str) -> list[Message]:
    """The messages of the last decision with records of the present state."""
    env = gym.make("DriftFrozenLake-v0", schedule=SCHEDULE, text=True)
    reader = MessageReader(format=form, ties="random")
    agent = Agent(reader, make_memory("vanilla"), seed=SEED)
    played = [
        agent.run_episode(env, seed=None if number else SEED, options={"drift_tick": tick})
        for number, tick in enumerate(TICKS)
    ]
    env.close()
    name = environment_of(env).name
    views = (read_view(step.prompt, name) for episode in reversed(played) for step in reversed(episode.trace))
    last = next(view for view in views if view.here)
    return LanguageModelPolicy(MessageModel(), format=form).messages(last)


def _quote(lines: Sequence[str], most: int | None = None) -> str:
    shown = list(lines[:most])
    if len(lines) > len(shown):
        shown.append(f"... ({len(lines) - len(shown)} more lines)")
    return "\n".join(("```text", *shown, "```"))
