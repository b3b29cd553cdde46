"""The command `new-schedule`: a schedule file to start from.

* `draft_schedule` - its text
* `write_draft` - the command
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import yaml

from drift_envs.cli.listing import WRAPPER_KNOBS
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Knob, thaw
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule

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
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ArgumentError(f"`--out` should be a file that does not exist. Received {str(out)!r}") from error
    except OSError as error:
        raise ArgumentError(f"`--out`: {out} cannot be written: {error.strerror}") from error
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
    loaded = load_schedule(name, table=None)
    default: dict[str, Any] = {} if loaded is None else loaded.to_dict()
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


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text[:1].isalpha() else '"')


_Dumper.add_representer(str, _represent_text)
