"""What the model learns from: decisions as messages, with the equally good answers.

* `Chat` - one of them
* `collect` - those on some lakes, kept in a file
* `draw_groups` - in which order they are read
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from drift_agents.llm.answer_format import instruct
from drift_agents.llm.base import Message
from drift_agents.policy.learned_reader.network import Network
from drift_agents.policy.learned_reader.reader import load_network
from drift_agents.policy.learned_reader.reading import ReadMessages

from examples.train_reader.decisions import Decisions
from examples.train_reader.teaching import ALL, LESSONS, MEMORIES, NOISE, RULES, Player, live

STUDENTS = (None, "second", None, "third", None, "source")
"""Who plays a lake, in turn: the rules, or weights of the learned reader."""
GROUP = 8
"""Prompts with one system message, which a step reads."""
WINDOW = 4
"""Groups within which prompts are sorted by their length."""


class Chat(NamedTuple):
    """A decision: the two messages, and the equally good answers."""

    system: str
    user: str
    right: Sequence[str]


class ChatPlayer(Player):
    """A player that keeps decisions as messages."""

    def __init__(self, network: Network | None, noise: float) -> None:
        super().__init__(LESSONS["lake"], Decisions(), network, noise)
        self.chats: list[Chat] = []

    def keep(
        self, messages: Sequence[Message], actions: Sequence[str], read: ReadMessages, right: Sequence[str]
    ) -> None:
        """Keep a decision with the instruction that the policy `llm` adds in the form `text`."""
        schema = {"title": "action", "properties": {"action": {"type": "string", "enum": list(actions)}}}
        system, user = instruct(messages, schema, "text")
        self.chats.append(Chat(system.content, user.content, right))


def collect(path: Path, first: int, lakes: int, episodes: int = ALL) -> list[Chat]:
    """The decisions of a file, which are played if it is not there.

    Args:
        path: the file.
        first: the seed of the first lake.
        lakes: how many.
        episodes: of each lake.
    """
    if not path.is_file():
        lines = []
        for turn in range(lakes):
            student = STUDENTS[turn % len(STUDENTS)]
            network = None if student is None else load_network(student)
            player = ChatPlayer(network, NOISE[turn % len(NOISE)] if network is None else 0.0)
            rule, memory = RULES[turn % len(RULES)], MEMORIES[turn % len(MEMORIES)]
            score = np.mean(list(live(player, memory, rule, first + turn, episodes)))
            lines += [json.dumps(chat) for chat in player.chats]
            print(f"  lake {turn}, {student or 'rules'}, {rule}: {score:.2f}, {len(lines)} decisions", flush=True)
        part = path.with_suffix(".part")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part.replace(path)  # at once, so that a torn file is never taken for the part
    return [Chat(*json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def draw_groups(chats: Sequence[Chat], passes: int, rng: np.random.Generator) -> Iterator[list[Chat]]:
    """All decisions in random order, in groups with the same system message and similar lengths.

    Args:
        chats: the decisions.
        passes: how often each is drawn.
        rng: for the order.
    """
    for _ in range(passes):
        same: dict[str, list[Chat]] = {}
        for place in rng.permutation(len(chats)):
            same.setdefault(chats[place].system, []).append(chats[place])
        groups = []
        for some in same.values():
            for begin in range(0, len(some), WINDOW * GROUP):
                window = sorted(some[begin : begin + WINDOW * GROUP], key=lambda chat: len(chat.user))
                groups += [window[at : at + GROUP] for at in range(0, len(window), GROUP)]
        yield from (groups[place] for place in rng.permutation(len(groups)))
