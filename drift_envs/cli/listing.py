"""The commands `list` and `new-schedule`: environments with their knobs, shipped schedules, and a file to start from.

For the list the files are read as plain YAML and not checked: the models and timelines that `load_schedule` needs would
multiply the time of the command. Tests compare the list with what `load_schedule` returns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Knob, thaw
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule
from drift_envs.schedule.yaml import SECTION
from drift_envs.utils.files import prepare_file, write_whole

WRAPPER_KNOBS = (
    "observation_noise",
    "observation_mask",
    "action_permutation",
    "action_delay",
    "reward_scale",
    "reward_sign",
)

WIDE = 100
"""Columns from which drifts and descriptions of schedules stand side by side."""

NUMBERS = ("steps", "schedules")
"""Heads of columns of numbers."""

MAX_DRIFTS = 4
"""Drifts of a schedule that the list names."""

WIDTH = 100
"""Columns of comments."""

FIRST = """\
# A schedule for {env}: the base and the first drift of {schedule}.
# Check this file: drift-envs validate FILE. See it: drift-envs show FILE
version: 1
env: {env}
clock: episode            # what a tick is: an episode, a step, or a step of the episode (episode_step)
visibility: {visibility}      # a label: explicit (structure or dynamics) or implicit (reward or meaning)
"""

DRIFTS = """\
# A drift is a time (at, every or rate), a kind (sudden by default) and a change (set, add, scale, swap, choice, walk).
drifts:
  - {{name: first, at: 20, {change}}}
# Other times and kinds; remove the marks of comment to use them:
#  - {{name: weekends, every: 7, for: 2, {change}}}
#  - {{name: storms, rate: 0.05, for: 1, {change}}}
#  - {{name: regime, at: 40, kind: gradual, over: 10, {change}}}
"""


class ScheduleSummary(NamedTuple):
    """A row of the list.

    Args:
        env: the id that the schedule is for.
        drifts: name and first tick of each drift; the tick is `None` for random times.
        description: one line.
        is_control: whether rankings leave it out.
    """

    env: str | None
    drifts: tuple[tuple[str, int | None], ...]
    description: str
    is_control: bool


def print_list(console: Console) -> None:
    """Print a line for each environment, grouped by folder."""
    table = _make_table("Environments", "id", "steps", "schedules", "default schedule")
    table.padding = (0, 1, 0, 0)  # the longest names fit into 80 columns
    group = ""
    for each, schedules in schedules_by_id().items():
        entry = IDS[each]
        if entry.group != group:
            group = entry.group
            table.add_row(Text(group, style="bold"))
        table.add_row(f" {each}", str(entry.limit), str(len(schedules)), entry.schedule)
    console.print(table, "")
    console.print("--env ID shows the knobs of an environment, --schedules ID its schedules", style="dim")


def print_environment(console: Console, env_id: str) -> None:
    """Print an environment with its knobs."""
    environments = _make_table("Environment", "id", "steps", "default schedule")
    environments.add_row(env_id, str(IDS[env_id].limit), IDS[env_id].schedule)
    knobs = _make_table("Knobs", "name", "bounds or choices", "meaning")
    for knob in IDS[env_id].knob_table.knobs:
        knobs.add_row(knob.name, show_bounds(knob), knob.doc)
    console.print(environments, "", knobs, "")
    console.print(Text(f"knobs of the wrapper, where the spaces allow: {', '.join(WRAPPER_KNOBS)}", style="dim"))
    console.print(f"drift-envs list --schedules {env_id} shows its schedules", style="dim")


def show_bounds(knob: Knob) -> str:
    """The interval or the allowed values of a knob in words; empty if its own rule decides."""
    allowed = knob.bounds or ()
    if knob.is_numeric and allowed:
        return " to ".join(f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in allowed)
    return ", ".join(str(value) for value in allowed)


def print_schedules(console: Console, env_id: str) -> None:
    """Print the schedules of an environment with their drifts."""
    schedules = _make_table("Schedules", "name", "drifts, with the first tick of each", "description")
    is_narrow = console.width < WIDE
    for name, summary in schedules_by_id()[env_id].items():
        shown = [f"{drift} {'at random' if tick is None else tick}" for drift, tick in summary.drifts[:MAX_DRIFTS]]
        shown += ["..."] if len(summary.drifts) > MAX_DRIFTS else []
        description = Text(summary.description)
        if summary.is_control:
            description.append(" (control)", style="dim")
        if is_narrow:
            schedules.add_row(name, Text(", ".join(shown)))
            schedules.add_row("", description)
        else:
            schedules.add_row(name, ", ".join(shown), description)
    if is_narrow:  # the description under the drifts, where three columns would break words
        schedules.columns[1].header = "drifts, with the first tick of each; description"
        del schedules.columns[2]
    console.print(schedules)


def describe_list() -> dict[str, Any]:
    """The list as JSON has it: for each environment its group, step limit, default schedule and schedules."""
    return {
        "environments": [
            {
                "id": each,
                "group": IDS[each].group,
                "steps": IDS[each].limit,
                "schedule": IDS[each].schedule,
                "schedules": list(schedules),
            }
            for each, schedules in schedules_by_id().items()
        ]
    }


def describe_environment(env_id: str) -> dict[str, Any]:
    """An environment as JSON has it; `bounds` are the ends of an interval, or the allowed values."""
    knobs = [
        {
            "name": knob.name,
            "kind": knob.kind,
            "default": thaw(knob.default),
            "bounds": None if knob.bounds is None else list(knob.bounds),
            "meaning": knob.doc,
        }
        for knob in IDS[env_id].knob_table.knobs
    ]
    (found,) = (one for one in describe_list()["environments"] if one["id"] == env_id)
    return {**found, "knobs": knobs, "wrapper_knobs": list(WRAPPER_KNOBS)}


def describe_schedules(env_id: str) -> dict[str, Any]:
    """The schedules of an environment as JSON has them; `at` is `None` for random times."""
    return {
        "id": env_id,
        "schedules": [
            {
                "name": name,
                "description": summary.description,
                "control": summary.is_control,
                "drifts": [{"name": drift, "at": tick} for drift, tick in summary.drifts],
            }
            for name, summary in schedules_by_id()[env_id].items()
        ],
    }


def schedules_by_id() -> dict[str, dict[str, ScheduleSummary]]:
    """For each id the schedules that name it, and those of its default schedule's folder.

    Example:
        >>> "miniwob/words" in schedules_by_id()["DriftMiniWoBClickTab-v0"]
        True
    """
    summaries = read_summaries()
    return {
        each: {
            name: summary
            for name, summary in summaries.items()
            if summary.env == each or name.partition("/")[0] == entry.schedule.partition("/")[0]
        }
        for each, entry in IDS.items()
    }


def _make_table(title: str, *heads: str) -> Table:
    """A table without lines, in whose first column nothing is broken."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, justify="right" if head in NUMBERS else "left", no_wrap=head in (heads[0], *NUMBERS))
    return table


def read_summaries() -> dict[str, ScheduleSummary]:
    """The summaries of all shipped schedules and their variants, by name.

    Example:
        >>> read_summaries()["frozen_lake/tides"].drifts
        (('flood', 20),)
    """
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    contents: dict[str, Mapping[str, Any]] = {}
    for folder in resources.files("drift_schedules").iterdir():
        if folder.is_dir():
            for file in folder.iterdir():
                if file.name.endswith(".yaml"):
                    name = f"{folder.name}/{file.name.removesuffix('.yaml')}"
                    contents[name] = content = yaml.load(file.read_text("utf-8"), loader)  # nosec B506  # a safe one
                    for suffix, own in content.pop(SECTION, {}).items():
                        contents[f"{name}:{suffix}"] = {**content, **own}
    return {name: _summarize(_extend(contents[name], contents)) for name in sorted(contents)}


def _extend(content: Mapping[str, Any], contents: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The content with the keys of the schedule that it extends."""
    if "extends" not in content:
        return content
    return {**_extend(contents[content["extends"]], contents), **content}


def _summarize(content: Mapping[str, Any]) -> ScheduleSummary:
    drifts = []
    for number, drift in enumerate(content.get("drifts") or (), start=1):
        tick = None if "rate" in drift else drift.get("at", drift.get("every"))
        drifts.append((str(drift.get("name", f"drift-{number}")), tick))
    return ScheduleSummary(
        content.get("env"), tuple(drifts), content.get("description", ""), bool(content.get("control", False))
    )


def write_draft(env_id: str, out: Path | None) -> None:
    """Print a schedule file to start from, or write it.

    Args:
        env_id: an id of this package.
        out: the file; `None` prints it.

    Raises:
        ArgumentError: if the file exists or cannot be written.
    """
    text = draft_schedule(env_id)
    if out is None:
        print(text, end="")
        return
    if out.is_file():
        raise ArgumentError(f"`--out` should be a file that does not exist. Received {str(out)!r}")
    prepare_file(out)
    with write_whole(out) as part:
        part.write_text(text, encoding="utf-8")
    print(f"wrote {out}; next: drift-envs show {out}")


def draft_schedule(env_id: str) -> str:
    """A commented schedule file that is valid: base and first drift of the id's default schedule.

    Args:
        env_id: an id of this package.

    Example:
        >>> print(draft_schedule("DriftCartPole-v0").splitlines()[3])
        env: DriftCartPole-v0
    """
    name = IDS[env_id].schedule
    default = load_schedule(name).to_dict()
    change = {key: value for key, value in default["drifts"][0].items() if key not in ("name", "at")}
    parts = [FIRST.format(env=env_id, schedule=name, visibility=default["visibility"])]
    if "tasks" in default:
        parts += [f"tasks: {_flow(default['tasks'])}\n"]
    parts += ["# Values before the first drift. The knobs:\n", *map(_describe, IDS[env_id].knob_table.knobs)]
    parts += [_comment(f"and, where the spaces allow: {', '.join(WRAPPER_KNOBS)}")]
    base = default.get("base", {})
    parts += ["base:\n" if base else "base: {}\n", *(f"  {knob}: {_flow(value)}\n" for knob, value in base.items())]
    parts += [DRIFTS.format(change=_flow(change)[1:-1])]
    return "".join(parts)


def _describe(knob: Knob) -> str:
    """A knob in one line of comment."""
    default, bounds = thaw(knob.default), knob.bounds or ()
    facts = [f"default {_flow(default)}"] if knob.is_numeric or isinstance(default, (bool, str)) else []
    if knob.is_numeric and bounds:
        facts.append(f"{bounds[0]:g} to {bounds[1]:g}")
    elif bounds:
        facts.append(f"one of {_flow(list(bounds))}")
    shown = f" ({'; '.join(facts)})" if facts else ""
    return _comment(f"{knob.name}: {knob.doc}{shown}")


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="#   ", subsequent_indent="#       ") + "\n"


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=float("inf"))
    return text.removesuffix("...\n").strip()


class _Dumper(yaml.SafeDumper):
    """Quotes strings that YAML 1.1 reads as a string and YAML 1.2 as a number, such as `6e-4`."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if text[:1].isalpha() else '"'
    ),
)
