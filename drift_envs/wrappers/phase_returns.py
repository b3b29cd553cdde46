"""Episodes by phase, and an evaluation environment whose clock is set from outside.

* `PhaseReturns` - stores the return of every episode together with its phase
* `VectorPhaseReturns` - the same for the copies of a vector environment
* `PhaseReturn` - one such episode
* `HeldClock` - holds time at a given tick over all resets
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from drift_envs.checks import check_integer, check_reward
from drift_envs.errors import ArgumentError
from drift_envs.schedule import Phase


class PhaseReturn(NamedTuple):
    """One episode.

    Args:
        phase: the id of the phase in which it began.
        tick: the tick of its first transition.
        score: the sum of its rewards.
        steps: its length.
    """

    phase: str
    tick: int
    score: float
    steps: int


def group_by_phase(episodes: list[PhaseReturn]) -> dict[str, list[float]]:
    """The returns of each phase, in the order in which the phases occurred.

    Example:
        >>> group_by_phase([PhaseReturn("source", 0, 1.0, 6), PhaseReturn("drift-1", 1, 0.0, 9)])
        {'source': [1.0], 'drift-1': [0.0]}
    """
    found: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        found[episode.phase].append(episode.score)
    return dict(found)


class PhaseReturns(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Stores the return of every finished episode together with its phase. For evaluators.

    Observations and `info` do not change, so that the agent does not see the phase. With a clock of
    steps, an episode belongs to the phase in which it began.

    Args:
        env: an environment with a `DriftWrapper` inside.

    Raises:
        ArgumentError: if the environment does not drift.

    Example:
        >>> import drift_envs
        >>> drift = {"at": 1, "set": {"map": ["SFFG"]}}
        >>> schedule = {"version": 1, "name": "s", "base": {"map": ["SG"]}, "drifts": [drift]}
        >>> env = PhaseReturns(gym.make("DriftFrozenLake-v0", schedule=schedule))
        >>> for episode in range(2):
        ...     _, _ = env.reset(seed=0 if episode == 0 else None)
        ...     while not any(env.step(2)[2:4]):
        ...         pass
        >>> env.by_phase()
        {'source': [1.0], 'drift-1': [1.0]}
        >>> env.episodes[1]
        PhaseReturn(phase='drift-1', tick=1, score=1.0, steps=3)
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        if not env.has_wrapper_attr("drift_state"):
            raise ArgumentError(f"`env` should have a `DriftWrapper` inside. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.episodes: list[PhaseReturn] = []
        self._begin: tuple[str, int] = ("", 0)
        self._score, self._steps = 0.0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; one that has not ended is not stored.

        Args:
            seed: passed on.
            options: passed on.
        """
        result = self.env.reset(seed=seed, options=options)
        state = self.env.get_wrapper_attr("drift_state")
        self._begin, self._score, self._steps = (state.phase, state.tick), 0.0, 0
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and store the episode if it has ended.

        Args:
            action: passed on.
        """
        result = self.env.step(action)
        self._score += check_reward(result[1])
        self._steps += 1
        if result[2] or result[3]:
            self._store(PhaseReturn(*self._begin, self._score, self._steps))
        return result

    def _store(self, episode: PhaseReturn) -> None:
        self.episodes.append(episode)

    def by_phase(self) -> dict[str, list[float]]:
        """The returns of each phase, in the order in which the phases occurred."""
        return group_by_phase(self.episodes)


class VectorPhaseReturns(VectorWrapper):  # type: ignore[type-arg]
    """Stores the return of every finished episode of a vector environment together with its phase. For evaluators.

    Observations and `info` do not change.

    Args:
        env: a vector environment of drifting environments: a native one of `gym.make_vec`, or Gymnasium's
            `SyncVectorEnv` and `AsyncVectorEnv`, in each mode of autoreset.

    Attributes:
        episodes: for each copy the list of its finished episodes.

    Raises:
        ArgumentError: if the environment does not drift.

    Example:
        >>> import drift_envs
        >>> lakes = VectorPhaseReturns(gym.make_vec("DriftFrozenLake-v0", num_envs=2, schedule="frozen_lake/explicit"))
        >>> _ = lakes.reset(seed=0)
        >>> for _ in range(400):
        ...     _ = lakes.step(lakes.action_space.sample())
        >>> lakes.episodes[1][0].phase, len(lakes.episodes)
        ('source', 2)
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        try:
            super().__init__(env)
            env.unwrapped.get_attr("knob_table")  # type: ignore[attr-defined]
        except (AttributeError, TypeError) as error:
            raise ArgumentError(f"`env` should be a vector environment that drifts. Received {env}") from error
        self.episodes: list[list[PhaseReturn]] = [[] for _ in range(env.num_envs)]
        self._begins: list[tuple[str, int]] = [("", 0)] * env.num_envs
        self._scores = np.zeros(env.num_envs)
        self._steps = np.zeros(env.num_envs, np.int64)
        self._resets = np.zeros(env.num_envs, bool)  # whether the next step only resets
        self._phases: dict[int, Phase] = {}  # of native copies, which hold for many episodes
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes; those that have not ended are not stored.

        Args:
            seed: passed on.
            options: passed on; with a `reset_mask` only these copies begin an episode.
        """
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        result = self.env.reset(seed=seed, options=options)
        self._phases.clear()
        self._begin(mask)
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all copies, and store the episodes that have ended.

        Args:
            actions: passed on.
        """
        result = self.env.step(actions)
        acted = ~self._resets
        self._scores[acted] += np.asarray(result[1], float)[acted]
        self._steps[acted] += 1
        ended = (result[2] | result[3]) & acted
        for copy in ended.nonzero()[0].tolist():
            phase, tick = self._begins[copy]
            self.episodes[copy].append(PhaseReturn(phase, tick, float(self._scores[copy]), int(self._steps[copy])))
        began = ended if self._mode is AutoresetMode.SAME_STEP else self._resets
        self._resets = ended if self._mode is AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        self._begin(began)
        return result

    def _begin(self, began: np.ndarray) -> None:
        copies = began.nonzero()[0].tolist()
        for copy, begin in zip(copies, self._read(copies) if copies else [], strict=True):
            self._begins[copy] = begin
        self._scores[began], self._steps[began], self._resets[began] = 0.0, 0, False

    def _read(self, copies: Sequence[int]) -> list[tuple[str, int]]:
        """Phase and tick of some copies."""
        base: Any = self.env.unwrapped
        if hasattr(base, "clocks"):  # a native one, with thousands of copies
            ticks = base.clocks.ticks(np.array(copies, np.int64)).tolist()
            for copy, tick in zip(copies, ticks, strict=True):
                phase = self._phases.get(copy)
                if phase is None or not phase.start <= tick < phase.stop:
                    self._phases[copy] = base.pool.timeline(copy).phase(tick)
            return [(self._phases[copy].id, tick) for copy, tick in zip(copies, ticks, strict=True)]
        if hasattr(base, "envs"):
            states = [base.envs[copy].get_wrapper_attr("drift_state") for copy in copies]
        else:  # copies in processes of their own are read together
            states = [base.get_attr("drift_state")[copy] for copy in copies]
        return [(state.phase, state.tick) for state in states]

    def by_phase(self) -> dict[str, list[float]]:
        """The returns of each phase, in the order in which the phases occurred."""
        return group_by_phase(sorted((one for own in self.episodes for one in own), key=lambda one: one.tick))


class HeldClock(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Holds time at a given tick over all resets, so that evaluation does not move its own clock.

    Args:
        env: an environment with a `DriftWrapper` inside.

    Raises:
        ArgumentError: if the environment does not drift.

    Example:
        >>> import drift_envs
        >>> env = HeldClock(gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit"))
        >>> env.hold_at(25)
        >>> for _ in range(2):
        ...     _ = env.reset()
        >>> env.get_wrapper_attr("drift_state").tick
        25
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        if not env.has_wrapper_attr("drift_state"):
            raise ArgumentError(f"`env` should have a `DriftWrapper` inside. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._tick = 0
        self._seed: int | None = None

    def hold_at(self, tick: int, timeline_seed: int | None = None) -> None:
        """Set the tick of all episodes from the next reset on.

        Args:
            tick: the tick.
            timeline_seed: the seed of the drifts, by default the present one.

        Raises:
            ArgumentError: if one of them is no whole number of at least 0.
        """
        self._tick = check_integer("tick", tick)
        seed = check_integer("timeline_seed", timeline_seed, optional=True)
        self._seed = None if seed == self.env.get_wrapper_attr("timeline").seed else seed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at the held tick.

        Args:
            seed: passed on; by default that of `hold_at`, once.
            options: passed on, together with those that hold the clock.
        """
        seed, self._seed = self._seed if seed is None else seed, None
        return self.env.reset(seed=seed, options={**(options or {}), "drift_tick": self._tick, "drift_clock": "hold"})
