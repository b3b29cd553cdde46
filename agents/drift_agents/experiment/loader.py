"""Experiment files: where they are, how they are read, and what is wrong with them, each mistake at its place."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from drift_agents.envs.matching import matching_names
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
from drift_agents.registry.part_file import PartFile, texts_in
from drift_agents.registry.parts import Registry
from drift_agents.registry.tables import CONTROLLERS, MEMORIES, POLICIES, TEAMS, VERIFIERS
from drift_envs.errors import Problem, ScheduleError
from drift_envs.schedule.yaml import FILE_ENDINGS, Finding, KeyPath, Mark, read_document, split_suffix
from drift_envs.utils.error_messages import broken_rule, key_path

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

AXES: dict[str, Registry] = {one.kind: one for one in (MEMORIES, VERIFIERS, CONTROLLERS, TEAMS, POLICIES)}
"""The axes of an agent, with the names that there are."""


def shipped_experiments() -> tuple[str, ...]:
    """The names of the experiments that come with the package, sorted.

    Example:
        >>> "glove-quick" in shipped_experiments()
        True
    """
    files = (file.name for file in _shipped_folder().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


def _shipped_folder() -> Traversable:
    return resources.files("drift_agents.experiment") / "experiments"


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

    Parts of Python files (`drift_agents.registry.part_file.PartFile`) stand with the hash of their file. The path of
    one in an experiment file starts at the folder of that file; files of parts are executed.

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
    file: Path | Traversable = Path(where)
    if isinstance(source, str) and not where.endswith(FILE_ENDINGS) and os.sep not in where:
        if where not in shipped_experiments():
            raise UnknownNameError("experiment", where, shipped_experiments())
        where = f"{where}.yaml"
        file = _shipped_folder() / where
    try:
        document = read_document(where, file)
    except ScheduleError as error:
        raise ExperimentError(str(error)) from error
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
        called: dict[str, Collection[str]] = {}
        if "agents" in overrides:
            blocks = _readable_blocks(overrides).values()
            called = {axis: _names_and_labels(blocks, axis) for axis in AXES}
        changed["environments"] = {name: _without(own, replaced, called) for name, own in environments.items()}
    return changed


def _choose_schedules(listed: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Those of a file's schedules that are named, or whose file is."""
    found = [[one for one in listed if name in (one, split_suffix(str(one))[0])] for name in names]
    for name, some in zip(names, found, strict=True):
        if not some:
            raise UnknownNameError("schedule of this experiment", name, [str(one) for one in listed])
    return [one for one in listed if any(one in some for some in found)]


def _without(settings: Any, keys: set[str], called: Mapping[str, Collection[str]]) -> Any:
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


def _names_and_labels(blocks: Iterable[Agents], axis: str) -> dict[str, str]:
    """The words by which settings of schedules call the parts of an axis: name or label -> name."""
    parts = parts_of(blocks, axis)
    return {word: part.name for part in parts for word in (part.name, part.label(parts))}


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
    experiment: Experiment | None = None
    found = list(_changed_parts(data))
    if not found:
        try:
            experiment = Experiment.model_validate(data)
        except ValidationError as error:
            found = [(details["loc"], _explain(details)) for details in error.errors()]
        found += _agents_findings(_readable_blocks(data) if experiment is None else dict(enumerate(experiment.agents)))
    if experiment is not None:
        found += _settings_findings(experiment)
    if experiment is None or found:
        mark = mark or Mark(where, None)
        paths = [_place(path, data) for path, _ in found]
        problems = [
            Problem(where, mark.find(path).line, key_path(path), text)
            for path, (_, text) in zip(paths, found, strict=True)
        ]
        raise ExperimentError("\n".join(map(str, problems)))
    return experiment


def _changed_parts(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Parts of Python files without the hash that the file has now."""
    for path, text in texts_in({key: value for key, value in data.items() if key != "about"}):
        part = PartFile.read(text)
        if part is None:
            continue
        try:
            found = part.pin()
        except PartError as error:
            yield path, str(error)
        else:
            if part != found:
                rule = f"should end in the hash of the file, which is @{found.sha256} now"
                received = f"@{part.sha256}" if part.sha256 else "no hash"
                yield path, f"{part.path}:{part.attribute} {rule}. Received {received}"


def _readable_blocks(data: Mapping[str, Any]) -> dict[int, Agents]:
    """The blocks of agents that can be read, in a file that has mistakes elsewhere."""
    written = data.get("agents")
    readable = {}
    for index, block in enumerate(written if isinstance(written, (list, tuple)) else [written]):
        with suppress(ValidationError):
            readable[index] = Agents.model_validate(block)
    return readable


def _agents_findings(blocks: Mapping[int, Agents]) -> Iterator[Finding]:
    """Names, options and doubles in blocks of agents."""
    for index, agents in blocks.items():
        for axis in AXES:
            parts = getattr(agents, axis)
            labels = [part.label(parts) for part in parts]
            for position, part in enumerate(parts):
                path = ("agents", index, axis, position)
                if labels[position] in labels[:position]:  # as of two files with the same content
                    yield path, f"every entry should be there once. Received {labels[position]!r} twice"
                yield from _part_findings(axis, part, path)


def _settings_findings(experiment: Experiment) -> Iterator[Finding]:
    """What is wrong with the settings of schedules, their lengths, and who trains."""
    yield from _training_findings(experiment.training, ("train",))
    played = sorted({*experiment.schedules, *(split_suffix(name)[0] for name in experiment.schedules)})
    for schedule, settings in experiment.environments.items():
        place = ("environments", schedule)
        yield from _unknown("schedule of this experiment", schedule, played, place)
        if settings.matching is not None:
            yield from _unknown("matching", settings.matching.name, matching_names(), (*place, "matching"))
        yield from _training_findings(settings.training, (*place, "train"))
        for axis, registry in AXES.items():
            called = _names_and_labels(experiment.agents, axis)
            for word, options in getattr(settings, axis).items():
                path = (*place, axis, word)
                yield from _unknown(f"{registry.kind} of this experiment", word, sorted(called), path)
                if word in called:
                    yield from _part_findings(axis, PartSpec(name=called[word], options=options), path, path)
    for position, schedule in enumerate(experiment.schedules):
        settings = experiment.settings_of(schedule)
        if settings.rounds is None and settings.episodes is None:
            text = f"{schedule!r} has neither `rounds` nor `episodes`: say how long it is played"
            yield ("schedules", position), text


def _training_findings(training: TrainingSettings | None, path: KeyPath) -> Iterator[Finding]:
    if training is not None and training.policy is not None:
        yield from _part_findings("policy", training.policy, (*path, "policy"))


def _part_findings(axis: str, part: PartSpec, path: KeyPath, inside: KeyPath | None = None) -> Iterator[Finding]:
    """A part that there is not, or its members and options that there are not; values are checked when it is made.

    Args:
        path: where the part is named.
        inside: where its options stand, if they do not stand with the name.
    """
    registry = AXES[axis]
    if not registry.has(part.name):
        yield path, str(registry.unknown(part.name))
        return
    if axis == "team":
        try:
            for member in read_members(part):
                yield from _part_findings("policy", member.policy, path, path)
        except (ArgumentError, UnknownNameError) as error:
            yield path, str(error)
    known, is_open = options_of(registry, part.name) if part.options else ((), True)
    if axis == "memory":
        known = (*known, "model")  # what it means is said where the memory is made
    for key in () if is_open else part.options:
        place = (*(inside or (*path, "options")), key)
        yield from _unknown(f"option of the {registry.kind} {part.name!r}", key, known, place)


def _unknown(kind: str, name: str, known: Collection[str], path: KeyPath) -> Iterator[Finding]:
    """The finding of a name that there is not."""
    if name not in known:
        yield path, str(UnknownNameError(kind, name, known))


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


_MODELS: dict[str | int, type[BaseModel]] = {
    "agents": Agents,
    "environments": ScheduleSettings,
    "recall": RecallOptions,
    "train": TrainingSettings,
    "models": ModelSettings,
}


def _explain(details: ErrorDetails) -> str:
    """A finding of pydantic in our words."""
    path = details["loc"]
    if details["type"] == WHOLE:
        return details["msg"]
    if details["type"] == "extra_forbidden":
        model = next((_MODELS[step] for step in reversed(path[:-1]) if step in _MODELS), Experiment)
        return str(UnknownNameError("key", str(path[-1]), keys_of(model)))
    return broken_rule(details)


def _place(path: KeyPath, data: Any) -> KeyPath:
    """Where a file has what stands at that path of an `Experiment`.

    A file may have one entry in the place of a list, and has the options of a part under its name.
    """
    found: list[str | int] = []
    for step in path:
        if isinstance(data, Mapping):
            if step == "options" and len(data) == 1:
                (step,) = data
            if isinstance(step, int) and step not in data:
                continue
            data = data.get(step)
        elif isinstance(data, (list, tuple)) and isinstance(step, int):
            data = data[step]
        else:
            continue
        found.append(step)
    return tuple(found)


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a model as a file has them.

    Args:
        model: of a file, or of a part of it.
    """
    return tuple(field.alias or name for name, field in model.model_fields.items())
