"""What a managed memory is made of: the memory inside, and executions from outside.

* `DemonstrationSource` - the protocol of whoever knows correct executions; privileged
* `exchanged` - a wrong execution, made from a correct one
* `make_store` - the memory that is managed
* `rules_of` - the rules by which it answers what it would ask a model
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model
from drift_agents.llm.rules import Rule, RuleModel
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory, make_memory
from drift_agents.registry import MEMORIES
from drift_agents.types import Episode, Experience


@runtime_checkable
class DemonstrationSource(Protocol):
    """Whoever knows correct executions: an evaluator, never an agent."""

    def show(self, count: int) -> Sequence[Sequence[Experience]]:
        """So many correct executions from before the first episode."""
        ...

    def correct(self, result: Episode) -> Sequence[Experience]:
        """The correct execution of the task that has just been tried."""
        ...


def exchanged(execution: Sequence[Experience]) -> list[Experience]:
    """A wrong execution: every step is said to have led where the next one did, the last where the first did.

    Args:
        execution: a correct one.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> steps = [Experience(s, "1", Outcome(t, 0.0, False), 0.0, AgentClock()) for s, t in ("ab", "bc")]
        >>> [step.outcome.state for step in exchanged(steps)]
        ['c', 'b']
    """
    pairs = [*pairwise(execution), *((execution[-1], execution[0]) for _ in execution[:1])]
    return [step._replace(outcome=after.outcome, reward=after.reward) for step, after in pairs]


def make_store(store: str | Mapping[str, Any], model: Model | None, matching: Matching | None) -> Memory:
    """The memory that is managed.

    Args:
        store: its name, or its name with its options.
        model: what it asks, if it asks one; its option `model: rules` leaves it its rules.
        matching: when two states count as the same.

    Raises:
        ArgumentError: if it is neither, or the memory does not take one of the options.
        UnknownNameError: if no memory has that name.

    Example:
        >>> make_store({"vanilla": {"k": 1}}, None, None).k
        1
    """
    pair: tuple[Any, Any] = (store, None)
    if isinstance(store, Mapping) and len(store) == 1:
        pair = next(iter(store.items()))
    name, given = pair
    if not isinstance(name, str) or not isinstance(given, Mapping | None):
        raise ArgumentError(f"`store` should be a memory's name, or one with its options. Received {store!r}")
    options = dict(given or {})
    if "model" in MEMORIES.options(name)[0]:
        own = options.pop("model", None)
        if own not in (None, "rules"):
            raise ArgumentError(f"the option `model` of a store should be 'rules', or left out. Received {own!r}")
        if model is not None and own is None:
            options["model"] = model
    return make_memory(name, **{"matching": matching, **options})


def rules_of(store: Memory) -> Mapping[str, Rule]:
    """The rules by which a store answers what it would ask a model; none if it asks none.

    Args:
        store: the memory that is managed.
    """
    model = getattr(store, "model", None)
    return model.rules if isinstance(model, RuleModel) else {}
