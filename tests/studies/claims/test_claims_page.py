"""The claims of the file, the experiments that are shipped, and the page about both."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import to_line
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.worlds import read_schedule

from studies.__main__ import main
from studies.claims.decisions import NOT_PLAYED, decide, judge
from studies.claims.evidence import HELD, REFUTED, ClaimRun
from studies.claims.page import write_claims
from studies.claims.registry import CLAIMS

CAR = "mountain_car/reversed"
MEMORIES = ("vanilla", "memory_bank", "voyager", "generative_agents")


def claims_of_the_file() -> dict[int, tuple[str, ...]]:
    text = (Path(__file__).parents[3] / "docs" / "claims.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", text, re.MULTILINE)
    return {int(number): tuple(re.findall("`([^`]+)`", experiments)) for number, experiments in rows}


def test_every_claim_of_the_file_has_a_function_and_its_experiments() -> None:
    assert {number: claim.experiments for number, claim in CLAIMS.items()} == claims_of_the_file()
    assert len({claim.checks for claim in CLAIMS.values()}) == len(CLAIMS)


def test_the_reading_of_a_claim_is_told() -> None:
    assert all(len(claim.reading) > 40 for claim in CLAIMS.values())


@pytest.mark.parametrize("name", sorted({name for claim in CLAIMS.values() for name in claim.experiments}))
def test_a_shipped_experiment_has_everything_that_its_claims_ask_for(name: str, make_log: Any) -> None:
    log, file = make_log(name, 1), load_experiment(name)
    log.seeds = file.seeds[:1]
    played = set()
    for cell in plan_cells(file):
        way = "/".join(cell.labels)
        if (cell.place, way) in played:
            continue
        played.add((cell.place, way))
        names = ["source", *(drift.name for drift in read_schedule(cell.schedule).drifts)]
        value = None if cell.change is None else cell.change.value
        log.play(cell.schedule, way, dict.fromkeys(names, 5), value=value)
    for number, result in judge(ClaimRun(log.manifest, log.rows)).items():
        assert (number, result.missing) == (number, "")
        assert result.checks


def cars(log: Any, glove: int = 20, memories: Any = MEMORIES) -> Any:
    for memory in memories:
        log.play(CAR, f"{memory}/glove", {"source": 20, "drift-1": glove})
        log.play(CAR, f"{memory}/oracle_reset", {"source": 20, "drift-1": 20})
    return log


def write(log: Any, folder: Path) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(log.manifest), "utf-8")
    (folder / "episodes.jsonl").write_text("".join(f"{to_line(row)}\n" for row in log.rows), "utf-8")
    return folder


def verdict(log: Any, number: int = 3) -> Any:
    return decide(CLAIMS[number], [judge(ClaimRun(log.manifest, log.rows))[number]])


def test_who_is_missing_is_told_and_what_failed_already_refutes(make_log: Any) -> None:
    found = verdict(cars(make_log("glove-explicit", 2), memories=MEMORIES[:2]))
    assert found.word == NOT_PLAYED
    assert found.missing == (f"`glove-explicit`: voyager + glove did not play `{CAR}`",)
    assert verdict(cars(make_log("glove-explicit", 2), 10, MEMORIES[:2])).word == REFUTED


def test_instances_that_are_not_those_of_the_file_decide_nothing(make_log: Any) -> None:
    found = verdict(cars(make_log("glove-explicit", 11), 0))  # the file has ten cars
    assert found.word == NOT_PLAYED
    assert "not those of the file (1010 ...)" in found.missing[0]


def test_a_claim_of_two_experiments_needs_both(make_log: Any) -> None:
    log = make_log("glove-implicit", 1)
    log.play_all(["webshop/implicit"], [f"{m}/{v}" for m in MEMORIES for v in ("glove", "overwrite")], {"source": 9})
    found = verdict(log, 5)
    assert (found.word, found.missing) == (NOT_PLAYED, ("`glove-explicit` was not played",))
    assert all(check.holds for check in found.checks)


def test_the_page_tells_verdict_figures_and_instances(make_log: Any, tmp_path: Path) -> None:
    folder = write(cars(make_log("glove-explicit", 4)), tmp_path / "cars")
    page = write_claims([folder], tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text("utf-8") == page == write_claims([folder])
    row = next(line for line in page.splitlines() if line.startswith("| 3 "))
    assert [cell.strip() for cell in row.split("|")[2:4]] == [f"**{HELD}**", "4 of 4"]
    assert "100.0 % [100.0, 100.0] (100.0 of 100.0), n = 4; at least 90 %" in row
    assert row.endswith("**only 4** of 10 |")
    assert re.search(r"^\| 6 \| not played \| - \| `transient-noise` was not played", page, re.MULTILINE)
    assert "Read as: The claim names no memory" in page
    assert "**not as it is shipped now**" in page


def test_failed_checks_stand_first_and_the_others_are_counted(make_log: Any, tmp_path: Path) -> None:
    page = write_claims([write(cars(make_log("glove-explicit", 10), 10), tmp_path / "cars")])
    row = next(line for line in page.splitlines() if line.startswith("| 3 "))
    assert REFUTED in row
    assert "50.0" in row
    assert "and 1 more" in row
    assert row.endswith("all 10 |")
    assert page.count(" at least 90 % | **refuted** |") == 4


def test_memories_that_played_the_same_episodes_are_named(make_log: Any, tmp_path: Path) -> None:
    log = cars(make_log("glove-explicit", 2))
    next(row for row in log.rows if (row["memory"], row["verifier"]) == ("voyager", "glove"))["steps"] = 11
    page = write_claims([write(log, tmp_path / "cars")])
    groups = "with glove: vanilla, memory_bank, generative_agents; with oracle_reset: vanilla, memory_bank, voyager"
    assert f"| `glove-explicit` | `{CAR}` | {groups}, generative_agents |" in page


def test_the_command(make_log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = make_log("prompt-order", 1)
    other.play("frozen_lake/explicit", "vanilla/none", {"source": 1})
    folders = [write(cars(make_log("glove-explicit", 2)), tmp_path / "cars"), write(other, tmp_path / "other")]
    assert main(["claims", *map(str, folders)]) == 0
    assert "Passed over, since no claim is about them: `prompt-order`." in capsys.readouterr().out
    assert main(["claims", str(folders[0]), "--out", str(tmp_path / "page.md")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'page.md'}\n"


def test_refusals(make_log: Any, tmp_path: Path) -> None:
    folder = write(cars(make_log("glove-explicit", 1)), tmp_path / "cars")
    with pytest.raises(ExperimentError, match="given already"):
        write_claims([folder, folder])
    with pytest.raises(ExperimentError, match="cannot be written"):
        write_claims([folder], tmp_path / "no" / "page.md")
    (folder / "episodes.jsonl").unlink()
    with pytest.raises(ExperimentError, match="is not finished"):
        write_claims([folder])
    with pytest.raises(ExperimentError, match="holds no run"):
        write_claims([tmp_path])
