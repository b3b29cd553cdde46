"""The report as HTML, and the curve in it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from drift_agents.analysis.html.report import BELIEVED, CONFLICTS, bundle_chart, list_curves, to_html, write_html
from drift_agents.analysis.plots import series
from drift_agents.analysis.rows import Player, group, part_of, read_run
from drift_agents.analysis.table import Table
from drift_agents.cli.app import main
from drift_agents.errors import MissingDependencyError
from drift_agents.experiment.folder import EPISODES
from drift_agents.experiment.logs import read_rows
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

pytest.importorskip("vl_convert", reason="needs the extra `agents`")
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def drawn(traced_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run with its report and curves."""
    folder = tmp_path_factory.mktemp("drawn") / "run"
    shutil.copytree(traced_run, folder)
    write_html(folder)
    return folder


def test_equal_runs_give_one_equal_file_without_requests(drawn: Path) -> None:
    before = (drawn / "report.html").read_text("utf-8")
    write_html(drawn)
    assert (drawn / "report.html").read_text("utf-8") == before
    assert len(before.encode()) < 2_000_000
    assert not re.search(r"(src|href)=\"(?!data:|inspect.html)", before.split("<script>")[0])


def test_curves_are_means_over_instances(traced_run: Path) -> None:
    rows = read_rows(traced_run / EPISODES)
    run = next(run for run in group(rows)["puddle"] if run.player == Player("vanilla", "glove", "planner"))
    scores = np.array([[row["score"] for row in instance] for instance in run.rows])
    smooth = series(run, "score").middle
    assert smooth[3] == pytest.approx(100 * scores[:, :4].mean())
    assert smooth[4] == pytest.approx(100 * scores[:, 4].mean()), "a new phase begins: nothing of the old one"


def test_conflicts_are_counts_of_each_episode_without_an_average_over_episodes(traced_run: Path) -> None:
    manifest, rows = read_run(traced_run)
    parts = [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]
    curves = {(one["schedule"], one["memory"], one["measure"]): one for one in list_curves(parts)}
    assert {
        line["name"] for line in curves["puddle", "Vanilla", "success in percent, mean of up to 5 episodes"]["lines"]
    } >= {"plain", "GLOVE", "clairvoyant"}
    conflicts = curves["puddle", "Vanilla", CONFLICTS]
    assert "clairvoyant" not in {line["name"] for line in conflicts["lines"]}, "it has no memory"
    (line,) = [line for line in conflicts["lines"] if line["name"] == "GLOVE"]
    counts = [
        [row["surprises"] for row in rows if (row["schedule"], row["memory"], row["verifier"], row["seed"]) == key]
        for key in {("puddle", "vanilla", "glove", row["seed"]) for row in rows}
    ]
    assert line["mean"] == pytest.approx(np.mean(counts, axis=0), abs=0.006)
    assert max(line["mean"]) > 0


def test_several_memories_have_a_curve_together(traced_run: Path) -> None:
    manifest, rows = read_run(traced_run)
    rows = [row for row in rows if row["schedule"] == "puddle"]
    rows = [row for row in rows if row["memory"] == "vanilla" or row["policy"] == "clairvoyant"]
    others = [{**row, "memory": "voyager", "success": False} for row in rows if row["memory"] == "vanilla"]
    ((schedule, runs),) = group([*rows, *others]).items()
    curves = list_curves([part_of(manifest, schedule, runs)])
    (scores,) = [one for one in curves if one["memory"] == "all agents (4)" and "success" in one["measure"]]
    names = [line["name"] for line in scores["lines"]]
    assert names == ["Vanilla", "Vanilla + GLOVE", "Voyager", "Voyager + GLOVE", "clairvoyant"]
    by_name = {line["name"]: line for line in scores["lines"]}
    assert by_name["Vanilla"]["colour"] == by_name["Vanilla + GLOVE"]["colour"] != by_name["Voyager"]["colour"]
    assert by_name["Vanilla"]["dash"] != by_name["Vanilla + GLOVE"]["dash"]
    (alone,) = [one for one in curves if one["memory"] == "Vanilla" and "success" in one["measure"]]
    (plain,) = [line for line in alone["lines"] if line["name"] == "plain"]
    assert by_name["Vanilla"]["mean"] == plain["mean"]
    assert by_name["Voyager"]["mean"] == [0.0] * len(plain["mean"])
    ((schedule, runs),) = group(rows).items()
    only = {one["memory"] for one in list_curves([part_of(manifest, schedule, runs)])}
    assert only == {"Vanilla"}, "one memory has no curve together"


def test_many_agents_are_drawn_by_memory_first_then_by_verifier(traced_run: Path) -> None:
    """So that a memory is seen at once alone and with GLOVE."""
    manifest, rows = read_run(traced_run)
    rows = [row for row in rows if row["schedule"] == "puddle" and row["memory"] == "vanilla"]
    names = ("vanilla", "voyager", "memory_bank", "synapse", "adamem")
    ((schedule, runs),) = group([{**row, "memory": name} for name in names for row in rows]).items()
    curves = list_curves([part_of({**manifest, "players": []}, schedule, runs)])
    titles = list(dict.fromkeys(one["memory"] for one in curves))
    assert titles[0] == "Vanilla"
    assert titles[-2:] == ["all memories, plain", "all memories, GLOVE"]
    assert {line["name"] for line in curves[0]["lines"]} == {"plain", "GLOVE"}
    assert {line["name"] for line in curves[-1]["lines"]} == {
        f"{name} + GLOVE" for name in ("Vanilla", "Voyager", "MemoryBank", "Synapse", "AdaMEM")
    }


def test_agents_are_drawn_without_references_where_all_are_too_many(traced_run: Path) -> None:
    manifest, rows = read_run(traced_run)
    rows = [row for row in rows if row["schedule"] == "puddle" and row["memory"] == "vanilla"]
    plain = [row for row in rows if row["verifier"] == "none"]
    rows += [{**row, "verifier": name} for name in ("oracle_reset", "oracle_realign", "oracle_truth") for row in plain]
    ((schedule, runs),) = group([*rows, *({**row, "memory": "mine"} for row in rows)]).items()
    players = [
        {"schedule": schedule, **run.player._asdict(), "reference": run.player.verifier.startswith("oracle_")}
        for run in runs
    ]
    curve = list_curves([part_of({**manifest, "players": players}, schedule, runs)])[0]
    assert curve["memory"] == "all agents but references (4)"
    assert [line["name"] for line in curve["lines"]] == ["Vanilla", "Vanilla + GLOVE", "mine", "mine + GLOVE"]


def test_of_many_drifts_all_lines_are_drawn_and_some_names(browser: WebDriver, drawn: Path, tmp_path: Path) -> None:
    drifts = [[1 + 0.1 * place, f"phase-{place}"] for place in range(30)]
    text = (drawn / "report.html").read_text("utf-8")
    text = re.sub(r'"drifts":\[\[.*?\]\]', f'"drifts":{json.dumps(drifts)}', text)
    (tmp_path / "report.html").write_text(text, "utf-8")
    browser.get((tmp_path / "report.html").as_uri())
    WebDriverWait(browser, 60).until(lambda _: "phase-0" in chart_text(browser))
    assert re.findall(r"phase-\d+", chart_text(browser)) == [f"phase-{place}" for place in range(0, 30, 3)]
    said = browser.find_element(By.ID, "drifts").text
    assert said == "Dashed lines are the 30 drifts; one in 3 has its name."
    lines = browser.find_elements(By.CSS_SELECTOR, "#curve .mark-rule.layer_2_marks line")
    assert len(lines) == 30
    browser.get((drawn / "report.html").as_uri())
    WebDriverWait(browser, 60).until(lambda _: chart_text(browser))
    assert browser.find_element(By.ID, "drifts").get_attribute("textContent") == ""


def test_agents_of_one_colour_differ_in_dash_and_equal_lines_in_width(traced_run: Path) -> None:
    """Of memories that are not ours all are purple; what is drawn is the mean."""
    manifest, rows = read_run(traced_run)
    rows = [row for row in rows if row["schedule"] == "puddle" and row["memory"] == "vanilla"]
    names = [f"store({name})" for name in "abcdefgh"]
    plain = [row for row in rows if row["verifier"] == "none"]
    ((schedule, runs),) = group([{**row, "memory": name} for name in names for row in plain]).items()
    curve = list_curves([part_of({**manifest, "players": []}, schedule, runs)])[0]
    assert len(curve["lines"]) == len(names)
    assert len({(line["colour"], line["dash"]) for line in curve["lines"]}) == len(names)
    assert len({tuple(line["mean"]) for line in curve["lines"]}) == 1
    widths = [line["width"] for line in curve["lines"]]
    assert widths == sorted(set(widths), reverse=True), "all are equal: each is narrower than those below it"
    assert widths[-1] == 2


def test_policies_have_lines_of_their_own(traced_run: Path) -> None:
    manifest, rows = read_run(traced_run)
    rows = [row for row in rows if row["schedule"] == "puddle"]
    others = [{**row, "policy": "random"} for row in rows if row["policy"] == "planner"]
    ((schedule, runs),) = group([*rows, *others]).items()
    for curve in list_curves([part_of({**manifest, "players": []}, schedule, runs)]):
        names = [line["name"] for line in curve["lines"]]
        assert len(set(names)) == len(names)


def test_what_is_still_believed_has_a_curve_from_the_first_drift_on(traced_run: Path) -> None:
    manifest, rows = read_run(traced_run)
    (part,) = [part_of(manifest, "puddle", runs) for schedule, runs in group(rows).items() if schedule == "puddle"]
    (curve,) = [one for one in list_curves([part]) if (one["memory"], one["measure"]) == ("Vanilla", BELIEVED)]
    drift = curve["drifts"][0][0]
    for line in curve["lines"]:
        assert line["mean"][:drift] == [None] * drift
        assert all(0.0 <= value <= 100.0 for value in line["mean"][drift:] if value is not None)
    means = {line["name"]: line["mean"][-1] for line in curve["lines"]}
    assert means["plain"] > means["GLOVE"]


def test_the_page_in_a_browser(browser: WebDriver, drawn: Path) -> None:
    browser.get_log("browser")
    browser.get((drawn / "report.html").as_uri())
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert browser.find_element(By.TAG_NAME, "h1").text == "puddle"
    wait = WebDriverWait(browser, 60)

    def lines() -> dict[str, float]:
        """The opacity of each line, by what it says to a screen reader."""
        found = browser.find_elements(By.CSS_SELECTOR, "#curve .mark-line path[aria-label]")
        return {
            re.findall("line: ([^;]+)", one.get_attribute("aria-label") or "")[0]: float(
                one.value_of_css_property("opacity")
            )
            for one in found
        }

    wait.until(lambda _: lines())
    assert set(lines().values()) == {1.0}
    legend = browser.find_elements(By.CSS_SELECTOR, "#curve .role-legend-label text")
    (glove,) = [text for text in legend if text.get_attribute("textContent") == "Vanilla + GLOVE"]
    ActionChains(browser).click(glove).perform()
    wait.until(lambda _: lines()["Vanilla + GLOVE"] == 0.0)
    assert lines()["Vanilla"] == 1.0
    chart = browser.find_element(By.CSS_SELECTOR, "#curve svg")
    ActionChains(browser).move_to_element(chart).perform()
    shown = wait.until(lambda _: browser.find_element(By.CSS_SELECTOR, "#vg-tooltip-element.visible").text)
    assert "episode" in shown
    assert "Vanilla" in shown
    Select(browser.find_element(By.ID, "measure")).select_by_visible_text(CONFLICTS)
    wait.until(lambda _: CONFLICTS in chart_text(browser))
    assert "clairvoyant" not in chart_text(browser)
    Select(browser.find_element(By.ID, "schedule")).select_by_visible_text("mountain_car/reversed")
    wait.until(lambda _: "reversed" in chart_text(browser))
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    browser.find_element(By.XPATH, "//summary[contains(., 'What was played')]").click()
    (row,) = [row for row in browser.find_elements(By.TAG_NAME, "tr") if "puddle: vanilla, glove" in row.text]
    row.find_element(By.LINK_TEXT, "0").click()
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".pane .frame"))
    assert browser.find_element(By.CSS_SELECTOR, ".pane h3").text == "vanilla + glove, seed 0, episode 4"


def chart_text(browser: WebDriver) -> str:
    return browser.find_element(By.ID, "curve").get_attribute("textContent") or ""


POLICY = """
const seen = [];
document.addEventListener('securitypolicyviolation', event => seen.push(event.violatedDirective));
const style = document.createElement('style');
style.textContent = 'body { margin-top: 99px }';
document.head.append(style);
document.body.insertAdjacentHTML('beforeend', '<p id="odd" style="color: red">x</p><img src="http://127.0.0.1:9/x.png">');
const done = arguments[0];
setTimeout(() => done([seen.sort(), getComputedStyle(document.body).marginTop]), 300);
"""


def test_no_inline_code_but_the_pages_own_is_allowed(browser: WebDriver, drawn: Path) -> None:
    for name in ("report.html", "inspect.html"):
        text = (drawn / name).read_text("utf-8")
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        browser.get((drawn / name).as_uri())
        seen, margin = browser.execute_async_script(POLICY)
        assert {"style-src-elem", "style-src-attr", "img-src"} <= set(seen)
        assert margin != "99px"
        browser.get_log("browser")  # the violations above


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_the_page_is_legible_in_both_schemes_and_on_a_phone(
    browser: WebDriver, contrasts: Callable[[], list[tuple[float, str]]], drawn: Path, scheme: str, width: int
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get((drawn / "report.html").as_uri())
        wait = WebDriverWait(browser, 60)
        browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
        ratio, where = min(contrasts())
        assert ratio >= 4.5, where
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") is (scheme == "light")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        figure = "return document.querySelector('tbody td:nth-child(2)').getBoundingClientRect().right"
        assert browser.execute_script(figure) <= width, "a figure is visible without scrolling sideways"
        number = "return document.querySelector('#summary .first').getBoundingClientRect().bottom"
        assert browser.execute_script(number) < 800, "the first sentence is on the first screen"
        wait.until(lambda b: b.find_elements(By.CSS_SELECTOR, "#curve svg"))
        assert browser.find_element(By.CSS_SELECTOR, "#curve svg").size["width"] <= width
        lines = browser.execute_script(
            "const list = document.querySelector('#summary'), style = getComputedStyle(list);"
            "return list.clientHeight / parseFloat(style.lineHeight)"
        )
        assert width < 500 or lines <= 11, "ten lines and the padding"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_command(traced_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(traced_run, tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "--html"]) == 0
    assert capsys.readouterr().out.endswith(f"links to the steps: {tmp_path / 'run' / 'report.html'}\n")


def test_cells_are_no_code() -> None:
    table = Table("<i>", ("a\nb", "<u>"))
    table.add("<b>", "1", reference=True)
    text = to_html(table)
    assert "<b>" not in text
    assert "<i>" not in text
    assert "<u>" not in text
    assert '<tr class="reference">' in text


def test_without_vl_convert_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match=re.escape('run `pip install ".[agents]"`')):
        bundle_chart("")


def test_first_cells_can_break_at_slashes_and_colons() -> None:
    table = Table("A", ("method", "score"))
    table.add("lake/<b>:x", "1/2")
    assert "<td>lake/<wbr>&lt;b&gt;:<wbr>x</td><td>1/2</td>" in to_html(table)
