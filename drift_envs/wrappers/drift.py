"""The one wrapper that changes an environment's knobs on a schedule."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import FunctionType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from drift_envs.attributes.shared_parts import join_arrays, rebind, shared_arrays
from drift_envs.checks import check_choice, check_integer, check_single
from drift_envs.errors import ArgumentError, DriftEnvsError, DrivenKnobError, KnobError, NoOracleError, StateError
from drift_envs.knobs import KnobTable, Value, copied
from drift_envs.schedule import NEVER, Phase, Schedule, Timeline
from drift_envs.schedule.loader import Source as Source
from drift_envs.tunable import TunableEnv
from drift_envs.wrappers.binding import KnobBinder
from drift_envs.wrappers.clock import (
    MOST_TRIED,
    NO_JUMP,
    NOT_RESET,
    DriftClock,
    TimeMove,
    TimeWarnings,
    read_options,
    watch_end,
)
from drift_envs.wrappers.effects import (
    MASK_METHODS,
    ActionCheck,
    is_element,
    permute_mask,
    permute_masks,
    wrong_action,
)
from drift_envs.wrappers.internal import KnobGuard, is_own, layers, refuse_autoreset, restore_time_limits
from drift_envs.wrappers.progress import ResumableWrapper
from drift_envs.wrappers.records import DriftLog, DriftState, VisitedTicks

NOTIFY = ("none", "change", "full")
"""What `info["drift"]` contains: nothing, whether a knob changed, or phase, tick and knob values."""

_REFUSALS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What environments of other packages raise for options and actions that they do not take."""


class DriftWrapper(KnobGuard, ResumableWrapper, RecordConstructorArgs):
    """Changes an environment's knobs on a schedule, and leaves everything else as it is.

    Environments of this package declare their knobs; for CartPole, Acrobot and Pendulum they are
    built in; for any other environment the schedule's section `knobs` declares them. Some knobs need
    no attribute and fit every environment, see `drift_envs.wrappers.effects`.

    The knobs for a tick are applied before its transition, and before the environment's `reset`.
    `reset(seed=...)` restarts the schedule, `reset()` continues it.

    | reset option | meaning |
    |---|---|
    | `drift_clock: "continue"` | a seed reseeds the environment without rewinding the schedule |
    | `drift_clock: "hold"` | time stops at the present tick until a reset omits this option |
    | `drift_tick: n` | this episode (or the next step) is tick `n`; time continues from there |
    | `drift_phase: name` | the same with the first tick of the phase at which its drift has full weight |

    | info | meaning |
    |---|---|
    | `drift` | with `notify="change"`: `changed`; with `"full"`: `phase`, `tick`, `changed`, `knobs` |

    Args:
        env: the environment.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        oracle: makes the oracle from this wrapper when the attribute `oracle` is first read.
        notify: what `info["drift"]` contains: `none`, `change` or `full`.

    Raises:
        ArgumentError: if `notify` is another value, a schedule inside drives the same knob, or there is an `Autoreset`
            inside.
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
    """The number of times that the schedule has started."""

    warns_of_end: bool = True
    """Whether `close` warns if nothing has drifted; programs that end on purpose before set it to false."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        schedule: Source = None,
        oracle: Callable[[DriftWrapper], Any] | None = None,
        notify: str = "none",
    ) -> None:
        check_choice("notify", notify, NOTIFY)
        check_single(env)
        refuse_autoreset(env)
        binder = KnobBinder(env, schedule)
        # as plain data, which a spec can write as JSON
        plain = schedule.to_dict() if isinstance(schedule, Schedule) else schedule
        arguments: dict[str, Any] = {"schedule": plain, "notify": notify}
        if oracle is not None:
            arguments["oracle"] = oracle
        RecordConstructorArgs.__init__(self, _disable_deepcopy=plain is not schedule, **arguments)
        gym.Wrapper.__init__(self, binder.env)
        self._schedule = binder.schedule
        self._binder = binder
        self._effective_schedule = binder.schedule or Schedule.model_validate({"version": 1, "name": "no-drift"})
        self._timeline = Timeline(self._effective_schedule, self._binder.table, 0)
        inner = find_drift(env)
        both = [] if inner is None else [name for name in self._timeline.names if name in inner.timeline.names]
        if inner is not None and both:
            raise ArgumentError(
                f"`env` has a `DriftWrapper` whose schedule `{inner.timeline.schedule.name}` drives `{both[0]}` too: "
                "give the schedule to `gym.make(..., schedule=...)`, or make `env` with `schedule=None`"
            )
        self._key: int | None = None  # the seed of the present timeline
        self._clock = DriftClock(self._effective_schedule.clock)
        self._visited = VisitedTicks()
        self._set_knobs = binder.set_knobs
        self._walk: Iterator[tuple[int, Mapping[str, Value]]] | None = None
        self._leader: DriftWrapper | None = None
        self._oracle_factory = oracle
        self._oracle: Any = None
        self._notify = notify
        self._lost: set[tuple[int, str]] = set()  # ticks at which a knob was not what the schedule says
        self._check_action = ActionCheck(env.action_space, not binder.is_foreign) if binder.keeps else None
        self._shows_more = binder.effects is not None or notify != "none"
        # Otherwise a step applies the values that are due and nothing else. Own environments check actions themselves.
        self._is_watched = binder.keeps or self._shows_more or not is_own(env)
        # Whether a reset without seed and options advances the clock and nothing else.
        self._goes_on = False
        self._notified: Mapping[str, Value] | None = None
        self._time_warnings = TimeWarnings()
        self._move: TimeMove | None = None
        self.rewinds = 0
        binder.hold(self._timeline.names)
        self._driven = self.find_driven(env) | binder.held_names(self._timeline.names)
        watch_end(self)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Apply knob values that are due, then step.

        Raises:
            StateError: before the first `reset`.
            ArgumentError: if the environment does not take the action, or it is not finite; time stands still then.
        """
        clock = self._clock
        steps = clock.steps
        if steps >= clock.stop:
            self._apply_values()
        if self._is_watched:
            return self._step_watched(action)
        result = self.env.step(action)
        clock.steps = steps + 1  # after the step, so that time stands still if the action is refused
        return result

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: passed to the environment; restarts the schedule.
            options: those that begin with `drift_` move or stop time, the others are passed to the environment.

        Raises:
            ArgumentError: if the seed or an option breaks a rule; the state is unchanged then.
        """
        if self._goes_on and seed is None and options is None:
            if not self._clock.continue_time():
                self._begin_segment()
            return self.env.reset()
        steps = self._clock.steps
        try:
            return self._begin(seed, options)
        except Exception:
            if self._clock.steps == steps:  # the episode goes on
                restore_time_limits(self, steps)
            raise

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode where more may be to do than advancing the clock."""
        clock = self._clock
        if self._binder.keeps and clock.stop != NOT_RESET:
            self._check_knobs()
        if self._leader is not None:
            return self._reset_following(self._leader, seed, options)
        if seed is not None:
            seed = check_integer("seed", seed)
        started = clock.stop != NOT_RESET
        mode = options.get("drift_clock") if isinstance(options, Mapping) else None
        rewinds = seed is not None and not (started and isinstance(mode, str) and mode == "continue")
        key = self._key_after(seed if rewinds else None)
        timeline = self._timeline if key == self._key else Timeline(self._effective_schedule, self._binder.table, key)
        jump = NO_JUMP
        if options is not None:
            jump, options = read_options(options, timeline.first_tick)
        move = self._move if jump == NO_JUMP else None
        if move is not None:
            jump = move.jump(timeline.first_tick)
        undo = self._undo_reset() if options else None
        if started:
            self._record_visits()
        if rewinds:
            if started and jump == NO_JUMP and self._visited.spans and self.pending_progress is None:
                self._time_warnings.rewind(self._visited.last, clock.earlier + clock.steps, self._timeline, 3)
            clock.rewind()
            self._visited = VisitedTicks()
            self._lost.clear()
        if rewinds or not started:
            self.rewinds += 1
        self._timeline, self._key = timeline, key
        if self._move is not None and (move is None or not move.hold):
            self.time_move = None
        clock.begin(jump)
        self._find_what_goes_on()
        self._apply_first_values()
        if seed is not None and isinstance(self.unwrapped, TunableEnv):
            self.unwrapped.keep_tasks(not rewinds)  # if time continues, recurring tasks still recur
        if not started or rewinds:
            self._notified = self._clock.values  # the first values are no change
        if undo is None:
            return self._reset_env(seed, options)
        try:
            return self._reset_env(seed, options)
        except Exception as error:
            undo()
            if isinstance(error, _REFUSALS) and not isinstance(error, DriftEnvsError):
                raise ArgumentError(
                    f"`options` should be those that {type(self.unwrapped).__name__} takes: {error}. Received {options}"
                ) from error
            raise

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
        """The timeline of the schedule with the present seed. For evaluators."""
        return self._timeline

    @property
    def knob_table(self) -> KnobTable:
        """All knobs that a schedule may drive in this environment."""
        return self._binder.table

    @property
    def phase(self) -> Phase:
        """The present phase. For evaluators."""
        return self._timeline.phase(self._clock.tick)

    @property
    def drift_state(self) -> DriftState:
        """Phase, tick, episode, step and the knob values read back from the environment. For evaluators."""
        clock = self._clock
        knobs = self._binder.read()
        return DriftState(self.phase.id, clock.tick, max(clock.episode, 0), clock.steps, knobs)

    @property
    def drift_log(self) -> DriftLog:
        """Every change on visited ticks since the last rewind. For evaluators."""
        self._record_visits()
        return DriftLog(self._timeline, self._visited, self._lost)

    @property
    def oracle_factory(self) -> Callable[[Any], Any] | None:
        """The function that makes the oracle, `None` if none was passed. For evaluators."""
        return self._oracle_factory

    @property
    def oracle(self) -> Any:
        """The optimum of each phase. For evaluators.

        Raises:
            NoOracleError: if no function for it was passed.
        """
        if self._oracle_factory is None:
            raise NoOracleError(f"no oracle is known for {self.env}; pass one: `DriftWrapper(env, schedule, oracle)`")
        if self._oracle is None:
            self._oracle = self._oracle_factory(self)
        return self._oracle

    def get_wrapper_attr(self, name: str) -> Any:
        """An attribute of this wrapper or of what it wraps; masks of actions follow `action_permutation`."""
        found = super().get_wrapper_attr(name)
        if name == "set_knobs":
            return partial(self._set_undriven, found)
        if name not in MASK_METHODS or self._binder.effects is None:
            return found
        if not callable(found):
            return permute_mask(name, found, self._next_permutation())
        return lambda *args, **kwargs: permute_mask(name, found(*args, **kwargs), self._next_permutation())

    def _set_undriven(self, set_knobs: Callable[[Mapping[str, Value]], None], values: Mapping[str, Value]) -> None:
        """Set knobs from outside, none of which is driven."""
        for name, value in values.items():
            DrivenKnobError.refuse(self._driven, name, value)
        set_knobs(values)

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether an attribute is there; `oracle` only if a function for it was passed."""
        return self._oracle_factory is not None if name == "oracle" else super().has_wrapper_attr(name)

    def follow(self, leader: DriftWrapper) -> None:
        """Apply the values of another wrapper from now on, instead of counting ticks.

        Args:
            leader: a wrapper with the same schedule.
        """
        self._leader = leader
        self._find_what_goes_on()

    def move_time(self, tick: int | None = None, phase: str | None = None, hold: bool = False) -> None:
        """Move time from the next episode on, whoever begins it: a program, or the autoreset of a vector environment.

        That episode is at the tick or at the first tick of the phase; time goes on from there, or with `hold` stays
        there in all episodes until time is moved again. `hold` alone holds the tick of the next episode, and without
        any argument time goes on. A seed rewinds before time is moved; `drift_tick`, `drift_phase` and
        `drift_clock: hold` of a reset replace what was said here.

        Args:
            tick: a tick of at least 0.
            phase: the id of a phase.
            hold: whether time stays there.

        Raises:
            ArgumentError: if an argument breaks a rule, or tick and phase are both given.
        """
        self.time_move = TimeMove.of(tick, phase, hold, self._timeline.first_tick)

    @property
    def time_move(self) -> TimeMove | None:
        """Where time is to be from the next episode on, `None` if it goes on."""
        return self._move

    @time_move.setter
    def time_move(self, move: TimeMove | None) -> None:
        self._move = move
        self._find_what_goes_on()

    def _find_what_goes_on(self) -> None:
        """Find whether the next reset has to look at anything, so that no reset looks for it."""
        clock = self._clock
        is_led = self._move is not None or self._leader is not None
        is_special = self._binder.keeps or self._shows_more or is_led
        self._goes_on = clock.episode >= 0 and not (is_special or clock.held)

    def save_own_progress(self) -> dict[str, Any]:
        """Seed of the timeline, clock, visited ticks and warnings.

        Raises:
            StateError: before the first `reset`.
        """
        if self._clock.stop == NOT_RESET:
            raise StateError("progress was saved before `reset`; call `reset` first")
        return {
            "key": self._key,
            "rewinds": self.rewinds,
            "clock": self._clock.save(),
            "visited": [list(span) for span in self._visited.spans],
            "lost": sorted(map(list, self._lost)),
            "warnings": vars(self._time_warnings),
            "move": None if self._move is None else list(self._move),
        }

    def load_own_progress(self, saved: Any) -> None:
        """Go on where another one stood, with the knobs of its last transition.

        Args:
            saved: from `save_own_progress`.
        """
        key = check_integer("key", saved["key"])
        timeline = self._timeline if key == self._key else Timeline(self._effective_schedule, self._binder.table, key)
        tick, phase, hold = saved["move"] or (None, None, False)
        move = TimeMove.of(tick, phase, hold, timeline.first_tick)
        visited = [
            (check_integer("visited", first), check_integer("visited", last)) for first, last in saved["visited"]
        ]
        clock = self._clock
        clock.load(saved["clock"])
        self._timeline, self._key, self.rewinds = timeline, key, check_integer("rewinds", saved["rewinds"])
        self._visited = VisitedTicks(visited)
        self._lost = {(tick, name) for tick, name in saved["lost"]}
        vars(self._time_warnings).update(saved["warnings"])
        self.time_move, self._walk, self._oracle = move, None, None
        _, stop, values = timeline.segment(clock.tick)
        clock.stop_at(stop)
        self._set_values(values)
        self._notified = values

    @property
    def applied(self) -> Mapping[str, Value]:
        """The values that were applied last. For evaluators."""
        return self._clock.values or {}

    def derive_seed(self, *tags: int) -> int:
        """The seed of a separate random stream, derived from the seed of the timeline. For evaluators.

        Args:
            *tags: numbers that identify the stream.
        """
        return int(np.random.SeedSequence([self._key or 0, *tags]).generate_state(1)[0])

    def knobs_at(self, tick: int) -> dict[str, Value]:
        """The value of every knob at a tick, the present one for knobs that are not driven. For evaluators."""
        return {**self._binder.read(), **self._timeline.values(tick)}

    def unchanged(self) -> AbstractContextManager[None]:
        """Let the environment's own knobs be afterwards what they were before. For evaluators."""
        return self._binder.unchanged()

    def close(self) -> None:
        """Close the environment, and drop the oracle, which may hold a browser.

        Warns:
            DriftWarning: if it was stepped, and closed before the first drift.
        """
        self._oracle = None
        super().close()
        self.warn_of_end()

    def warn_of_end(self, least: int = MOST_TRIED) -> bool:
        """Warn if nothing has drifted in more steps than `least`; returns whether the warning was given."""
        clock = self._clock
        if not self.warns_of_end or self._leader is not None or clock.stop == NOT_RESET:
            return False
        if clock.held and least > MOST_TRIED:  # an evaluation at one tick
            return False
        self._record_visits()
        steps = clock.earlier + clock.steps
        return self._time_warnings.close(self._visited.last, steps, self._timeline, 3, least)

    def _apply_values(self) -> None:
        """Apply the values of the next transition, and store until when they hold."""
        clock = self._clock
        stop, values = next(self._walk or self._start_walk())
        if stop < NEVER:
            clock.stop = stop - clock.start
        else:
            clock.stop = clock.until = NEVER
        if values is not clock.values:
            try:
                self._set_knobs(values)
            except (KnobError, DrivenKnobError) as error:
                self._lose(values, error)
                raise
            clock.values = values

    def _start_walk(self) -> Iterator[tuple[int, Mapping[str, Value]]]:
        """Iterate over the segments from the next tick on.

        Raises:
            StateError: before the first `reset`.
        """
        clock = self._clock
        if self._leader is not None:  # its values hold for one step, then they are read again
            return iter([(clock.start, self._leader.applied)])
        if clock.stop == NOT_RESET:
            raise StateError("`step` was called before `reset`; call `reset` first")
        self._walk = self._timeline.walk(clock.next_tick)
        return self._walk

    def _apply_first_values(self) -> None:
        """Apply the values of the first transition of an episode."""
        clock = self._clock
        _, stop, values = self._timeline.segment(clock.next_tick)
        clock.stop_at(stop)
        self._walk = None
        if values is not clock.values:
            self._set_values(values)

    def _set_values(self, values: Mapping[str, Value]) -> None:
        """Set the knobs to the values of the next transition."""
        try:
            self._set_knobs(values)
        except (KnobError, DrivenKnobError) as error:
            self._lose(values, error)
            raise
        self._clock.values = values

    def _lose(self, values: Mapping[str, Value], error: DriftEnvsError) -> None:
        """Record that values could not be set, or raise an error that names the tick at which a knob was lost."""
        if isinstance(error, DrivenKnobError):
            self._check_knobs()  # names the tick
        else:
            self._lost.update((self._clock.next_tick, name) for name in values)

    def _reset_following(
        self, leader: DriftWrapper, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at the present tick of the leader."""
        self._timeline = leader._timeline
        self._clock.steps = 0
        self._apply_values()
        return self._reset_env(seed, options)

    def _read_reset(self, result: Any) -> tuple[Any, dict[str, Any]]:
        """What a reset has returned; of an environment of Gym's first interface it is an observation alone."""
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
            return result
        raise ArgumentError(
            f"`reset` of {type(self.unwrapped).__name__} should return an observation and a dictionary. "
            f"Received {type(result).__name__}"
        )

    def _reset_env(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, and set again what it has lost by that."""
        observation, info = self._read_reset(self.env.reset(seed=seed, options=options))
        if self._binder.keeps:
            if self._binder.set_again() and seed is not None:
                # a reset with a seed may have built all anew, before the method was called; this one does not
                observation, info = self._read_reset(self.env.reset(options=options))
                self._binder.set_again()
            self._check_knobs()
        observation, info = self._permute_masks(observation, info)
        return observation, {**info, "drift": self._drift_info()} if self._notify != "none" else info

    def _undo_reset(self) -> Callable[[], None]:
        """A function that restores time, knobs and the random generator, in case the environment refuses an option."""
        names = (
            "_timeline",
            "_key",
            "rewinds",
            "_notified",
            "_clock",
            "_visited",
            "_lost",
            "_time_warnings",
            "_move",
            "_goes_on",
        )
        kept = {name: copy.copy(getattr(self, name)) for name in names}
        kept["_visited"] = VisitedTicks(list(self._visited.spans))
        base: Any = self.unwrapped
        generator, seed = base._np_random, base._np_random_seed
        state = None if generator is None else generator.bit_generator.state

        def undo() -> None:
            for name, value in kept.items():
                setattr(self, name, value)
            self._walk = None
            base._np_random, base._np_random_seed = generator, seed
            if generator is not None:
                generator.bit_generator.state = state
            values = self._clock.values
            if values is not None:
                self._set_values(values)

        return undo

    def _check_knobs(self) -> None:
        """Refuse that the environment does not have the values of the present tick.

        Raises:
            DrivenKnobError: if it has others; names the tick and the possible causes.
        """
        tick = (self._leader or self)._clock.tick
        try:
            self._binder.refuse_lost(tick)
        except DrivenKnobError:
            self._lost.update((tick, name) for name in self._timeline.names)
            raise

    def _begin_segment(self) -> None:
        """Begin an episode whose first tick has other values, or follows the one before in no order."""
        clock = self._clock
        if clock.unit == "step":
            self._apply_values()
            return
        if clock.unit == "episode_step":
            self._record_visits()
            clock.begin(NO_JUMP)
        self._apply_first_values()

    def _key_after(self, seed: int | None) -> int:
        """The seed of the timeline: the new one, the present one, or the one that the environment drew."""
        if seed is not None:
            return int(seed)
        if self._key is not None:
            return self._key
        own = self.env.unwrapped.np_random_seed
        if own is None or own < 0:  # the generator was set from outside: its seed is unknown
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        return int(own)

    def _record_visits(self) -> None:
        """Record the ticks of this episode as visited."""
        clock = self._clock
        if clock.stop != NOT_RESET:
            self._visited.add(clock.since, clock.tick)

    def _step_watched(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step whose action and knobs are checked, with its masks permuted and the drift in its `info`."""
        clock, space = self._clock, self.env.action_space
        if self._check_action is not None:
            self._check_action(action)
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except _REFUSALS as error:
            if isinstance(error, DriftEnvsError) or is_element(action, space):
                raise
            raise wrong_action(action, space) from error
        clock.steps += 1
        if self._binder.has_changed():
            self._check_knobs()
        if self._binder.effects is not None:
            observation, info = self._permute_masks(observation, info)
        if self._notify != "none":
            info = {**info, "drift": self._drift_info()}
        return observation, reward, terminated, truncated, info

    def _permute_masks(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The masks of actions in an observation and in `info`, in the order of the agent's actions."""
        permutation = self._next_permutation()
        if not permutation:
            return observation, info
        return permute_masks(observation, permutation), permute_masks(info, permutation)

    def _next_permutation(self) -> Mapping[str, int]:
        """The value of `action_permutation` at the next transition, for which masks are meant."""
        if self._binder.effects is None:
            return {}
        clock = self._clock
        is_due = self._leader is None and clock.steps >= clock.stop
        values = self._timeline.values(clock.next_tick) if is_due else clock.values
        permutation: Mapping[str, int] = (values or {}).get("action_permutation", {})
        return permutation

    def _drift_info(self) -> dict[str, Any]:
        """What `notify` puts into `info`; the same keys at every step."""
        changed = self._notified != self._clock.values
        self._notified = self._clock.values
        if self._notify == "change":
            return {"changed": changed}
        state = (self._leader or self).drift_state
        return {"phase": state.phase, "tick": state.tick, "changed": changed, "knobs": copied(state.knobs)}

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the oracle, the iterator over segments and the setter of knobs, which are made again."""
        shared = shared_arrays(self.unwrapped) if self._binder.drives_parts(self._timeline.names) else []
        return {**self.__dict__, "_oracle": None, "_walk": None, "_set_knobs": None, "_shared": shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the attributes, and set again what the environment has lost where its constructor made the copy."""
        shared = state.pop("_shared")
        self.__dict__.update(state)
        self._set_knobs = self._binder.set_knobs
        if self._binder.is_foreign:
            join_arrays(self.unwrapped, shared)
            self._binder.settle()

    def __deepcopy__(self, memo: dict[int, Any]) -> DriftWrapper:
        """A copy, whose functions keep what was copied instead of the originals.

        Raises:
            ArgumentError: if a function reads a driven attribute of the original in a way that no copy can change.
        """
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        if self._binder.drives_parts(self._timeline.names):
            for function in rebind(layers(made), memo):
                self._refuse_original(function)
        return made

    def _refuse_original(self, function: FunctionType) -> None:
        """Refuse a function of a copy that reads a driven attribute from the environment that was copied."""
        code = function.__code__
        read = sorted(self._binder.attributes.intersection(code.co_names))
        cells = {
            name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        }
        seen = {**{name: function.__globals__.get(name) for name in code.co_names}, **cells}
        for name, one in seen.items():
            if read and isinstance(one, gym.Env) and one.unwrapped is self.unwrapped:
                raise ArgumentError(
                    f"`{function.__qualname__}` of {type(self.unwrapped).__name__} should read `{read[0]}` from an "
                    f"argument or an attribute: it keeps reading the original environment, its variable `{name}`, in "
                    "copies and twins. Build a second instance by the constructor instead, or override `__deepcopy__`"
                )


def find_drift(env: gym.Env[Any, Any]) -> DriftWrapper | None:
    """The `DriftWrapper` in an environment, `None` if there is none."""
    return next((layer for layer in layers(env) if isinstance(layer, DriftWrapper)), None)
