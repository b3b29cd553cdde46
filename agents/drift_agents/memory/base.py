"""What every memory offers, so that any verifier can attach to it, and what some memories offer beside it.

`drift_agents.memory.transitions.TransitionStoreMemory` fulfils the protocol for a memory of one's own.
`drift_agents.prompt.builder.FocusedMemory` is one more optional protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drift_agents.embedding.base import resolve_embedding
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError, PartError
from drift_agents.llm.base import Model
from drift_agents.registry.parts import check_protocol, check_result, show_name
from drift_agents.registry.tables import MEMORIES
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, RecordId, Removed, Retrieved


@runtime_checkable
class Memory(Protocol):
    """An agent's memory.

    The contract, beyond the signatures:

    * ids grow: what is written later has the larger id; no id is used twice;
    * `same_transitions` and `records` have no side effect; `retrieve` may update strengths and times of
      last access, and nothing else;
    * records that `remove` took appear in no later result, nor does a derived item that lost most of
      its evidence;
    * equal calls in equal order give equal results, in every process; `copy.deepcopy` makes an independent copy,
      where what it is made of allows it.
    """

    name: str
    supervision: str
    """For the tables: `none`, `own reward`, `judge` or `privileged`."""

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """Records and notes for this state; `k=None` leaves the number to the memory."""
        ...

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write an experience by the memory's own rule; `None` when the rule does not write it."""
        ...

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state (by the matching rule) and action, oldest first."""
        ...

    def records(self) -> Iterator[Record]:
        """All records of transitions, oldest first."""
        ...

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and the items that depend on them; unknown ids are ignored."""
        ...

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write a verifier's summary of `n` responses; `None` for a memory that stores nothing."""
        ...

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Process a finished episode; its steps carry the retrieved ids and the reward as shown."""


@runtime_checkable
class StepObserver(Protocol):
    """A memory that is notified of every step, whether the step is written or not.

    The history of an episode is part of the present state (AdaMEM: s_t is history and observation),
    also where nothing is written, or a verifier writes something else.
    """

    def follow(self, experience: Experience) -> None:
        """Append a step to the history of the present episode."""
        ...


class Exemplar(NamedTuple):
    """A step of an earlier episode and the steps after it (AdaMEM's value: state, action, rest).

    Args:
        steps: records of the step and of those that followed, in order.
        score: the score at the end of that episode.
        similarity: of its key to the present one, in [-1, 1].
        task: that episode's task in words, where it is known.
    """

    steps: tuple[Record, ...]
    score: float
    similarity: float = 1.0
    task: str = ""


@runtime_checkable
class ExemplarMemory(Protocol):
    """A memory that retrieves parts of earlier episodes."""

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        """The `k` most similar parts, the best first; `None` leaves the number to the memory."""
        ...


def recall_exemplars(memory: Memory, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
    """Parts of earlier episodes, from any memory.

    A memory without trajectories returns its records of the present state, each as an episode of one step.

    Args:
        memory: its `retrieve` may have side effects.
        k: how many; `None` leaves the number to the memory.

    Example:
        >>> from drift_agents.memory.base import NoMemory
        >>> recall_exemplars(NoMemory(), "a", None, AgentClock())
        ()
    """
    if isinstance(memory, ExemplarMemory):
        return memory.exemplars(state, k, now)
    earlier = [record for record in memory.retrieve(state, k, now).records if record.now.episode < now.episode]
    return tuple(Exemplar((record,), record.outcome.score) for record in earlier)


@runtime_checkable
class MemberMemory(Protocol):
    """A memory with a private bank for each member of a team."""

    def address(self, member: str, task: str) -> None:
        """Set the acting member and its task."""


@runtime_checkable
class AuditedMemory(Protocol):
    """A memory whose items can be audited."""

    def audited(self) -> Iterable[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """Number, owner (empty for the shared bank) and evidence of every item, oldest first."""
        ...


@runtime_checkable
class PeekedMemory(Protocol):
    """A memory that can be read without a side effect, for evaluators: what `retrieve` would return."""

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """Records for this state, as many as the memory retrieves by default, without notes that change it."""
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
        PartError: if it is one of another package or file that cannot be used.

    Example:
        >>> make_memory("vanilla", k=3).k
        3
    """
    matching = options.get("matching")
    if matching is not None and not isinstance(matching, Matching):
        raise ArgumentError(
            "`matching` of a memory should be a rule itself; an experiment file names it for a schedule, as in "
            f"environments: {{SCHEDULE: {{matching: exact}}}}. Received {matching!r}"
        )
    if options.get("embedding") is not None:
        options["embedding"] = resolve_embedding(options["embedding"])
    if options.get("model") is not None and not isinstance(options["model"], str):
        check_protocol("model", type(options["model"]).__name__, options["model"], Model)
    made: Memory = MEMORIES.make(name, **options)
    check_memory(name, made)
    return made


def check_memory(name: str, memory: Any) -> None:
    """Check that an object has what a memory has.

    Args:
        name: of the memory, for messages.

    Raises:
        PartError: if it has not, or is a memory service.
    """
    if is_memory_service(memory):
        raise PartError(
            f"the memory {name!r} has `add` and `search` alone, which make a memory service: name it as the store of "
            f'the memory `store`, as in {{store: {{store: {name!r}}}}}, or in Python make_memory("store", store=...)'
        )
    missing = [method for method in SERVICE if not callable(getattr(memory, method, None))]
    if len(missing) < len(SERVICE) and not hasattr(memory, "observe"):
        raise PartError(
            f"the memory {show_name(name)!r} should have `add` and `search`, which make a memory service, or "
            f"what `Memory` has. Missing of a service: {', '.join(missing)}"
        )
    hint = ". A memory service needs `add(text)` and `search(query, k)` alone"
    check_protocol("memory", name, memory, Memory, hint)
    check_result("memory", memory, "records", memory.records(), Iterable)


SERVICE = ("add", "search")
"""The methods of a memory service."""


def is_memory_service(part: Any) -> bool:
    """Whether an object or a class has the two methods of a memory service, and is no memory.

    Example:
        >>> from drift_agents.stores.services import CommonWords
        >>> is_memory_service(CommonWords), is_memory_service(NoMemory)
        (True, False)
    """
    return all(callable(getattr(part, name, None)) for name in SERVICE) and not hasattr(part, "observe")


class NoMemory:
    """Stores nothing (GLOVE, section 5.1: "No Memory").

    Args:
        matching: not used; accepted so that all memories take the same argument.

    Example:
        >>> NoMemory().retrieve("anywhere", 5, AgentClock())
        Retrieved(records=(), weights=(), notes=())
    """

    name = "none"
    supervision = "none"

    def __init__(self, *, matching: Matching | None = None) -> None:
        pass

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """An empty result."""
        return Retrieved()

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write nothing."""
        return None

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """No records."""
        return []

    def records(self) -> Iterator[Record]:
        """No records."""
        return iter(())

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove nothing."""
        return Removed()

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write nothing."""
        return None

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Do nothing."""
