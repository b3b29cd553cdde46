"""Matching rules: when two states, or two outcomes, are the same (GLOVE, equation 2: s_k ~ s_t)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine, resolve_embedding
from drift_agents.envs.base import EXACT, environments
from drift_agents.errors import UnknownNameError
from drift_agents.registry.parts import make_part
from drift_agents.types import Experience, Record, Transition
from drift_envs.checks import check_interval
from drift_envs.utils.lazy import load_object

MOST_KEYS = 1 << 16
"""The number of states at which a table of keys is cleared."""


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


class StateKeys(dict[str, Hashable]):
    """The keys of states by their text, each computed once.

    Args:
        matching: the rule.

    Example:
        >>> keys = StateKeys(Exact())
        >>> keys["a"], dict(keys)
        ('a', {'a': 'a'})
    """

    def __init__(self, matching: Matching) -> None:
        super().__init__()
        self._matching = matching

    def __missing__(self, state: str) -> Hashable:
        """The key of a state that was not looked up since the table was full.

        Raises:
            ArgumentError: if the rule refuses the text.
        """
        if len(self) >= MOST_KEYS:
            self.clear()
        key = self[state] = self._matching.state_key(state)
        return key


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


Shown = TypeVar("Shown")


class ParsedMatching(Exact, ABC, Generic[Shown]):
    """The base of rules for states that can be parsed; other texts are compared as they are.

    Example:
        >>> class Pond(ParsedMatching[int]):
        ...     name = "pond"
        ...     parse = staticmethod(lambda state: int(state) if state.isdecimal() else None)
        ...
        ...     def key(self, shown):
        ...         return shown % 10
        >>> Pond().state_key("13") == Pond().state_key("23"), Pond().state_key("a frog")
        (True, 'a frog')
    """

    parse: Callable[[str], Shown | None]
    """Parses a state; `None` if the text is no state of this environment."""

    @abstractmethod
    def key(self, shown: Shown) -> Hashable:
        """The key of a state: what of it decides where actions lead."""

    def is_same(self, one: Shown, other: Shown) -> bool:
        """Whether two next states with equal score and end are the same; here: whether their keys are equal."""
        return self.key(one) == self.key(other)

    def is_relevant(self, here: Shown, there: Shown) -> bool:
        """Whether records of the state `there` are relevant in the present state `here`; all are by default."""
        return True

    def state_key(self, state: str) -> Hashable:
        """The key of the state; another text as it is."""
        shown = self.parse(state)
        return state if shown is None else self.key(shown)

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether score and end are equal, and the next states are the same by `is_same`."""
        if a.outcome.score != b.outcome.score or a.outcome.ended != b.outcome.ended:
            return False
        one, other = self.parse(a.outcome.state), self.parse(b.outcome.state)
        if one is None or other is None:
            return a.outcome.state == b.outcome.state
        return self.is_same(one, other)

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state` by `is_relevant`; those of other texts are."""
        here, there = self.parse(state), self.parse(other)
        return here is None or there is None or self.is_relevant(here, there)


OF_NO_ENVIRONMENT = {Exact.name: EXACT, "nearest": "drift_agents.envs.matching:NearestNeighbour"}
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


class NearestNeighbour(Exact):
    """A state is the most similar earlier one, if that is similar enough: for states with text that does not matter.

    The first state is its own. A later one gets the key of the state of highest cosine among those with a key of
    their own, if that cosine is at least `similarity`; otherwise it has a key of its own. A text that has a key keeps
    it, so that equal keys are an equivalence, as memories need; which states share one depends on their order.
    Outcomes are the same if the states that follow are, and score and end are equal.

    Args:
        similarity: the lowest cosine of two texts that count as the same state, in (0, 1]; with 1 only texts with
            equal embeddings do.
        embedding: name of an embedding, a mapping of the name to its options, or an object.

    Raises:
        ArgumentError: if an option is outside its range.
        MissingDependencyError: if the embedding needs a package that is not installed.

    Example:
        >>> rule = NearestNeighbour(similarity=0.8)
        >>> first, later, other = "page 1 of 3: red shoes, 20 left", "page 1 of 3: red shoes, 19 left", "your cart"
        >>> rule.state_key(first) == rule.state_key(later), rule.state_key(first) == rule.state_key(other)
        (True, False)
    """

    name = "nearest"

    def __init__(self, similarity: float = 0.95, embedding: str | Mapping[str, Any] | Embedding = "hashed") -> None:
        self.similarity = check_interval("similarity", similarity, "(0, 1]")
        self.embedding: Embedding = resolve_embedding(embedding)
        self._keys: dict[str, str] = {}
        self._own: list[str] = []
        self._vectors: Vectors = np.zeros((0, self.embedding.dimension))

    def state_key(self, state: str) -> str:
        """The text of the state that it counts as."""
        if state not in self._keys:
            self._keys[state] = self._find(state)
        return self._keys[state]

    def _find(self, state: str) -> str:
        (vector,) = self.embedding.embed([state])
        count = len(self._own)
        if count:
            similarities = cosine(vector, self._vectors[:count])
            nearest = int(similarities.argmax())
            if similarities[nearest] >= self.similarity:
                return self._own[nearest]
        if count == len(self._vectors):  # room for twice as many, so that a state costs no copy of all
            self._vectors = np.concatenate([self._vectors, np.zeros((max(count, 64), self.embedding.dimension))])
        self._vectors[count] = vector
        self._own.append(state)
        return state

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether the next states are the same by this rule, and score and termination are equal."""
        one, other = a.outcome, b.outcome
        if (one.score, one.ended) != (other.score, other.ended):
            return False
        return one.state == other.state or self.state_key(one.state) == self.state_key(other.state)
