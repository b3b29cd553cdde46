"""The ids that need no extra and whose oracle knows the optimum, and schedules of each kind."""

from collections.abc import Iterable
from typing import Any

import pytest

from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule, shipped_schedules

CORE_IDS = {name: entry for name, entry in IDS.items() if entry.extra is None and entry.oracle and entry.knows_optimum}
DAILY = {"house/wander", "frozen_lake/thaw:walk"}
"""Schedules of which single days matter little, and not every one, and whose walks may come back: weeks matter."""
WHAT = ("set", "add", "scale", "swap", "choice", "walk")


def by_file(names: Iterable[Any]) -> list[Any]:
    """Parameters of a test: of each file the schedule itself; its variants, which differ by a line, are slow.

    Args:
        names: names of schedules, or tuples of which one entry is such a name.
    """
    return [pytest.param(*one, marks=[pytest.mark.slow] if ":" in str(one) else []) for one in map(_as_tuple, names)]


def _as_tuple(one: Any) -> tuple[Any, ...]:
    return one if isinstance(one, tuple) else (one,)


def kinds_of_schedules() -> list[tuple[str, str]]:
    """Ids with as few shipped schedules as have each clock, each form of a drift and each knob of that id."""
    seen: set[tuple[object, ...]] = set()
    kept = []
    for name in shipped_schedules():
        schedule = load_schedule(name)
        if schedule.env not in CORE_IDS:
            continue
        features: set[tuple[object, ...]] = {(schedule.env, schedule.clock)}
        for drift in schedule.to_dict()["drifts"]:
            features.add((schedule.env, drift.get("kind"), *sorted(set(drift) - {"name", *WHAT})))
            features |= {(schedule.env, what, knob) for what in WHAT for knob in drift.get(what, ())}
        if not features <= seen:
            seen |= features
            kept.append((schedule.env, name))
    return kept
