"""The one wrapper that turns an environment's knobs as a schedule says.

* `DriftWrapper` - drifts any Gymnasium environment
* `NOTIFY` - what `info` may tell about the drift
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from drift_envs.envs.tunable import TunableEnv
from drift_envs.errors import ArgumentError, NoOracleError, StateError
from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule import NEVER, Phase, Schedule, Timeline
from drift_envs.wrappers.binding import KnobBinder
from drift_envs.wrappers.clock import NO_JUMP, NOT_RESET, DriftClock, read_options
from drift_envs.wrappers.guard import KnobGuard
from drift_envs.wrappers.internal import InternalWrapper
from drift_envs.wrappers.records import DriftLog, DriftState, VisitedTicks
from drift_envs.wrappers.rewinds import IdleRewinds

NOTIFY = ("none", "change", "full")
"""What `info["drift"]` tells: nothing, whether something changed, or the whole truth."""

Source = str | os.PathLike[str] | Mapping[str, Any] | Schedule | None


class DriftWrapper(KnobGuard, InternalWrapper, RecordConstructorArgs):
    """Turns an environment's knobs as a schedule says, and leaves everything else as it is.

    Environments of this package declare their knobs; for CartPole, Acrobot and Pendulum they are
    built in; for any other environment the schedule's section `knobs` declares them. Some knobs need
    no attribute and fit every environment, see `drift_envs.wrappers.effects`.

    The knobs for a tick are applied before its transition, and before the environment's `reset`.
    `reset(seed=...)` starts the schedule from its beginning, `reset()` lets time go on.

    | reset option | meaning |
    |---|---|
    | `drift_clock: "continue"` | a seed reseeds the environment without rewinding the schedule |
    | `drift_clock: "hold"` | time stands at the present tick until the next reset without it |
    | `drift_tick: n` | this episode (or the next step) is tick `n`; time goes on from there |
    | `drift_phase: name` | the same with the phase's first tick of full weight |

    | info | meaning |
    |---|---|
    | `drift` | with `notify="change"`: `changed`; with `"full"`: `phase`, `tick`, `changed`, `knobs` |

    Args:
        env: the environment.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        oracle: called with this wrapper when somebody asks for `oracle`; gives what evaluators ask.
        notify: what `info["drift"]` tells the agent: `none`, `change` or `full`.

    Raises:
        ArgumentError: if `notify` is none of the three.
        ScheduleError: if the schedule can't be used with this environment.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> schedule = {"version": 1, "name": "more-slip", "drifts": [{"at": 1, "set": {"slip": 0.5}}]}
        >>> env = DriftWrapper(FrozenLake(is_slippery=False, show_prob=False), schedule)
        >>> for episode in range(2):
        ...     _ = env.reset(seed=0 if episode == 0 else None)
        ...     print(env.drift_state.phase, env.drift_state.knobs["slip"])
        source 0.0
        drift-1 0.5
        >>> [(change.tick, change.knob, change.new) for change in env.drift_log]
        [(1, 'slip', 0.5)]
    """

    rewinds: int
    """How often the schedule has started from its beginning."""

    def __init__(
        self,
        env: gym.Env,
        schedule: Source = None,
        oracle: Callable[[DriftWrapper], Any] | None = None,
        notify: str = "none",
    ) -> None:
        if notify not in NOTIFY:
            raise ArgumentError(f"`notify` should be one of {', '.join(map(repr, NOTIFY))}. Received {notify!r}")
        turner = KnobBinder(env, schedule)
        arguments: dict[str, Any] = {"schedule": schedule, "notify": notify}
        if oracle is not None:
            arguments["oracle"] = oracle
        # a `Schedule` never changes, so that it is not copied
        RecordConstructorArgs.__init__(self, _disable_deepcopy=isinstance(schedule, Schedule), **arguments)
        gym.Wrapper.__init__(self, turner.env)
        self._schedule = turner.schedule
        self._turner = turner
        self._table = turner.table
        self._plan = turner.schedule or Schedule.model_validate({"version": 1, "name": "no-drift"})
        self._timeline = Timeline(self._plan, self._table, 0)
        self._key: int | None = None  # the seed of the present timeline
        self._clock = DriftClock(self._plan.clock)
        self._visited = VisitedTicks()
        self._tune = turner.turn
        self._walk: Iterator[tuple[int, Mapping[str, Value]]] | None = None
        self._leader: DriftWrapper | None = None
        self._oracle_factory = oracle
        self._oracle: Any = None
        self._notify = notify
        self._tells = notify != "none"
        self._is_plain = not self._tells  # nothing but time to look after when an episode begins
        self._told: Mapping[str, Value] | None = None
        self._idle_rewinds = IdleRewinds(self._plan.name)
        self.rewinds = 0
        turner.hold(self._timeline.names)
        self._driven = turner.held_names(self._timeline.names)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Turn the knobs if their time has come, then step.

        Args:
            action: the action.

        Raises:
            StateError: before the first `reset`.
        """
        clock = self._clock
        steps = clock.steps
        if steps >= clock.stop:
            self._turn()
        clock.steps = steps + 1
        if self._tells:
            return self._tell(*self.env.step(action))
        return self.env.step(action)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: handed to the environment; starts the schedule from its beginning.
            options: those that begin with `drift_` move or hold time, the others go to the environment.

        Raises:
            ArgumentError: if the seed or an option breaks a rule; nothing has changed then.
        """
        clock = self._clock
        if seed is None and not options and self._is_plain and clock.stop != NOT_RESET:
            self._go_on()
            return self.env.reset(options=options)
        if self._leader is not None:
            return self._reset_like(self._leader, seed, options)
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise ArgumentError(f"`seed` should be a whole number, at least 0. Received {seed!r}")
        seed = None if seed is None else int(seed)  # Gymnasium takes no other whole numbers
        started = clock.stop != NOT_RESET
        keeps_time = bool(options) and options.get("drift_clock") == "continue"  # type: ignore[union-attr]
        rewinds = seed is not None and not (started and keeps_time)
        key = self._key_after(seed if rewinds else None)
        timeline = self._timeline if key == self._key else Timeline(self._plan, self._table, key)
        jump = NO_JUMP
        if options:
            jump, options = read_options(options, timeline.first_tick)
        if started:
            self._remember()
        if rewinds:
            if started:
                self._count_rewind()
            clock.rewind()
            self._visited = VisitedTicks()
        if rewinds or not started:
            self.rewinds += 1
        self._timeline, self._key = timeline, key
        clock.begin(jump)
        self._turn_for_reset()
        if seed is not None and not rewinds and isinstance(self.unwrapped, TunableEnv):
            self.unwrapped.keep_tasks()  # the world goes on: what recurred still recurs
        if not self._tells:
            return self.env.reset(seed=seed, options=options)
        observation, info = self.env.reset(seed=seed, options=options)
        if not started or rewinds:
            self._told = self._clock.values  # what holds from the beginning is no change
        return observation, {**info, "drift": self._news()}

    def render(self) -> Any:
        """The environment's picture.

        Raises:
            StateError: before the first `reset`.
        """
        if self._clock.stop == NOT_RESET:
            raise StateError("`render` was called before `reset`; call `reset` first")
        return self.env.render()

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, or `None` if nothing drifts."""
        return self._schedule

    @property
    def timeline(self) -> Timeline:
        """What the schedule means with the present seed. For evaluators."""
        return self._timeline

    @property
    def knob_table(self) -> KnobTable:
        """All knobs that a schedule may turn here."""
        return self._table

    @property
    def phase(self) -> Phase:
        """The present phase. For evaluators."""
        return self._timeline.phase(self._clock.tick)

    @property
    def drift_state(self) -> DriftState:
        """Where the world stands, knob values read back from the environment. For evaluators."""
        clock = self._clock
        knobs = self._turner.read()
        return DriftState(self.phase.id, clock.tick, max(clock.episode, 0), clock.steps, knobs)

    @property
    def drift_log(self) -> DriftLog:
        """Every change on visited ticks since the last rewind. For evaluators."""
        self._remember()
        return DriftLog.of(self._timeline, self._visited)

    @property
    def oracle_factory(self) -> Callable[[Any], Any] | None:
        """What makes an oracle of this world, `None` if nobody handed it in. For evaluators."""
        return self._oracle_factory

    @property
    def oracle(self) -> Any:
        """What the best policy would reach. For evaluators.

        Raises:
            NoOracleError: if nobody handed one in.
        """
        if self._oracle_factory is None:
            raise NoOracleError(
                f"no oracle is known for {self.env}; hand one in: `DriftWrapper(env, schedule, oracle)`"
            )
        if self._oracle is None:
            self._oracle = self._oracle_factory(self)
        return self._oracle

    def follow(self, leader: DriftWrapper) -> None:
        """From now on stand where another wrapper stands, instead of counting ticks.

        Args:
            leader: the wrapper of the same schedule that is followed.
        """
        self._leader = leader
        self._is_plain = False

    @property
    def applied(self) -> Mapping[str, Value]:
        """The values that were applied last. For evaluators."""
        return self._clock.values or {}

    def derive_seed(self, *tags: int) -> int:
        """A seed for a stream of its own, drawn from the seed that the schedule runs with. For evaluators.

        Args:
            *tags: numbers that tell the stream from others.
        """
        return int(np.random.SeedSequence([self._key or 0, *tags]).generate_state(1)[0])

    def knobs_at(self, tick: int) -> dict[str, Value]:
        """The value of every knob at a tick; those that the schedule leaves alone as they are now. For evaluators.

        Args:
            tick: the tick.
        """
        return {**self._turner.read(), **self._timeline.values(tick)}

    def _turn(self) -> None:
        """Apply the values of the transition to come, and note until when they hold."""
        clock = self._clock
        stop, values = next(self._walk or self._start_walk())
        if stop < NEVER:
            clock.stop = stop - clock.start
        else:
            clock.stop = clock.until = NEVER
        if values is not clock.values:
            self._tune(values)
            clock.values = values

    def _start_walk(self) -> Iterator[tuple[int, Mapping[str, Value]]]:
        """Go through time from the tick to come.

        Raises:
            StateError: before the first `reset`.
        """
        clock = self._clock
        if self._leader is not None:  # what it applies holds for one step, then it is asked again
            return iter([(clock.start, self._leader.applied)])
        if clock.stop == NOT_RESET:
            raise StateError("`step` was called before `reset`; call `reset` first")
        self._walk = self._timeline.walk(clock.next_tick)
        return self._walk

    def _turn_for_reset(self) -> None:
        """Apply the values of the first transition to come."""
        clock = self._clock
        _, stop, values = self._timeline.segment(clock.next_tick)
        clock.stop_at(stop)
        self._walk = None
        if values is not clock.values:
            self._tune(values)
            clock.values = values

    def _reset_like(
        self, leader: DriftWrapper, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at the tick where the leader stands."""
        self._timeline = leader._timeline
        self._clock.steps = 0
        self._turn()
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "drift": self._news()} if self._tells else info

    def _go_on(self) -> None:
        """Begin an episode the plain way, at the price of a few comparisons."""
        clock = self._clock
        if clock.held or clock.unit == "episode_step":
            self._remember()
            clock.begin(NO_JUMP)
            self._turn_for_reset()
        elif not clock.go_on():
            if clock.unit == "step":
                self._turn()
            else:
                self._turn_for_reset()

    def _key_after(self, seed: int | None) -> int:
        """The seed of the timeline: a new one, the present one, or the one that the environment gave itself."""
        if seed is not None:
            return int(seed)
        if self._key is not None:
            return self._key
        own = self.env.unwrapped.np_random_seed
        if own is None or own < 0:  # somebody handed in a generator: its seed is not known
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        return int(own)

    def _remember(self) -> None:
        """Note the ticks of this episode as visited."""
        clock = self._clock
        if clock.stop != NOT_RESET:
            self._visited.add(clock.since, clock.tick)

    def _count_rewind(self) -> None:
        """Warn once when rewinds keep the first change from ever happening."""
        if self._timeline.can_change and not self._idle_rewinds.is_over:
            self._idle_rewinds.count(self._visited.last >= self._timeline.valid_until(0), stacklevel=3)

    def _tell(
        self, observation: Any, reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A transition with the news in its `info`."""
        return observation, reward, terminated, truncated, {**info, "drift": self._news()}

    def _news(self) -> dict[str, Any]:
        """What `notify` lets the agent know; the same keys at every step."""
        changed = self._told != self._clock.values
        self._told = self._clock.values
        if self._notify == "change":
            return {"changed": changed}
        state = (self._leader or self).drift_state
        return {"phase": state.phase, "tick": state.tick, "changed": changed, "knobs": dict(state.knobs)}

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the oracle and the walk through time, which begin anew when they are needed."""
        return {**self.__dict__, "_oracle": None, "_walk": None}
