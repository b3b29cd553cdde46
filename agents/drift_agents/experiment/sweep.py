"""What a sweep makes of a schedule.

* `changed_schedule` - a schedule with another value in one place
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import SweptValue
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule


def changed_schedule(schedule: Schedule, change: SweptValue) -> Schedule:
    """A schedule with another value in one place; its name says which.

    Args:
        schedule: the schedule.
        change: the place, its words joined by dots, and the value. `*` stands for every drift. All
            words but the last one must be there.

    Raises:
        ExperimentError: if the schedule has no such place.
        ScheduleError: if the value is not allowed there.

    Example:
        >>> reversed_ = load_schedule("mountain_car/reversed")
        >>> weak = changed_schedule(reversed_, SweptValue("drifts.reversed.set.force", -0.0008))
        >>> weak.name, dict(weak.drifts[0].set)
        ('mountain_car/reversed/force--0.0008', {'force': -0.0008})
    """
    data = schedule.to_dict()
    *way, last = change.path.split(".")
    places = list(_places(data, way))
    if not places or not all(isinstance(place, dict) for place in places):
        raise ExperimentError(f"{schedule.name}: `sweep` should name a place of the schedule. Received {change.path!r}")
    for place in places:
        place[last] = change.value
    data["name"] = f"{schedule.name}/{change.label}"
    return load_schedule(data)


def _places(data: Any, way: list[str]) -> Iterator[Any]:
    """What stands at the end of a way; `*` leads to all items of a list, a name to the item of that name."""
    if not way:
        yield data
        return
    step, *rest = way
    if isinstance(data, list):
        for item in data:
            if step == "*" or (isinstance(item, dict) and item.get("name") == step):
                yield from _places(item, rest)
    elif isinstance(data, dict) and step in data:
        yield from _places(data[step], rest)
