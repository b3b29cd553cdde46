"""Experiment files: where they are, and how they are read.

* `load_experiment` - a shipped name, a path or plain data to a checked `Experiment`
* `shipped_experiments` - the names of the experiments that come with the package
* `parse_experiment` - plain data to a checked `Experiment`; reports all mistakes together
* `read_yaml`, `parse_text` - YAML 1.2 as plain data, with the line of every key
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError, UnknownNameError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.mistakes import KeyPath, find_mistakes
from drift_agents.experiment.overrides import override
from drift_agents.part_file import PartFile
from drift_envs.errors import Problem
from drift_envs.schedule.yaml import MAX_BYTES, YamlError, key_path, parse_yaml

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
        if "drifts" in data:
            raise ExperimentError(f"{where}: is a schedule; an experiment names it under `schedules`")
        data = override(_place_parts(data, Path(where).parent), overrides or {})
    return parse_experiment(data, where, line)


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


def read_yaml(path: Path) -> tuple[Any, Callable[[KeyPath], int | None]]:
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


def parse_text(content: str, where: str) -> tuple[Any, Callable[[KeyPath], int | None]]:
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


def parse_experiment(
    data: Any,
    where: str = "<dict>",
    line: Callable[[KeyPath], int | None] | None = None,
) -> Experiment:
    """Check plain data.

    Args:
        data: what stands in the file.
        where: the file's name, for messages.
        line: gives the line of a key, for messages.

    Returns:
        The experiment.

    Raises:
        ExperimentError: with everything that is wrong, one finding a line.
    """
    if not isinstance(data, Mapping):
        raise ExperimentError(f"{where}: an experiment should be a mapping. Received {type(data).__name__}")
    experiment, found = find_mistakes(data)
    if experiment is None:
        problems = [Problem(where, None if line is None else line(path), key_path(path), text) for path, text in found]
        raise ExperimentError("\n".join(map(str, problems)))
    return experiment
