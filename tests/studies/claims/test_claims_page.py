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
from studies.claims.findings import PARTS, command_of
from studies.claims.page import write_claims
from studies.claims.registry import CLAIMS

DOCUMENT = Path(__file__).parents[3] / "docs" / "claims_results.md"

CAR = "mountain_car/reversed"
IMPLICIT = ("webshop/implicit", "frozen_lake/implicit", "frozen_lake/implicit-family")
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


def test_a_claim_about_all_values_of_a_sweep_needs_them(make_log: Any) -> None:
    log = make_log("drift-size", 2)
    for value in (2, 3, 6):
        for verifier, after in (("glove", 20), ("none", 0)):
            log.play(
                "frozen_lake/explicit-family", f"vanilla/{verifier}", {"source": 20, "drift-1": after}, value=value
            )
    found = verdict(log, 13)
    assert found.word == NOT_PLAYED
    assert found.missing == ("`drift-size`: `frozen_lake/explicit-family` was not played with 4",)


def test_a_claim_about_all_agents_needs_them(make_log: Any) -> None:
    log = make_log("aggregation", 2)
    for verifier in ("glove", "none"):
        who = f"vanilla(k=1, order=oldest)/{verifier}/planner(conflict=max)"
        log.play_all(
            ["frozen_lake/explicit-family", "frozen_lake/implicit-family"], [who], {"source": 20, "drift-1": 5}
        )
    assert verdict(log, 12).word == NOT_PLAYED


def test_instances_that_are_not_those_of_the_file_decide_nothing(make_log: Any) -> None:
    found = verdict(cars(make_log("glove-explicit", 11), 0))  # the file has ten cars
    assert found.word == NOT_PLAYED
    assert "not those of the file (1010 ...)" in found.missing[0]


def test_a_claim_of_two_experiments_needs_both(make_log: Any) -> None:
    log = make_log("glove-implicit", 1)
    log.play_all(IMPLICIT, [f"{m}/{v}" for m in MEMORIES for v in ("glove", "overwrite")], {"source": 9})
    found = verdict(log, 5)
    assert (found.word, found.missing) == (NOT_PLAYED, ("`glove-explicit` was not played",))
    assert all(check.holds for check in found.checks)


def overview(page: str, number: int) -> list[str]:
    row = next(line for line in page.splitlines() if line.startswith(f"| {number}. "))
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def test_the_page_tells_verdict_figures_and_instances(make_log: Any, tmp_path: Path) -> None:
    folder = write(cars(make_log("glove-explicit", 4)), tmp_path / "cars")
    page = write_claims([folder], tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text("utf-8") == page == write_claims([folder])
    verdict, checks, figure, effect, n, enough = overview(page, 3)
    assert (verdict, checks, n, enough) == (f"**{HELD}**", "1 of 1", "**4** of 10", "-")
    names = "also memory_bank, voyager, generative_agents"
    assert figure == f"`{CAR}`: vanilla + glove / oracle_reset, drift-1 ({names})"
    assert effect == "100.0 % [100.0, 100.0] (100.0 of 100.0); at least 90 %"
    assert overview(page, 6) == ["not played again", *["-"] * 5]
    assert overview(page, 20)[0] == "not played"
    assert "of 19 claims 1 held, 0 refuted, 0 inconclusive, 18 not played" in page
    assert "### 3: held (post hoc)" in page
    assert "not as it is shipped" in page


def test_failed_checks_stand_first_and_the_others_are_counted(make_log: Any, tmp_path: Path) -> None:
    log = make_log("glove-implicit", 2)
    steps = {memory: iter(range(1, 10_000)) for memory in MEMORIES}
    for memory in MEMORIES:
        probing = lambda seed, phase, number, m=memory: {"steps": next(steps[m]), "probe_steps": 0}  # noqa: E731
        for place in IMPLICIT:
            fields = probing if memory != "voyager" else lambda *_: {"steps": 10, "probe_steps": 10}
            log.play(place, f"{memory}/glove", {"source": 9}, fields)
    page = write_claims([write(log, tmp_path / "run")])
    rows = page.split("### 10: ")[1].split("\n\n")[3].splitlines()[2:]
    assert [row.split("|")[5].strip() for row in rows] == [*[f"**{REFUTED}**"] * 6, HELD, HELD]
    assert "And 4 held." in page


def test_rows_merge_where_the_memory_alone_differs(make_log: Any, tmp_path: Path) -> None:
    log = cars(make_log("glove-explicit", 2))
    for row in log.rows:
        if (row["memory"], row["verifier"], row["seed"]) == ("voyager", "glove", 1001) and row["round"] == 20:
            row["success"] = False
    page = write_claims([write(log, tmp_path / "cars")])
    assert overview(page, 3)[1] == "2 of 2"
    assert "drift-1 (also memory_bank, generative_agents) |" in page


def test_runs_of_one_experiment_are_parts_of_it(make_log: Any, tmp_path: Path) -> None:
    first, second = make_log("glove-explicit", 3), make_log("glove-explicit", 3)
    cars(first, memories=MEMORIES[:2])
    cars(second, memories=MEMORIES[2:])
    folders = [write(first, tmp_path / "first"), write(second, tmp_path / "second")]
    page = write_claims(folders)
    assert overview(page, 3)[:2] == [f"**{HELD}**", "1 of 1"]
    assert overview(write_claims(folders[:1]), 3)[0] == f"**{NOT_PLAYED}**"
    second.manifest["schedules"][CAR] |= {"hash": "other"}
    with pytest.raises(ExperimentError, match="another schedule in another part"):
        write_claims([folders[0], write(second, tmp_path / "changed")])
    second.manifest["versions"] = {"drift-envs": "1"}
    with pytest.raises(ExperimentError, match="should be played with the same versions"):
        write_claims([folders[0], write(second, tmp_path / "newer")])


@pytest.mark.parametrize("path", sorted(PARTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_part_plays_what_the_experiment_plays(path: Path) -> None:
    part = load_experiment(path)
    whole = load_experiment(part.name)
    cells = {cell.key: cell for cell in plan_cells(whole)}
    for cell in plan_cells(part):
        assert cells[cell.key] == cell
    for schedule in part.schedules:
        settings = [
            experiment.world(schedule).model_copy(update={"seeds": None, "sweep": None}) for experiment in (part, whole)
        ]
        assert settings[0] == settings[1]


def test_the_command_of_a_run() -> None:
    part = load_experiment(PARTS / "families-lies.yaml")
    manifest = {"name": "families", "config_hash": part.config_hash(), "experiment": part.to_dict()}
    assert command_of(manifest) == "drift-agents run studies/claims/parts/families-lies.yaml"
    fewer = load_experiment("families", {"seeds": 4})
    manifest = {"name": "families", "config_hash": fewer.config_hash(), "experiment": fewer.to_dict()}
    assert command_of(manifest) == "drift-agents run families --seeds 4"
    assert command_of({**manifest, "config_hash": "0"}) is None


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
    with pytest.raises(ExperimentError, match=f"'{CAR}' with seed 1000 was given already"):
        write_claims([folder, folder])
    with pytest.raises(ExperimentError, match="cannot be written"):
        write_claims([folder], tmp_path / "no" / "page.md")
    (folder / "episodes.jsonl").unlink()
    with pytest.raises(ExperimentError, match="is not finished"):
        write_claims([folder])
    with pytest.raises(ExperimentError, match="holds no run"):
        write_claims([tmp_path])


def test_stored_findings_give_the_page_and_what_is_decided_stays(make_log: Any, tmp_path: Path) -> None:
    results = tmp_path / "results"
    decided = write(cars(make_log("glove-explicit", 2)), tmp_path / "cars")
    page = write_claims([decided], results=results)
    assert page == write_claims([decided])
    undecided = write(cars(make_log("glove-explicit", 2), memories=MEMORIES[:2]), tmp_path / "part")
    assert overview(write_claims([undecided]), 3)[0] == f"**{NOT_PLAYED}**"
    assert write_claims([undecided], results=results) == page
    log = make_log("glove-implicit", 1)
    log.play_all(IMPLICIT, [f"{m}/{v}" for m in MEMORIES for v in ("glove", "overwrite")], {"source": 9})
    more = write_claims([write(log, tmp_path / "implicit")], results=results)
    assert overview(more, 3) == overview(page, 3)
    assert overview(more, 10) != overview(page, 10)
    with pytest.raises(ExperimentError, match="has no findings"):
        write_claims([], results=tmp_path / "empty")


def test_the_documents_have_what_is_stored() -> None:
    assert DOCUMENT.read_text("utf-8") == write_claims()
