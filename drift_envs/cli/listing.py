"""The command `drift-envs list`: environments with their knobs, shipped schedules with their drifts.

* `print_list` - the command
* `ScheduleSummary`, `read_summaries` - what the list shows of each shipped schedule
* `WRAPPER_KNOBS` - the knobs that `DriftWrapper` adds to those of an id

The files are read as plain YAML and not checked: the models and timelines that `load_schedule` needs would multiply the
time of the command. Tests compare the list with what `load_schedule` returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.registration import IDS
from drift_envs.schedule.files import shipped_schedules
from drift_envs.schedule.variants import SECTION

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

MAX_DRIFTS = 4
"""Drifts of a schedule that the list names."""


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


def print_list(console: Console, env_id: str | None = None) -> None:
    """Print the list.

    Args:
        console: where to print.
        env_id: the environment to show in full; `None` for the names of all.
    """
    if env_id is None:
        _print_names(console)
    else:
        _print_one(console, env_id)
    console.print(Text(f"knobs of the wrapper, where the spaces allow: {', '.join(WRAPPER_KNOBS)}", style="dim"))


def _print_names(console: Console) -> None:
    """A line for each environment, and the names of all schedules, grouped by folder."""
    environments = _make_table("Environments", "id", "steps", "default schedule")
    for each, entry in IDS.items():
        environments.add_row(each, str(entry.limit), entry.schedule)
    folders: dict[str, list[str]] = {}
    for name in shipped_schedules():
        folder, _, rest = name.partition("/")
        folders.setdefault(folder, []).append(rest)
    schedules = _make_table("Schedules, named folder/name", "folder", "names")
    for folder, names in folders.items():
        schedules.add_row(folder, ", ".join(names))
    console.print(environments, "", schedules, "")
    console.print("--env ID shows the knobs of an environment, and what its schedules change", style="dim")


def _print_one(console: Console, env_id: str) -> None:
    """An environment with its knobs, and its schedules with their drifts."""
    environments = _make_table("Environment", "id", "steps", "default schedule")
    environments.add_row(env_id, str(IDS[env_id].limit), IDS[env_id].schedule)
    knobs = _make_table("Knobs", "name", "bounds or choices", "meaning")
    for knob in IDS[env_id].parts.knob_table.knobs:
        allowed = knob.bounds or ()
        is_range = knob.is_numeric and allowed
        values = f"{allowed[0]:g} to {allowed[1]:g}" if is_range else ", ".join(str(value) for value in allowed)
        knobs.add_row(knob.name, values, knob.doc)
    schedules = _make_table("Schedules", "name", "drifts, with the first tick of each", "description")
    is_narrow = console.width < WIDE
    for name, summary in read_summaries().items():
        if summary.env == env_id:
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
    console.print(environments, "", knobs, "", schedules, "")


def _make_table(title: str, *heads: str) -> Table:
    """A table without lines, in whose first column nothing is broken."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, justify="right" if head == "steps" else "left", no_wrap=head in (heads[0], "steps"))
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
                    contents[name] = content = yaml.load(file.read_text("utf-8"), loader)
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
