"""The page as a person would see it, in headless Chromium."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.inspect.page import make_server, write_page
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

Contrasts = Callable[[], list[tuple[float, str]]]
READABLE = 4.5  # WCAG 2, level AA


def open_page(browser: WebDriver, address: str) -> None:
    browser.get("about:blank")  # an address that differs in its last part alone would not be loaded again
    browser.get_log("browser")
    browser.get(address)
    WebDriverWait(browser, 20).until(
        lambda b: b.execute_script("return document.documentElement.dataset.ready") == "yes"
    )


def cell_number(browser: WebDriver, schedule: str, memory: str, verifier: str, seed: int = 0) -> int:
    return browser.execute_script(
        "const [s, m, v, n] = arguments;"
        "return index.cells.findIndex(c => c.schedule === s && c.memory === m && c.verifier === v && c.seed === n)",
        schedule,
        memory,
        verifier,
        seed,
    )


def open_step(browser: WebDriver, page: str, schedule: str, verifier: str, episode: int, position: int = 0) -> None:
    open_page(browser, page)
    number = cell_number(browser, schedule, "vanilla", verifier)
    open_page(browser, f"{page}#{number}/{episode}/{position}")
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".pane .frame"))


def press(browser: WebDriver, *keys: str) -> None:
    browser.find_element(By.TAG_NAME, "body").send_keys(*keys)


def texts(browser: WebDriver, selector: str) -> list[str]:
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def errors(browser: WebDriver) -> list[dict[str, Any]]:
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def test_it_opens_without_a_complaint_and_names_the_run(browser: WebDriver, page: str) -> None:
    open_page(browser, page)
    assert errors(browser) == []
    assert texts(browser, "h1") == ["puddle"]
    assert texts(browser, "#about")[0].startswith("drift-envs ")
    assert texts(browser, "#count") == ["80 episodes of 16 runs (an agent on a schedule with a seed)"]
    assert texts(browser, ".head")[0] == "puddle\nsource → turn\nexplicit drift"
    assert "vanilla + glove planner, seed 0" in texts(browser, ".label")
    assert not browser.find_element(By.ID, "stepper").is_displayed(), "nothing is chosen yet"


def test_a_click_on_an_episode_shows_its_first_step(browser: WebDriver, page: str) -> None:
    open_page(browser, page)
    row = next(row for row in browser.find_elements(By.CLASS_NAME, "row") if row.text.startswith("vanilla + glove"))
    canvas = row.find_element(By.TAG_NAME, "canvas")
    browser.execute_script(
        "const c = arguments[0], box = c.getBoundingClientRect(), at = (5.5) * timeline.columnWidth();"
        "c.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: box.left + at, clientY: box.top + 8}))",
        canvas,
    )
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".pane svg"))
    assert texts(browser, ".pane h3")[0] == "vanilla + glove, seed 0, episode 5"
    assert texts(browser, ".row.chosen .label") == ["vanilla + glove planner, seed 0"]
    assert errors(browser) == []


def test_stepping_changes_frame_and_prompt(browser: WebDriver, page: str) -> None:
    open_step(browser, page, "puddle", "glove", 6)

    def shown() -> tuple[str, str]:
        agent = browser.find_element(By.CSS_SELECTOR, ".agent")
        prompts = browser.find_elements(By.CSS_SELECTOR, "pre.prompt")
        return agent.get_attribute("cx") + agent.get_attribute("cy"), prompts[0].text if prompts else ""

    first = shown()
    assert "Current state: " in first[1]
    browser.find_element(By.ID, "next-step").click()
    second = shown()
    assert first[0] != second[0]
    assert first[1] != second[1]
    press(browser, Keys.ARROW_LEFT)
    assert shown() == first
    press(browser, Keys.ARROW_RIGHT)
    assert shown() == second
    press(browser, Keys.END)
    assert "The episode is over" in texts(browser, ".pane h3")
    assert not browser.find_element(By.ID, "next-step").is_enabled()
    press(browser, Keys.HOME)
    assert shown() == first
    press(browser, Keys.SHIFT, Keys.ARROW_RIGHT)
    WebDriverWait(browser, 5).until(lambda b: texts(b, ".pane h3")[0].endswith("episode 7"))
    assert browser.execute_script("return location.hash").split("/")[1:] == ["7", "0"]
    assert errors(browser) == []


def test_what_the_verifier_did_is_told(browser: WebDriver, page: str) -> None:
    """The drift is met in episode 4: a surprise, probes, what was removed, what was inserted."""
    open_step(browser, page, "puddle", "glove", 4)
    entries: dict[str, str] = {}
    for _ in range(4):
        facts = browser.find_elements(By.CSS_SELECTOR, ".verdict")
        titles = [e.text for fact in facts for e in fact.find_elements(By.TAG_NAME, "dt")]
        values = [e.text for fact in facts for e in fact.find_elements(By.TAG_NAME, "dd")]
        if "probes" in titles:
            entries = dict(zip(titles, values, strict=True))
            break
        press(browser, Keys.ARROW_RIGHT)
    assert entries["surprise"] == "yes"
    assert entries["statistic"] == "0"
    assert entries["probes"].startswith("1 of 1: {")
    assert "led to {" in entries["removed"]
    assert entries["inserted"].startswith("summary ")
    assert texts(browser, ".flag") == ["surprise", "memory rewritten"]


def test_what_changed_and_where_the_agent_went_is_drawn(browser: WebDriver, page: str) -> None:
    open_step(browser, page, "puddle", "glove", 6, 2)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".changed")) == 4
    assert len(browser.find_elements(By.CSS_SELECTOR, ".ghost")) == 2, "the two holes that were"
    points = browser.find_element(By.CSS_SELECTOR, ".trail").get_attribute("points").split()
    assert len(points) == 3
    open_step(browser, page, "puddle", "glove", 2)
    assert not browser.find_elements(By.CSS_SELECTOR, ".changed, .ghost"), "nothing has changed yet"


def test_the_car_shows_the_force_as_it_is(browser: WebDriver, page: str) -> None:
    """Reversed controls: the action says right, the arrow points to the left."""
    for episode, turn in ((0, 1), (1, -1)):
        open_step(browser, page, "mountain_car/reversed", "none", episode, 0)
        for _ in range(60):
            action = texts(browser, ".decision dd")[0]
            if action != "1":
                break
            press(browser, Keys.ARROW_RIGHT)
        assert action in ("0", "2")
        line = browser.find_element(By.CSS_SELECTOR, ".arrow line")
        length = float(line.get_attribute("x2")) - float(line.get_attribute("x1"))
        assert (length > 0) == ((int(action) - 1) * turn > 0)
    assert "since the last phase: force 0.001 to -0.001" in texts(browser, ".hint")


def test_filters_filter(browser: WebDriver, page: str) -> None:
    open_page(browser, page)
    for field, value, episodes, runs in (
        ("schedule", "puddle", 64, 8),
        ("memory", "vanilla", 32, 4),
        ("verifier", "glove", 16, 2),
        ("seed", "1", 8, 1),
    ):
        Select(browser.find_element(By.ID, f"filter-{field}")).select_by_value(value)
        assert texts(browser, "#count")[0].startswith(f"{episodes} episodes of {runs} runs")
    assert texts(browser, ".label") == ["vanilla + glove planner, seed 1"]
    Select(browser.find_element(By.ID, "filter-seed")).select_by_visible_text("all")
    assert len(texts(browser, ".label")) == 2
    assert errors(browser) == []


def test_with_and_without_glove_side_by_side(browser: WebDriver, page: str) -> None:
    open_step(browser, page, "puddle", "glove", 5, 1)
    press(browser, "g")
    WebDriverWait(browser, 5).until(lambda b: len(b.find_elements(By.CLASS_NAME, "pane")) == 2)
    panes = browser.find_elements(By.CLASS_NAME, "pane")
    titles = [pane.find_element(By.TAG_NAME, "h3").text for pane in panes]
    assert titles == ["vanilla + glove, seed 0, episode 5", "vanilla, seed 0, episode 5"]
    banners = texts(browser, ".banner")
    assert [banner.split(", ")[:2] for banner in banners] == [["turn", "tick 5"]] * 2
    boxes = [pane.find_element(By.TAG_NAME, "svg").rect for pane in panes]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["width"] == boxes[1]["width"]
    press(browser, Keys.ARROW_RIGHT)
    assert all(", step 3 of " in banner or ", the end, " in banner for banner in texts(browser, ".banner"))
    press(browser, Keys.SHIFT, Keys.ARROW_RIGHT)
    WebDriverWait(browser, 5).until(
        lambda b: (
            [title for title in texts(b, ".pane h3") if title.endswith("episode 6")]
            == ["vanilla + glove, seed 0, episode 6", "vanilla, seed 0, episode 6"]
        )
    )
    press(browser, "g")
    WebDriverWait(browser, 5).until(lambda b: len(b.find_elements(By.CLASS_NAME, "pane")) == 1)


@pytest.mark.parametrize("schedule", ["puddle", "mountain_car/reversed"])
def test_all_text_is_easy_to_read(browser: WebDriver, page: str, schedule: str, contrasts: Contrasts) -> None:
    open_step(browser, page, schedule, "glove", 1, 0)
    press(browser, "g")
    WebDriverWait(browser, 5).until(lambda b: len(b.find_elements(By.CLASS_NAME, "pane")) == 2)
    found = contrasts()
    assert len(found) > 50
    assert [entry for entry in found if entry[0] < READABLE] == []


def test_everything_can_be_reached_by_keys_and_has_a_name(browser: WebDriver, page: str) -> None:
    open_step(browser, page, "puddle", "glove", 5, 1)
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('button, select, input, canvas[role], svg, pre')].filter("
        "e => !(e.textContent.trim() || e.getAttribute('aria-label') || (e.labels && e.labels.length)))"
        ".map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_the_same_page_served(browser: WebDriver, traced_run: Path) -> None:
    with make_server(traced_run) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            open_step(browser, server.url, "puddle", "glove", 5)
            assert not browser.find_elements(By.CSS_SELECTOR, "script[type='text/plain']")
            assert "Current state: " in texts(browser, "pre.prompt")[0]
            assert errors(browser) == []
        finally:
            server.shutdown()
            thread.join(10)


def test_a_page_of_the_shop_is_shown_as_text_with_its_banner_outside(
    browser: WebDriver, tmp_path: Path, contrasts: Contrasts
) -> None:
    experiment = load_experiment(
        {
            "name": "shop",
            "schedules": ["webshop/explicit"],
            "agents": {"memory": "vanilla", "policy": "planner"},
            "seeds": 1,
            "rounds": 1,
        }
    )
    run_experiment(experiment, tmp_path / "run", trace="all")
    page = write_page(tmp_path / "run").as_uri()
    open_page(browser, f"{page}#0/1/0")
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".frame .page"))
    assert texts(browser, ".frame .page .done") == ["Search"], "what was clicked is marked"
    assert texts(browser, ".frame .page p")[1] == "WebShop"
    first = texts(browser, ".frame .page")[0]
    assert "drift-1, tick 20" in texts(browser, ".banner")[0]
    assert "drift-1" not in first
    press(browser, Keys.ARROW_RIGHT)
    assert texts(browser, ".frame .page")[0] != first
    assert [entry for entry in contrasts() if entry[0] < READABLE] == []
    assert errors(browser) == []


def test_the_desk_has_the_database_beside_the_calls_and_the_drift_marked(
    browser: WebDriver, tmp_path: Path, contrasts: Contrasts
) -> None:
    experiment = load_experiment(
        {
            "name": "desk",
            "schedules": ["tools/units"],
            "agents": {"memory": "none", "policy": "planner"},
            "seeds": 1,
            "rounds": 1,
        }
    )
    run_experiment(experiment, tmp_path / "run", trace="all")
    page = write_page(tmp_path / "run").as_uri()
    open_page(browser, f"{page}#0/1/0")
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".frame .desk"))
    assert texts(browser, ".frame .desk .drifted") == ['drift: units is now "cents", was "euros"']
    assert texts(browser, ".frame .desk .hint") == ["Nothing was looked up."]
    (planned,) = texts(browser, ".frame .desk .done")
    press(browser, Keys.ARROW_RIGHT)
    assert texts(browser, ".frame .desk .calls li")[0] == planned, "the call that was next is the first one now"
    assert texts(browser, ".frame .desk caption")[0].startswith("C-")
    press(browser, Keys.END)
    assert texts(browser, ".frame .desk .calls li")[-1] == "finish()"
    assert texts(browser, ".frame .desk .written"), "an order that was read again shows what was written"
    assert [entry for entry in contrasts() if entry[0] < READABLE] == []
    assert errors(browser) == []


def test_an_issue_has_its_diff_and_the_log_of_the_checks(
    browser: WebDriver, tmp_path: Path, contrasts: Contrasts
) -> None:
    experiment = load_experiment(
        {
            "name": "repository",
            "schedules": ["repository/implicit:unit"],
            "agents": {"memory": "vanilla", "verifier": "glove", "policy": "planner"},
            "seeds": 1,
            "rounds": 2,
        }
    )
    run_experiment(experiment, tmp_path / "run", trace="all")
    open_page(browser, f"{write_page(tmp_path / 'run').as_uri()}#0/2/0")
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".frame .desk"))
    assert texts(browser, ".frame .desk .drifted") == ["drift: unit is now 1, was 0"]
    assert texts(browser, ".frame .desk .hint") == ["Nothing was written."]
    assert texts(browser, ".decision dd")[0].startswith("write_file("), "the path stands for the call"
    press(browser, Keys.END)
    assert texts(browser, ".frame .desk pre.log") == ["checks passed"]
    changed = [text.splitlines() for text in texts(browser, ".frame .desk pre.diff")]
    assert any(line.startswith(("+", "-")) for lines in changed for line in lines)
    assert texts(browser, ".frame .desk .refused"), "a line of the refused submission is gone"
    assert [entry for entry in contrasts() if entry[0] < READABLE] == []
    assert errors(browser) == []


def test_a_fact_has_its_time_line(browser: WebDriver, tmp_path: Path, contrasts: Contrasts) -> None:
    experiment = load_experiment(
        {
            "name": "facts",
            "schedules": ["facts/implicit"],
            "agents": {"memory": {"vanilla": {"order": "newest"}}, "policy": "planner"},
            "seeds": 1,
            "rounds": 8,
        }
    )
    run_experiment(experiment, tmp_path / "run", trace="all")
    rows = read_rows(tmp_path / "run" / "episodes.jsonl")
    wrong = next(row["episode"] for row in rows if row["score"] == 0)
    open_page(browser, f"{write_page(tmp_path / 'run').as_uri()}#0/{wrong}/1")
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".frame .desk"))
    days = texts(browser, ".frame .desk tbody tr")
    assert days[0].startswith("day 0")
    assert days[-1].endswith("wrong")
    assert any(day.endswith("right") for day in days[:-1])
    for row in browser.find_elements(By.CSS_SELECTOR, ".frame .desk tbody tr"):
        _, answered, true, verdict = (cell.text for cell in row.find_elements(By.TAG_NAME, "td"))
        assert verdict == {True: "right", False: "wrong"}[answered == true] or not answered
    assert [entry for entry in contrasts() if entry[0] < READABLE] == []
    assert errors(browser) == []
