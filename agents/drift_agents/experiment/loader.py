"""Experiment files: where they are, and how they are read.

* `load_experiment` - a shipped name, a path or plain data to a checked `Experiment`
* `override` - the content of a file with other values for some keys
* `shipped_experiments` - the names of the experiments that come with the package
* `parse_experiment` - plain data to a checked `Experiment`; reports all mistakes together
* `parse_text` - YAML 1.2 as plain data, with the line of every key
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError, UnknownNameError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.mistakes import AXES, find_mistakes, readable_blocks
from drift_agents.experiment.plan import parts_of
from drift_agents.part_file import PartFile
from drift_envs.errors import Problem
from drift_envs.schedule.yaml import MAX_BYTES, Document, Mark, YamlError, key_path, parse_yaml, split_suffix

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
            first one, where that names it; `schedules` chooses among the file's, where a name without its suffix
            stands for all of its variants. Options of parts that other agents do not have are left out of single
            schedules.

    Parts of Python files (`drift_agents.part_file.PartFile`) stand with the hash of their file. The path of one in an
    experiment file starts at the folder of that file; files of parts are executed.

    Raises:
        UnknownNameError: if no experiment that is shipped has that name, or a chosen schedule is none of the file's.
        ExperimentError: if the file cannot be read, or with everything that is wrong in it.

    Example:
        >>> load_experiment("glove-quick", {"seeds": 2}).seeds
        (0, 1)
    """
    if isinstance(source, Mapping):
        return parse_experiment(override(source, overrides or {}))
    where = os.fspath(source)
    if isinstance(source, str) and not where.endswith(_SUFFIXES) and os.sep not in where:
        if where not in shipped_experiments():
            raise UnknownNameError("experiment", where, shipped_experiments())
        where = f"{where}.yaml"
        content = (resources.files("drift_agents.experiment") / _FOLDER / where).read_text("utf-8")
    else:
        content = _read(Path(where))
    document = parse_text(content, where)
    data = document.data
    if isinstance(data, dict):
        if "drifts" in data:
            raise ExperimentError(f"{where}: is a schedule; an experiment names it under `schedules`")
        data = override(_place_parts(data, Path(where).parent), overrides or {})
    return parse_experiment(data, where, document.mark)


def override(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The file's content with other values for some keys.

    Args:
        data: the content.
        overrides: top-level keys that replace the file's, as `load_experiment` describes them.

    Raises:
        UnknownNameError: if a chosen schedule is none of the file's.
    """
    changed = {**data, **overrides}
    seeds, count = data.get("seeds"), overrides.get("seeds")
    if isinstance(seeds, Mapping) and isinstance(count, int):
        changed["seeds"] = {**seeds, "count": count}
    environments = data.get("environments")
    if "schedules" in overrides and isinstance(data.get("schedules"), list):
        chosen = changed["schedules"] = _choose_schedules(data["schedules"], overrides["schedules"])
        if isinstance(environments, Mapping):
            played = {*chosen, *(split_suffix(name)[0] for name in chosen)}
            environments = {name: settings for name, settings in environments.items() if name in played}
    if isinstance(environments, Mapping) and "environments" not in overrides:
        # Overrides hold for all schedules, also for those with settings of their own in the file.
        replaced = {"seeds", "rounds"} & set(overrides)
        blocks = readable_blocks(overrides).values() if "agents" in overrides else ()
        parts = {axis: parts_of(blocks, axis) for axis in (AXES if "agents" in overrides else ())}
        called = {axis: {word for one in own for word in (one.name, one.label(own))} for axis, own in parts.items()}
        changed["environments"] = {name: _without(own, replaced, called) for name, own in environments.items()}
    return changed


def _choose_schedules(listed: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Those of a file's schedules that are named, or whose file is."""
    found = [[one for one in listed if name in (one, split_suffix(str(one))[0])] for name in names]
    for name, some in zip(names, found, strict=True):
        if not some:
            raise UnknownNameError("schedule of this experiment", name, [str(one) for one in listed])
    return [one for one in listed if any(one in some for some in found)]


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


def _place_parts(data: Any, folder: Path) -> Any:
    """Plain data of an experiment file with the paths of parts from the working directory, not from its folder."""
    if isinstance(data, str):
        part = PartFile.read(data)
        return data if part is None else part._replace(path=str(folder / part.path)).text
    if isinstance(data, dict):
        return {
            _place_parts(key, folder): value if key == "about" else _place_parts(value, folder)
            for key, value in data.items()
        }
    return [_place_parts(value, folder) for value in data] if isinstance(data, list) else data


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ExperimentError(f"{path}: an experiment file should have at most {MAX_BYTES} bytes")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ExperimentError(f"{path}: cannot be read: {reason}") from error


def parse_text(content: str, where: str) -> Document:
    """The data of a YAML text, with the line of every key.

    Args:
        content: the text.
        where: the file's name, for messages.

    Raises:
        ExperimentError: if the text is not YAML, or a key stands twice.
    """
    try:
        document = parse_yaml(content, where)
    except YamlError as error:
        raise ExperimentError(str(Problem(where, error.line, "", error.text))) from error
    if document.problems:
        raise ExperimentError("\n".join(map(str, document.problems)))
    return document


def parse_experiment(data: Any, where: str = "<dict>", mark: Mark | None = None) -> Experiment:
    """Check plain data.

    Args:
        data: what stands in the file.
        where: the file's name, for messages.
        mark: where the data stands, for messages.

    Raises:
        ExperimentError: with everything that is wrong, one finding a line.
    """
    if not isinstance(data, Mapping):
        raise ExperimentError(f"{where}: an experiment should be a mapping. Received {type(data).__name__}")
    experiment, found = find_mistakes(data)
    if experiment is None:
        places = mark or Mark(where, None)
        problems = [Problem(where, places.find(path).line, key_path(path), text) for path, text in found]
        raise ExperimentError("\n".join(map(str, problems)))
    return experiment
