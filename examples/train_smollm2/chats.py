"""What the model learns from: decisions as messages, with the equally good answers.

* `Chat` - one of them
* `collect` - those on some lakes, kept in a file
* `draw_groups` - in which order they are read
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from drift_agents.llm.answer_format import instruct
from drift_agents.llm.base import Message
from drift_agents.policy.learned_reader.network import Network
from drift_agents.policy.learned_reader.reader import load_network
from drift_agents.policy.learned_reader.reading import ReadMessages

from examples.train_reader.decisions import Decisions
from examples.train_reader.teaching import AGENTS, ALL, LESSONS, NOISE, Player, live

STUDENTS = (None, "second", None, "third", None, "source")
"""Who plays a lake, in turn: the rules, or weights of the learned reader."""
GROUP = 8
"""Prompts with one system message, which a step reads."""
BEGINS, MODEL_EPISODES = (0, 18, 0, 38), 10
"""With which episode of a lake the language model takes over from the rules, in turn, and how many it then plays."""
WINDOW = 4
"""Groups within which prompts are sorted by their length."""


class Chat(NamedTuple):
    """A decision: the two messages, and the equally good answers."""

    system: str
    user: str
    right: Sequence[str]


Answer = Callable[[Chat], str]


class ChatPlayer(Player):
    """A player that keeps decisions as messages.

    Args:
        network: what plays; the rules if not given.
        noise: the share of random actions.
    """

    def __init__(self, network: Network | None, noise: float) -> None:
        super().__init__(LESSONS["lake"], Decisions(), network, noise)
        self.chats: list[Chat] = []
        self.answer: Answer | None = None
        """The language model, while it plays."""

    def choose(
        self,
        messages: Sequence[Message],
        actions: Sequence[str],
        read: ReadMessages,
        right: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """The action of the language model, or what the others take; the first one for an inadmissible answer."""
        if self.answer is None:
            return super().choose(messages, actions, read, right, rng)
        text = self.answer(make_chat(messages, actions, right))
        return text if text in actions else actions[0]

    def keep(
        self, messages: Sequence[Message], actions: Sequence[str], read: ReadMessages, right: Sequence[str]
    ) -> None:
        """Keep a decision; while a language model plays, only those that it visits."""
        self.chats.append(make_chat(messages, actions, right))


def make_chat(messages: Sequence[Message], actions: Sequence[str], right: Sequence[str]) -> Chat:
    """A decision with the instruction that the policy `llm` adds in the form `text`.

    Args:
        messages: without it.
        actions: the admissible actions.
        right: the equally good ones.
    """
    schema = {"title": "action", "properties": {"action": {"type": "string", "enum": list(actions)}}}
    system, user = instruct(messages, schema, "text")
    return Chat(system.content, user.content, right)


def collect(folder: Path, first: int, lakes: int, answer: Answer | None = None, episodes: int = ALL) -> list[Chat]:
    """The decisions on some lakes, a file each; a file that is there is not made again.

    Args:
        folder: of the files.
        first: the seed of the first lake.
        lakes: how many.
        answer: the language model, which plays some episodes of each lake, and alone decides what is kept.
        episodes: of each lake, where no language model plays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chats: list[Chat] = []
    for turn in range(lakes):
        file = folder / f"{first + turn}.jsonl"
        if not file.is_file():
            lines = map(json.dumps, _play(turn, first + turn, answer, episodes))
            part = file.with_suffix(".part")
            part.write_text("\n".join(lines) + "\n", encoding="utf-8")
            part.replace(file)  # at once, so that a torn file is never taken for the lake
        chats += [Chat(*json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    return chats


def _play(turn: int, seed: int, answer: Answer | None, episodes: int) -> list[Chat]:
    """The decisions on a lake; who plays, rules, memories and noise take turns."""
    student = STUDENTS[turn % len(STUDENTS)] if answer is None else None
    begin = 0
    if answer is not None:
        begin = BEGINS[turn % len(BEGINS)]
        episodes = begin + MODEL_EPISODES
    network = None if student is None else load_network(student)
    player = ChatPlayer(network, NOISE[turn % len(NOISE)] if network is None else 0.0)
    player.answer = answer if begin == 0 else None
    scores: list[float] = []
    memory, rule = AGENTS[turn % len(AGENTS)]
    for score in live(player, memory, rule, seed, episodes):
        scores.append(score)
        if len(scores) == begin:
            player.answer = answer
            player.chats.clear()
    print(f"  lake {seed}: {np.mean(scores[begin:]):.2f} won, {len(player.chats)} decisions", flush=True)
    return player.chats


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
