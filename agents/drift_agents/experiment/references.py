"""Reference agents of every table, with access to the oracle.

* `OracleVerifier` - *oracle realign* and *oracle reset*, an agent's memory corrected at every drift, and *oracle
  truth*, corrected after every step
* `Clairvoyant` - the optimal policy of every tick

They separate "failed to adapt" from "the task became harder". All of them are privileged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, RecordId, Verdict
from drift_agents.verifier.base import BaseVerifier, NoVerifier
from drift_envs.schedule.timeline import Timeline


class OracleVerifier(BaseVerifier):
    """Puts memory right at the very tick at which the world changes, or after every step; writes every experience.

    *Oracle realign* removes exactly the records whose response is another one now than when they were
    written: the upper reference for everything that repairs a memory where all responses are true. *Oracle reset*
    removes all of them; it can be beaten, since it throws away what is still true. *Oracle truth* removes every record
    that holds no possible true response at the present tick, as soon as it is written: the upper reference where
    responses are false, which the other two leave in memory.

    Args:
        name: `oracle_realign`, `oracle_reset` or `oracle_truth`.
        world: where the agent plays.
        memory: the agent's memory.
    """

    supervision = "privileged"

    def __init__(self, name: str, world: EvaluationWrapper, memory: Memory) -> None:
        super().__init__()
        self.name = name
        self._world, self._memory = world, memory
        self._plain = NoVerifier()
        self._values: Mapping[str, Any] | None = None
        self._timeline: Timeline | None = None
        self._true: set[RecordId] = set()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule, to say what was a surprise."""
        self._plain.bind(matching, rng)

    def begin_episode(self) -> None:
        """Put memory right before the first decision, if the world has changed."""
        self._follow()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience; put memory right before the next decision, if the world changes in between."""
        verdict = self._plain.verify(experience, memory, prefix, now)
        self._follow()
        return verdict

    def _follow(self) -> None:
        tick = self._world.tick
        values = self._world.knobs(tick)
        # Another world, as the test is one after construction, is no drift.
        same = self._world.timeline is self._timeline
        if self.name == "oracle_truth":
            self._remove_false(tick, same and values == self._values)
        elif same and values != self._values:
            self._memory.remove(
                [
                    record.id
                    for record in self._memory.records()
                    if self.name == "oracle_reset" or self._world.changed(record, tick)
                ]
            )
        self._values, self._timeline = values, self._world.timeline

    def _remove_false(self, tick: int, is_same: bool) -> None:
        if not is_same:
            self._true.clear()
        records = [record for record in self._memory.records() if record.id not in self._true]
        false = [record.id for record in records if not self._world.holds(record, tick)]
        self._memory.remove(false)
        self._true.update(record.id for record in records)
        self._true.difference_update(false)


class Clairvoyant:
    """Plays the optimal policy of every tick, where the exact model is known, else the best known policy.

    It has no memory and reads no prompt; it stands where an `Agent` would.

    Args:
        world: where it plays.
    """

    def __init__(self, world: EvaluationWrapper) -> None:
        self._watched = world

    def run_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end.

        Args:
            world: the environment; it is reset first.
            seed: handed to `reset`.
            options: handed to `reset`.
        """
        state, info = world.reset(seed=seed, options=None if options is None else dict(options))
        steps, terminated, truncated = 0, False, False
        limit = None if world.spec is None else world.spec.max_episode_steps
        while not (terminated or truncated):
            # The optimum depends on the remaining steps: a policy for an infinite horizon may wait for ever.
            left = None if limit is None else limit - steps
            action = self._watched.oracle.action(state, self._watched.tick, left)
            state, _, terminated, truncated, info = world.step(action)
            steps += 1
        return Episode(str(info["task"]), float(info["score"]), steps, bool(terminated))
