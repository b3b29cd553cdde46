"""Experiment files: reading them with lines, and the ones that come with the package.

* `load_experiment` - a shipped name or a path to a checked `Experiment`
* `shipped_experiments` - the names of the experiments that come with the package
* `read_yaml` - a YAML 1.2 file as plain data, with the line of every key
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError, UnknownNameError
from drift_agents.experiment.checking import parse_experiment
from drift_agents.experiment.config import Experiment
from drift_envs.schedule.yaml12 import MAX_BYTES, YamlError, parse_yaml

_SUFFIXES = (".yaml", ".yml")
_FOLDER = "experiments"


def shipped_experiments() -> tuple[str, ...]:
    """The names of the experiments that come with the package, sorted.

    Example:
        >>> "glove-quick" in shipped_experiments()
        True
    """
    folder = resources.files("drift_agents.experiment") / _FOLDER
    return tuple(sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml")))


def load_experiment(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> Experiment:
    """Read and check an experiment.

    Args:
        source: a shipped name, the path of a file (it ends in `.yaml` or holds a `/`), or plain data.
        overrides: top-level keys that replace the file's, as the command's options do; `seeds` and
            `rounds` replace those of single schedules too. A number of seeds counts from the file's
            first one, where that names it.

    Raises:
        UnknownNameError: if no experiment that is shipped has that name.
        ExperimentError: if the file cannot be read, or with everything that is wrong in it.

    Example:
        >>> load_experiment("glove-quick", {"seeds": 2}).seeds
        (0, 1)
    """
    if isinstance(source, Mapping):
        return parse_experiment(_overridden(source, overrides or {}))
    text = os.fspath(source)
    if isinstance(source, str) and not text.endswith(_SUFFIXES) and os.sep not in text:
        if text not in shipped_experiments():
            raise UnknownNameError("experiment", text, shipped_experiments())
        where = f"{text}.yaml"
        content = (resources.files("drift_agents.experiment") / _FOLDER / where).read_text("utf-8")
        data, line = parse_text(content, where)
    else:
        where = text
        data, line = read_yaml(Path(text))
    if isinstance(data, dict):
        data = _overridden(data, overrides or {})
    return parse_experiment(data, where, line)


def _overridden(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The file's content with other values for some keys."""
    seeds, count = data.get("seeds"), overrides.get("seeds")
    if isinstance(seeds, Mapping) and isinstance(count, int):
        overrides = {**overrides, "seeds": {**seeds, "count": count}}
    worlds = data.get("worlds")
    if isinstance(worlds, Mapping):
        # What is asked for holds for all schedules, also for those that the file treats apart.
        replaced = {key for key in ("seeds", "rounds") if key in overrides}
        overrides = {"worlds": {name: _without(world, replaced) for name, world in worlds.items()}, **overrides}
    return {**data, **overrides}


def _without(world: Any, keys: set[str]) -> Any:
    return {key: value for key, value in world.items() if key not in keys} if isinstance(world, Mapping) else world


def read_yaml(path: Path) -> tuple[Any, Callable[[tuple[str | int, ...]], int | None]]:
    """Read a YAML file.

    Args:
        path: the file.

    Returns:
        The data, and a function that gives the line of a key.

    Raises:
        ExperimentError: if the file cannot be read, is too large, or is not YAML.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ExperimentError(f"{path}: an experiment file should have at most {MAX_BYTES} bytes")
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ExperimentError(f"{path}: cannot be read: {reason}") from error
    return parse_text(content, str(path))


def parse_text(content: str, where: str) -> tuple[Any, Callable[[tuple[str | int, ...]], int | None]]:
    """The data of a YAML text, and a function that gives the line of a key.

    Raises:
        ExperimentError: if the text is not YAML, or a key stands twice.
    """
    try:
        document = parse_yaml(content, where)
    except YamlError as error:
        raise ExperimentError(f"{where}{'' if error.line is None else f':{error.line}'}: {error.text}") from error
    if document.problems:
        raise ExperimentError("\n".join(map(str, document.problems)))
    return document.data, lambda path: document.mark.find(path).line
