"""What the command's options change in an experiment's file.

* `override` - the file's content with other values for some keys
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drift_agents.errors import UnknownNameError
from drift_agents.experiment.mistakes import AXES, readable_blocks
from drift_agents.experiment.plan import parts_of
from drift_envs.schedule.files import split_suffix


def override(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The file's content with other values for some keys.

    Args:
        data: the content.
        overrides: top-level keys that replace the file's, as `load_experiment` describes them.

    Raises:
        UnknownNameError: if a chosen schedule is none of the file's.
    """
    seeds, count = data.get("seeds"), overrides.get("seeds")
    if isinstance(seeds, Mapping) and isinstance(count, int):
        overrides = {**overrides, "seeds": {**seeds, "count": count}}
    environments = data.get("environments")
    if "schedules" in overrides and isinstance(data.get("schedules"), list):
        chosen = _choose_schedules(data["schedules"], overrides["schedules"])
        overrides = {**overrides, "schedules": chosen}
        if isinstance(environments, Mapping):
            played = {*chosen, *(split_suffix(name)[0] for name in chosen)}
            environments = {name: settings for name, settings in environments.items() if name in played}
    if isinstance(environments, Mapping):
        # Overrides hold for all schedules, also for those with settings of their own in the file.
        replaced = {key for key in ("seeds", "rounds") if key in overrides}
        called = _called(overrides) if "agents" in overrides else {}
        overrides = {
            "environments": {name: _without(settings, replaced, called) for name, settings in environments.items()},
            **overrides,
        }
    return {**data, **overrides}


def _choose_schedules(listed: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Those of a file's schedules that are named, or whose file is."""
    found = [[one for one in listed if name in (one, split_suffix(str(one))[0])] for name in names]
    for name, some in zip(names, found, strict=True):
        if not some:
            raise UnknownNameError("schedule of this experiment", name, [str(one) for one in listed])
    return [one for one in listed if any(one in some for some in found)]


def _called(data: Mapping[str, Any]) -> dict[str, set[str]]:
    """The names and labels of the parts in blocks of agents, by axis."""
    blocks = readable_blocks(data).values()
    return {
        axis: {word for part in parts for word in (part.name, part.label(parts))}
        for axis in AXES
        for parts in [parts_of(blocks, axis)]
    }


def _without(settings: Any, keys: set[str], called: Mapping[str, set[str]]) -> Any:
    """The settings of a schedule without some keys, and without options of parts that are not called."""
    if not isinstance(settings, Mapping):
        return settings
    return {
        key: {word: value[word] for word in value if word in called[key]}
        if key in called and isinstance(value, Mapping)
        else value
        for key, value in settings.items()
        if key not in keys
    }
