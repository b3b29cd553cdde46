"""A small traced run, its page, and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drift_agents.analysis.inspect.page import write_page
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

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
def traced_run(puddle: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run that kept all of its steps; shared, so it is not written to."""
    folder = tmp_path_factory.mktemp("traced")
    schedule = folder / "puddle.yaml"
    schedule.write_text(puddle, encoding="utf-8")
    experiment = load_experiment(
        {
            "name": "puddle",
            "about": "a lake of nine tiles & a <car>",
            "schedules": [str(schedule), "mountain_car/reversed"],
            "agents": {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"},
            "references": ["clairvoyant"],
            "seeds": 2,
            "rounds": 4,
            "worlds": {"mountain_car/reversed": {"rounds": 1}},
        }
    )
    run_experiment(experiment, folder / "run", trace="all")
    return folder / "run"


@pytest.fixture(scope="session")
def page(traced_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of its page."""
    return write_page(traced_run, tmp_path_factory.mktemp("page") / "page.html").as_uri()


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
