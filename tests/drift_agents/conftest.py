"""What tests of several folders use: Gymnasium's mountain car as a text environment, and pages of a made-up shop.

A browser. And a schedule of nine tiles that drifts after four episodes, with an experiment on it that takes a second.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.prompt.view import Recollection
from drift_agents.types import AgentClock, Experience, Outcome
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

TASK = "Find me dishwasher safe mugs with color: red, and price lower than 20.00 dollars"


class TextCar(gym.Wrapper):
    """States as JSON texts with six decimals, as `text=True` shows them."""

    def __init__(self, limit: int = 300, **physics: float) -> None:
        super().__init__(gym.wrappers.TimeLimit(MountainCarEnv(), limit))
        self.observation_space = gym.spaces.Text(128)
        self.set_knobs(**physics)

    def set_knobs(self, **physics: float) -> None:
        for name, value in physics.items():
            setattr(self.unwrapped, name, value)

    def put(self, x: float, v: float) -> None:
        self.unwrapped.state = (x, v)

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        observation, _ = self.env.reset(**kwargs)
        return self._text(observation), self._info(0.0)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        observation, reward, ended, cut, _ = self.env.step(int(action))
        return self._text(observation), reward, ended, cut, self._info(float(ended))

    @staticmethod
    def _text(observation: np.ndarray) -> str:
        return f'{{"position": {observation[0]:.6f}, "velocity": {observation[1]:.6f}}}'

    @staticmethod
    def _info(score: float) -> dict[str, Any]:
        return {"task": "Reach the flag.", "actions": ["0", "1", "2"], "score": score}


def drive_car(env: TextCar, steps: int, seed: int = 0, hold: int = 1) -> Iterator[Experience]:
    """Experiences of random driving; an action is held for `hold` steps."""
    rng = np.random.default_rng(seed)
    state, _ = env.reset(seed=seed)
    episode = 0
    for step in range(steps):
        if step % hold == 0:
            action = str(rng.integers(3))
        after, reward, ended, cut, info = env.step(action)
        now = AgentClock(episode, step)
        yield Experience(state, action, Outcome(after, info["score"], ended), float(reward), now)
        state = after
        if ended or cut:
            state, _ = env.reset()
            episode += 1


def step_car(env: TextCar, x: float, v: float, action: str) -> Experience:
    """One step from a given state."""
    env.reset(seed=0)
    env.put(x, v)
    after, reward, ended, _, info = env.step(action)
    state = f'{{"position": {x:.6f}, "velocity": {v:.6f}}}'
    return Experience(state, action, Outcome(after, info["score"], ended), float(reward), AgentClock())


def recall_experience(experience: Experience, last: int = 0, n: float = 1.0) -> Recollection:
    """The recollection of an experience, as a prompt shows it."""
    return Recollection(experience.state, experience.action, experience.outcome, n, last)


class ShopPages:
    """Pages of a small made-up shop, as states with their actions."""

    task = TASK

    def state(self, url: str, lines: list[str], task: str | None = TASK) -> str:
        shown = ["Instruction:", task, *lines] if task else lines
        return json.dumps({"html": "\n".join(shown), "url": f"http://127.0.0.1:3000/{url}"})

    def start(self, task: str = TASK) -> str:
        html = "\n".join(["WebShop", "Instruction:", task, "Search"])
        return json.dumps({"html": html, "url": "http://127.0.0.1:3000/<session_id>"})

    def results(
        self, listings: list[tuple[str, str, str]], task: str = TASK, page: int = 1, total: int | None = None
    ) -> tuple[str, tuple[str, ...]]:
        total = len(listings) if total is None else total
        tools = ["Back to Search", f"Page {page} (Total results: {total})"]
        tools += ["< Prev"] * (page > 1) + ["Next >"] * (page * 10 < total)
        lines = [*tools, *(text for listing in listings for text in listing)]
        labels = [tools[0], *tools[2:], *(asin for asin, _, _ in listings)]
        return self.state(f"search_results/<session_id>/mugs/{page}", lines, task), self.clicks(labels)

    def item(
        self,
        asin: str,
        title: str,
        price: str,
        groups: dict[str, list[str]],
        chosen: dict[str, str] | None = None,
        task: str = TASK,
        buy: str = "Buy Now",
        page: int = 1,
    ) -> tuple[str, tuple[str, ...]]:
        options = quote(json.dumps(chosen or {}), safe="")
        shown = [text for name, values in groups.items() for text in (name, *values)]
        lines = ["Back to Search", "< Prev", *shown, title, f"Price: {price}", "Rating: 4.0", "Sold by: Jo"]
        lines += ["Description", "Features", "Reviews", buy]
        labels = ["Back to Search", "< Prev", *(value for values in groups.values() for value in values)]
        labels += ["Description", "Features", "Reviews", *([buy] if buy != "Currently unavailable" else [])]
        return self.state(f"item_page/<session_id>/{asin}/mugs/{page}/{options}", lines, task), self.clicks(labels)

    def features(self, asin: str, bullets: list[str], task: str = TASK) -> tuple[str, tuple[str, ...]]:
        url = f"item_sub_page/<session_id>/{asin}/mugs/1/Features/%7B%7D"
        return self.state(url, ["Back to Search", "< Prev", *bullets], task), self.clicks(["Back to Search", "< Prev"])

    def ad(
        self, depth: int = 0, asin: str = "B01", task: str = TASK, labels: str = "ABC"
    ) -> tuple[str, tuple[str, ...]]:
        lines = [f"Advertisement {depth + 1}", "Press a button to continue.", *labels]
        return self.state(f"ad/<session_id>/{asin}/%7B%7D/{depth}", lines, task), self.clicks(list(labels))

    def confirm(self, asin: str = "B01", task: str = TASK) -> tuple[str, tuple[str, ...]]:
        lines = ["Back to Search", "Confirm your order", "Total: $9.0", "Place Order"]
        return self.state(f"confirm/<session_id>/{asin}/%7B%7D", lines, task), self.clicks([lines[0], lines[-1]])

    def done(self, asin: str, chosen: dict[str, str], score: float) -> Outcome:
        options = quote(json.dumps(chosen), safe="")
        lines = ["Thank you for shopping with us!", "Your score (min 0.0, max 1.0)", f"{score}"]
        return Outcome(self.state(f"done/<session_id>/{asin}/{options}", lines, None), score, True)

    def clicks(self, labels: list[str]) -> tuple[str, ...]:
        return tuple(f"click[{label.lower()}]" for label in labels)

    def recall(self, state: str, action: str, after: str | Outcome, n: float = 1.0, last: int = 0) -> Recollection:
        outcome = after if isinstance(after, Outcome) else Outcome(after, 0.0, False)
        return Recollection(state, action, outcome, n, last)


@pytest.fixture(name="TextCar")
def _text_car() -> type[TextCar]:
    return TextCar


@pytest.fixture(name="drive_car")
def _drive_car() -> Callable[..., Iterator[Experience]]:
    return drive_car


@pytest.fixture(name="step_car")
def _step_car() -> Callable[..., Experience]:
    return step_car


@pytest.fixture(name="recall_experience")
def _recall_experience() -> Callable[..., Recollection]:
    return recall_experience


@pytest.fixture
def shop() -> ShopPages:
    return ShopPages()


SCHEDULE = """\
version: 1
name: puddle
env: DriftFrozenLake-v0
clock: episode
visibility: explicit
base: {map: [SFF, HFF, HFG]}
drifts:
  - {name: turn, at: 4, set: {map: [SHH, FFF, FFG]}}
"""


@pytest.fixture(scope="session")
def puddle() -> str:
    """The schedule as text."""
    return SCHEDULE


@pytest.fixture
def schedule_file(tmp_path: Path) -> Path:
    path = tmp_path / "puddle.yaml"
    path.write_text(SCHEDULE, encoding="utf-8")
    return path


@pytest.fixture
def data(schedule_file: Path) -> dict[str, Any]:
    """An experiment on it as plain data."""
    return {
        "name": "tiny",
        "schedules": [str(schedule_file)],
        "agents": {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"},
        "references": ["oracle_realign", "oracle_reset", "clairvoyant"],
        "seeds": 2,
        "rounds": 4,
    }


FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--window-size=1400,1200",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

CONTRAST = """
const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = element => {
  for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const found = [];
for (const element of document.body.querySelectorAll('*')) {
  const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  if (!own || element.closest('svg, script, option, noscript') || !element.getClientRects().length) continue;
  const style = getComputedStyle(element), a = light(parse(style.color)), b = light(behind(element));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  found.push([ratio, `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`]);
}
return found;
"""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """Chromium with a fresh profile, which connects to this machine alone."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver):
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed: apt-get install chromium chromium-driver")
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(binary)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SE_OFFLINE", "true")
        patch.setenv("SE_AVOID_STATS", "true")
        found = webdriver.Chrome(options=options, service=Service(str(driver)))
        found.set_page_load_timeout(60)
        found.set_script_timeout(30)
        yield found
        found.quit()


@pytest.fixture
def contrasts(browser: WebDriver) -> Callable[[], list[tuple[float, str]]]:
    """Returns the contrast ratio, from 1 to 21, of every text that is shown, with the text."""
    return lambda: [(ratio, text) for ratio, text in browser.execute_script(CONTRAST)]
