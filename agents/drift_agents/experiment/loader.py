"""Experiment files: where they are, how they are read, and what is wrong with them, each mistake at its place."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from drift_agents.errors import ArgumentError, ExperimentError, PartError, UnknownNameError
from drift_agents.experiment.config import (
    MODEL_OPTIONS,
    WHOLE,
    Agents,
    Experiment,
    ModelSettings,
    PartSpec,
    RecallOptions,
    ScheduleSettings,
    TrainingSettings,
)
from drift_agents.experiment.plan import parts_of, read_members
from drift_agents.matching import matching_names
from drift_agents.part_file import PartFile
from drift_agents.registry import CONTROLLERS, MEMORIES, POLICIES, TEAMS, VERIFIERS, Registry
from drift_envs.errors import Problem
from drift_envs.schedule.yaml import MAX_BYTES, Document, Mark, YamlError, key_path, parse_yaml, show, split_suffix

KeyPath = tuple[str | int, ...]
"""Where something stands in a file: keys and positions."""

Finding = tuple[KeyPath, str]
"""A mistake: where it is, and what is wrong there."""

AXES: dict[str, Registry] = {
    "memory": MEMORIES,
    "verifier": VERIFIERS,
    "controller": CONTROLLERS,
    "team": TEAMS,
    "policy": POLICIES,
}
"""The axes of an agent, with the names that there are."""


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


def part_files(data: Any) -> dict[str, PartFile]:
    """All texts of plain data that name a part of a Python file, with what they name.

    Args:
        data: of an experiment, or any other.
    """
    found = {text: PartFile.read(text) for _, text in texts_in(data)}
    return {text: part for text, part in found.items() if part is not None}


def texts_in(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """All keys and values of plain data that are texts, and where they stand."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from texts_in(key, (*path, str(key)))
            yield from texts_in(value, (*path, str(key)))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield from texts_in(value, (*path, place))


def find_mistakes(data: Mapping[str, Any]) -> tuple[Experiment | None, list[Finding]]:
    """All mistakes of plain data, and the experiment if there are none.

    Args:
        data: what stands in the file.
    """
    changed = list(_changed_parts(data))
    if changed:
        return None, changed
    try:
        experiment = Experiment.model_validate(data)
    except ValidationError as error:
        found = [_finding(details, data) for details in error.errors()]
        return None, [*found, *_findings_of_blocks(readable_blocks(data), data)]
    found = [*_findings_of_blocks(dict(enumerate(experiment.agents)), data), *_findings_of_schedules(experiment)]
    found += _training_findings(experiment.training, ("train",))
    return (None if found else experiment), found


def _changed_parts(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Parts of Python files without the hash that the file has now."""
    for path, text in texts_in({key: value for key, value in data.items() if key != "about"}):
        part = PartFile.read(text)
        if part is None:
            continue
        try:
            found = part.pin().sha256
        except PartError as error:
            yield path, str(error)
            continue
        if part.sha256 != found:
            received = f"@{part.sha256}" if part.sha256 else "no hash"
            what = f"{part.path}:{part.attribute} should end in the hash of the file"
            yield path, f"{what}, which is @{found} now. Received {received}"


def _unknown(kind: str, name: str, known: Collection[str], path: KeyPath) -> Iterator[Finding]:
    """The finding of a name that there is not."""
    if name not in known:
        yield path, str(UnknownNameError(kind, name, known))


def _unknown_part(registry: Registry, name: str, path: KeyPath) -> Iterator[Finding]:
    """The finding of a part that there is not."""
    if not registry.has(name):
        yield path, str(UnknownNameError(registry.kind, name, registry.names()))


def _findings_of_schedules(experiment: Experiment) -> Iterator[Finding]:
    """What is wrong with the settings of schedules, and with their lengths."""
    played = sorted({*experiment.schedules, *(split_suffix(name)[0] for name in experiment.schedules)})
    parts = {axis: parts_of(experiment.agents, axis) for axis in AXES}
    for schedule, settings in experiment.environments.items():
        place: KeyPath = ("environments", schedule)
        yield from _unknown("schedule of this experiment", schedule, played, place)
        if settings.matching is not None:
            yield from _unknown("matching", settings.matching.name, matching_names(), (*place, "matching"))
        yield from _training_findings(settings.training, (*place, "train"))
        for axis, registry in AXES.items():
            called = {word: part.name for part in parts[axis] for word in (part.name, part.label(parts[axis]))}
            for word, options in getattr(settings, axis).items():
                path = (*place, axis, word)
                yield from _unknown(f"{registry.kind} of this experiment", word, sorted(called), path)
                if registry.has(called.get(word, "")):
                    yield from _findings_of_part(axis, PartSpec(name=called[word], options=options), path, path)
    for position, schedule in enumerate(experiment.schedules):
        settings = experiment.settings_of(schedule)
        if settings.rounds is None and settings.episodes is None:
            text = f"{schedule!r} has neither `rounds` nor `episodes`: say how long it is played"
            yield ("schedules", position), text


def readable_blocks(data: Mapping[str, Any]) -> dict[int, Agents]:
    """The blocks of agents that can be read, in a file that has mistakes elsewhere."""
    written = data.get("agents")
    readable = {}
    for index, block in enumerate(written if isinstance(written, (list, tuple)) else [written]):
        with suppress(ValidationError):
            readable[index] = Agents.model_validate(block)
    return readable


def _findings_of_blocks(blocks: Mapping[int, Agents], data: Mapping[str, Any]) -> Iterator[Finding]:
    """Names, options and doubles in blocks of agents."""
    for index, agents in blocks.items():
        block: KeyPath = ("agents", index) if isinstance(data["agents"], (list, tuple)) else ("agents",)
        for axis, registry in AXES.items():
            parts = getattr(agents, axis)
            for position, part in enumerate(parts):
                is_listed = isinstance(data_at(data, (*block, axis)), (list, tuple))
                path: KeyPath = (*block, axis, position) if is_listed else (*block, axis)
                yield from _unknown_part(registry, part.name, path)
                if not registry.has(part.name):
                    continue
                if part in parts[:position]:
                    yield path, f"every entry should be there once. Received {part.label(parts)!r} twice"
                word = part.name if part.name in (data_at(data, path) or ()) else "options"
                yield from _findings_of_part(axis, part, path, (*path, word))


def _findings_of_part(axis: str, part: PartSpec, path: KeyPath, inside: KeyPath) -> Iterator[Finding]:
    """Members of a team, and options that a part does not have; their values are checked when it is made."""
    if axis == "team":
        try:
            for member in read_members(part):
                yield from _unknown_part(POLICIES, member.policy.name, path)
        except (ArgumentError, UnknownNameError) as error:
            yield path, str(error)
    registry = AXES[axis]
    known, is_open = options_of(registry, part.name) if part.options else ((), True)
    if axis == "memory":
        known = (*known, "model")  # what it means is said where the memory is made
    for key in () if is_open else part.options:
        yield from _unknown(f"option of the {registry.kind} {part.name!r}", key, known, (*inside, key))


def options_of(registry: Registry, name: str) -> tuple[tuple[str, ...], bool]:
    """The options of a part, those of its language model included, and whether it takes any other ones too.

    Args:
        registry: the parts of that axis.

    Example:
        >>> options_of(MEMORIES, "vanilla")
        (('k', 'order', 'matching'), False)
    """
    known, is_open = registry.options(name)
    return (*known, *(MODEL_OPTIONS if registry is POLICIES and "model" in known else ())), is_open


def _training_findings(training: TrainingSettings | None, path: KeyPath) -> Iterator[Finding]:
    if training is not None and training.policy is not None:
        yield from _unknown_part(POLICIES, training.policy.name, (*path, "policy"))


def data_at(data: Any, path: KeyPath) -> Any:
    """What stands at that place of plain data; `None` if nothing does."""
    for step in path:
        is_item = isinstance(data, (list, tuple)) and isinstance(step, int) and step < len(data)
        if is_item or (isinstance(data, Mapping) and step in data):
            data = data[step]
        else:
            return None
    return data


_WORDS = {
    "Input should": "should",
    "String should": "should",
    "List should": "should",
    "Tuple should": "should",
    "a valid dictionary": "a mapping",
    "a valid integer": "a whole number",
    "a valid string": "a text",
    "a valid tuple": "a list",
}
"""Pydantic's words for types, and ours."""


def _finding(details: ErrorDetails, data: Mapping[str, Any]) -> Finding:
    """One finding of pydantic in our words, at the place where the file has it."""
    path: list[str | int] = []
    here: Any = data
    for step in details["loc"]:
        if step == "options" and isinstance(here, Mapping) and len(here) == 1:
            step = next(iter(here))  # the file has `{name: options}`
        # pydantic counts positions also where the file has one entry without a list
        counted = isinstance(step, int) and not isinstance(here, (list, tuple))
        inside = data_at(here, (step,))
        if not counted and not isinstance(here, str) and (inside is not None or step == details["loc"][-1]):
            path.append(step)
            here = inside
    kind, text = details["type"], details["msg"]
    if kind == WHOLE:
        return tuple(path), text
    if kind == "extra_forbidden":
        known = _known_keys(tuple(path[:-1]))
        return tuple(path), str(UnknownNameError("key", str(path[-1]), known))
    if kind == "missing":
        return tuple(path), "is missing"
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return tuple(path), f"{text}. Received {show(details['input'])}"


def _known_keys(parent: KeyPath) -> tuple[str, ...]:
    if not parent:
        return keys_of(Experiment)
    if parent[0] == "agents":
        return tuple(Agents.model_fields)
    models: dict[str | int, type[BaseModel]] = {
        "recall": RecallOptions,
        "train": TrainingSettings,
        "models": ModelSettings,
    }
    return keys_of(models.get(parent[-1], ScheduleSettings))


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a model as a file has them.

    Args:
        model: of a file, or of a part of it.
    """
    return tuple(field.alias or name for name, field in model.model_fields.items())
