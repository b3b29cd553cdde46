"""The answers of memory to the queries of a prompt: to many states at once, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from drift_agents.registry.parts import check_result, refuse_result
from drift_agents.types import AgentClock, Note, Record, Retrieved
from drift_envs.checks import is_number


class PromptSource(Protocol):
    """What a prompt is made from: a memory, or a part of one (`drift_agents.memory.views`).

    One whose answers depend on the state alone may also have `retrieve_many(states, k, now)`, which is faster than a
    call of `retrieve` for each (`retrieve_many`).
    """

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The records and items recalled in this state."""
        ...

    def records(self) -> Iterator[Record]:
        """All records about transitions, oldest first."""
        ...


def retrieve_many(memory: Any, states: Sequence[str], k: int | None, now: AgentClock) -> Sequence[Retrieved]:
    """What `memory.retrieve` returns for each of these states, with the side effects of these calls.

    Args:
        memory: one `retrieve_many(states, k, now)` of its own is called instead, unless a subclass has replaced
            `retrieve` alone.

    Example:
        >>> from drift_agents.memory.base import NoMemory
        >>> retrieve_many(NoMemory(), ["a", "b"], None, AgentClock())
        [Retrieved(records=(), weights=(), notes=()), Retrieved(records=(), weights=(), notes=())]
    """
    defined = next((one for one in type(memory).__mro__ if {"retrieve", "retrieve_many"} & vars(one).keys()), object)
    if "retrieve_many" not in vars(defined):
        return [memory.retrieve(state, k, now) for state in states]
    answers: Sequence[Retrieved] = memory.retrieve_many(states, k, now)
    return answers


def is_of_this_package(memory: object) -> bool:
    """Whether a memory and those that it reads are this package's, whose answers are checked once.

    Checks of every answer take 12 to 34 % of an agent's time.
    """
    inner = (getattr(memory, name, None) for name in ("inner", "store"))
    return type(memory).__module__.startswith("drift_agents.memory.") and all(
        one is None or is_of_this_package(one) for one in inner
    )


def check_retrieved(memory: object, answer: Any) -> None:
    """Check an answer of a memory.

    Raises:
        PartError: if it is something else than records with their weights.
    """
    found: Retrieved = check_result("memory", memory, "retrieve", answer, Retrieved)
    if not all(isinstance(one, Record) for one in found.records) or not all(isinstance(n, Note) for n in found.notes):
        raise refuse_result("memory", memory, "retrieve", "a Retrieved of Record and Note", found)
    are_weights = all(is_number(weight) and 0 < weight <= 1 for weight in found.weights)
    if not are_weights or len(found.weights) != len(found.records):
        raise refuse_result("memory", memory, "retrieve", "a weight in (0, 1] for each record", found.weights)
