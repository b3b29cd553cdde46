"""What tables say that carry the names of papers and are played by rules.

* `MARK` - that they are a mechanism test
* `UNCHANGING` - the mechanisms of memories that change no episode where rules play
* `describe_rules` - both, for the memories of a table
"""

from __future__ import annotations

from collections.abc import Iterable

from drift_agents.analysis.schedule_runs import MEMORY_NAMES

MARK = "**Mechanism test by rules, no language model.**"
"""It stands before every such table."""

UNCHANGING = {
    "memory_bank": ("daily summaries",),
    "voyager": ("rows of attempts",),
    "generative_agents": ("reflection", "recency", "relevance"),
    "beliefmem": ("several candidates with probabilities", "retrieval by probability"),
}
"""By memory, what `docs/mechanisms.md` found to change no episode, neither of the plain agent nor with GLOVE."""


def describe_rules(memories: Iterable[str]) -> str:
    """The mark, and the mechanisms of these memories that change no episode.

    Args:
        memories: names or labels of memories.

    Example:
        >>> describe_rules(["vanilla", "memory_bank(k=50)"])
        '**Mechanism test by rules, no language model.** These mechanisms changed no episode on two lakes and a shop \
(`docs/mechanisms.md`): daily summaries (MemoryBank).'
        >>> describe_rules(["vanilla"])
        '**Mechanism test by rules, no language model.**'
    """
    names = {label.partition("(")[0] for label in memories}
    found = [f"{', '.join(what)} ({MEMORY_NAMES[name]})" for name, what in UNCHANGING.items() if name in names]
    if not found:
        return MARK
    where = "on two lakes and a shop (`docs/mechanisms.md`)"
    return f"{MARK} These mechanisms changed no episode {where}: {'; '.join(found)}."
