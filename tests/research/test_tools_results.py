"""The tables of docs/research/tools_results.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.analysis.evidence import write_evidence
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import plan_cells

from research import tools_results
from research.verify_map.pages import BOARD, ROOT
from tests.drift_agents.analysis.lines_by_hand import evidence
from tests.research.test_map import played

pytest.importorskip("pyarrow")


@pytest.mark.integration
def test_the_pages_have_the_numbers_of_the_lines() -> None:
    """`make tables` does not change them; before lines are stored the tables are empty."""
    for path, text in tools_results.render_results().items():
        assert path.read_text("utf-8") == text, f"run `make tables`: {path.name} has other numbers"


def test_lines_fill_every_table_of_the_page_and_the_rows_of_the_board(tmp_path: Path) -> None:
    for name in tools_results.PAGES:
        page = tmp_path / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text((ROOT / name).read_text("utf-8"), "utf-8")
    write_evidence(evidence(played()), tmp_path / tools_results.STUDIES["tools"].evidence)
    written = tools_results.write_results(tmp_path)
    assert written == [tmp_path / name for name in tools_results.PAGES]
    for path, tables in zip(written, (4, 1), strict=False):
        blocks = path.read_text("utf-8").split("<!-- table tools-")[1:]
        assert len(blocks) == tables
        for block in blocks:
            assert block.partition(" -->\n")[2].partition("<!-- end -->")[0].strip()
        rows = [line for line in path.read_text("utf-8").splitlines() if line.startswith("| overwrite ")]
        assert len(rows) >= max(tables - 1, 1), "an agent has the name of the experiment in every table"
        assert "| plain, oracle realign " in path.read_text("utf-8")
    shipped, filled = ((root / BOARD).read_text("utf-8") for root in (ROOT, tmp_path))
    assert table_of(filled, "board") == table_of(shipped, "board"), "the map's rows are kept"


def table_of(page: str, name: str) -> str:
    return page.partition(f"<!-- table {name} -->")[2].partition("<!-- end -->")[0]


@pytest.mark.parametrize(
    ("experiment", "study"),
    [("tools", "tools"), ("edv-tau2", "tau2"), (str(ROOT / "research/experiments/repository.yaml"), "repository")],
    ids=["tools", "tau2", "repository"],
)
def test_every_agent_of_the_experiment_has_a_name(experiment: str, study: str) -> None:
    cells = [cell for cell in plan_cells(load_experiment(experiment)) if cell.reference is None]
    keys = {(*cell.labels[:2], *cell.decision.labels, cell.labels[2]) for cell in cells}
    assert keys == set(tools_results.STUDIES[study].names)
    assert len({cell.seed for cell in cells}) == 30
