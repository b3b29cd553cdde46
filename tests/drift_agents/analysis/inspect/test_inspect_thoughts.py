"""The page shows strategies, the member of a team that played, and the action without a strategy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.inspect.page import write_page
from drift_agents.experiment.folder import TRACES
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.trace import EpisodeTrace, read_trace
from drift_agents.prompt.lessons import read_view
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

LINE = """\
version: 1
name: line
env: DriftFrozenLake-v0
clock: episode
visibility: explicit
base: {map: [SFFG]}
drifts: []
"""
MEMBERS = [
    {"name": name, "policy": {"planner": {"frozen_lake": {"risk": risk}}}}
    for name, risk in (("ann", 0.2), ("bob", 0.9))
]


@pytest.fixture(scope="module")
def thinking_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two teams on a straight lake: one where one member plays, one where all decide together."""
    folder = tmp_path_factory.mktemp("thinking")
    (folder / "line.yaml").write_text(LINE, encoding="utf-8")
    experiment = load_experiment(
        {
            "name": "thinking",
            "schedules": [str(folder / "line.yaml")],
            "agents": {
                "memory": {"adamem": {"pool": "all"}},
                "policy": "planner",
                "controller": "adamem",
                "team": [{"router": {"members": MEMBERS}}, {"judge": {"members": MEMBERS}}],
            },
            "seeds": 1,
            "rounds": 2,
            "train": {"episodes": 3, "where": "same"},
        }
    )
    run_experiment(experiment, folder / "run", trace="all", jobs=1)
    return folder / "run"


def episodes_of(run: Path, team: str) -> list[EpisodeTrace]:
    (path,) = (run / TRACES).glob(f"*{team}*.jsonl.gz")
    return list(read_trace(path))


def test_a_file_holds_strategies_and_who_played(thinking_run: Path) -> None:
    by_router, by_judge = episodes_of(thinking_run, "router"), episodes_of(thinking_run, "judge")
    assert [episode.member for episode in by_router[:6]] == ["ann", "bob"] * 3
    assert {episode.member for episode in by_router[6:]} <= {"ann", "bob"}
    assert {episode.member for episode in by_judge} == {"ann", ""}, "one trains, all play the test"
    steps = [step for episode in by_router for step in episode.steps]
    made = [step for step in steps if step.thought is not None]
    assert made
    assert all(step.thought is not None and step.strategy == step.thought.strategy for step in made)
    assert any(step.strategy is not None and step.thought is None for step in steps), "a strategy stays in force"
    lessons = [(step.strategy, read_view(step.prompt).lessons) for step in steps if step.strategy is not None]
    assert all(strategy in read for strategy, read in lessons)
    assert steps[0].strategy is None


def facts(browser: WebDriver) -> dict[str, str]:
    found = browser.find_elements(By.CSS_SELECTOR, ".thought")
    names = [e.text for fact in found for e in fact.find_elements(By.TAG_NAME, "dt")]
    return dict(zip(names, [e.text for fact in found for e in fact.find_elements(By.TAG_NAME, "dd")], strict=True))


def test_the_page_tells_them(
    browser: WebDriver, thinking_run: Path, tmp_path: Path, contrasts: Callable[[], list[tuple[float, str]]]
) -> None:
    address = write_page(thinking_run, tmp_path / "page.html").as_uri()
    browser.get("about:blank")
    browser.get(address)
    WebDriverWait(browser, 20).until(
        lambda b: b.execute_script("return document.documentElement.dataset.ready") == "yes"
    )
    cells: list[str] = browser.execute_script("return index.cells.map(cell => cell.team)")
    for number, team in enumerate(cells):
        kept = episodes_of(thinking_run, team.partition("(")[0])
        shown: dict[str, Any] = {}
        for episode in kept:
            made = [at for at, step in enumerate(episode.steps) if step.thought and step.thought.baseline is not None]
            if made and stays(episode, made[0]):
                shown = {"episode": episode, "at": made[0]}
        episode, at = shown["episode"], shown["at"]
        browser.get("about:blank")
        browser.get(f"{address}#{number}/{episode.episode}/{at}")
        WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".thought"))
        thought = episode.steps[at].thought
        shown = facts(browser)
        assert shown["refreshed"] == "yes, at this step"
        assert shown["action without it"] == thought.baseline
        assert shown["in force"].split() == thought.strategy.split()
        who = browser.find_element(By.CSS_SELECTOR, ".member").text
        assert who == (f"played by {episode.member}" if episode.member else "all members decide together")
        how = browser.find_element(By.CSS_SELECTOR, "details.made")
        how.find_element(By.TAG_NAME, "summary").click()
        assert thought.question.split() == how.find_elements(By.TAG_NAME, "pre")[1].text.split()
        assert [entry for entry in contrasts() if entry[0] < 4.5] == [], "WCAG 2, level AA"
        browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ARROW_RIGHT)
        assert facts(browser)["refreshed"] == "no, made earlier"
        assert "action without it" not in facts(browser)
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def stays(episode: EpisodeTrace, at: int) -> bool:
    """Whether the strategy that is made at this step is in force at the next one."""
    after = episode.steps[at + 1 : at + 2]
    return bool(after) and after[0].thought is None and after[0].strategy is not None
