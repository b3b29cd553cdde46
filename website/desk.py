"""What the page of the service desk shows beside that of other environments: tools, bounds inside knobs, and rules.

* `show_desk` - these tables, in Markdown
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drift_envs.envs.tools.database import CATALOGUE, EXTRAS, MERGERS, POLICY, REASONS, SPLITS
from drift_envs.envs.tools.interface import DEFAULT_CHOICES, POLICY_BOUNDS, TYPES, make_interface
from drift_envs.tasks.tool_calls import MOST_SILENT


def show_desk() -> Iterator[str]:
    """The tables, a line each."""
    yield from ("## Tools", "", "| tool | effect | meaning |", "|---|---|---|", *_tools(), "")
    yield "Drifts of `split` and `merged` put others in their place:"
    yield from ("", "| tool | becomes |", "|---|---|")
    yield from (f"| `{old}` | {' and '.join(f'`{one}`' for one in new)} |" for old, new in SPLITS.items())
    yield from (f"| {' and '.join(f'`{one}`' for one in old)} | `{new}` |" for new, old in MERGERS.items())
    yield from ("", "## Values inside knobs", "", "| knob | values |", "|---|---|")
    yield from (f"| `{name}` | {values} |" for name, values in BOUNDS.items())
    yield from ("", "Rules of `policy` (in force) and `page` (as the page states them), in days, per cent and euros:")
    yield from ("", "| rule | default | bounds |", "|---|---|---|")
    yield from (
        f"| `{rule}` | {str(value).lower()} | {_words(POLICY_BOUNDS[rule])} |" for rule, value in POLICY.items()
    )
    yield ""


def _tools() -> Iterator[str]:
    interface = make_interface({})
    offered = {tool.name for tool in interface.tools}
    signatures = dict(line.split("(", 1) for line in interface.summary.splitlines())
    for name, tool in CATALOGUE.items():
        if name in offered:
            arguments = signatures[name].rpartition(") - ")[0].replace("|", " or ")
            yield f"| `{name}({arguments})` | {tool.effect} | {tool.about} |"


def _words(bounds: Sequence[Any]) -> str:
    """An interval or choices in words."""
    is_interval = len(bounds) == 2 and not isinstance(bounds[0], (str, bool))
    return f"{bounds[0]:n} to {bounds[1]:n}" if is_interval else ", ".join(map(str, bounds)).lower()


def _words_of_each(choices: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{key}: {', '.join(values)}" for key, values in choices.items())


BOUNDS = {
    "names": "lower-case letters and _, up to 32",
    "required": ", ".join(EXTRAS),
    "types": _words_of_each(TYPES),
    "split": ", ".join(SPLITS),
    "merged": ", ".join(MERGERS),
    "gone": "named (the old name answers with the new one), mute (with nothing)",
    "defaults": _words_of_each(DEFAULT_CHOICES),
    "enum": ", ".join(REASONS),
    "silent": f"0 to {MOST_SILENT}",
}
"""The values in knobs that are mappings or lists."""
