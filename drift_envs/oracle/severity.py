"""How severe and how visible the drifts of a schedule are: a map on which schedules have their places.

* `measure_drifts` - both figures for each drift of a schedule
* `DriftSeverity` - the figures of one drift
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym

from drift_envs.checks import check_integer
from drift_envs.errors import NoOracleError
from drift_envs.oracle.base import Oracle, SeesVisibility
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline


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
