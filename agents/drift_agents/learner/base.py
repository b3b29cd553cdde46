"""The base of tabular learners, which take the place of an `Agent`.

* `Learner` - plays episodes and learns after each step; subclasses define the update
* `LearnerStep` - one interaction of a learner
* `Pair` - a state by the matching rule, and an action
* `make_learner` - a learner by name
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from drift_agents.checks import check_number
from drift_agents.matching.base import Exact, Matching
from drift_agents.registry import LEARNERS
from drift_agents.types import Episode
from drift_agents.world import read_outcome, reset_text_world, to_env

Pair = tuple[Hashable, str]
"""A state by the matching rule, and an action."""


class LearnerStep(NamedTuple):
    """One interaction of a learner.

    Args:
        pair: the state before, and the action.
        gain: the increase of the score.
        state: the next state, by the matching rule.
        actions: the admissible actions there; empty if the episode ended.
    """

    pair: Pair
    gain: float
    state: Hashable
    actions: tuple[str, ...]


class Learner(ABC):
    """A tabular learner over text states; it learns from the score alone.

    Its input is that of agents: the state as text, the admissible actions and the score so far. It parses
    neither the task nor states; states are the same by the matching rule. Its reward is the increase of the
    score, so that rewards are comparable across environments.

    Actions are epsilon-greedy on Q, ties at random. A truncated episode bootstraps from its last state.

    Args:
        matching: when two states count as the same; texts must be equal if not given.
        rate: alpha, the learning rate; in (0, 1].
        discount: gamma; in (0, 1).
        explore: epsilon, the probability of a random action; in [0, 1).
        initial: Q of untried pairs, in [0, inf); 1, the highest score, is optimistic.
        seed: of the learner's own generator.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name: str
    supervision = "own reward"

    def __init__(
        self,
        *,
        matching: Matching | None = None,
        rate: float,
        discount: float,
        explore: float,
        initial: float,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.matching: Matching = Exact() if matching is None else matching
        self.rate = check_number("rate", rate, "(0, 1]")
        self.discount = check_number("discount", discount, "(0, 1)")
        self.explore = check_number("explore", explore, "[0, 1)")
        self.initial = check_number("initial", initial, "[0, inf)")
        self._rng = np.random.default_rng(seed)
        self._values: dict[Pair, float] = {}
        self.steps = 0

    def value(self, state: str, action: str) -> float:
        """Q of an action in a state.

        Args:
            state: the state, as text.
            action: the action, as text.
        """
        return self._value((self.matching.state_key(state), action))

    def run_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end, and learn after every step.

        Args:
            world: the environment; it is reset first.
            seed: handed to `reset`.
            options: handed to `reset`.

        Returns:
            The episode, without its steps.

        Raises:
            ArgumentError: if the environment has no text states.
        """
        observation, info = reset_text_world(world, seed, options)
        task, started = str(info["task"]), self.steps
        state, score = self.matching.state_key(observation), float(info["score"])
        terminated = truncated = False
        while not (terminated or truncated):
            action = self._choose(state, tuple(info["actions"]))
            observation, _, terminated, truncated, info = world.step(to_env(world.action_space, action))
            outcome = read_outcome(observation, terminated, info)
            after = self.matching.state_key(outcome.state)
            actions = () if terminated else tuple(info["actions"])
            self._learn(LearnerStep((state, action), outcome.score - score, after, actions))
            self.steps += 1
            state, score = after, outcome.score
        return Episode(task, score, self.steps - started, bool(terminated))

    def _choose(self, state: Hashable, actions: tuple[str, ...]) -> str:
        """Epsilon-greedy, ties at random."""
        if self._rng.random() < self.explore:
            return actions[int(self._rng.integers(len(actions)))]
        values = np.array([self._value((state, action)) for action in actions])
        best = np.flatnonzero(values == values.max())
        return actions[int(best[self._rng.integers(len(best))])]

    def _value(self, pair: Pair) -> float:
        return self._values.get(pair, self.initial)

    def _update(self, step: LearnerStep, bonus: float = 0.0) -> None:
        """One step of Q-learning (Watkins 1989)."""
        future = max((self._value((step.state, action)) for action in step.actions), default=0.0)
        old = self._value(step.pair)
        self._values[step.pair] = old + self.rate * (step.gain + bonus + self.discount * future - old)

    @abstractmethod
    def _learn(self, step: LearnerStep) -> None:
        """Learn after a step."""


def make_learner(name: str, **options: Any) -> Learner:
    """Make a learner by name.

    Args:
        name: one of `registry.LEARNERS.names()`.
        options: its options; all take `matching` and `seed`.

    Raises:
        UnknownNameError: if there is no learner of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_learner("windowed_q").name
        'windowed_q'
    """
    made: Learner = LEARNERS.make(name, **options)
    return made
