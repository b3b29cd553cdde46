"""The interactive board: one small file without requests, whose filters work, on a phone too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.evidence import read_evidence
from drift_agents.analysis.leaderboard import name_of
from drift_agents.analysis.plots import FAMILY_COLOURS, REFERENCES
from drift_agents.analysis.ranking import rank_agents
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from research.verify_map.board import summarise_points, to_board_page
from research.verify_map.pages import EVIDENCE, ROOT, STUDY
from research.verify_map.rules import read_rules
from tests.drift_agents.analysis.lines_by_hand import evidence
from tests.drift_agents.analysis.test_leaderboard import SHOP
from tests.drift_agents.analysis.test_leaderboard import played as ranked
from tests.drift_agents.conftest import browser  # noqa: F401, a fixture
from tests.research.test_map import BOOK, played

HOSTILE = "</script><b>"


@pytest.fixture(scope="module")
def page() -> str:
    lines = played()
    return to_board_page(evidence({**lines, HOSTILE: lines["mine"]}), BOOK)


def test_the_page_is_one_small_file_without_requests(page: str) -> None:
    assert len(page.encode()) < 2_000_000
    assert HOSTILE not in page
    assert "default-src 'none'" in page
    assert "unsafe-eval" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page.split("<script>")[0])


@pytest.mark.integration
def test_filters_change_the_bars(page: str, browser: WebDriver, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "board.html").write_text(page, "utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    browser.get((tmp_path / "board.html").as_uri())
    wait = WebDriverWait(browser, 60)

    def bars(_: Any = None) -> set[str]:
        """What the bars say to a screen reader: names and figures."""
        found = browser.find_elements(By.CSS_SELECTOR, "#board .mark-rect path")
        return {element.get_attribute("aria-label") or "" for element in found}

    wait.until(lambda _: any("agent: GLOVE" in text for text in bars()))
    before = bars()
    Select(browser.find_element(By.ID, "rate")).select_by_value("rush")
    Select(browser.find_element(By.ID, "measure")).select_by_value("unlimited")
    wait.until(lambda _: any("agent: GLOVE" in text and "55.0" in text for text in bars()))
    assert bars() != before
    assert len(bars()) == len(played()) + 1
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert severe == []


def test_the_interactive_page_holds_the_figures_of_every_point() -> None:
    found = summarise_points(evidence(ranked()))
    (row,) = [
        row for row in found if (row["agent"], row["environment"], row["charge"]) == ("Vanilla + GLOVE", SHOP, 10)
    ]
    assert (row["family"], row["rate"], row["share"]) == ("GLOVE", "-", None)
    assert row["unlimited"] == pytest.approx(100 * (1.0 - 0.075), abs=1)
    assert {row["rate"] for row in found} == {"-", "often"}


def test_the_board_has_the_figures_of_the_table_and_one_colour_a_family() -> None:
    """Without filters, to the digit: the points that are no controls, the instances that all agents played."""
    lines, book = read_evidence([ROOT / EVIDENCE]), read_rules(STUDY / "rules.yaml")
    rows = [row for row in summarise_points(lines, book) if row["charge"] == 0 and not row["control"]]
    standings = rank_agents(lines)
    for one in (*standings.ranked, *standings.references):
        name = {rule.key: rule.name for rule in book.rules}.get(one.key) or name_of(one.key)
        own = [row for row in rows if row["agent"] == name]
        assert len(own) == len(standings.schedules)
        found = {field: sum(row[field] for row in own) / len(own) for field in ("area", "x1", "unlimited", "probes")}
        wanted = {"area": one.score.mean, **{m: one.success[m] for m in ("x1", "unlimited")}, "probes": one.probes}
        assert {field: f"{value:.1f}" for field, value in found.items()} == {
            field: f"{value:.1f}" for field, value in wanted.items()
        }
    text = to_board_page(lines, book, back="research/leaderboard/")
    assert '<a href="research/leaderboard/">Back' in text
    scale = json.loads(re.findall(r'id="spec">(.*?)</script>', text)[0])["layer"][0]["encoding"]["color"]["scale"]
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    assert colours == {
        **{title: FAMILY_COLOURS[name] for name, title in book.families.items()},
        REFERENCES: FAMILY_COLOURS[REFERENCES],
    }
