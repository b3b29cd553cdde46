"""The board in headless Chromium: sorting, filters, tabs, a phone, contrasts in both schemes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drift_agents.submission.board_pages import write_board
from drift_agents.submission.track import read_track
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

RESULTS = Path(__file__).resolve().parents[3] / "results" / "board"
CAR = "mountain_car/reversed"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the results of this repository, in which one schedule is an old one and two agents are models."""
    folder = tmp_path_factory.mktemp("board")
    shutil.copytree(RESULTS, folder / "results")
    small = folder / "results" / "small"
    track = json.loads((small / "track.json").read_text())
    track["schedules"][CAR]["hash"] = "0" * 16
    (small / "track.json").write_text(json.dumps(track))
    for path in small.glob("*.json"):
        if path.name != "track.json":
            data = json.loads(path.read_text())
            data["track"], data["schedules"][CAR]["hash"] = read_track(small / "track.json").digest(), "0" * 16
            path.write_text(json.dumps(data))
    ask_models(folder / "results" / "hidden-lakes" / "vanilla.json")
    write_board(folder / "results", folder / "board.md", folder / "board.html")
    return (folder / "board.html").as_uri()


def ask_models(path: Path) -> None:
    """Let the plain agent ask a language model for two cents an episode, and the verified one a model without price."""
    data = json.loads(path.read_text())
    for cell in data["cells"]:
        player = data["players"][cell["player"]]
        if player["memory"] == "vanilla" and player["verifier"] != "overwrite":
            cell["columns"] |= {"model_calls": 3, "cost": 0.02 if player["verifier"] == "none" else 0}
    path.write_text(json.dumps(data))


@pytest.fixture
def opened(browser: WebDriver, address: str) -> Iterator[WebDriver]:
    browser.get(address)
    browser.find_element(By.CSS_SELECTOR, '.tracks button[data-track="1"]').click()
    yield browser
    assert browser.get_log("browser") == [], "no error of the script, and nothing that the policy refused"
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def column(browser: WebDriver, key: str) -> list[str]:
    """The texts of a column of the table that is shown, its references left out."""
    heads = browser.find_elements(By.CSS_SELECTOR, "section.track:not([hidden]) .live th")
    place = 1 + [head.get_attribute("data-key") for head in heads].index(key)
    rows = f"section.track:not([hidden]) .live tbody tr:not(.reference) td:nth-child({place})"
    return [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, rows)]


def choose(browser: WebDriver, label: str, text: str) -> None:
    for one in browser.find_elements(By.CSS_SELECTOR, "section.track:not([hidden]) .filters label"):
        if one.text.startswith(label):
            Select(one.find_element(By.TAG_NAME, "select")).select_by_visible_text(text)


def sort(browser: WebDriver, key: str) -> None:
    browser.find_element(By.CSS_SELECTOR, f'section.track:not([hidden]) th[data-key="{key}"] button').click()


def test_columns_sort_in_both_directions(opened: WebDriver) -> None:
    ranks = [int(text) for text in column(opened, "rank")]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1
    sort(opened, "probing")
    probes = [float(text) for text in column(opened, "probing")]
    assert probes == sorted(probes)
    sort(opened, "probing")
    assert [float(text) for text in column(opened, "probing")] == sorted(probes, reverse=True)
    sorted_by = opened.find_element(By.CSS_SELECTOR, 'section.track:not([hidden]) th[aria-sort="descending"]')
    assert sorted_by.get_attribute("data-key") == "probing"


def test_filters_hide_rows_and_rank_the_rest(opened: WebDriver) -> None:
    every = column(opened, "name")
    choose(opened, "Supervision", "none")
    assert not [name for name in column(opened, "name") if "ReasoningBank" in name]
    choose(opened, "Probes", "no probes")
    rest = column(opened, "name")
    assert not [name for name in rest if "GLOVE" in name]
    assert 0 < len(rest) < len(every)
    assert column(opened, "rank")[0] == "1"
    choose(opened, "Tokens", "at most 500")
    assert len(column(opened, "name")) < len(rest)
    choose(opened, "Tokens", "any number")
    field = opened.find_element(By.CSS_SELECTOR, "section.track:not([hidden]) .filters input")
    field.send_keys("belief")
    assert all("BeliefMem" in name for name in column(opened, "name"))


def test_worlds_and_kinds_have_figures_of_their_own(opened: WebDriver) -> None:
    figures = column(opened, "kept")
    choose(opened, "World", "lakes")
    remarks = opened.find_element(By.CSS_SELECTOR, "section.track:not([hidden]) .remarks").text
    assert "9 instances of 3 schedules" in remarks
    assert column(opened, "kept") != figures
    choose(opened, "Kind of drift", "implicit")
    assert (
        "3 instances of 1 schedule:"
        in opened.find_element(By.CSS_SELECTOR, "section.track:not([hidden]) .remarks").text
    )


def test_tabs_show_what_is_old_and_who_submitted(opened: WebDriver) -> None:
    shown = "section.track:not([hidden]) .tab:not([hidden])"
    opened.find_element(By.CSS_SELECTOR, 'section.track:not([hidden]) button[data-tab="legacy"]').click()
    text = opened.find_element(By.CSS_SELECTOR, shown).text
    assert f"{CAR} with the hash {'0' * 16} is not shipped any more" in text
    assert "Clairvoyant" in text
    opened.find_element(By.CSS_SELECTOR, 'section.track:not([hidden]) button[data-tab="submissions"]').click()
    assert "drift-newest 0.1.0" in opened.find_element(By.CSS_SELECTOR, shown).text


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


def maps(browser: WebDriver) -> list[str]:
    """The captions of the maps that are shown."""
    found = browser.find_elements(By.CSS_SELECTOR, "section.track:not([hidden]) .maps figcaption")
    return [caption.text for caption in found if caption.is_displayed()]


def test_maps_follow_the_filters(opened: WebDriver) -> None:
    assert sorted(maps(opened)) == sorted(column_names(opened))
    choose(opened, "Probes", "no probes")
    assert "Vanilla" in maps(opened)
    assert not [name for name in maps(opened) if "GLOVE" in name]
    dots = "section.track:not([hidden]) .maps figure:not([hidden]) .dot"
    choose(opened, "World", "lakes")
    worlds = {dot.get_attribute("data-world") for dot in opened.find_elements(By.CSS_SELECTOR, f"{dots}:not([hidden])")}
    assert worlds == {"lakes"}


def column_names(browser: WebDriver) -> list[str]:
    return [text.splitlines()[0] for text in column(browser, "name")]


def test_a_budget_in_dollars(opened: WebDriver) -> None:
    """Two agents of the track are language models in this copy; one of them was given a price."""
    opened.find_element(By.CSS_SELECTOR, '.tracks button[data-track="0"]').click()
    by_name = dict(zip(column_names(opened), column(opened, "dollars"), strict=True))
    assert by_name == {
        "Vanilla": "0.0200",
        "Vanilla + GLOVE": "-",
        "Vanilla + overwrite": "-",
        "newest": "-",
        "newest + GLOVE": "-",
    }
    sort(opened, "dollars")
    assert column_names(opened)[0] == "Vanilla"
    choose(opened, "Dollars", "at most 0.01")
    # GLOVE's model has no price: it may cost anything. Rules cost nothing.
    assert sorted(column_names(opened)) == ["Vanilla + overwrite", "newest", "newest + GLOVE"]
    choose(opened, "Dollars", "at most 0.1")
    assert "Vanilla" in column_names(opened)
    assert "Vanilla + GLOVE" not in column_names(opened)
    choose(opened, "Dollars", "any price")
    choose(opened, "Steps", "at most 10")
    assert sorted(column_names(opened)) == ["Vanilla", "Vanilla + overwrite", "newest"]
