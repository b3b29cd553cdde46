"""The tables of docs/tools.md against the code that they describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from drift_envs.envs.tools.catalogue import CATALOGUE, MERGERS, SPLITS
from drift_envs.envs.tools.interface import make_interface
from drift_envs.envs.tools.knobs import TOOLS_KNOBS
from drift_envs.envs.tools.requests import KINDS
from drift_envs.envs.tools.wordings import HELD_OUT, WORDINGS

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


def knob_rows() -> list[str]:
    """A row for each knob."""
    shown = {True: "explicit", False: "implicit"}
    names = list(TOOLS_KNOBS)
    first_hidden = names.index("policy")
    return [
        f"| `{name}` | {'' if name == 'shop' else shown[place < first_hidden]} | {knob.doc} |"
        for place, (name, knob) in enumerate((name, TOOLS_KNOBS[name]) for name in names)
    ]


@pytest.mark.parametrize("make_rows", [tool_rows, knob_rows])
def test_tables_are_what_the_code_says(make_rows) -> None:
    table = "\n".join(make_rows())
    assert table in TEXT, f"the table of docs/tools.md should be:\n{table}"


def test_every_kind_of_request_is_named() -> None:
    assert not [kind for kind in KINDS if f"`{kind}`" not in TEXT]


def test_each_kind_has_three_wordings_and_two_that_are_held_out() -> None:
    assert list(WORDINGS) == list(HELD_OUT) == list(KINDS)
    for kind in KINDS:
        assert len({*WORDINGS[kind], *HELD_OUT[kind]}) == 5
