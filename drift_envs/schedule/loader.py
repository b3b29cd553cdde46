"""From a name, a path or a dictionary to a checked `Schedule`.

* `load_schedule` - reads and checks a schedule; everything that is wrong is told at once
* `shipped_schedules` - the names of the schedules that come with the package
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import yaml
from pydantic import ValidationError

from drift_envs.errors import Problem, ScheduleError
from drift_envs.knobs import KnobTable, thaw
from drift_envs.schedule.model import Schedule


def shipped_schedules() -> tuple[str, ...]:
    """The names of the schedules that come with the package, sorted."""
    names = []
    for folder in resources.files("drift_schedules").iterdir():
        if folder.is_dir():
            names += [
                f"{folder.name}/{file.name.removesuffix('.yaml')}"
                for file in folder.iterdir()
                if file.name.endswith(".yaml")
            ]
    return tuple(sorted(names))


def load_schedule(
    source: str | os.PathLike[str] | Mapping[str, object] | Schedule | None, *, table: KnobTable | None = None
) -> Schedule | None:
    """Read and check a schedule.

    Raises:
        ScheduleError: with everything that is wrong.
    """
    if source is None or isinstance(source, Schedule):
        return source
    if isinstance(source, Mapping):
        where, data = "<dict>", thaw(source)
    elif isinstance(source, str) and not source.endswith((".yaml", ".yml")):
        where = f"{source}.yaml"
        data = yaml.safe_load((resources.files("drift_schedules") / where).read_text("utf-8"))
    else:
        where = os.fspath(source)
        data = yaml.safe_load(Path(where).read_text("utf-8"))
    try:
        return Schedule.model_validate(data)
    except ValidationError as error:
        raise ScheduleError(
            Problem(where, None, ".".join(map(str, found["loc"])), found["msg"]) for found in error.errors()
        ) from None
