"""Reports: every figure recomputed by hand from a log of a few lines."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.figures import Player, estimate, group, mean_of, phases
from drift_agents.experiment.log import FIELDS, read_rows, to_line
from drift_agents.experiment.paper import backbones, paper_figures
from drift_agents.experiment.report import make_report, write_report
from drift_agents.experiment.sheets import Sheet, to_markdown
from rich.console import Console

from drift_envs.metrics import Estimate, bootstrap

ROUNDS = 6


def row(verifier: str, seed: int, episode: int, score: float, **more: Any) -> dict[str, Any]:
    policy = "clairvoyant" if verifier == "clairvoyant" else "planner"
    memory = "none" if policy == "clairvoyant" else "vanilla"
    values: dict[str, Any] = dict.fromkeys(FIELDS, 0)
    values.update(env="DriftFrozenLake-v0", schedule="frozen_lake/implicit", schedule_hash="0", controller="direct")
    values.update(team="solo", memory=memory, verifier="none" if policy == "clairvoyant" else verifier, policy=policy)
    values.update(seed=seed, episode=episode, round=episode % ROUNDS + 1, tick=episode, steps=10)
    values.update(phase="source" if episode < ROUNDS else "reversal", score=score, regret=1.0 - score)
    values.update(success=score == 1.0, memory_truth_rate=0.5)
    return {**values, **more}


# Ten percent steps of score: what the plain agent, GLOVE and the reset get in the two phases.
PLAIN = {0: [1.0] * 6 + [0.5] * 6, 1: [1.0] * 6 + [0.0] * 6}
GLOVE = {0: [1.0] * 6 + [0.5] + [1.0] * 5, 1: [1.0] * 6 + [0.0, 0.0] + [1.0] * 4}
RESET = {0: [1.0] * 12, 1: [1.0] * 12}


def log_rows() -> list[dict[str, Any]]:
    rows = []
    for verifier, scores in (("none", PLAIN), ("glove", GLOVE), ("oracle_reset", RESET), ("clairvoyant", RESET)):
        for seed, values in scores.items():
            for episode, score in enumerate(values):
                probing = verifier == "glove" and episode == 6
                more = {"probe_steps": 4 + seed, "probe_resets": 1, "realignments": 1, "false_realignments": seed}
                rows.append(row(verifier, seed, episode, score, **(more if probing else {})))
    return rows


def manifest(visibility: str = "implicit") -> dict[str, Any]:
    return {
        "name": "by-hand",
        "config_hash": "abc",
        "versions": {"drift-envs": "0"},
        "experiment": {"name": "by-hand", "about": "a log of a few lines", "seeds": [0, 1]},
        "schedules": {
            "frozen_lake/implicit": {"env": "DriftFrozenLake-v0", "visibility": visibility, "hash": "0", "episodes": 12}
        },
        "players": [
            {
                "schedule": "frozen_lake/implicit",
                "memory": "none" if verifier == "clairvoyant" else "vanilla",
                "verifier": "none" if verifier == "clairvoyant" else verifier,
                "policy": "clairvoyant" if verifier == "clairvoyant" else "planner",
                "reference": verifier if verifier in ("oracle_reset", "clairvoyant") else None,
                "supervision": "privileged" if verifier in ("oracle_reset", "clairvoyant") else "none",
            }
            for verifier in ("none", "glove", "oracle_reset", "clairvoyant")
        ],
    }


@pytest.fixture
def sheets() -> dict[str, Sheet]:
    ((heading, found),) = make_report(manifest(), log_rows())
    assert heading == ("frozen_lake/implicit (DriftFrozenLake-v0, implicit drift): score in percent, 2 instances")
    return {sheet.title: sheet for sheet in found}


def cells(sheet: Sheet, name: str) -> dict[str, str]:
    (found,) = [cells for cells, _ in sheet.rows if cells[0].strip() == name]
    return dict(zip((column.replace("\n", " ") for column in sheet.columns), found, strict=True))


def test_scores_by_phase(sheets: dict[str, Sheet]) -> None:
    table = sheets["Score in percent, by phase"]
    assert [row[0] for row, _ in table.rows] == ["Vanilla", "  + GLOVE", "  oracle reset", "Clairvoyant"]
    plain, glove = cells(table, "Vanilla"), cells(table, "+ GLOVE")
    assert plain["→ reversal"] == "25 [0, 50]"  # the means of the instances are 50 and 0
    assert glove["→ reversal"] == "79 [67, 92]"  # 5.5 / 6 and 4 / 6
    assert plain["source"] == "100 (all 2)"  # two runs that differ later
    assert glove["source"] == "100 (all 2)"
    assert cells(table, "Clairvoyant")["→ reversal"] == "100 (n = 1)"
    assert plain["paper, GPT-4o"] == "47.5 → 50"
    assert glove["paper, GPT-4o"] == "35 → 97.5"
    assert cells(table, "oracle reset")["paper, GPT-4o"] == "-"


def test_explicit_drifts_report_success_and_never_score() -> None:
    ((heading, found),) = make_report(manifest("explicit"), log_rows())
    assert "success in percent" in heading
    assert cells(found[0], "Vanilla")["→ reversal"] == "0 (all 2)"  # two different runs, none of them successful
    assert cells(found[0], "+ GLOVE")["→ reversal"] == "75 [67, 83]"


def test_after_the_drift(sheets: dict[str, Sheet]) -> None:
    table = sheets["After reversal"]
    glove = cells(table, "+ GLOVE")
    assert glove["rounds 1-3"] == "58 [33, 83]"  # 2.5 / 3 and 1 / 3
    assert glove["rounds 4-6"] == "100 (all 2)"
    assert glove["dynamic regret"] == "1.2 [0.5, 2.0]"
    # Windows of five: .9 and 1 for the first instance; .6 and .8 for the second, which never comes back.
    assert glove["recovered after rounds"] == "> 6, 1 of 2"
    assert cells(table, "Clairvoyant")["recovered after rounds"] == "0, 2 of 2"
    assert glove["memory true at the end, %"] == "50 (all 2)"


def test_paired_differences(sheets: dict[str, Sheet]) -> None:
    table = sheets["Paired differences in points"]
    # 91.7 - 50 and 66.7 - 0, instance by instance
    assert cells(table, "GLOVE - plain, Vanilla") == {
        "": "GLOVE - plain, Vanilla",
        "source": "0 (all 2)",
        "reversal": "+54 [+42, +67]*",
    }
    # (79.2 - 25) / (100 - 25)
    assert cells(table, "Recovery ratio, Vanilla")["reversal"].startswith("0.72 [")


def test_costs(sheets: dict[str, Sheet]) -> None:
    glove = cells(sheets["Costs of the whole run, mean of an instance"], "+ GLOVE")
    assert glove == {
        "method": "  + GLOVE",
        "steps": "120",
        "probe steps": "4.5",
        "a calm round": "0",
        "a drift": "4.5",
        "probe resets": "1",
        "total steps": "124",  # 124.5, to even
        "realign- ments": "1",
        "false ones": "0.5",
        "super- vision": "none",
    }


def test_without_an_optimum_nothing_is_claimed() -> None:
    rows = [{**row, "regret": None, "memory_truth_rate": None, "false_realignments": None} for row in log_rows()]
    ((_, found),) = make_report(manifest(), rows)
    details = found[1]
    assert details.columns == ("method", "rounds 1-3", "rounds 4-6")
    assert "false\nones" not in found[-1].columns or cells(found[-1], "+ GLOVE")["false ones"] == "-"


def test_more_than_three_phases_go_on_in_the_next_table() -> None:
    rows = [row("none", seed, episode, 1.0, phase=f"p{episode // 2}") for seed in (0, 1) for episode in range(10)]
    assert phases(group(rows)["frozen_lake/implicit"]) == ["p0", "p1", "p2", "p3", "p4"]
    ((_, found),) = make_report({**manifest(), "players": []}, rows)
    assert [sheet.columns[1:4] for sheet in found[:2]] == [("p0", "→ p1", "→ p2"), ("→ p3", "→ p4")]


def test_grouping_does_not_depend_on_the_order_of_lines() -> None:
    rows = log_rows()
    shuffled = sorted(rows, key=lambda row: (row["verifier"] == "none", -row["episode"]))
    first, second = (group(some)["frozen_lake/implicit"] for some in (rows, shuffled))
    assert {run.player: run for run in first} == {run.player: run for run in second}


def test_an_estimate_is_that_of_the_metrics_but_counts_runs() -> None:
    values = [0.0, 1.0, 1.0, 0.5]
    assert estimate(values) == bootstrap(values)
    assert estimate([0.5, 0.5]) == Estimate(0.5, 0.5, 0.5, 2)
    assert estimate([0.5, 0.5], one_run=True) == Estimate(0.5, 0.5, 0.5, 1)
    assert estimate([float("nan")]).n == 0
    assert mean_of("memory_truth_rate")([row("none", 0, 0, 1.0), row("none", 0, 1, 1.0, memory_truth_rate=None)]) == 0.5


def test_the_report_is_printed_and_written(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest()))
    (tmp_path / "episodes.jsonl").write_text("".join(to_line(row) + "\n" for row in log_rows()))
    console = Console(file=StringIO(), width=100)
    path = write_report(tmp_path, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    text = path.read_text()
    assert max(map(len, printed.splitlines())) <= 100
    for figure in ("79 [67, 92]", "35 → 97.5", "+54 [+42, +67]*"):
        assert figure in printed
        assert figure.replace("*", "*") in text
    assert "A log of a few lines." in text
    assert "Configuration (hash abc)" in text
    again = write_report(tmp_path).read_text()
    assert again == text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("run.json", None, "holds no run, run.json is missing"),
        ("run.json", "{", "cannot be read"),
        ("run.json", "[]", "does not describe a run"),
        ("episodes.jsonl", None, "the run is not finished, episodes.jsonl is missing"),
        ("episodes.jsonl", "{}\n", "episodes.jsonl:1: not a line of this version of drift-envs: env, schedule"),
        ("episodes.jsonl", "nonsense\n", "episodes.jsonl:1: not a line of a run"),
        ("episodes.jsonl", "torn", "episodes.jsonl:1: the last line is torn off"),
        ("episodes.jsonl", b"\xff\n", "episodes.jsonl: cannot be read: is not UTF-8"),
        ("episodes.jsonl", to_line(row("none", 0, 0, 1.0, steps="ten")) + "\n", "`steps` should be a whole number"),
        ("episodes.jsonl", to_line(row("none", 0, 0, 1.0)).replace("1.0,", "NaN,", 1) + "\n", "NaN is not JSON"),
    ],
)
def test_what_cannot_be_reported(tmp_path: Path, name: str, content: Any, expected: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest()))
    (tmp_path / "episodes.jsonl").write_text("")
    if content is None:
        (tmp_path / name).unlink()
    elif isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        write_report(tmp_path)


def test_lines_survive_the_way_to_the_file_and_back(tmp_path: Path) -> None:
    rows = [row("none", 0, 0, 0.1 + 0.2, phase="Überlauf #2")]
    path = tmp_path / "episodes.jsonl"
    path.write_text("".join(to_line(row) + "\n" for row in rows))
    assert read_rows(path) == rows


def test_markdown_escapes_what_would_break_a_table() -> None:
    sheet = Sheet("t", ("a", "b"))
    sheet.add("x|y", "1")
    assert "x\\|y" in to_markdown(sheet)


def test_the_papers_figures() -> None:
    assert backbones()[:3] == ("GPT-4o", "Grok-3", "DeepSeek-V3.2")
    assert len(backbones()) == 7
    assert paper_figures("frozen_lake/explicit", Player("none", "none", "planner")) == (0, 5, 0)
    assert paper_figures("mountain_car/explicit", Player("memory_bank", "glove", "planner")) == (95, 100, 100)
    assert paper_figures("webshop/implicit", Player("voyager", "glove", "x"), "Llama3.1-8B") == (15, 42.5)
    assert paper_figures("frozen_lake/explicit", Player("vanilla", "overwrite", "planner")) is None
    assert paper_figures("frozen_lake/tides", Player("vanilla", "none", "planner")) is None


def test_every_field_is_documented() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "experiments.md").read_text("utf-8")
    table = text.split("## A line")[1].split("##")[0]
    firsts = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = [name for first in firsts for name in re.findall("`([a-z_]+)`", first)]
    assert sorted(documented) == sorted(FIELDS)
