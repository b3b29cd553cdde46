"""The experiment as the options of `drift-agents run` change it.

* `read_experiment` - the experiment of a file, with other schedules, seeds, parts, models and values
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

from drift_agents.errors import UnknownNameError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.loader import AXES, keys_of, load_experiment, options_of, override, parse_experiment
from drift_agents.experiment.plan import MEMBERS, is_spec
from drift_agents.experiment.players import takes_model
from drift_agents.part_file import PartFile
from drift_agents.registry import POLICIES
from drift_envs.command_line import refuse
from drift_envs.schedule.yaml import YamlError, parse_yaml, split_suffix

OF_SCHEDULES = ("recall", "matching")
"""Keys that a file has for single schedules alone; `--set` gives them to all."""

Part = dict[str, Any]
"""A part as plain data: `name`, and `options` if there are any."""


def read_experiment(
    source: str,
    *,
    overrides: Mapping[str, Any] | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
    models: Sequence[str] = (),
    base_url: str | None = None,
    settings: Sequence[str] = (),
) -> Experiment:
    """Read an experiment and change it.

    Args:
        source: a shipped name or the path of a file.
        overrides: as `load_experiment` takes them.
        axes: for each axis that is replaced, names of parts, those of Python files included.
        models: names of language models. Each policy that takes a model is played with each of them; members of
            teams that name none get one in turn, and the policy of a training phase the first.
        base_url: the address of their server.
        settings: `KEY=VALUE`, where the key is a path in the file, or an axis with an option of its parts; an axis
            alone is replaced, as by `axes`.

    Raises:
        UnknownNameError: if a part, a key or an option does not exist.
        ExperimentError: if the file cannot be read, or a value is not valid.
        BadParameter: if a setting is no key with a value.
    """
    experiment = load_experiment(source, overrides)
    changes = [_parse_setting(text) for text in settings]
    axes = {**(axes or {}), **{keys[0]: _read_names(keys[0], value) for keys, value in changes if _is_axis(keys)}}
    changes = [(keys, value) for keys, value in changes if not _is_axis(keys)]
    if base_url is not None:
        changes.insert(0, (("policy", "base_url"), base_url))
    if not (axes or models or changes):
        return experiment
    data = {**experiment.to_dict(), "models": experiment.models.model_dump()}
    if axes:
        named = {axis: _check_names(axis, names) for axis, names in axes.items()}
        blocks = [
            {**block, **{axis: _choose_parts(names, block.get(axis, ())) for axis, names in named.items()}}
            for block in data["agents"]
        ]
        data = override(data, {"agents": blocks})
    if models:
        _name_models(data, models)
    for keys, value in changes:
        _set_value(data, keys, value)
    return parse_experiment(data, source)


def _is_axis(keys: Sequence[str]) -> bool:
    return len(keys) == 1 and keys[0] in AXES


def _read_names(axis: str, value: Any) -> list[str]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        rule = f"should be names of parts, as in {axis}=A,B; options are set by {axis}.OPTION=VALUE"
        raise refuse("--set", rule, value)
    return names


def _check_names(axis: str, names: Sequence[str]) -> list[str]:
    """The names of parts, those of Python files with the hash of the file; raises if one is unknown."""
    checked = []
    for name in names:
        file = PartFile.read(name)
        checked.append(name if file is None else file.pin().text)
        AXES[axis].load(checked[-1])
    return checked


def _choose_parts(names: Sequence[str], parts: Sequence[Part]) -> list[Part]:
    """The parts of these names in a block of the file; one that it does not have gets its default options."""
    chosen: list[Part] = []
    for name in names:
        chosen += [part for part in parts if part["name"] == name] or [{"name": name}]
    return chosen


def _name_models(data: dict[str, Any], models: Sequence[str]) -> None:
    for block in data["agents"]:
        block["policy"] = [
            {"name": part["name"], "options": {**part.get("options", {}), **model}}
            for part in block["policy"]
            for model in ([{"model": name} for name in models] if takes_model(POLICIES, part["name"]) else [{}])
        ]
    for policies in _other_policies(data):
        turn = cycle(models)
        for part in policies:
            options = part.setdefault("options", {})
            if takes_model(POLICIES, part["name"]) and "model" not in options:
                options["model"] = next(turn)


def _other_policies(data: Mapping[str, Any]) -> Iterator[list[Part]]:
    """The policies beside those of the blocks: one that trains, and those of the members of a team."""
    places = [data, *data.get("environments", {}).values()]
    trained = (place.get("train") or {} for place in places)
    yield from ([training["policy"]] for training in trained if training.get("policy"))
    teams = [team.get("options", {}) for block in data["agents"] for team in block.get("team", ())]
    teams += [options for place in places[1:] for options in place.get("team", {}).values()]
    for options in teams:
        if isinstance(options.get(MEMBERS), list):  # else a pool, which has no language models, or no members
            members = [dict(entry) if is_spec(entry) else {"policy": entry} for entry in options[MEMBERS]]
            for member in members:
                member["policy"] = PartSpec.model_validate(member["policy"]).model_dump()
            options[MEMBERS] = members
            yield [member["policy"] for member in members]


def _parse_setting(text: str) -> tuple[tuple[str, ...], Any]:
    """The key and the value of a setting."""
    path, equals, written = text.partition("=")
    keys = tuple(path.strip().split("."))
    if not equals or not all(keys):
        raise refuse("--set", "should be KEY=VALUE, as in policy.temperature=.5", text)
    try:
        document = parse_yaml(written, "--set")
    except YamlError as error:
        raise refuse("--set", f"the value should be YAML: {error.text}", text) from error
    if document.problems:
        raise refuse("--set", f"the value should be YAML: {document.problems[0].text}", text)
    return keys, document.data


def _set_value(data: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Set one value of an experiment."""
    known = [*AXES, *OF_SCHEDULES, *(key for key in keys_of(Experiment) if key != "agents")]
    if keys[0] in AXES:
        _set_option(data, keys[0], keys[1:], value)
    elif keys[0] in OF_SCHEDULES:
        for settings in _settings_of_schedules(data):
            _put(settings, keys, value)
    elif keys[0] == "sweep" and len(keys) > 1:  # its own keys are paths
        _put(data, ("sweep", ".".join(keys[1:])), value)
    elif keys[0] in known:
        _put(data, keys, value)
    else:
        raise UnknownNameError("key of --set", keys[0], known)


def _settings_of_schedules(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The settings of each schedule, which are made where there are none."""
    every = data.setdefault("environments", {})
    for schedule in data["schedules"]:
        stem = split_suffix(schedule)[0]
        yield every.setdefault(stem if schedule not in every and stem in every else schedule, {})


def _set_option(data: Mapping[str, Any], axis: str, keys: Sequence[str], value: Any) -> None:
    """Set an option of all parts of an axis that have it; members of teams, and who trains, keep one of their own."""
    parts = [part for block in data["agents"] for part in block.get(axis, ())]
    others = [part for policies in _other_policies(data) for part in policies] if axis == "policy" else []
    options = {part["name"]: options_of(AXES[axis], part["name"]) for part in (*parts, *others)}
    takers = {name for name, (known, _) in options.items() if keys[0] in known}
    takers = takers or {name for name, (_, is_open) in options.items() if is_open}
    if not takers:
        names = ", ".join(map(repr, options))
        known = sorted({option for own, _ in options.values() for option in own})
        raise UnknownNameError(f"option of the {AXES[axis].kind} {names}", keys[0], known)
    for place, part in enumerate((*parts, *others)):
        own = part.setdefault("options", {})
        if part["name"] in takers and (place < len(parts) or keys[0] not in own):
            _put(own, keys, value)


def _put(data: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Set what stands at a path of plain data; mappings on the way are made."""
    for key in keys[:-1]:
        inner = data.get(key)
        data[key] = data = dict(inner) if isinstance(inner, Mapping) else {}
    data[keys[-1]] = value
