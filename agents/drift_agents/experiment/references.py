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
from drift_agents.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, RecordId, Verdict
from drift_agents.verifier.base import BaseVerifier, NoVerifier
from drift_envs.schedule.timeline import Timeline


class OracleVerifier(BaseVerifier):
    """Repairs memory at the tick at which the environment changes, or after every step; writes every experience.

    *Oracle realign* removes exactly the records whose response is another one now than when they were
    written: the upper reference for everything that repairs a memory where all responses are true. *Oracle reset*
    removes all of them; it can be beaten, since it throws away what is still true. *Oracle truth* removes every record
    that holds no possible true response at the present tick, as soon as it is written: the upper reference where
    responses are false, which the other two leave in memory.

    Args:
        name: `oracle_realign`, `oracle_reset` or `oracle_truth`.
        env: where the agent plays.
        memory: the agent's memory.
    """

    supervision = "privileged"

    def __init__(self, name: str, env: EvaluationWrapper, memory: Memory) -> None:
        super().__init__()
        self.name = name
        self._env, self._memory = env, memory
        self._plain = NoVerifier()
        self._values: Mapping[str, Any] | None = None
        self._timeline: Timeline | None = None
        self._true: set[RecordId] = set()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule, to say what was a surprise."""
        self._plain.bind(matching, rng)

    def begin_episode(self) -> None:
        """Repair memory before the first decision, if the environment has changed."""
        self._follow()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience; repair memory before the next decision, if the environment changes in between."""
        verdict = self._plain.verify(experience, memory, prefix, now)
        self._follow()
        # What it leaves in memory is not in doubt.
        return verdict._replace(contradicted=False)

    def _follow(self) -> None:
        tick = self._env.tick
        values = self._env.knobs(tick)
        # Another environment, as the test is one after training, is no drift.
        same = self._env.timeline is self._timeline
        if self.name == "oracle_truth":
            self._remove_false(tick, same and values == self._values)
        elif same and values != self._values:
            self._memory.remove(
                [
                    record.id
                    for record in self._memory.records()
                    if self.name == "oracle_reset" or self._env.changed(record, tick)
                ]
            )
        self._values, self._timeline = values, self._env.timeline

    def _remove_false(self, tick: int, is_same: bool) -> None:
        if not is_same:
            self._true.clear()
        records = [record for record in self._memory.records() if record.id not in self._true]
        false = [record.id for record in records if not self._env.holds(record, tick)]
        self._memory.remove(false)
        self._true.update(record.id for record in records)
        self._true.difference_update(false)


class Clairvoyant:
    """Plays the optimal policy of every tick, where the exact model is known, else the best known policy.

    It has no memory and reads no prompt; it stands where an `Agent` would.

    Args:
        env: where it plays.
    """

    def __init__(self, env: EvaluationWrapper) -> None:
        self._watched = env

    def run_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end.

        Args:
            env: the environment; it is reset first.
            seed: handed to `reset`.
            options: handed to `reset`.
        """
        state, info = env.reset(seed=seed, options=None if options is None else dict(options))
        steps, terminated, truncated = 0, False, False
        limit = None if env.spec is None else env.spec.max_episode_steps
        while not (terminated or truncated):
            # The optimum depends on the remaining steps: a policy for an infinite horizon may wait for ever.
            left = None if limit is None else limit - steps
            action = self._watched.oracle.action(state, self._watched.tick, left)
            state, _, terminated, truncated, info = env.step(action)
            steps += 1
        return Episode(str(info["task"]), float(info["score"]), steps, bool(terminated))
