"""A memory service of two methods, as users write them: found by common words, the oldest of equals first."""

from __future__ import annotations


class Words:
    """Texts with the most words of the query."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, frozenset[str]]] = []

    def add(self, text: str) -> None:
        self.texts.append((text, frozenset(text.lower().split())))

    def search(self, query: str, k: int) -> list[str]:
        asked = set(query.lower().split())
        return [text for text, _ in sorted(self.texts, key=lambda held: -len(asked & held[1]))[:k]]
