"""Parts of a report: cells of tables, resamples, and the documented fields."""

from __future__ import annotations

import re
from pathlib import Path

from drift_agents.analysis.table import Table, to_markdown
from drift_agents.experiment.logs import FIELDS


def test_markdown_escapes_what_would_break_a_table() -> None:
    table = Table("t", ("a", "b"))
    table.add("x|y", "1")
    assert "x\\|y" in to_markdown(table)
    table.add("<b>", "<i>")
    assert "<" not in to_markdown(table).replace("&lt;", "")


def test_every_field_is_documented() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "experiments.md").read_text("utf-8")
    table = text.split("## A line")[1].split("##")[0]
    firsts = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = [name for first in firsts for name in re.findall("`([a-z_]+)`", first)]
    assert sorted(documented) == sorted(FIELDS)
