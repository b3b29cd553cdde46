"""The command `drift-agents run`: the experiment as its options change it, and how it is played."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from drift_agents.analysis.report import write_report
from drift_agents.errors import ArgumentError, DriftAgentsError, ExperimentError, ModelError, UnknownNameError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.folder import MANIFEST, TRACKING
from drift_agents.experiment.loader import AXES, keys_of, load_experiment, options_of, override, parse_experiment
from drift_agents.experiment.plan import MEMBERS, is_spec
from drift_agents.experiment.players import needs_model, prices_of, takes_model
from drift_agents.experiment.runner import Progress as Callbacks
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.budget import Budget
from drift_agents.llm.connection import import_openai
from drift_agents.llm.reask import AnswerMonitor
from drift_agents.llm.service import ReplyStore, Service, Totals
from drift_agents.memory.base import is_memory_service
from drift_agents.registry.part_file import PartFile, part_files
from drift_agents.registry.parts import read_named
from drift_agents.registry.tables import POLICIES, STORES
from drift_envs.errors import load_all
from drift_envs.integrations.trackers import make_tracker
from drift_envs.schedule.yaml import YamlError, parse_yaml, split_suffix
from drift_envs.utils.command_line import Verbosity, refuse
from webshop_server.command_line import make_console

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
        named = {axis: _check_parts(axis, names) for axis, names in axes.items()}
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


def _check_parts(axis: str, names: Sequence[str]) -> list[Part]:
    """The parts of these names, those of Python files with the hash of the file; raises if one is unknown.

    A class with `add` and `search` that is no memory is the store of the memory `store`.
    """
    checked: list[Part] = []
    for name in names:
        file = PartFile.read(name)
        pinned = name if file is None else file.pin().text
        made = AXES[axis].load(pinned)
        is_service = axis == "memory" and isinstance(made, type) and is_memory_service(made)
        checked.append({"name": "store", "options": {"store": pinned}} if is_service else {"name": pinned})
    return checked


def _choose_parts(named: Sequence[Part], parts: Sequence[Part]) -> list[Part]:
    """The parts of these names in a block of the file; one that it does not have gets its default options."""
    chosen: list[Part] = []
    for one in named:
        of_file = [] if "options" in one else [part for part in parts if part["name"] == one["name"]]
        chosen += of_file or [deepcopy(one)]
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
    if not takers and _set_option_of_services(parts, keys, value):
        return
    if not takers:
        names = ", ".join(map(repr, options))
        known = sorted({option for own, _ in options.values() for option in own})
        rest = ".".join(keys[1:])
        is_part = bool(rest) and keys[0] in options
        hint = f"Options are set without the name of a part: --set {axis}.{rest}=VALUE" if is_part else ""
        raise UnknownNameError(f"option of the {AXES[axis].kind} {names}", keys[0], known, hint)
    for place, part in enumerate((*parts, *others)):
        own = part.setdefault("options", {})
        if part["name"] in takers and (place < len(parts) or keys[0] not in own):
            _put(own, keys, value)


def _set_option_of_services(parts: Sequence[Part], keys: Sequence[str], value: Any) -> bool:
    """Set an option of the memory services of Python files that have it; returns whether there is one."""
    is_set = False
    for part in parts:
        options = part.get("options", {})
        name, own = read_named("store", options["store"]) if "store" in options else ("", {})
        if PartFile.read(name) is None:
            continue
        known, is_open = options_of(STORES, name)
        if is_open or keys[0] in known:
            options["store"] = {name: (changed := dict(own))}
            _put(changed, keys, value)
            is_set = True
    return is_set


def _put(data: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Set what stands at a path of plain data; mappings on the way are made."""
    for key in keys[:-1]:
        inner = data.get(key)
        data[key] = data = dict(inner) if isinstance(inner, Mapping) else {}
    data[keys[-1]] = value


FIGURES = 48
"""Columns beside the name of a schedule: bar, episodes and times."""

LOCAL = "local"
"""The address of Ray that stands for `RAY_ADDRESS`, or for a cluster that is started on this machine."""


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is played; what is played is said by the experiment.

    Args:
        out: folder of the run; `None` for `runs/NAME`.
        jobs: cells at the same time; `None` for one a core, or with language models one a concurrent request.
        ray: address of a cluster of Ray that plays them, or `LOCAL`; `None` for processes of this machine.
        trace: which episodes keep their steps; `None` for the file's value.
        trackers: names of experiment trackers.
        resume: continue the run in the folder.
        fresh: delete the run in the folder.
        replay: a file of recorded replies from which all replies come.
        words: the words of the command line.
        verbosity: of what is printed beside the report.
    """

    out: Path | None = None
    jobs: int | None = None
    ray: str | None = None
    trace: str | None = None
    trackers: Sequence[str] = ()
    resume: bool = False
    fresh: bool = False
    replay: Path | None = None
    words: Sequence[str] = ()
    verbosity: Verbosity = Verbosity.NORMAL


def run(experiment: Experiment, options: RunOptions, console: Console) -> None:
    """Play an experiment and print its report.

    Args:
        console: where the report is printed.

    Raises:
        DriftAgentsError: if the experiment cannot be played.
    """
    folder = options.out or Path("runs") / experiment.name
    logged = folder.absolute() / TRACKING
    trackers = load_all(partial(make_tracker, name, logged / name, experiment.name) for name in options.trackers)
    is_quiet = options.verbosity is Verbosity.QUIET
    service = make_service(experiment, options.replay, None if is_quiet else _print_note)
    begun = time.monotonic()
    jobs = options.jobs
    if service is not None:
        jobs = min(experiment.models.concurrency, jobs or experiment.models.concurrency)
    bars = ProgressBars(service, options.verbosity)
    try:
        with bars:
            run_experiment(
                experiment,
                folder,
                jobs=jobs,
                backend="processes" if options.ray is None else "ray",
                address=None if options.ray == LOCAL else options.ray,
                resume=options.resume,
                fresh=options.fresh,
                trace=options.trace,
                progress=bars,
                service=service,
                trackers=trackers,
            )
    except KeyboardInterrupt:
        if hint := _describe_resume(options, folder):
            played = "" if bars.cells is None else f"{bars.done} of {bars.cells} cells are played. "
            print(f"drift-agents: {played}{hint}", file=sys.stderr)
        raise
    except DriftAgentsError as error:
        hint, is_of_model = _describe_resume(options, folder), isinstance(error.__cause__, ModelError)
        if hint and (is_of_model or getattr(error, "is_resumable", False)):
            files = {file.path: None for file in part_files(experiment.to_dict()).values()}
            if files and not is_of_model:
                anew = "--fresh in the place of --resume, or another --out"
                hint = f"After a change of {' or '.join(files)}: {anew}. {hint}"
            raise ExperimentError(f"{str(error).rstrip('.')}. {hint}") from error
        raise
    finally:
        if service is not None:
            service.close()
            totals = service.totals()
            if not is_quiet and (totals.answered or totals.recorded):
                print(f"language models: {describe_totals(totals)}", file=sys.stderr)
    seconds = round(time.monotonic() - begun)
    write_report(folder, console)
    if not is_quiet:
        for name in options.trackers:
            _print_note(f"{name} has the run in {logged / name}")
        _print_note(f"played in {timedelta(seconds=seconds)}; the run is in {folder}")


def make_service(
    experiment: Experiment, replay: Path | None = None, note: Callable[[str], None] | None = None
) -> Service | None:
    """Make the service that sends the requests; `None` if the experiment has no language model.

    Args:
        replay: a file of recorded replies from which all replies come; no request is sent.
        note: called with a sentence about what a server refuses.

    Raises:
        ArgumentError: if there is a budget without prices.
        MissingDependencyError: if the client is not installed and no reply is recorded.
    """
    if not needs_model(experiment):
        return None
    models = experiment.models
    if models.budget is not None and not prices_of(experiment):
        raise ArgumentError(
            "`models.budget` should stand with the option `price` of a policy, as in --set policy.price=[0.15,0.60]: "
            f"without prices nothing costs anything. Received {models.budget:g} alone"
        )
    replies = models.replies if replay is None else replay
    if replies is None:  # otherwise all replies may be recorded
        import_openai()
    return Service(
        replies=None if replies is None else ReplyStore(replies, read_only=replay is not None),
        key_file=models.key_file,
        timeout=models.timeout,
        budget=Budget(models.budget_tokens, models.budget),
        monitor=None if models.keep_going or replay is not None else AnswerMonitor(),
        note=note,
    )


def describe_totals(totals: Totals) -> str:
    """Requests, tokens and cost in one line.

    Example:
        >>> describe_totals(Totals(120, 30, 45_000, 0.0123))
        '120 requests, 30 from records, 45,000 tokens, cost 0.0123'
    """
    cost = f", cost {totals.cost:.4f}" if totals.cost else ""
    return f"{totals.answered} requests, {totals.recorded} from records, {totals.tokens:,} tokens{cost}"


def _describe_resume(options: RunOptions, folder: Path) -> str:
    """How to continue the run; empty if nothing has been played."""
    if not os.path.exists(folder / MANIFEST):  # `Path.exists` raises where the name is too long
        return ""
    words = shlex.join(word for word in options.words if word not in ("--fresh", "--resume"))
    return f"What is done is kept; continue with: drift-agents {words} --resume"


def _print_note(text: str) -> None:
    print(f"drift-agents: {text}", file=sys.stderr)


class ProgressBars(Callbacks):
    """A bar of one line for every schedule, on standard error; below them the requests to language models.

    Where standard error is no terminal, the bars are printed at the end alone, and about every tenth of the cells a
    line says how many are done.

    Args:
        service: the language models, if the experiment has any.
        verbosity: quiet ones print nothing, verbose ones a line for each finished cell.
    """

    def __init__(self, service: Service | None = None, verbosity: Verbosity = Verbosity.NORMAL) -> None:
        self._progress = _Bars(service, disable=verbosity is Verbosity.QUIET)
        self._verbosity = verbosity
        self._bars: dict[str, TaskID] = {}
        self.done = 0
        """How many cells are done."""
        self.cells: int | None = None
        """Of so many; `None` before that is known."""

    def __enter__(self) -> ProgressBars:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars:  # without one there is nothing to stop, and `stop` would print an empty line
            self._progress.stop()

    def begin(self, schedule: str, episodes: int) -> None:
        """Add the bar of a schedule, with its number of episodes."""
        self._progress.start()
        self._bars[schedule] = self._progress.add_task(schedule, total=episodes)

    def advance(self, schedule: str, episodes: int) -> None:
        """Count finished episodes of a schedule."""
        self._progress.advance(self._bars[schedule], episodes)
        if episodes and self._verbosity is Verbosity.VERBOSE:
            bar = self._progress.tasks[self._bars[schedule]]
            self.note(f"{schedule}: {bar.completed:.0f} of {bar.total:.0f} episodes")

    def count(self, done: int, cells: int) -> None:
        """Print how many cells are done, at about every tenth of them, where no bar moves."""
        is_due = self.cells is not None and 10 * done // cells > 10 * self.done // cells
        self.done, self.cells = done, cells
        if is_due and not self._progress.console.is_terminal and self._verbosity is Verbosity.NORMAL:
            self.note(f"{done} of {cells} cells played")

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        if self._verbosity is not Verbosity.QUIET:
            self._progress.console.print(f"drift-agents: {text}", markup=False, highlight=False)


class _Bars(Progress):
    """The bars of schedules, and one line for the requests, which change while no bar does."""

    def __init__(self, service: Service | None, disable: bool) -> None:
        self._service = service  # before the base's constructor, which renders
        console = make_console(stderr=True)
        super().__init__(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=console.width - FIGURES)),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("elapsed", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TextColumn("left", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=console,
            disable=disable,
            expand=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then the requests."""
        yield self.make_tasks_table(self.tasks)
        if self._service is not None:
            yield Text(describe_totals(self._service.totals()), no_wrap=True, overflow="ellipsis")
