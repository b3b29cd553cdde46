"""What oracles answer, the base of those that plan, and how severe and how visible the drifts of a schedule are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import gymnasium as gym

from drift_envs.checks import check_integer
from drift_envs.errors import NoOracleError
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import parts_of
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline

Setting = TypeVar("Setting", bound=Hashable)


class ChangeEffect(NamedTuple):
    """The effect of the change between two ticks.

    Optimal policies have the highest expected score and, among those, the fewest expected steps.
    There may be many of them, since ties are common.

    Args:
        magnitude: share of the transition table that changes: of all pairs of a state and an
            action, those whose responses differ.
        before: expected score of the policies that are optimal before the change.
        carried: expected score of the same policies after the change: the maximum over all ways
            to break ties.
        after: expected score of the policies that are optimal after the change.
        replayed: expected score after the change of the action sequences that were optimal before it,
            executed open loop; `None` where the dynamics are random, so that no sequence is optimal.

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
        """Share of the new optimum that the old policies miss; 0 where the new optimum is 0."""
        return (self.after - self.carried) / self.after if self.after > 0 else 0.0


class Response(NamedTuple):
    """One possible response to an action.

    Args:
        state: the next state, as the JSON text of the text environment.
        score: the score of the episode after this transition.
        ended: whether the episode terminates.
        probability: in (0, 1].
    """

    state: str
    score: float
    ended: bool
    probability: float


class KnobSource(Protocol):
    """The input of an oracle; `DriftWrapper` is one."""

    def knobs_at(self, tick: int) -> Mapping[str, Value]:
        """The value of every knob at that tick."""
        ...


class Oracle(Protocol):
    """Exact or best known responses, actions and values at any tick; for evaluators, out of reach of agents.

    A state is an observation of the environment, or the JSON text of the text environment; an action likewise.
    Every method uses the knobs of the given tick, as if they stayed constant.
    """

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the responses to this action in this state differ between two ticks."""
        ...

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first."""
        ...

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this outcome is a possible true response; false responses (`transient`) do not hold.

        `score` is that of the episode after the response. It is compared where states do not show it and oracles
        derive it (MiniGrid, MiniWoB++), unless it is `None`.
        """
        ...

    def action(self, state: Any, tick: int, left: int | None = None) -> Any:
        """The best known action in the form of the action space, with `left` steps left (default: the limit)."""
        ...

    def value(self, tick: int) -> float:
        """The expected score of the best known policy from the start."""
        ...

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """The effect of the change from tick `t0` to tick `t1`."""
        ...


@runtime_checkable
class SeesVisibility(Protocol):
    """An oracle that computes exactly how visible a change is."""

    def visibility(self, before: int, after: int) -> float:
        """The share of the ways that were optimal before which meet the change."""
        ...


class PlannedKnobs:
    """The knobs of a timeline alone, to analyse a schedule without building an environment.

    Args:
        timeline: the values of the knobs that the schedule drives.
        table: the environment's knobs; knobs that the schedule does not drive have their defaults.

    Example:
        >>> from drift_envs.envs.mountain_car.env import MOUNTAIN_CAR_KNOBS
        >>> from drift_envs.schedule import Schedule
        >>> schedule = Schedule(version=1, name="weak", drifts=[{"at": 3, "set": {"force": 0.0008}}])
        >>> source = PlannedKnobs(Timeline(schedule, MOUNTAIN_CAR_KNOBS, seed=0), MOUNTAIN_CAR_KNOBS)
        >>> source.knobs_at(2)["force"], source.knobs_at(3)["force"]
        (0.001, 0.0008)
    """

    def __init__(self, timeline: Timeline, table: KnobTable) -> None:
        self.timeline = timeline
        self._defaults = table.defaults()

    def knobs_at(self, tick: int) -> Mapping[str, Value]:
        """The value of every knob at that tick."""
        return {**self._defaults, **self.timeline.values(tick)}


class PlanningOracle(ABC, Generic[Setting]):
    """Values and effects of changes from cached plans; the base of the oracles of lake and cars.

    A *setting* is the tuple of all knob values on which a plan depends. The functions that plan cache their
    results by setting, so that ticks with equal knobs share one plan.

    Args:
        source: the knobs at any tick.
        limit: the step limit of an episode, at least 1.

    Raises:
        ArgumentError: if `limit` is below 1.
    """

    def __init__(self, source: KnobSource, limit: int) -> None:
        self._source = source
        self._limit = check_integer("limit", limit, 1)

    @abstractmethod
    def setting(self, tick: int) -> Setting:
        """The setting at a tick."""

    @abstractmethod
    def _optimum(self, setting: Setting) -> float:
        """The expected score of the best known policy."""

    @abstractmethod
    def _magnitude(self, old: Setting, new: Setting) -> float:
        """The share of pairs of state and action whose responses differ."""

    @abstractmethod
    def _carried(self, old: Setting, new: Setting) -> float:
        """The expected score in `new` of the policies that are optimal in `old`."""

    def _replayed(self, old: Setting, new: Setting) -> float | None:
        """The expected score in `new` of the action sequences that are optimal in `old`, if there are any."""
        return None

    @abstractmethod
    def _differ(self, old: Setting, new: Setting, state: Any, action: Any) -> bool:
        """Whether two different settings respond differently to this action in this state."""

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the responses to this action in this state differ between two ticks.

        Args:
            state: an observation (as of `t0`), or the JSON text.
            action: the action, or its text.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self.setting(t0), self.setting(t1)
        return before != after and self._differ(before, after, state, action)

    def value(self, tick: int) -> float:
        """The expected score of the best known policy from the start within the step limit."""
        return self._optimum(self.setting(tick))

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """The effect of the change from tick `t0` to tick `t1`.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self.setting(t0), self.setting(t1)
        return ChangeEffect(
            magnitude=self._magnitude(old, new),
            before=self._optimum(old),
            carried=self._carried(old, new),
            after=self._optimum(new),
            replayed=self._replayed(old, new),
        )


def order_responses(*responses: Response) -> tuple[Response, ...]:
    """Those that are possible, most probable first."""
    return tuple(sorted((one for one in responses if one.probability > 0), key=lambda one: -one.probability))


def completion_probability(steps: int, limit: int, lost: float) -> float:
    """The probability that a policy that repeats lost actions gets `steps` actions through within the limit.

    Args:
        steps: the number of actions that it needs.
        limit: the maximum number of steps of an episode.
        lost: the probability that an action is lost, in [0, 1].

    Returns:
        The upper tail of a binomial distribution: P(at least `steps` of `limit` are not lost).

    Example:
        >>> completion_probability(1, 2, 0.5), completion_probability(3, 2, 0.3)
        (0.75, 0.0)
    """
    if not lost or steps > limit:  # the sum would be 1 but for rounding
        return float(steps <= limit)
    return 1.0 - sum(math.comb(limit, kept) * (1 - lost) ** kept * lost ** (limit - kept) for kept in range(steps))


def make_oracle(wrapper: Any) -> Oracle:
    """Build the oracle of a drifting environment.

    Its step limit is that of the id. With another `max_episode_steps` given to `gymnasium.make`,
    which only the `TimeLimit` around the wrapper stores, build `LakeOracle` or `CarOracle` directly.

    Args:
        wrapper: the `DriftWrapper` around an environment whose declaration names an oracle.

    Raises:
        NoOracleError: if no oracle is known for the wrapped environment, or the schedule drives a knob of
            the wrapper, such as `action_delay`, which the oracle does not model.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> env = DriftWrapper(FrozenLake(is_slippery=False), "frozen_lake/explicit", make_oracle)
        >>> env.oracle.effect(0, 20).carried
        0.0
    """
    base: Any = wrapper.unwrapped
    parts = parts_of(base)
    if parts is None or parts.oracle is None:
        raise NoOracleError(f"no oracle is known for {base}")
    foreign = [name for name in wrapper.timeline.names if name not in base.knobs]
    if foreign and parts.knows_optimum:
        raise NoOracleError(f"no oracle is known for {base} while its schedule sets `{'`, `'.join(foreign)}`")
    limit = None if base.spec is None else base.spec.max_episode_steps
    oracle: Oracle = parts.load("oracle")(wrapper, lambda: base, parts.limit if limit is None else limit)
    return oracle


class DriftSeverity(NamedTuple):
    """The figures of one drift.

    Args:
        phase: the phase that it starts.
        severity: the share of the transition table that changes.
        visibility: the share of the ways that were optimal before which meet the change.
        loss: the share of the new optimum that the policies which were optimal before miss.
    """

    phase: str
    severity: float
    visibility: float
    loss: float


def measure_drifts(schedule: Schedule, seed: int = 0, drifts: int = 2, episodes: int = 5) -> list[DriftSeverity]:
    """How severe and how visible the first drifts of a schedule are, each at its full weight.

    On lakes the visibility is exact. Elsewhere the best known policy of the phase before plays some episodes, whose
    starts and goals are drawn from the seed, while time stands still.

    Args:
        schedule: a schedule that names its environment.
        seed: the seed of its instance.
        drifts: the most drifts to measure.
        episodes: episodes for a visibility that is not computed exactly.

    Raises:
        NoOracleError: if there is no oracle for the environment or the schedule.
        ArgumentError: if a number is below 1.

    Example:
        >>> from drift_envs.schedule import load_schedule
        >>> measure_drifts(load_schedule("frozen_lake/implicit"))
        [DriftSeverity(phase='reversal', severity=0.044642857142857144, visibility=1.0, loss=0.5)]
    """
    check_integer("drifts", drifts, 1)
    check_integer("episodes", episodes, 1)
    if schedule.env is None:
        raise NoOracleError(f"`{schedule.name}` names no environment, so that it has no oracle")
    spec = gym.registry.get(schedule.env)
    if spec is None or not str(spec.entry_point).startswith("drift_envs."):
        raise NoOracleError(f"there is no oracle for `{schedule.env}`, which is an environment of another package")
    env = gym.make(schedule.env, schedule=schedule, text=True)
    env.set_wrapper_attr("warns_of_end", False)
    try:
        env.reset(seed=seed)
        oracle: Oracle | None = env.get_wrapper_attr("oracle")
        if oracle is None:
            raise NoOracleError(f"there is no oracle for `{schedule.name}`")
        timeline: Timeline = env.get_wrapper_attr("timeline")
        found = []
        for old, new in pairwise(timeline.first_phases(drifts + 1)):
            before, after = (timeline.full_tick(one) for one in (old, new))
            effect = oracle.effect(before, after)
            if isinstance(oracle, SeesVisibility):
                visibility = oracle.visibility(before, after)
            else:
                visibility = sum(_meets(env, oracle, before, after) for _ in range(episodes)) / episodes
            found.append(DriftSeverity(new.id, effect.magnitude, visibility, effect.loss))
        return found
    finally:
        env.close()


def _meets(env: gym.Env[Any, Any], oracle: Oracle, before: int, after: int) -> bool:
    """Whether the best known policy takes an action whose responses differ, in an episode at the first tick."""
    state, _ = env.reset(options={"drift_tick": before, "drift_clock": "hold"})
    limit = env.spec.max_episode_steps if env.spec is not None else None
    steps, ended = 0, False
    while not ended:
        action = oracle.action(state, before, None if limit is None else limit - steps)
        if oracle.changed(state, action, before, after):
            return True
        state, _, terminated, truncated, _ = env.step(action)
        steps, ended = steps + 1, terminated or truncated
    return False
