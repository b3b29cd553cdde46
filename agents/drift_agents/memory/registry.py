"""Memories by name.

* `MEMORIES` - all of them; other packages add theirs through the entry-point group `drift_envs.memories`
* `make_memory` - one of them, ready to use
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.registry import make_embedding
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import Memory
from drift_agents.registry import Registry

MEMORIES: Registry[Memory] = Registry(
    "memory",
    "drift_envs.memories",
    {
        "none": "drift_agents.memory.none:NoMemory",
        "vanilla": "drift_agents.memory.vanilla:VanillaMemory",
        "memory_bank": "drift_agents.memory.memory_bank:MemoryBank",
        "voyager": "drift_agents.memory.voyager.voyager:Voyager",
        "generative_agents": "drift_agents.memory.generative_agents.generative_agents:GenerativeAgents",
        "beliefmem": "drift_agents.memory.beliefmem.beliefmem:BeliefMem",
        "consensus": "drift_agents.memory.consensus.consensus:ConsensusMemory",
        "adamem": "drift_agents.memory.adamem.adamem:AdaMemMemory",
        "synapse": "drift_agents.memory.synapse:Synapse",
        "reasoning_bank": "drift_agents.memory.reasoning_bank.reasoning_bank:ReasoningBank",
        "managed": "drift_agents.memory.management.management:Managed",
    },
)


def make_memory(name: str, **options: Any) -> Memory:
    """Make a memory.

    Args:
        name: one of `MEMORIES.names()`.
        options: its parameters, and `matching`, when two states count as the same. `embedding` may be
            given by name too, as in experiment files: `minilm`, or `{hashed: {dimension: 64}}`.

    Raises:
        UnknownNameError: if no memory, or no embedding, has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_memory("vanilla", k=3).k
        3
    """
    if options.get("embedding") is not None:
        options["embedding"] = _embedding(options["embedding"])
    return MEMORIES.make(name, **options)


def _embedding(given: Any) -> Embedding:
    """An embedding, as it is or by its name with options."""
    if isinstance(given, Embedding):
        return given
    named = {given: None} if isinstance(given, str) else given
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ArgumentError(f"`embedding` should be a name, or one name with its options. Received {given!r}")
    ((name, options),) = named.items()
    return make_embedding(name, **({} if options is None else options))
