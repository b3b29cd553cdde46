"""Memories by name.

* `MEMORIES` - all of them; other packages add theirs through the entry-point group `drift_envs.memories`
* `make_memory` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.memory.base import Memory
from drift_agents.registry import Registry

MEMORIES: Registry[Memory] = Registry(
    "memory",
    "drift_envs.memories",
    {
        "none": "drift_agents.memory.none:NoMemory",
        "vanilla": "drift_agents.memory.vanilla:VanillaMemory",
        "memory_bank": "drift_agents.memory.memory_bank:MemoryBank",
        "voyager": "drift_agents.memory.voyager:Voyager",
        "generative_agents": "drift_agents.memory.generative_agents:GenerativeAgents",
        "beliefmem": "drift_agents.memory.beliefmem:BeliefMem",
    },
)


def make_memory(name: str, **options: Any) -> Memory:
    """Make a memory.

    Args:
        name: one of `MEMORIES.names()`.
        options: its parameters, and `matching`, when two states count as the same.

    Raises:
        UnknownNameError: if no memory has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_memory("vanilla", k=3).k
        3
    """
    return MEMORIES.make(name, **options)
