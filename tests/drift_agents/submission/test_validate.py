"""Tampered submissions are found: by hashes, and where all hashes were stated anew, by what the lines must say."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError, SubmissionError
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import to_line
from drift_agents.experiment.runner import run_experiment
from drift_agents.submission.bundle import state_file
from drift_agents.submission.prepare import hash_modules, prepare_submission
from drift_agents.submission.validate import CHECKS, check_submission
from hypothesis import HealthCheck, given, settings

Reseal = Callable[[Path], None]
FILES = ("submission.json", "run.json", "episodes.jsonl", "finished.jsonl")


def test_an_untouched_submission_is_valid(prepared: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = check_submission(prepared)
    assert checked.findings == []
    assert checked.statement is not None
    assert checked.statement.counts.episodes == len((run / "episodes.jsonl").read_bytes().splitlines())
    assert checked.statement.counts.probe_steps > 0
    assert {path.name for path in prepared.iterdir()} == set(FILES)
    assert main(["submit", "validate", str(prepared)]) == 0
    printed = capsys.readouterr().out
    assert checked.digest in printed
    assert all(check in printed for check in CHECKS)


@given(name=st.sampled_from(FILES), place=st.integers(0, 10**6), value=st.integers(0, 255))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_is_found(prepared: Path, tmp_path: Path, name: str, place: int, value: int) -> None:
    folder = tmp_path / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    data = bytearray((folder / name).read_bytes())
    place %= len(data)
    if data[place] == value:
        return
    data[place] = value
    (folder / name).write_bytes(data)
    checked = check_submission(folder)
    if name == "submission.json" and checked.is_valid:
        # Its own words: the sentence about it, the platform. Its digest shows the change.
        assert checked.digest != check_submission(prepared).digest
        before, after = (json.loads((one / name).read_bytes()) for one in (prepared, folder))
        assert {key for key in before if before[key] != after[key]} <= {"about", "platform"}
    else:
        assert not checked.is_valid


def change(folder: Path, alter: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the rows of the lines, and nothing else."""
    path = folder / "episodes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    alter(rows)
    path.write_text("".join(to_line(row) + "\n" for row in rows))


def better(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["stage"] == "test" and row["score"] < 1 and row["regret"] is not None)
    row["score"] = 1.0


def shorter(rows: list[dict[str, Any]]) -> None:
    rows[3]["steps"] = 500


def swapped(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["seed"] = 1 - row["seed"]


def other_seed(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["seed"] += row["seed"] == 1


def other_phase(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["phase"] != "source")
    row["phase"] = "source"


def other_tick(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["stage"] == "test" and row["tick"])
    row["tick"] += 1


def other_regret(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["stage"] == "test" and row["regret"])
    row["regret"] /= 2


def other_hash(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["schedule_hash"] = "0" * 16


def free_tokens(rows: list[dict[str, Any]]) -> None:
    rows[0]["tokens_in"] = 10


def free_probes(rows: list[dict[str, Any]]) -> None:
    next(row for row in rows if row["verifier"] == "none")["probe_steps"] = 3


TAMPERED: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]] = {
    "a better score": (better, "`success` should say|optimum, should be the same"),
    "too many steps": (shorter, "`steps` should be at most 100. Received 500"),
    "seeds swapped": (swapped, "do not stand in the order of the experiment"),
    "another seed": (other_seed, r"has no lines of .*seed 1"),
    "another phase": (other_phase, "tick and phase of"),
    "another tick": (other_tick, "tick and phase of"),
    "a smaller regret": (other_regret, "score plus regret, the optimum, should be the same"),
    "another schedule's hash": (other_hash, "`env` and `schedule_hash` should be those"),
    "tokens without requests": (free_tokens, "but no request"),
    "probes without a verifier": (free_probes, "`probe_steps` should be 0 without a verifier"),
    "a line dropped": (lambda rows: rows.pop(), "should have 3 episodes. Received 2"),
    "a line repeated": (lambda rows: rows.append(rows[-1]), "`episode` should be 3. Received 2"),
    "two lines exchanged": (lambda rows: rows.insert(0, rows.pop(1)), "`episode` should be 0. Received 1"),
    "a cell dropped": (lambda rows: rows.__delitem__(slice(-3, None)), "has no lines of"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_changed_is_found_although_hashes_were_stated_anew(
    submission: Path, reseal: Reseal, name: str
) -> None:
    alter, message = TAMPERED[name]
    change(submission, alter)
    assert any("is not the stated file" in finding for finding in check_submission(submission).findings)
    reseal(submission)
    findings = check_submission(submission).findings
    assert any(re.search(message, finding) for finding in findings), findings


def edit(folder: Path, alter: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "run.json"
    manifest = json.loads(path.read_text())
    alter(manifest)
    path.write_text(json.dumps(manifest))


MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another experiment": (lambda m: m["experiment"].update(rounds=1), "the configuration hash is not"),
    "another name": (lambda m: m.update(name="x"), "the name should be that of the experiment"),
    "another schedule": (
        lambda m: m["schedules"]["frozen_lake/implicit:family"]["content"].update(clock="step"),
        "(here: what experiment and content give)",
    ),
    "another hash": (
        lambda m: m["schedules"]["frozen_lake/implicit:family"].update(hash="0" * 16),
        "(here: what experiment and content give)",
    ),
    "no control": (
        lambda m: m["schedules"]["frozen_lake/implicit:family"].update(control=True),
        "control: there true, here false (here: what experiment and content give)",
    ),
    "a player more": (
        lambda m: m["players"].append({**m["players"][0], "memory": "x"}),
        "the players are not those of the experiment",
    ),
    "a player that is a reference": (
        lambda m: m["players"][0].update(reference="clairvoyant"),
        "the players are not those of the experiment",
    ),
    "cells": (lambda m: m.update(cells=1), "states 1 cells"),
    "no experiment": (lambda m: m.pop("experiment"), "run.json: experiment: Field required"),
    "a clock that is no text": (
        lambda m: m["schedules"]["frozen_lake/implicit:family"].update(clock=3),
        "frozen_lake/implicit:family.clock: Input should be a valid string",
    ),
    "supervision": (lambda m: m["players"][0].update(supervision="magic"), "`supervision` should be one of"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_the_description_says_is_checked(submission: Path, reseal: Reseal, name: str) -> None:
    alter, message = MANIFESTS[name]
    edit(submission, alter)
    reseal(submission)
    findings = check_submission(submission).findings
    assert any(message in finding for finding in findings), findings


def test_counts_files_and_cells_are_checked(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = submission / "submission.json"
    statement = json.loads(path.read_text())
    statement["counts"]["cost"] = 1.5
    path.write_text(json.dumps(statement))
    (finding,) = check_submission(submission).findings
    assert finding == "submission.json: counts.cost should be the sum over the lines, 0.0. Received 1.5"
    (submission / "agent.py").write_text("")
    assert check_submission(submission).findings[0] == "agent.py: is not stated in submission.json"
    (submission / "agent.py").unlink()
    (submission / "finished.jsonl").unlink()
    assert check_submission(submission).findings[0] == "finished.jsonl: is missing"
    assert main(["submit", "validate", str(submission)]) == 1
    assert "not valid" in capsys.readouterr().out


def test_a_cell_hash_that_is_another_one_is_found(submission: Path, reseal: Reseal) -> None:
    path = submission / "finished.jsonl"
    first, *rest = path.read_text().splitlines()
    note = {**json.loads(first), "sha256": "0" * 64}
    path.write_text("\n".join([json.dumps(note), *rest]) + "\n")
    statement = json.loads((submission / "submission.json").read_text())
    statement["files"]["finished.jsonl"] = state_file(path).model_dump()
    (submission / "submission.json").write_text(json.dumps(statement))
    (finding,) = check_submission(submission).findings
    assert "are not those that finished.jsonl states" in finding


def test_prepare_refuses_what_would_not_pass(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="holds no run"):
        prepare_submission(tmp_path, tmp_path / "x")
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    (copy / "episodes.jsonl").unlink()
    with pytest.raises(SubmissionError, match="the run is not finished"):
        prepare_submission(copy, tmp_path / "x")
    shutil.copy(run / "episodes.jsonl", copy)
    change(copy, better)
    with pytest.raises(SubmissionError, match="would not pass `validate`"):
        prepare_submission(copy, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(SubmissionError, match="exists already"):
        prepare_submission(run, tmp_path / "there")


def test_a_schedule_of_one_s_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nname: mine\nenv: DriftFrozenLake-v0\ndrifts: [{at: 1, set: {slip: 0.1}}]\n")
    agents = {"memory": "none", "policy": "random"}
    experiment = parse_experiment(
        {"name": "own", "schedules": [str(path)], "agents": agents, "seeds": 1, "episodes": 2}
    )
    run_experiment(experiment, tmp_path / "run")
    with pytest.raises(SubmissionError, match="schedules should be shipped ones"):
        prepare_submission(tmp_path / "run", tmp_path / "x")


def test_the_hash_of_a_package_is_that_of_its_files(newest: Path) -> None:
    before = hash_modules(["drift_newest"])
    (newest / "drift_newest" / "__pycache__").mkdir(exist_ok=True)
    (newest / "drift_newest" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert hash_modules(["drift_newest"]) == before
    (newest / "drift_newest" / "more.py").write_text("x = 1\n")
    assert hash_modules(["drift_newest"]) != before
    with pytest.raises(SubmissionError, match="should be an installed module"):
        hash_modules(["drift_no_such_module"])


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything that JSON data holds."""
    found = [path] if path else []
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        found += places(value, (*path, key))
    return found


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@given(data=st.data(), name=st.sampled_from(["run.json", "submission.json"]))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_description_holds_is_a_finding_and_no_crash(
    prepared: Path, tmp_path: Path, reseal: Reseal, data: st.DataObject, name: str
) -> None:
    folder = tmp_path / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    content = json.loads((folder / name).read_text())
    *way, last = data.draw(st.sampled_from(places(content)))
    inside = content
    for step in way:
        inside = inside[step]
    before, inside[last] = inside[last], data.draw(JSON)
    (folder / name).write_text(json.dumps(content))
    if name == "run.json":
        statement = json.loads((folder / "submission.json").read_text())
        statement["files"][name] = state_file(folder / name).model_dump()
        (folder / "submission.json").write_text(json.dumps(statement))
    findings = check_submission(folder).findings
    free = {"about", "platform", "trace"}  # sentences, and what plays no part
    assert findings or inside[last] == before or free.intersection((*way, last))


def test_deep_nesting_is_a_finding(submission: Path) -> None:
    (submission / "run.json").write_text("[" * 100_000)
    statement = json.loads((submission / "submission.json").read_text())
    statement["files"]["run.json"] = state_file(submission / "run.json").model_dump()
    (submission / "submission.json").write_text(json.dumps(statement))
    assert any("run.json: is not JSON" in finding for finding in check_submission(submission).findings)


def test_a_cost_without_a_price_is_found(submission: Path, reseal: Reseal) -> None:
    def spend(rows: list[dict[str, Any]]) -> None:
        rows[0] |= {"model_calls": 1, "tokens_in": 100, "tokens_out": 10, "cost": 0.5}

    change(submission, spend)
    reseal(submission)
    findings = check_submission(submission).findings
    assert "episodes.jsonl: the cost, 0.5, should be at most 0.0, all tokens at the highest price" in findings
    assert any("replies.sqlite: is missing" in finding for finding in findings)
