"""Memory services that try to pass `drift-agents check-memory` without knowing what is true now.

`drift-agents check-memory examples/memory_adversaries.py:OneText ... --no-wrappers` prints the rows of
docs/check_memory.md; none passes `--fail-above stale_first=0.1 --fail-above mixed=0.1 --fail-below present=0.9`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class OneText:
    """Everything that was ever said, in one text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Store a text."""
        self.texts.append(text)

    def search(self, query: str, k: int) -> Sequence[str]:
        """One text."""
        return [" ".join(self.texts)]


def find_statements(texts: Sequence[str], query: str) -> list[str]:
    """The texts with most words of a query, the newest first."""
    words = set(re.findall(r"\w+", query.lower()))
    newest = list(reversed(texts))
    return sorted(newest, key=lambda text: -len(words & set(re.findall(r"\w+", text.lower()))))


class SideBySide(OneText):
    """Old and new side by side: the best statements of a question in one text."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """One text."""
        best, *others = find_statements(self.texts, query)[:k]
        return [f"{best} (formerly: {' '.join(others)})"]


class MaybeNot(OneText):
    """Each statement with the remark that it may be no longer true."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """At most `k` texts."""
        return [f"{text} (perhaps no longer; deleted: null)" for text in find_statements(self.texts, query)[:k]]


class Nothing(OneText):
    """No texts."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """No text."""
        return []


class Echo(OneText):
    """The question."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """The question, in three forms."""
        about = query.rstrip("?.")
        return [query, f"You have said: {about}", f"There is no answer to {about}"]


class TenThousand(OneText):
    """Ten thousand texts, whatever `k` is."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """More texts than are read."""
        return (self.texts * 10_000)[:10_000]


class EveryText(OneText):
    """All texts, the best first, whatever `k` is."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """All texts."""
        return find_statements(self.texts, query)


class Newest(OneText):
    """The newest of everything, whatever the question."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """At most `k` texts."""
        return self.texts[: -k - 1 : -1]


class EveryWord(OneText):
    """The words of the best statements, each as a text of its own, those of the newest first."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """At most `k` words that the question does not have."""
        words = " ".join(find_statements(self.texts, query)[:k]).split()
        return [word for word in dict.fromkeys(words) if word.strip(".?") not in query][:k]


class NoSuchThing(OneText):
    """Whatever is asked for, there is none any more."""

    def search(self, query: str, k: int) -> Sequence[str]:
        """One text."""
        return ["It is no longer so: there is none."]


ADVERSARIES = (OneText, SideBySide, MaybeNot, Nothing, Echo, TenThousand, EveryText, Newest, EveryWord, NoSuchThing)
