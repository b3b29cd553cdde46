"""What time it is for the drifts.

* `DriftClock` - turns resets and steps into ticks, with the options that hold or move time
* `ClockJump` - what `reset(options=...)` asks of the clock
* `read_options` - takes those wishes out of the options, checked
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.schedule import NEVER
from drift_envs.schedule.model import MAX_TICK

NOT_RESET = -1
"""The `stop` of a clock that waits for its first reset: every step is later than it."""

LAST_TICK = MAX_TICK // 2
"""The last tick that can be jumped to; time has to go on from there."""

_CLOCK_OPTIONS = ("continue", "hold")


@dataclass(frozen=True)
class ClockJump:
    """What `reset(options=...)` asks of the clock.

    Args:
        tick: the tick to make the present one, or `None`.
        hold: whether time stands still until the next reset.
    """

    tick: int | None = None
    hold: bool = False


NO_JUMP = ClockJump()


def read_options(options: Mapping[str, Any], first_tick: Callable[[str], int]) -> tuple[ClockJump, dict[str, Any]]:
    """What the options ask of the clock, and the options that are left for the environment.

    Args:
        options: the options of `reset`.
        first_tick: gives the tick of a phase, or raises an error that names the known ones.

    Raises:
        ArgumentError: if an option that begins with `drift_` is unknown or breaks a rule.

    Example:
        >>> read_options({"drift_tick": 3, "low": -0.5}, lambda phase: 0)
        (ClockJump(tick=3, hold=False), {'low': -0.5})
    """
    left = {name: value for name, value in options.items() if not str(name).startswith("drift_")}
    known = ("drift_clock", "drift_phase", "drift_tick")
    for name in options:
        if name not in left and name not in known:
            raise ArgumentError(f"`options` should have no other drift keys than {', '.join(known)}. Received {name!r}")
    if "drift_tick" in options and "drift_phase" in options:
        raise ArgumentError("`options` should have one of `drift_tick` and `drift_phase`. Received both")
    clock = options.get("drift_clock")
    if clock is not None and clock not in _CLOCK_OPTIONS:
        raise ArgumentError(f"`drift_clock` should be one of 'continue', 'hold'. Received {clock!r}")
    tick = options.get("drift_tick")
    if tick is not None and (isinstance(tick, bool) or not isinstance(tick, int) or not 0 <= tick <= LAST_TICK):
        raise ArgumentError(
            f"`drift_tick` should be a whole number in the interval [0, {LAST_TICK}]. Received {tick!r}"
        )
    if options.get("drift_phase") is not None:
        tick = first_tick(options["drift_phase"])
    return ClockJump(tick, hold=clock == "hold"), left


@dataclass(slots=True)
class DriftClock:
    """Turns resets and steps into ticks.

    The wrapper's `step` compares `steps` with `stop` and adds one; everything else happens when an
    episode begins. The slots keep these two as cheap as plain attributes of the wrapper would be.

    Args:
        unit: `episode`, `step` or `episode_step`.
        steps: transitions of this episode so far.
        stop: the number of steps at which knob values may change; `NOT_RESET` before the first reset.
        start: the tick of the episode's first transition.
        resume: the tick at which time goes on with the next reset that neither jumps nor holds.
        held: whether time stands still in this episode.
        episode: episodes before this one since the last rewind.
        since: the first tick of the present span, through which time has only gone on.
        until: the tick at which the knob values that are in force may change, as far as `stop` does not say.
        values: the knob values that are in force.
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

    @property
    def is_running(self) -> bool:
        """Whether steps of this episode move time."""
        return self.unit != "episode" and not self.held

    @property
    def tick(self) -> int:
        """The present tick: that of the last transition, or of the first one to come after a reset."""
        return self.start + max(self.steps - 1, 0) if self.is_running else self.start

    @property
    def next_tick(self) -> int:
        """The tick of the transition to come."""
        return self.start + self.steps if self.is_running else self.start

    def rewind(self) -> None:
        """Start from tick 0."""
        self.steps = self.start = self.resume = self.since = 0
        self.episode = -1
        self.held = False

    def go_on(self) -> bool:
        """Begin an episode the plain way: time was not held and neither jumps nor starts again.

        Returns:
            Whether the values that are in force still hold.
        """
        until = self.until
        if self.unit == "episode":
            self.start = self.resume
            self.resume += 1
        else:
            if self.stop < NEVER:
                until = self.start + self.stop
            self.start += self.steps
            self.stop = until - self.start if until < NEVER else NEVER
        self.steps = 0
        self.episode += 1
        return self.start < until

    def begin(self, jump: ClockJump) -> None:
        """Begin an episode.

        Args:
            jump: what the options ask for.
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
        self.steps = 0
        self.episode += 1

    def stop_at(self, tick: int) -> None:
        """Let `stop` be the step of this episode that has that tick.

        Args:
            tick: the tick at which values may change.
        """
        self.until = tick
        self.stop = tick - self.start if self.is_running and tick < NEVER else NEVER
