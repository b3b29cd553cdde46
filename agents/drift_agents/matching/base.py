"""When two states count as the same, and when two outcomes do (GLOVE, equation 2: s_k ~ s_t).

* `Matching` - the protocol
* `RelatedStates` - what a rule can offer beside: which other states have to do with a state
* `BatchMatching` - and: one outcome compared with many at once
* `Exact` - states and outcomes are the same when their texts are
* `make_matching` - a matching rule by name
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

from drift_agents.registry import MATCHINGS
from drift_agents.types import Experience, Record, Transition


@runtime_checkable
class Matching(Protocol):
    """A task's rule for what counts as the same.

    `state_key` is a pure function. `same_outcome` is symmetric and is asked only about transitions
    with equal state keys and equal actions; it may use what `learn` has gathered.
    """

    name: str

    def state_key(self, state: str) -> Hashable:
        """States with equal keys count as the same."""
        ...

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether the two outcomes count as the same response of the world."""
        ...

    def learn(self, experience: Experience) -> None:
        """Take note of a lived transition, for rules that fit a local model."""


@runtime_checkable
class RelatedStates(Protocol):
    """A rule that also says which other states have to do with a state.

    Where states are long texts, a prompt cannot hold all that memory knows; `drift_agents.prompt.builder`
    then asks only about those.
    """

    def related(self, state: str, other: str) -> bool:
        """Whether what is known about `other` can help in `state`; a pure function."""
        ...


@runtime_checkable
class BatchMatching(Protocol):
    """A rule that also compares one outcome with those of many records at once.

    Where no state comes twice a cell holds thousands of records, and every step is compared with all
    of them. What is counted is what `same_outcome` says, only sooner.
    """

    def count_same(self, transition: Transition, records: Sequence[Record]) -> float:
        """How many of the responses that the records stand for count as the same."""
        ...


class Exact:
    """States and outcomes are the same when their texts are equal: for discrete environments.

    Example:
        >>> from drift_agents.types import Outcome, Transition
        >>> rule = Exact()
        >>> fell = Transition("s", "1", Outcome("H", 0.0, True))
        >>> rule.same_outcome(fell, Transition("s", "1", Outcome("F", 0.0, False)))
        False
    """

    name = "exact"

    def state_key(self, state: str) -> Hashable:
        """The text itself."""
        return state

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether next state, score and end are all equal."""
        return a.outcome == b.outcome

    def learn(self, experience: Experience) -> None:
        """Nothing to learn: the rule is fixed."""


def make_matching(name: str, **options: Any) -> Matching:
    """Make a matching rule by name.

    Args:
        name: one of `registry.MATCHINGS.names()`.
        options: its options.

    Raises:
        UnknownNameError: if there is no matching rule of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_matching("grid", position=0.05).name
        'grid'
    """
    made: Matching = MATCHINGS.make(name, **options)
    return made
