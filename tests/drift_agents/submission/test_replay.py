"""A sample of cells is played again: forged lines and edited replies come to light, and the certificate says so."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ArgumentError, SubmissionError
from drift_agents.experiment.folder import REPLIES
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import to_line
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.runner import run_experiment
from drift_agents.submission.bundle import open_submission
from drift_agents.submission.prepare import prepare_submission
from drift_agents.submission.replay import (
    Certificate,
    choose_cells,
    replay_submission,
)
from drift_agents.submission.validate import check_submission
from hypothesis import given

from tests.drift_agents.llm.chat_server import said, serve

pytestmark = pytest.mark.integration

Reseal = Callable[[Path], None]


def test_an_honest_submission_is_reproduced(prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = tmp_path / "certificate.json"
    words = ["submit", "replay", str(prepared), "--cells", "100", "--certificate", str(certificate)]
    assert main(words) == 0
    found = Certificate.model_validate_json(certificate.read_text())
    assert found.differences == ()
    checked = check_submission(prepared)
    assert len(found.cells) == found.of == len(checked.cells)
    assert found.lines == len(checked.rows)
    assert found.submission == checked.digest
    assert checked.statement is not None
    assert (found.packages, found.platform) == (checked.statement.packages, checked.statement.platform)
    assert str(tmp_path) not in certificate.read_text()
    assert f"reproduced. {found.of} of {found.of} cells" in capsys.readouterr().out


def forge(folder: Path) -> str:
    """Make a failure a success in a way that all rules between fields allow; returns the name of its cell."""
    path = folder / "episodes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    number = next(at for at, row in enumerate(rows) if row["regret"] == 1)
    rows[number] |= {"score": 1.0, "regret": 0.0, "success": True}
    path.write_text("".join(to_line(row) + "\n" for row in rows))
    row = rows[number]
    return f"{row['memory']}--{row['verifier']}--{row['policy']}--{row['seed']}"


def test_a_consistent_forgery_is_found_by_playing(submission: Path, reseal: Reseal) -> None:
    cell = forge(submission)
    reseal(submission)
    checked = check_submission(submission)
    assert checked.findings == [], "no rule between fields is broken"
    found = replay_submission(checked, 1000)
    (difference,) = found.differences
    assert cell in difference
    assert "(`success` is True, should be False)" in difference


def test_a_stated_supervision_is_made_again(submission: Path, reseal: Reseal) -> None:
    path = submission / "run.json"
    manifest = json.loads(path.read_text())
    manifest["players"][-1]["supervision"] = "none"
    path.write_text(json.dumps(manifest))
    reseal(submission)
    found = replay_submission(check_submission(submission), 1)
    assert "supervision: there 'none', here 'privileged'".replace("'", '"') in found.differences[0]


def test_other_versions_alone_are_no_difference(submission: Path, reseal: Reseal) -> None:
    path = submission / "run.json"
    manifest = json.loads(path.read_text())
    manifest["versions"]["numpy"] = "1.24.0"
    path.write_text(json.dumps(manifest))
    reseal(submission)
    found = replay_submission(check_submission(submission), 1)
    assert found.differences == ()
    assert found.versions["numpy"] != "1.24.0"


def test_a_nonce_repeats_the_sample(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = check_submission(prepared)
    one, other, third = (replay_submission(checked, 2, nonce) for nonce in ("a", "a", "b"))
    assert one == other
    assert one.cells != third.cells
    assert len({replay_submission(checked, 1).nonce for _ in range(2)}) == 2
    with pytest.raises(ArgumentError, match="`cells` should be"):
        replay_submission(checked, 0)
    assert main(["submit", "replay", str(prepared), "--cells", "0"]) == 2
    capsys.readouterr()


def test_an_invalid_submission_is_not_played(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(submission)
    assert main(["submit", "replay", str(submission)]) == 1
    assert "the submission is not valid" in capsys.readouterr().err


@given(count=st.integers(1, 20), nonce=st.text(max_size=5))
def test_a_sample_is_of_the_size_and_in_the_order_of_the_cells(count: int, nonce: str) -> None:
    agents = {"memory": ["none", "vanilla"], "policy": "planner"}
    cells = plan_cells(
        parse_experiment({"name": "x", "schedules": "frozen_lake/explicit", "agents": agents, "seeds": 5, "rounds": 1})
    )
    sample = choose_cells(cells, count, nonce)
    assert len(sample) == min(count, len(cells))
    assert list(sample) == [cell for cell in cells if cell in sample]


def test_a_missing_package_is_named(tmp_path: Path, newest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = {"memory": "newest", "policy": "planner"}
    experiment = parse_experiment(
        {
            "name": "mine",
            "schedules": "frozen_lake/explicit",
            "agents": agents,
            "seeds": 1,
            "rounds": 2,
            "isolated": True,
        }
    )
    run_experiment(experiment, tmp_path / "run")
    statement = prepare_submission(tmp_path / "run", tmp_path / "mine.zip").statement
    assert statement is not None
    assert [(one.name, one.version, one.parts) for one in statement.packages] == [
        ("drift-newest", "0.1.0", ("memory: newest",))
    ]
    with open_submission(tmp_path / "mine.zip") as folder:
        checked = check_submission(folder)
        assert replay_submission(checked, 1).differences == ()
        (newest / "drift_newest" / "more.py").write_text("x = 1\n")
        found = replay_submission(checked, 1)
        assert found.packages != statement.packages, "other files of the package"
        monkeypatch.setattr("sys.path", [one for one in __import__("sys").path if one != str(newest)])
        assert check_submission(folder).findings == [], "checking needs no package of an agent"
        with pytest.raises(SubmissionError, match=r"(?s)'newest'.*drift-newest==0.1.0. Install it first"):
            replay_submission(checked, 1)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The submission of a run with a language model, whose server is gone."""
    pytest.importorskip("openai")
    folder = tmp_path_factory.mktemp("asked")
    with serve(lambda _: said(json.dumps({"action": "1"}), tokens=(50, 5))) as server:
        policy = {"llm": {"model": "right", "base_url": server.url, "price": [1.0, 10.0]}}
        experiment = parse_experiment(
            {
                "name": "asked",
                "schedules": "frozen_lake/explicit",
                "agents": {"memory": "vanilla", "policy": policy},
                "seeds": 1,
                "rounds": 1,
                "isolated": True,
            }
        )
        run_experiment(experiment, folder / "run")
    prepare_submission(folder / "run", folder / "submission")
    return folder / "submission"


def test_recorded_replies_stand_for_the_model(asked: Path) -> None:
    checked = check_submission(asked)
    assert checked.findings == []
    assert any(row["model_calls"] for row in checked.rows)
    assert replay_submission(checked, 5).differences == ()


def edit_replies(folder: Path, query: str) -> None:
    file = sqlite3.connect(folder / REPLIES)
    file.execute(query)
    file.commit()
    file.close()


def test_an_edited_reply_is_found(asked: Path, tmp_path: Path, reseal: Reseal) -> None:
    folder = Path(shutil.copytree(asked, tmp_path / "edited"))
    edit_replies(folder, """UPDATE replies SET reply = replace(reply, '\\"1\\"', '\\"2\\"')""")
    assert any(REPLIES in finding for finding in check_submission(folder).findings)
    reseal(folder)
    checked = check_submission(folder)
    assert checked.findings == []
    found = replay_submission(checked, 5)
    assert found.differences[0].startswith("frozen_lake-explicit--vanilla--none--llm-right--0: ")
    assert str(folder) not in found.differences[0], "a certificate names no folder"


@pytest.mark.parametrize(
    "query", ["UPDATE replies SET key = randomblob(32)", "DELETE FROM replies", "DROP TABLE replies"]
)
def test_replies_that_are_missing_are_found(asked: Path, tmp_path: Path, reseal: Reseal, query: str) -> None:
    folder = Path(shutil.copytree(asked, tmp_path / "edited"))
    edit_replies(folder, query)
    reseal(folder)
    found = replay_submission(check_submission(folder), 5)
    assert REPLIES in found.differences[0]


def test_a_run_with_a_model_needs_its_replies(asked: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(asked, tmp_path / "edited"))
    (folder / REPLIES).unlink()
    statement = json.loads((folder / "submission.json").read_text())
    del statement["files"][REPLIES]
    (folder / "submission.json").write_text(json.dumps(statement))
    (finding,) = check_submission(folder).findings
    assert finding.startswith("replies.sqlite: is missing")
