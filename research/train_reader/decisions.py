"""Decisions to learn from: prompts as lists of numbered lines, with the candidates and which of them are right.

* `Decisions` - keeps, writes and reads them
* `learn_vocabulary` - the words that occur in many of their lines
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.policy.learned_reader.reader import ReadMessages, Words

RARE = 5
"""Words that stand in fewer lines of all prompts together are unknown."""


@dataclass
class Decisions:
    """Prompts as lists of lines, with the candidates and which of them are right.

    Args:
        lines: the words of each distinct line.
        prompts: for each decision the numbers of its lines.
        candidates: likewise those of its actions, as lines.
        right: likewise which of them are right.
    """

    lines: dict[Words, int] = field(default_factory=dict)
    prompts: list[list[int]] = field(default_factory=list)
    candidates: list[list[int]] = field(default_factory=list)
    right: list[list[bool]] = field(default_factory=list)

    def add(self, read: ReadMessages, right: Sequence[bool]) -> None:
        """Keep a decision.

        Args:
            read: the messages and the admissible actions.
            right: whether each action is one of the equally good ones.
        """
        self.prompts.append([self._number(line) for line in dict.fromkeys(read.lines)])
        self.candidates.append([self._number(words) for words in read.candidates])
        self.right.append(list(right))

    def _number(self, words: Words) -> int:
        return self.lines.setdefault(words, len(self.lines))

    def extend(self, other: Decisions) -> None:
        """Add all decisions of another object.

        Args:
            other: the decisions.
        """
        numbers = [self._number(line) for line in other.lines]
        self.prompts += [[numbers[line] for line in prompt] for prompt in other.prompts]
        self.candidates += [[numbers[line] for line in one] for one in other.candidates]
        self.right += other.right

    def save(self, path: Path) -> None:
        """Write a file."""
        lists: dict[str, Any] = {"prompts": self.prompts, "candidates": self.candidates, "right": self.right}
        arrays: dict[str, Any] = {}
        for name, entries in lists.items():
            arrays[name] = np.array([one for entry in entries for one in entry])
            arrays[f"{name} sizes"] = np.array([len(entry) for entry in entries])
        lines = np.frombuffer("\n".join(map(" ".join, self.lines)).encode(), np.uint8)
        np.savez_compressed(path, lines=lines, **arrays)

    @classmethod
    def load(cls, path: Path) -> Decisions:
        """Read a file of `save`."""
        with np.load(path, allow_pickle=False) as file:
            lines = file["lines"].tobytes().decode().split("\n")
            lists = [
                [part.tolist() for part in np.split(file[name], np.cumsum(file[f"{name} sizes"])[:-1])]
                for name in ("prompts", "candidates", "right")
            ]
        return cls({tuple(line.split(" ")): number for number, line in enumerate(lines)}, *lists)


def learn_vocabulary(decisions: Decisions, most: int | None = None) -> tuple[str, ...]:
    """The words that occur in many lines of the prompts, in alphabetical order.

    A line counts as often as prompts have it: what an action does is said in a few lines, which every prompt has.

    Args:
        decisions: the decisions of the rules.
        most: how many words at the most, those of most lines; all if not given.
    """
    times = Counter(line for one in (*decisions.prompts, *decisions.candidates) for line in one)
    counts: Counter[str] = Counter()
    for number, line in enumerate(decisions.lines):
        counts.update(dict.fromkeys(line, times[number]))
    words = sorted((word for word, count in counts.items() if count >= RARE), key=lambda word: (-counts[word], word))
    return tuple(sorted(words[:most]))
