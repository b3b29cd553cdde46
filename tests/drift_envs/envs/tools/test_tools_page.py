"""The tables of docs/tools.md against the code that they describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from drift_envs.envs.tools.database import CATALOGUE, EXTRAS, MERGERS, POLICY, REASONS, SPLITS
from drift_envs.envs.tools.interface import (
    DEFAULT_CHOICES,
    MOST_SILENT,
    POLICY_BOUNDS,
    TOOLS_KNOBS,
    TYPES,
    make_interface,
)
from drift_envs.envs.tools.requests import HELD_OUT, KINDS, WORDINGS

TEXT = (Path(__file__).parents[4] / "docs" / "tools.md").read_text(encoding="utf-8")


def tool_rows() -> list[str]:
    """A row for each tool, those of splits and mergers after what they replace."""
    interface = make_interface({})
    offered = {tool.name for tool in interface.tools}
    signatures = dict(line.split("(", 1) for line in interface.summary.splitlines())
    rows = []
    for name, tool in CATALOGUE.items():
        if name in offered:
            arguments = signatures[name].rpartition(") - ")[0].replace("|", " or ")
            rows.append(f"| `{name}({arguments})` | {tool.effect} | {tool.about} |")
    rows += [f"| `{old}` | split | {' and '.join(f'`{part}`' for part in parts)} |" for old, parts in SPLITS.items()]
    rows += [f"| {' and '.join(f'`{one}`' for one in old)} | merged | `{new}` |" for new, old in MERGERS.items()]
    return rows


def words_of_each(choices) -> str:
    """The choices of each key in words."""
    return "; ".join(f"{key}: {', '.join(values)}" for key, values in choices.items())


BOUNDS = {
    "names": "lower-case letters and _, up to 32",
    "required": ", ".join(EXTRAS),
    "types": words_of_each(TYPES),
    "split": ", ".join(SPLITS),
    "merged": ", ".join(MERGERS),
    "gone": "named, mute",
    "page": "[rules](#rules)",
    "policy": "[rules](#rules)",
    "defaults": words_of_each(DEFAULT_CHOICES),
    "enum": ", ".join(REASONS),
    "silent": f"0 to {MOST_SILENT}",
}
"""The bounds of values in knobs that are mappings or lists."""


def words_of(bounds) -> str:
    """An interval or choices in words."""
    is_interval = len(bounds) == 2 and not isinstance(bounds[0], (str, bool))
    return f"{bounds[0]:n} to {bounds[1]:n}" if is_interval else ", ".join(map(str, bounds)).lower()


def knob_rows() -> list[str]:
    """A row for each knob."""
    names = list(TOOLS_KNOBS)
    hidden = names[names.index("policy") :]
    rows = []
    for name, knob in ((name, TOOLS_KNOBS[name]) for name in names):
        visibility = "" if name == "shop" else "implicit" if name in hidden else "explicit"
        rows.append(f"| `{name}` | {visibility} | {BOUNDS.get(name) or words_of(knob.bounds)} | {knob.doc} |")
    return rows


def rule_rows() -> list[str]:
    """A row for each rule of the policy."""
    return [f"| `{rule}` | {str(value).lower()} | {words_of(POLICY_BOUNDS[rule])} |" for rule, value in POLICY.items()]


@pytest.mark.parametrize("make_rows", [tool_rows, knob_rows, rule_rows])
def test_tables_are_what_the_code_says(make_rows) -> None:
    table = "\n".join(make_rows())
    assert table in TEXT, f"the table of docs/tools.md should be:\n{table}"


def test_every_kind_of_request_is_named() -> None:
    assert not [kind for kind in KINDS if f"`{kind}`" not in TEXT]


def test_each_kind_has_three_wordings_and_two_that_are_held_out() -> None:
    assert list(WORDINGS) == list(HELD_OUT) == list(KINDS)
    for kind in KINDS:
        assert len({*WORDINGS[kind], *HELD_OUT[kind]}) == 5
