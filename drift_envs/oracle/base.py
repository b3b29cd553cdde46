"""What an evaluator may ask about a world that drifts.

* `Oracle` - the protocol: responses, best actions and values at any tick
* `Response` - one thing that the world can answer, with its probability
* `ChangeEffect` - what the change between two ticks does to the world and to the best policies of before
* `DriftingWorld` - what an oracle needs to know: the knobs at any tick
* `PlannedWorld` - such a world made of a timeline alone, without an environment
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule.timeline import Timeline


class Response(NamedTuple):
    """One thing that the world can answer to an action.

    Args:
        state: the next state, as the JSON text of the text world.
        score: the score so far, after it.
        ended: whether the episode terminates with it.
        probability: how likely it is.
    """

    state: str
    score: float
    ended: bool
    probability: float


class ChangeEffect(NamedTuple):
    """What the change between two ticks does.

    The best policies of a world are those with the highest expected score and, among them, the
    fewest expected steps. There may be many of them, since ties are common.

    Args:
        magnitude: share of the transition table that changes: of all pairs of a state and an
            action, those whose responses differ.
        before: expected score of the best policies in the old world.
        carried: expected score of those policies in the new world: the highest that any of them
            reaches, whatever way it breaks ties.
        after: expected score of the best policies of the new world.
        replayed: expected score in the new world of the best sequences of actions of the old one,
            given again without looking where they lead; `None` where no sequence is best, since
            chance decides.

    Example:
        >>> ChangeEffect(magnitude=0.25, before=1.0, carried=0.5, after=1.0).loss
        0.5
    """

    magnitude: float
    before: float
    carried: float
    after: float
    replayed: float | None = None

    @property
    def loss(self) -> float:
        """Share of the new optimum that the old policies miss; 0 where nothing can be won."""
        return (self.after - self.carried) / self.after if self.after > 0 else 0.0


class DriftingWorld(Protocol):
    """What an oracle needs to know of a world; `DriftWrapper` is one."""

    def knobs_at(self, tick: int) -> Mapping[str, Value]:
        """The value of every knob at that tick."""
        ...


class PlannedWorld:
    """A world made of a timeline alone, for those who ask about a schedule without building an environment.

    Args:
        timeline: what the schedule says.
        table: the environment's knobs; those that the schedule leaves alone stand at their default.

    Example:
        >>> from drift_envs.envs.mountain_car import MOUNTAIN_CAR_KNOBS
        >>> from drift_envs.schedule import Schedule
        >>> schedule = Schedule(version=1, name="weak", drifts=[{"at": 3, "set": {"force": 0.0008}}])
        >>> world = PlannedWorld(Timeline(schedule, MOUNTAIN_CAR_KNOBS, seed=0), MOUNTAIN_CAR_KNOBS)
        >>> world.knobs_at(2)["force"], world.knobs_at(3)["force"]
        (0.001, 0.0008)
    """

    def __init__(self, timeline: Timeline, table: KnobTable) -> None:
        self.timeline = timeline
        self._defaults = table.defaults()

    def knobs_at(self, tick: int) -> Mapping[str, Value]:
        """The value of every knob at that tick."""
        return {**self._defaults, **self.timeline.values(tick)}


class Oracle(Protocol):
    """What an evaluator may ask; no agent gets to see any of it.

    States are what the environment observes, or the JSON text that the text world shows; actions
    likewise. Every answer refers to the knobs of the tick that is asked for, as if they stayed.
    """

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether what the world answers to this action in this state differs between the two ticks."""
        ...

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """Everything that the world can answer, most probable first."""
        ...

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int) -> bool:
        """Whether the world could truly answer this; false responses (`transient`) are not true."""
        ...

    def action(self, state: Any, tick: int, left: int | None = None) -> Any:
        """The best known action, as the environment takes it, with so many steps left; all of them by default."""
        ...

    def value(self, tick: int) -> float:
        """The expected score from the start under the best known policy."""
        ...

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from one tick to another does."""
        ...
