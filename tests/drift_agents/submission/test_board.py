"""Results as small files, the standings made of them, and the page that shows them."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.ranking import make_standings
from drift_agents.analysis.runs import read_run
from drift_agents.cli.app import main
from drift_agents.errors import SubmissionError
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.submission.board import gather_board, to_page, write_board
from drift_agents.submission.bundle import write_json
from drift_agents.submission.prepare import prepare_submission
from drift_agents.submission.replay import replay_submission
from drift_agents.submission.results import COLUMNS, make_result, read_results, write_result
from drift_agents.submission.track import AgentEntry, combine, make_track, read_track, seeds_of
from drift_agents.submission.validate import check_submission

from tests.drift_agents.submission.conftest import PROGRAMS

pytestmark = pytest.mark.integration

TRACK = """\
name: two
schedules: [frozen_lake/explicit:jittered, frozen_lake/implicit:choice]
seeds: 2
episodes: 28
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with one track and two submissions, which share an agent."""
    folder = tmp_path_factory.mktemp("board")
    (folder / "track.yaml").write_text(TRACK)
    salt = bytes(32)
    track = make_track(folder / "track.yaml", salt)
    results = folder / "results" / "two"
    results.mkdir(parents=True)
    (results / "track.json").write_text(json.dumps(track.model_dump(mode="json", exclude_none=True)))
    for name, policy in (("ours", PROGRAMS), ("theirs", PROGRAMS[:1])):
        agents = [{"memory": "none", "policy": policy}]
        entry = AgentEntry(track=track.digest(), name=name, agents=agents)
        experiment = combine(track, entry, seeds_of(track, salt))
        run_experiment(experiment, folder / name)
        prepare_submission(folder / name, folder / f"{name}.submission", about="a test")
        checked = check_submission(folder / f"{name}.submission")
        write_result(results / f"{name}.json", make_result(checked, track, name, replay_submission(checked, 2)))
    return folder


@pytest.fixture
def results(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole / "results", tmp_path / "results"))


def test_a_result_holds_the_figures_of_the_lines(whole: Path) -> None:
    (board,) = gather_board(whole / "results")
    ours = next(result for result in board.results if result.name == "ours")
    seeds = seeds_of(read_track(whole / "results" / "two" / "track.json"), bytes(32))
    lines = {
        (row["schedule"], seeds.index(row["seed"]), row["memory"], row["verifier"], row["policy"], row["episode"]): row
        for row in read_rows(whole / "ours" / "episodes.jsonl")
    }
    rows = list(ours.rows())
    assert len(rows) == len(lines)
    for row in rows:
        line = lines[row["schedule"], row["seed"], row["memory"], row["verifier"], row["policy"], row["episode"]]
        for name in COLUMNS:
            same = (
                row[name] == line[name]
                if isinstance(line[name], str)
                else math.isclose(row[name], line[name], abs_tol=1e-6)
            )
            assert same, (name, row[name], line[name])
    assert (whole / "results" / "two" / "ours.json").stat().st_size < 20_000
    assert ours.replayed is not None
    assert (ours.replayed.cells, ours.status) == (2, "")
    assert ours.self_reported == ("memory_size", "tokens_estimated")


def test_the_standings_are_those_of_the_leaderboard(whole: Path) -> None:
    """Of one submission alone, the board has the figures that the run's own leaderboard has."""
    only = whole / "only" / "two"
    only.mkdir(parents=True)
    for name in ("track.json", "ours.json"):
        shutil.copy(whole / "results" / "two" / name, only)
    (board,) = gather_board(only.parent)
    expected = make_standings(*read_run(whole / "ours"))
    found = board.standings
    assert found is not None
    for one, other in zip([*found.ranked, *found.references], [*expected.ranked, *expected.references], strict=True):
        assert (one.key[:4], one.ranks, one.supervision) == (other.key[:4], other.ranks, other.supervision)
        assert one.success == pytest.approx(other.success, nan_ok=True)
        assert one.ranked_by == pytest.approx(other.ranked_by)


def test_equal_agents_of_two_submissions_are_one_row(whole: Path) -> None:
    (board,) = gather_board(whole / "results")
    rows = {row.name: row for row in board.rows}
    assert rows["plain"].entries == ("ours", "theirs")
    assert rows["Clairvoyant"].standing.reference
    assert rows["wanderer"].entries == ("ours",)


def other_episodes(path: Path) -> None:
    """Change an agent's steps, as an agent of the same labels in another package would."""
    data = json.loads(path.read_text())
    cell = next(cell for cell in data["cells"] if data["players"][cell["player"]]["policy"] == "plain")
    cell["episodes"][0][COLUMNS.index("steps")] += 1
    path.write_text(json.dumps(data))


def test_other_episodes_under_the_same_labels_are_another_row(results: Path) -> None:
    other_episodes(results / "two" / "theirs.json")
    (board,) = gather_board(results)
    assert sorted(row.entries for row in board.rows if row.name == "plain") == [("ours",), ("theirs",)]


def test_equal_results_give_equal_bytes(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        out = tmp_path / str(number) / "board.md"
        assert main(["board", "page", str(whole / "results"), "--out", str(out)]) == 0
    assert (tmp_path / "1" / "board.md").read_bytes() == (tmp_path / "2" / "board.md").read_bytes()
    assert "two: 2 submissions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "status"), [({"replayed": None}, "not replayed"), ({"secret": False}, "known instances")]
)
def test_a_submission_without_rank_stands_below_the_line_and_changes_no_rank(
    results: Path, change: dict[str, Any], status: str
) -> None:
    path = results / "two" / "theirs.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    (board,) = gather_board(results)
    ranked = [row for row in board.rows if not row.status and not row.standing.reference]
    below = [row for row in board.rows if row.status]
    assert {row.entries for row in ranked} == {("ours",)}
    assert {row.entries for row in below} == {("theirs",)}
    assert {row.status for row in below} == {status}
    shutil.move(path, results / "elsewhere")
    (alone,) = gather_board(results)
    assert [(row.name, row.standing.ranks) for row in ranked] == [
        (row.name, row.standing.ranks) for row in alone.rows if not row.standing.reference
    ]
    lines = [line for line in to_page([board]).splitlines() if line.startswith("|")]
    assert sum(status in line for line in lines) == len(below)


def other_version(folder: Path, key: str, value: str) -> None:
    track = json.loads((folder / "track.json").read_text())
    track["schedules"]["frozen_lake/implicit:choice"][key] = value
    (folder / "track.json").write_text(json.dumps(track))


@pytest.mark.parametrize(("key", "value"), [("hash", "0" * 16), ("env", "DriftFrozenLake-v9")])
def test_results_of_another_version_are_not_compared(results: Path, key: str, value: str) -> None:
    """Also if the result says that it is one of the changed track."""
    other_version(results / "two", key, value)
    with pytest.raises(SubmissionError, match=r"ours\.json: is a result of another track, or the track was changed"):
        gather_board(results)
    for path in (results / "two" / "ours.json", results / "two" / "theirs.json"):
        data = json.loads(path.read_text())
        path.write_text(json.dumps(data | {"track": read_track(results / "two" / "track.json").digest()}))
    with pytest.raises(SubmissionError, match=r"ours\.json: is a result of another track, or the track was changed"):
        gather_board(results)


def test_a_damaged_result_is_refused(results: Path, whole: Path) -> None:
    path = results / "two" / "ours.json"
    data: dict[str, Any] = json.loads(path.read_text())
    track = read_track(results / "two" / "track.json")
    cells = data["cells"]
    for alter, message in (
        ({"cells": cells[1:]}, "should have all episodes"),
        ({"cells": [*cells, cells[0]]}, "should have all episodes"),
        ({"cells": [{**cells[0], "player": 99}, *cells[1:]]}, "should have all episodes"),
        ({"cells": [{**cells[0], "episodes": cells[0]["episodes"][1:]}, *cells[1:]]}, "should have all episodes"),
        ({"cells": [{**cells[0], "episodes": [["source"]]}, *cells[1:]]}, "cells.0.episodes.0.1: Field required"),
        ({"secret": None}, "secret: Input should be"),
        ({"track": "0" * 64}, "is a result of another track"),
        ({"name": "theirs"}, "theirs is there twice"),
        ({"more": 1}, "Extra inputs are not permitted"),
    ):
        path.write_text(json.dumps({**data, **alter}))
        with pytest.raises(SubmissionError, match=message):
            read_results(results / "two", track)
    path.write_text("{")
    with pytest.raises(SubmissionError, match="is not JSON"):
        read_results(results / "two", track)
    with pytest.raises(SubmissionError, match=r"should hold a folder with track\.json"):
        write_board(whole / "ours", results / "x.md")


def test_a_wrong_certificate_is_refused(whole: Path, results: Path) -> None:
    ours, theirs = (check_submission(whole / f"{name}.submission") for name in ("ours", "theirs"))
    track = read_track(results / "two" / "track.json")
    certificate = replay_submission(ours, 1)
    with pytest.raises(SubmissionError, match="should be of this submission"):
        make_result(theirs, track, "x", certificate)
    with pytest.raises(SubmissionError, match=r"(?s)should state no difference\. Received:.*line 3"):
        make_result(ours, track, "x", certificate.model_copy(update={"differences": ("line 3",)}))


def test_a_name_is_taken_once(results: Path, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = results / "certificate"
    salt = results / "salt"
    salt.write_text(bytes(32).hex())
    words = ["--track", str(results / "two" / "track.json"), "--salt", str(salt)]
    words += ["--certificate", str(certificate)]
    write_json(certificate, replay_submission(check_submission(whole / "ours.submission"), 1))
    add = ["board", "add", str(whole / "ours.submission"), *words, "--name"]
    assert main([*add, "ours"]) == 2
    assert main([*add, "track", "--force"]) == 2
    assert "should be new on the board" in capsys.readouterr().err
    assert main([*add, "../ours"]) == 1
    assert "ours.json: name: String should match pattern" in capsys.readouterr().err
    assert main([*add, "ours", "--force"]) == 0
    assert main(["board", "add", str(whole / "gone"), *words, "--name", "x"]) == 1
    assert main(["board", "add", str(whole / "ours.submission"), *words[:4], "--name", "x"]) == 0, "no certificate"
    assert "not replayed" in capsys.readouterr().out
