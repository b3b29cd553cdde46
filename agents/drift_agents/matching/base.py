"""Matching rules: when two states, or two outcomes, are the same (GLOVE, equation 2: s_k ~ s_t).

* `Matching` - the protocol
* `RelatedStates` - rules that also define which states are related
* `PathMatching` - rules with finer states for paths through memory
* `BatchMatching` - rules that also compare one outcome with many at once
* `Exact` - states and outcomes are the same when their texts are equal
* `matching_names`, `make_matching` - matching rules by name
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

from drift_agents.environment import EXACT, environments
from drift_agents.errors import UnknownNameError
from drift_agents.registry import make_part
from drift_agents.types import Experience, Record, Transition
from drift_envs.lazy import load_object


@runtime_checkable
class Matching(Protocol):
    """The rule of an environment for equality of states and outcomes.

    Within one object `state_key` is a function of the text. `same_outcome` is symmetric and is called only for
    transitions with equal state keys and equal actions; it may use what `learn` has fitted.
    """

    name: str

    def state_key(self, state: str) -> Hashable:
        """The key of a state; states with equal keys are the same."""
        ...

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether the two outcomes are the same response of the environment."""
        ...

    def learn(self, experience: Experience) -> None:
        """Update a fitted model with a transition, for rules that have one."""


@runtime_checkable
class RelatedStates(Protocol):
    """A rule that also defines which states are related.

    Where states are long texts, a prompt cannot hold all records; `drift_agents.prompt.builder` then queries
    memory for related states only.
    """

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state`; a pure function."""
        ...


@runtime_checkable
class PathMatching(Protocol):
    """A rule with finer states for paths through memory.

    Where a state's key leaves out what decides where the state leads (the velocity of a car), paths that join
    outcomes and states by that key lead nowhere.
    """

    def path_key(self, state: str) -> Hashable:
        """The key of a state when steps are joined into paths; a pure function."""
        ...


@runtime_checkable
class BatchMatching(Protocol):
    """A rule that also compares one outcome with those of many records at once.

    Where states are continuous a cell holds thousands of records, and each step is compared with all of them.
    The count equals that of `same_outcome`, computed faster.
    """

    def count_same(self, transition: Transition, records: Sequence[Record]) -> float:
        """The number of responses of the records with the same outcome."""
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
        """Whether next state, score and termination are all equal."""
        return a.outcome == b.outcome

    def learn(self, experience: Experience) -> None:
        """Do nothing: the rule is fixed."""


OF_NO_ENVIRONMENT = {Exact.name: EXACT, "nearest": "drift_agents.matching.nearest:NearestNeighbour"}
"""Rules for any text."""


def matching_names() -> tuple[str, ...]:
    """The names of all rules: `exact`, `nearest`, and the environments with a rule of their own.

    Example:
        >>> matching_names()[:4]
        ('exact', 'nearest', 'mountain_car', 'minigrid')
    """
    return (*OF_NO_ENVIRONMENT, *(one.name for one in environments() if one.matching != EXACT))


def make_matching(name: str, **options: Any) -> Matching:
    """Make a matching rule by name.

    Args:
        name: one of `matching_names()`.
        options: its options.

    Raises:
        UnknownNameError: if there is no matching rule of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.
        MissingDependencyError: if it needs a package that is not installed.

    Example:
        >>> make_matching("mountain_car", position=0.05).name
        'mountain_car'
    """
    if name not in matching_names():
        raise UnknownNameError("matching", name, matching_names())
    made: Matching = (
        make_part("matching", name, load_object(OF_NO_ENVIRONMENT[name]), options)
        if name in OF_NO_ENVIRONMENT
        else next(one for one in environments() if one.name == name).make("matching", **options)
    )
    return made
