"""The tables of docs/tools_results.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.analysis.evidence import write_evidence

from studies import tools_results
from tests.drift_agents.analysis.lines_by_hand import evidence
from tests.drift_agents.analysis.test_map import played

pytest.importorskip("pyarrow")


@pytest.mark.integration
def test_the_page_has_the_numbers_of_the_lines() -> None:
    """`make tables` does not change it; before lines are stored its tables are empty."""
    text = (tools_results.ROOT / tools_results.PAGE).read_text("utf-8")
    assert tools_results.render_results() == text, "run `make tables`"


def test_lines_fill_every_table_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / tools_results.PAGE
    page.parent.mkdir()
    page.write_text((tools_results.ROOT / tools_results.PAGE).read_text("utf-8"), "utf-8")
    write_evidence(evidence(played()), tmp_path / tools_results.EVIDENCE)
    assert tools_results.write_results(tmp_path) == page
    blocks = page.read_text("utf-8").split("<!-- table ")[1:]
    assert len(blocks) == 4
    assert all(block.partition(" -->\n")[2].partition("<!-- end -->")[0].strip() for block in blocks)
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| overwrite ")]
    assert len(rows) >= 3, "an agent has the name of the experiment in every table"
