"""The numbers of the documents are those of the stored lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from drift_agents.analysis.evidence import write_evidence
from drift_agents.errors import EvidenceError

from research.__main__ import main
from research.verify_map import pages
from tests.drift_agents.analysis.lines_by_hand import evidence
from tests.research.test_map import BOOK, OFTEN, played

pytest.importorskip("pyarrow")


@pytest.mark.integration
def test_the_pages_have_the_numbers_of_the_lines() -> None:
    """`make tables` changes no page; before lines are stored the tables are empty."""
    for path, text in pages.render_pages().items():
        assert path.read_text("utf-8") == text, f"run `make tables`: {path.name} has other numbers"


@pytest.fixture
def own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "read_rules", lambda path: BOOK)


@pytest.mark.integration
def test_the_map_of_some_lines_is_a_page_with_pictures(own_rules: None, tmp_path: Path) -> None:
    write_evidence(evidence(played()), tmp_path / "lines")
    assert main(["map", str(tmp_path / "lines"), "--out", str(tmp_path / "map")]) == 0
    page = (tmp_path / "map" / "map.md").read_text("utf-8")
    assert all((tmp_path / "map" / name).exists() for name in re.findall(r"\]\((.+?)\)", page))
    assert "3 points, 12 instances each: 252 cells, 5,292 episodes" in page
    winners = next(line for line in page.splitlines() if line.startswith(f"| {OFTEN} ") and "GLOVE |" in line)
    assert [cell.strip() for cell in winners.split("|")[2:5]] == ["forget(2)", "forget(2)", "GLOVE"]
    assert re.search(r"\| Vanilla \+ mine +\| ", page), "an agent that the file does not name takes part"


def test_the_front_table_has_the_best_rule_of_each_family(own_rules: None) -> None:
    lines = evidence(played())
    front = pages.make_tables(lines, BOOK, pages.make_map(lines, BOOK))["front"].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in front]
    assert {row[0]: row[1] for row in rows} == {
        "newest wins": "overwrite",
        "patience": "forget(3)",
        "probing": "GLOVE",
    }
    assert {row[0]: row[-2:] for row in rows}["patience"] == ["2", "1"], "two points won, one of them clearly"


def test_tables_stand_between_their_marks() -> None:
    text = "a\n<!-- table one -->\nold\n<!-- end -->\nb\n<!-- table two -->\n<!-- end -->\n"
    filled = pages.fill_page(text, {"one": "1", "two": "2"}, "page")
    assert filled == "a\n<!-- table one -->\n1\n<!-- end -->\nb\n<!-- table two -->\n2\n<!-- end -->\n"
    assert pages.fill_page(filled, None, "page") == text.replace("old\n", "")
    with pytest.raises(EvidenceError, match="page: no table is called 'two'"):
        pages.fill_page(text, {"one": "1"}, "page")


def test_without_lines_there_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="has no lines"):
        pages.write_tables(tmp_path)


@pytest.mark.integration
def test_the_panel_of_the_network_has_its_own_lines_alone() -> None:
    """The planner's lines, which the table of the second policy shows beside it, would win some of its points."""
    book = pages.read_rules(pages.STUDY / "rules.yaml")
    points = [one for one in pages._network_points(pages.ROOT, book) if one.charge == 0]
    assert len(points) == 12
    assert {one.point.environment for one in points} == {"frozen_lake/verify-6x6, network"}
    assert all(one.winner.endswith(", network") for one in points)
    table = pages._tabulate_network(pages.ROOT, book)
    for one, (row, _) in zip(points, table.rows, strict=True):
        areas = dict(zip(pages.OF_NETWORK, map(float, row[2:7]), strict=True))
        assert areas[one.winner.removesuffix(", network")] == max(areas.values()) == pytest.approx(one.area, abs=0.051)
        assert row[-2].startswith("+") == (one.family == "probing")
