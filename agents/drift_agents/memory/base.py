"""What every memory must offer, so that any verifier can attach to it.

* `Memory` - the protocol; one contract suite in the tests runs over every implementation
* `StepObserver` - a memory that is told every step as it happens, whether it writes it or not
* `make_memory` - a memory by name
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from drift_agents.embedding.base import Embedding, make_embedding
from drift_agents.errors import ArgumentError
from drift_agents.registry import MEMORIES
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
)


@runtime_checkable
class Memory(Protocol):
    """An agent's memory.

    The contract, beyond the signatures:

    * ids grow: what is written later has the larger id; an id is never used twice;
    * `counterparts`, `records`, `states`, `snapshot` and `content_hash` have no side effect;
      `retrieve` may have one (strengths, last access), and only that;
    * what `remove` took is gone from every later answer, and so is every derived item that lost
      most of its evidence;
    * equal calls in equal order give equal contents (`content_hash`), in every process.
    """

    name: str
    needs: frozenset[str]
    """What it must be given beside its own experience: of `outcome`, `judge`, `critic`."""
    supervision: str
    """For the tables: `none`, `own reward`, `judge` or `privileged`."""

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What the memory recalls in this state; `k=None` leaves the number to the memory."""
        ...

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write an experience by the memory's own rule; `None` when the rule does not write it."""
        ...

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state (by the matching rule) and action, oldest first."""
        ...

    def records(self) -> Iterator[Record]:
        """All records about transitions, oldest first."""
        ...

    def states(self) -> Iterator[str]:
        """One text for every known state (by the matching rule), in order of first mention."""
        ...

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and what rests on them; unknown ids are passed over."""
        ...

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write what a verifier found out by probing; `None` for a memory that holds nothing."""
        ...

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Take note of a finished episode; steps carry the retrieved ids and the reward as shown."""

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        ...

    def restore(self, data: Plain) -> None:
        """Take back a snapshot.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """

    def content_hash(self) -> str:
        """A hash of the content: equal for equal contents, in every process."""
        ...


@runtime_checkable
class StepObserver(Protocol):
    """A memory that is told every step as it happens, whether it is written or not.

    What has happened in an episode belongs to the present state (AdaMEM: s_t is history and
    observation); it is known also where nothing is written, or a verifier writes something else.
    """

    def follow(self, experience: Experience) -> None:
        """This has just happened."""
        ...


def make_memory(name: str, **options: Any) -> Memory:
    """Make a memory by name.

    Args:
        name: one of `registry.MEMORIES.names()`.
        options: its options, and `matching`, when two states count as the same. `embedding` may be
            given by name too, as in experiment files: `minilm`, or `{hashed: {dimension: 64}}`.

    Raises:
        UnknownNameError: if there is no memory, or no embedding, of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_memory("vanilla", k=3).k
        3
    """
    if options.get("embedding") is not None:
        options["embedding"] = _resolve_embedding(options["embedding"])
    made: Memory = MEMORIES.make(name, **options)
    return made


def _resolve_embedding(given: Any) -> Embedding:
    """An embedding, as it is or by its name with options."""
    if isinstance(given, Embedding):
        return given
    named = {given: None} if isinstance(given, str) else given
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ArgumentError(f"`embedding` should be a name, or one name with its options. Received {given!r}")
    ((name, options),) = named.items()
    return make_embedding(name, **({} if options is None else options))
