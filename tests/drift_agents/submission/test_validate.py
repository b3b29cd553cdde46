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
from drift_agents.submission.bundle import hash_file
from drift_agents.submission.prepare import hash_modules, prepare_submission
from drift_agents.submission.validate import check_submission
from hypothesis import HealthCheck, given, settings

pytestmark = pytest.mark.integration

Reseal = Callable[[Path], None]
Alter = Callable[[list[dict[str, Any]]], None]
FILES = ("submission.json", "run.json", "episodes.jsonl", "finished.jsonl")


def test_an_untouched_submission_is_valid(prepared: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = check_submission(prepared)
    assert checked.findings == []
    assert len(checked.rows) == len((run / "episodes.jsonl").read_bytes().splitlines())
    assert {path.name for path in prepared.iterdir()} == set(FILES)
    assert main(["submit", "validate", str(prepared)]) == 0
    assert checked.digest in capsys.readouterr().out


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
    if name == "submission.json" and not checked.findings:
        # Its own words: the sentence about it, the platform. Its digest shows the change.
        assert checked.digest != check_submission(prepared).digest
        before, after = (json.loads((one / name).read_bytes()) for one in (prepared, folder))
        assert {key for key in before if before[key] != after[key]} <= {"about", "platform"}
    else:
        assert checked.findings


def change(folder: Path, alter: Alter) -> None:
    """Change the rows of the lines, and nothing else."""
    path = folder / "episodes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    alter(rows)
    path.write_text("".join(to_line(row) + "\n" for row in rows))


def put(key: str, value: Any, **where: Any) -> Alter:
    """Give the first row that has these values another one."""

    def alter(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if where.items() <= row.items())[key] = value

    return alter


def seeds(change: Callable[[int], int]) -> Alter:
    return lambda rows: [row.update(seed=change(row["seed"])) for row in rows] and None


TAMPERED: dict[str, tuple[Alter, str]] = {
    "seeds swapped": (seeds(lambda seed: 1 - seed), r"jsonl:1: should be a line of .* 0\. Received one of .* 1$"),
    "another seed": (seeds(lambda seed: 2 * seed), r"jsonl:\d+: should be a line of .* 1\. Received one of .* 2$"),
    "another phase": (put("phase", "source", phase="reversal"), r"jsonl:\d+: `phase` should be 'reversal'"),
    "another tick": (put("tick", 2, tick=1), r"`tick` should be 1\. Received 2"),
    "another round": (put("round", 2, round=1), r"`round` should be 1\. Received 2"),
    "another stage": (put("stage", "train"), "`stage` should be 'test'"),
    "another schedule's hash": (put("schedule_hash", "0" * 16), "jsonl:1: `schedule_hash` should be"),
    "a value of another type": (put("steps", 1.5), "jsonl:1: `steps` should be a whole number"),
    "a line dropped": (lambda rows: rows.__delitem__(-1), "should have 3 episodes. Received 2"),
    "a line repeated": (lambda rows: rows.append(rows[-1]), "should have 3 episodes. Received 4"),
    "two lines exchanged": (lambda rows: rows.insert(0, rows.pop(1)), "jsonl:1: `episode` should be 0. Received 1"),
    "a cell dropped": (lambda rows: rows.__delitem__(slice(-3, None)), "Received one of no cell"),
    "a cell more": (lambda rows: rows.append({**rows[-1], "memory": "x"}), "should be a line of no cell"),
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


LAKE = "frozen_lake/implicit:family"
MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another experiment": (lambda m: m["experiment"].update(rounds=1), "config_hash: there"),
    "another name": (lambda m: m.update(name="x"), 'name: there "x", here "small" (there: submitted)'),
    "another schedule": (lambda m: m["schedules"][LAKE]["content"].update(clock="step"), 'clock: there "step"'),
    "another hash": (lambda m: m["schedules"][LAKE].update(hash="0" * 16), f"schedules.{LAKE}.hash: there"),
    "no control": (lambda m: m["schedules"][LAKE].update(control=True), "control: there true, here false"),
    "fewer episodes": (lambda m: m["schedules"][LAKE].update(episodes=1), "episodes: there 1, here 4"),
    "a player more": (lambda m: m["players"].append({**m["players"][0], "memory": "x"}), "players: there"),
    "a reference": (lambda m: m["players"][0].update(reference="clairvoyant"), "players[0].reference: there"),
    "cells": (lambda m: m.update(cells=1), "cells: there 1, here "),
    "no experiment": (lambda m: m.pop("experiment"), "run.json: experiment: Field required"),
    "supervision": (lambda m: m["players"][0].update(supervision="magic"), "`supervision` should be one of"),
    "not isolated": (lambda m: m["experiment"].pop("isolated"), "should be a run of `drift-agents track run`"),
    "a path": (lambda m: m["experiment"].update(schedules=["/etc/passwd"]), "schedules should be shipped ones"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_the_description_says_is_checked(submission: Path, reseal: Reseal, name: str) -> None:
    alter, message = MANIFESTS[name]
    edit(submission, alter)
    reseal(submission)
    findings = check_submission(submission).findings
    assert any(message in finding for finding in findings), findings


def test_files_are_checked(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (submission / "agent.py").write_text("")
    assert check_submission(submission).findings[0] == "agent.py: is not stated in submission.json"
    (submission / "agent.py").unlink()
    (submission / "finished.jsonl").unlink()
    assert check_submission(submission).findings[0] == "finished.jsonl: is missing"
    assert main(["submit", "validate", str(submission)]) == 1
    assert "not valid" in capsys.readouterr().out
    assert main(["submit", "validate", str(submission), "--salt", "x"]) == 2


def test_a_package_that_did_not_play_is_found(submission: Path) -> None:
    path = submission / "submission.json"
    statement = json.loads(path.read_text())
    statement["packages"] = [{"name": "other", "version": "1", "parts": [], "sha256": "0" * 64}]
    path.write_text(json.dumps(statement))
    (finding,) = check_submission(submission).findings
    assert finding == "submission.json: other 1 did not play: the run has no such package"


def test_a_cell_hash_that_is_another_one_is_found(submission: Path, reseal: Reseal) -> None:
    path = submission / "finished.jsonl"
    first, *rest = path.read_text().splitlines()
    note = {**json.loads(first), "sha256": "0" * 64}
    path.write_text("\n".join([json.dumps(note), *rest]) + "\n")
    statement = json.loads((submission / "submission.json").read_text())
    statement["files"]["finished.jsonl"] = hash_file(path)
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
    change(copy, put("steps", 1.5))
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
        {"name": "own", "schedules": [str(path)], "agents": agents, "seeds": 1, "episodes": 2, "isolated": True}
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
        statement["files"][name] = hash_file(folder / name)
        (folder / "submission.json").write_text(json.dumps(statement))
    findings = check_submission(folder).findings
    free = {"about", "platform", "trace"}  # sentences, and what plays no part
    assert findings or inside[last] == before or free.intersection((*way, last))


def test_deep_nesting_is_a_finding(submission: Path) -> None:
    (submission / "run.json").write_text("[" * 100_000)
    statement = json.loads((submission / "submission.json").read_text())
    statement["files"]["run.json"] = hash_file(submission / "run.json")
    (submission / "submission.json").write_text(json.dumps(statement))
    assert any("run.json: is not JSON" in finding for finding in check_submission(submission).findings)
