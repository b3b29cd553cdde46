"""The clock of the drifts: from resets and steps to ticks."""

from __future__ import annotations

import atexit
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from drift_envs.checks import check_flag, check_integer
from drift_envs.errors import ArgumentError, DriftWarning
from drift_envs.knobs import Value
from drift_envs.schedule import NEVER, Schedule, Timeline
from drift_envs.schedule.model import MAX_TICK

NOT_RESET = -1
"""The `stop` of a clock before its first reset: every step is later than it."""

LAST_TICK = MAX_TICK // 2
"""The last tick that can be jumped to; time has to continue from there."""

REWINDS = 10
"""The number of rewinds before the first change at which the warning is given."""

MOST_TRIED = 5
"""Steps of a trial, as those of Gymnasium's `check_env`: no warning is given after so few."""

LEAST_TRAINED = 10_000
"""Steps since the last rewind from which on the end of the process counts as that of a training."""

_CLOCK_OPTIONS = ("continue", "hold")

_PLACE = ("steps", "start", "resume", "held", "episode", "since", "earlier")
"""The fields of a clock from which all others follow."""


@dataclass(frozen=True)
class ClockJump:
    """The part of `reset(options=...)` that moves or stops the clock.

    Args:
        tick: the tick to make the present one, or `None`.
        hold: whether time stops until the next reset.
    """

    tick: int | None = None
    hold: bool = False


NO_JUMP = ClockJump()


class TimeMove(NamedTuple):
    """Where time is to be from the next episode on.

    Args:
        tick: the tick of that episode, `None` for the next one as usual.
        phase: a phase instead, of which it is the first tick with full weight.
        hold: whether all episodes have that tick, or with neither the present one, until time is moved again.
    """

    tick: int | None = None
    phase: str | None = None
    hold: bool = False

    @classmethod
    def of(cls, tick: Any, phase: Any, hold: Any, first_tick: Callable[[str, str], int]) -> TimeMove | None:
        """Check the arguments; `None` if time goes on.

        Args:
            tick: the tick.
            phase: the phase.
            hold: whether time is held.
            first_tick: returns the tick of a phase, or raises an error that names the argument and the known phases.

        Raises:
            ArgumentError: if one breaks a rule, or both tick and phase are given.
        """
        if tick is not None and phase is not None:
            raise ArgumentError("time should be moved to a tick or to a phase. Received both")
        if tick is not None:
            tick = check_integer("tick", tick, 0, LAST_TICK)
        if phase is not None:
            first_tick(phase, "phase")
        check_flag("hold", hold)
        return cls(tick, phase, bool(hold)) if hold or tick is not None or phase is not None else None

    def jump(self, first_tick: Callable[[str, str], int]) -> ClockJump:
        """What the clock does at the next reset."""
        return ClockJump(self.tick if self.phase is None else first_tick(self.phase, "phase"), self.hold)


def read_options(options: Mapping[str, Any], first_tick: Callable[[str, str], int]) -> tuple[ClockJump, dict[str, Any]]:
    """Separate the options of the clock from those of the environment.

    Args:
        options: the options of `reset`.
        first_tick: returns the tick of a phase, or raises an error that names the argument and the known phases.

    Raises:
        ArgumentError: if the options are no dictionary, or one that begins with `drift_` is unknown or breaks a rule.

    Example:
        >>> read_options({"drift_tick": 3, "low": -0.5}, lambda phase, argument: 0)
        (ClockJump(tick=3, hold=False), {'low': -0.5})
    """
    if not isinstance(options, Mapping):
        raise ArgumentError(f"`options` should be a dictionary, or None. Received {options!r}")
    left = {name: value for name, value in options.items() if not str(name).startswith("drift_")}
    known = ("drift_clock", "drift_phase", "drift_tick")
    for name in options:
        if name not in left and name not in known:
            raise ArgumentError(f"`options` should have no other drift keys than {', '.join(known)}. Received {name!r}")
    if "drift_tick" in options and "drift_phase" in options:
        raise ArgumentError("`options` should have one of `drift_tick` and `drift_phase`. Received both")
    clock = options.get("drift_clock")
    if clock is not None and not (isinstance(clock, str) and clock in _CLOCK_OPTIONS):
        raise ArgumentError(f"`drift_clock` should be one of continue, hold. Received {clock!r}")
    tick = options.get("drift_tick")
    if tick is not None:
        tick = check_integer("drift_tick", tick, 0, LAST_TICK)
    if options.get("drift_phase") is not None:
        tick = first_tick(options["drift_phase"], "drift_phase")
    return ClockJump(tick, hold=clock == "hold"), left


@dataclass(slots=True)
class DriftClock:
    """Turns resets and steps into ticks.

    The wrapper's `step` compares `steps` with `stop` and adds one; everything else happens when an
    episode begins. The slots keep these two as cheap as plain attributes of the wrapper would be.

    Args:
        unit: `episode`, `step` or `episode_step`.
        steps: transitions of this episode so far.
        earlier: transitions of the episodes before since the last rewind.
        stop: the number of steps at which knob values may change; `NOT_RESET` before the first reset.
        start: the tick of the episode's first transition.
        resume: the tick of the next reset that neither jumps nor stops time.
        held: whether time is stopped in this episode.
        episode: episodes before this one since the last rewind.
        since: the first tick of the present span, in which time has only increased.
        until: the tick at which the present knob values may change, where `stop` does not determine it.
        values: the present knob values.
    """

    unit: str
    steps: int = 0
    stop: int = NOT_RESET
    start: int = 0
    resume: int = 0
    held: bool = False
    episode: int = -1
    since: int = 0
    until: int = 0
    values: Mapping[str, Value] | None = None
    earlier: int = 0

    @property
    def is_running(self) -> bool:
        """Whether steps of this episode move time."""
        return self.unit != "episode" and not self.held

    @property
    def tick(self) -> int:
        """The present tick: that of the last transition, or of the next one after a reset."""
        return self.start + max(self.steps - 1, 0) if self.is_running else self.start

    @property
    def next_tick(self) -> int:
        """The tick of the next transition."""
        return self.start + self.steps if self.is_running else self.start

    def rewind(self) -> None:
        """Start from tick 0."""
        self.steps = self.start = self.resume = self.since = self.earlier = 0
        self.episode = -1
        self.held = False

    def continue_time(self) -> bool:
        """Begin an episode when time is not held and does not jump; with `episode_step` do nothing.

        Returns:
            Whether the present values still hold.
        """
        until, unit = self.until, self.unit
        if unit == "episode":
            self.start = self.resume
            self.resume += 1
        elif unit == "step":
            if self.stop < NEVER:
                until = self.start + self.stop
            self.start += self.steps
            self.stop = until - self.start if until < NEVER else NEVER
        else:
            return False
        self.earlier += self.steps
        self.steps = 0
        self.episode += 1
        return self.start < until

    def begin(self, jump: ClockJump) -> None:
        """Begin an episode.

        Args:
            jump: from the options.
        """
        present = self.tick
        if self.unit == "step" and not self.held:
            self.resume = self.next_tick
        if jump.tick is not None:
            self.start = self.resume = jump.tick
        elif jump.hold:
            self.start = present
        elif self.unit == "episode_step":
            self.start = 0
        else:
            self.start = self.resume
        if self.unit == "episode" and not jump.hold:
            self.resume = self.start + 1
        if self.start not in (present, present + 1):
            self.since = self.start
        self.held = jump.hold
        self.earlier += self.steps
        self.steps = 0
        self.episode += 1

    def save(self) -> dict[str, Any]:
        """Where the clock stands, as plain data."""
        return {name: getattr(self, name) for name in _PLACE}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Stand where another clock stood; `stop_at` has to follow.

        Args:
            saved: from `save`.

        Raises:
            ArgumentError: if a value breaks a rule.
        """
        place = {name: check_integer(name, saved[name], -1, MAX_TICK) for name in _PLACE if name != "held"}
        check_flag("held", saved["held"])
        for name, value in {**place, "held": saved["held"]}.items():
            setattr(self, name, value)

    def stop_at(self, tick: int) -> None:
        """Let `stop` be the step of this episode that has that tick.

        Args:
            tick: the tick at which values may change.
        """
        self.until = tick
        self.stop = tick - self.start if self.is_running and tick < NEVER else NEVER


class TimeWarnings:
    """Warns of time that passes otherwise than it is probably meant to, of each case once.

    Example:
        >>> import gymnasium as gym
        >>> from drift_envs.wrappers import DriftWrapper
        >>> schedule = {"version": 1, "name": "late", "drifts": [{"at": 100, "set": {"masspole": 1}}]}
        >>> env = DriftWrapper(gym.make("CartPole-v1"), schedule)
        >>> for episode in range(2):
        ...     _ = env.reset(), [env.step(0) for _ in range(4)]
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     env.close()
        >>> print(caught[0].message)
        the environment was closed at tick 1 of the schedule `late`, whose first drift comes at tick 100: nothing has \
drifted
    """

    def __init__(self) -> None:
        self._idle = 0
        self._has_rewound = self._has_drifted = False

    @property
    def is_over(self) -> bool:
        """Whether rewinds need no attention any more."""
        return self._has_rewound and self._has_drifted

    def rewind(self, last: int, steps: int, timeline: Timeline, stacklevel: int = 3) -> None:
        """Warn of a seed that rewinds the schedule after ticks have passed, or ten times before the first drift.

        Args:
            last: the last tick that was visited.
            steps: since the last rewind.
            timeline: that of the schedule before the rewind.
            stacklevel: where the warning points to, as in `warnings.warn`, seen from the caller.

        Warns:
            DriftWarning: once.
        """
        if not timeline.can_change:
            return
        if last > 0 and not self._has_drifted:
            self._has_drifted = last >= first_drift(timeline)
        self._idle += not self._has_drifted
        is_lived = last > 0 and steps > MOST_TRIED
        if self._has_rewound or (not is_lived and self._idle < REWINDS):
            return
        self._has_rewound = True
        passed = f"after tick {last}" if is_lived else f"{REWINDS} times before anything drifted"
        warnings.warn(
            f"`reset(seed=...)` has rewound the schedule `{timeline.schedule.name}` {passed}: each seed starts it from "
            "its beginning. Seed only the first reset, or pass "
            '`options={"drift_clock": "continue"}` together with the seed; make an environment for each lifetime',
            DriftWarning,
            stacklevel=stacklevel + 1,
        )

    def close(self, last: int, steps: int, timeline: Timeline, stacklevel: int = 3, least: int = MOST_TRIED) -> bool:
        """Warn of an end before the first drift; environments of the same schedule that are there are quiet from then.

        Args:
            last: the last tick that was visited.
            steps: since the last rewind.
            timeline: that of the schedule.
            stacklevel: where the warning points to, as in `warnings.warn`, seen from the caller.
            least: the number of steps up to which there is no warning.

        Returns:
            Whether the warning was given.

        Warns:
            DriftWarning: once.
        """
        if steps <= least or self._has_drifted:
            return False
        first = first_drift(timeline)
        if not last < first < NEVER:
            return False
        schedule = timeline.schedule
        silence_ends(schedule)
        unit = "; with `clock: step`, a tick is a step of one copy" if schedule.clock == "step" else ""
        warnings.warn(
            f"the environment was {'closed' if least == MOST_TRIED else 'left'} at tick {last} of the schedule "
            f"`{schedule.name}`, whose first drift comes at tick {first}: nothing has drifted{unit}",
            DriftWarning,
            stacklevel=stacklevel + 1,
        )
        return True


class HasEnd(Protocol):
    """An environment that warns of an end before its first drift.

    Attributes:
        warns_of_end: whether it does.
        schedule: its schedule.
    """

    warns_of_end: bool

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, or `None` if nothing drifts."""
        ...

    def warn_of_end(self, least: int) -> bool:
        """Warn if there were more steps than `least`; returns whether a warning was given."""
        ...


_OPEN: weakref.WeakSet[HasEnd] = weakref.WeakSet()  # `learn` of other libraries closes none of them


def watch_end(env: HasEnd) -> None:
    """Let the end of the process warn as `close` does, if the environment was trained in and is still there.

    Args:
        env: the environment.
    """
    _OPEN.add(env)


def silence_ends(schedule: Schedule) -> None:
    """Let no environment that is there warn of an end before the first drift: the user has read it.

    Copies of one environment have the same fault, and a callback, `close` and the end of the process find it each.

    Args:
        schedule: of these environments.
    """
    for env in list(_OPEN):
        if env.schedule == schedule:
            env.warns_of_end = False


@atexit.register
def _warn_of_ends() -> None:
    """Warn of one environment."""
    any(env.warn_of_end(LEAST_TRAINED) for env in list(_OPEN))


def first_drift(timeline: Timeline) -> int:
    """The first tick of the first phase that a drift has begun; `NEVER` if there is none."""
    phase = timeline.phase(0)
    return phase.stop if phase.drift is None else 0
