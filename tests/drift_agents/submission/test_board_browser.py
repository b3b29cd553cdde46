"""The board in headless Chromium: sorting, filters, a phone, contrasts in both schemes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drift_agents.submission.page import write_page
from drift_agents.submission.results import COLUMNS
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

RESULTS = Path(__file__).resolve().parents[3] / "results" / "board"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the results of this repository, in which two agents are models."""
    folder = tmp_path_factory.mktemp("board")
    shutil.copytree(RESULTS, folder / "results")
    ask_models(folder / "results" / "hidden-lakes" / "vanilla.json")
    write_page(folder / "results", folder / "board.html")
    return (folder / "board.html").as_uri()


def ask_models(path: Path) -> None:
    """Let the plain agent ask a language model for two cents an episode, and the verified one a model without price."""
    data = json.loads(path.read_text())
    for cell in data["cells"]:
        player = data["players"][cell["player"]]
        if player["memory"] == "vanilla" and player["verifier"] != "overwrite":
            for episode in cell["episodes"]:
                episode[COLUMNS.index("model_calls")] = 3
                episode[COLUMNS.index("cost")] = 0.02 if player["verifier"] == "none" else 0
    path.write_text(json.dumps(data))


@pytest.fixture
def opened(browser: WebDriver, address: str) -> Iterator[WebDriver]:
    browser.get(address)
    yield browser
    assert browser.get_log("browser") == [], "no error of the script, and nothing that the policy refused"
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def lakes(opened: WebDriver) -> WebElement:
    return opened.find_elements(By.CSS_SELECTOR, "section.track")[0]


@pytest.fixture
def small(opened: WebDriver) -> WebElement:
    return opened.find_elements(By.CSS_SELECTOR, "section.track")[1]


def column(track: WebElement, key: str) -> list[str]:
    """The texts of a column of a track's table, its references left out."""
    heads = track.find_elements(By.CSS_SELECTOR, ".live th")
    place = 1 + [head.get_attribute("data-key") for head in heads].index(key)
    cells = track.find_elements(By.CSS_SELECTOR, f".live tbody tr:not(.reference) td:nth-child({place})")
    return [cell.text.splitlines()[0] for cell in cells]


def choose(track: WebElement, label: str, text: str) -> None:
    (one,) = [one for one in track.find_elements(By.CSS_SELECTOR, ".filters label") if one.text.startswith(label)]
    Select(one.find_element(By.TAG_NAME, "select")).select_by_visible_text(text)


def sort(track: WebElement, key: str) -> None:
    track.find_element(By.CSS_SELECTOR, f'th[data-key="{key}"] button').click()


def test_columns_sort_in_both_directions(small: WebElement) -> None:
    ranks = [int(text) for text in column(small, "rank")]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1
    sort(small, "probing")
    probes = [float(text) for text in column(small, "probing")]
    assert probes == sorted(probes)
    sort(small, "probing")
    assert [float(text) for text in column(small, "probing")] == sorted(probes, reverse=True)
    sorted_by = small.find_element(By.CSS_SELECTOR, 'th[aria-sort="descending"]')
    assert sorted_by.get_attribute("data-key") == "probing"


def test_filters_hide_rows_and_rank_the_rest(small: WebElement) -> None:
    every = column(small, "name")
    choose(small, "Supervision", "none")
    assert not [name for name in column(small, "name") if "ReasoningBank" in name]
    choose(small, "Probes", "at most 0")
    rest = column(small, "name")
    assert not [name for name in rest if "GLOVE" in name]
    assert 0 < len(rest) < len(every)
    assert column(small, "rank")[0] == "1"
    choose(small, "Tokens", "at most 500")
    assert len(column(small, "name")) < len(rest)
    choose(small, "Tokens", "any")
    small.find_element(By.CSS_SELECTOR, ".filters input").send_keys("belief")
    assert all("BeliefMem" in name for name in column(small, "name"))


def test_environments_and_kinds_have_figures_of_their_own(small: WebElement) -> None:
    def remarks() -> str:
        return small.find_element(By.CSS_SELECTOR, ".remarks").text

    assert "Played by rules, no language model." in remarks()
    assert "more than half of the agents keep everything there: house/explicit-family" in remarks()
    figures = column(small, "kept")
    choose(small, "Environment", "lakes")
    assert "9 instances of frozen_lake/explicit-family, " in remarks()
    assert column(small, "kept") != figures
    choose(small, "Kind of drift", "implicit")
    assert "3 instances of frozen_lake/implicit-family." in remarks()
    choose(small, "Environment", "cars")
    assert remarks() == "The track has no schedule of this environment and kind."


def test_a_phone_shows_the_page_without_scrolling_sideways(opened: WebDriver) -> None:
    metrics = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(opened: WebDriver, contrasts: Callable[[], list[tuple[float, str]]], scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    weak = [(ratio, text) for ratio, text in contrasts() if ratio < 4.5]
    assert weak == []


def test_a_budget_in_dollars(lakes: WebElement) -> None:
    """Two agents of the track are language models in this copy; one of them was given a price."""
    by_name = dict(zip(column(lakes, "name"), column(lakes, "dollars"), strict=True))
    assert by_name == {
        "Vanilla": "0.0200",
        "Vanilla + GLOVE": "-",
        "Vanilla + overwrite": "-",
        "newest": "-",
        "newest + GLOVE": "-",
    }
    sort(lakes, "dollars")
    assert column(lakes, "name")[0] == "Vanilla"
    choose(lakes, "Dollars", "at most 0.01")
    # GLOVE's model has no price: it may cost anything. Rules cost nothing.
    assert sorted(column(lakes, "name")) == ["Vanilla + overwrite", "newest", "newest + GLOVE"]
    choose(lakes, "Dollars", "at most 0.1")
    assert "Vanilla" in column(lakes, "name")
    assert "Vanilla + GLOVE" not in column(lakes, "name")
    assert "Language models played in: Vanilla + GLOVE, Vanilla." in lakes.text
    choose(lakes, "Policy", "language models")
    assert column(lakes, "name") == ["Vanilla"]
    choose(lakes, "Policy", "any")
    choose(lakes, "Dollars", "any")
    choose(lakes, "Steps", "at most 10")
    assert sorted(column(lakes, "name")) == ["Vanilla", "Vanilla + overwrite", "newest"]
