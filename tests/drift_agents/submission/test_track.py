"""Tracks: the same instances for all, and hidden ones that neither side can change after the commitment."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError, SubmissionError
from drift_agents.experiment.logs import read_rows
from drift_agents.submission.track import (
    Track,
    check_salt,
    check_track,
    combine,
    commit,
    make_track,
    read_agent,
    read_salt,
    read_track,
    seeds_of,
)
from drift_agents.submission.validate import check_submission
from hypothesis import given

pytestmark = pytest.mark.integration

TRACK = """\
name: lakes
schedules: [frozen_lake/explicit:jittered, frozen_lake/implicit:choice]
seeds: {first: 7, count: 2}
episodes: 1
environments:
  frozen_lake/implicit:choice: {episodes: 2}
"""
AGENT = "name: mine\nagents: {memory: newest, policy: planner}\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "track.yaml").write_text(TRACK)
    (tmp_path / "agent.yaml").write_text(AGENT)
    return tmp_path / "track.yaml"


def track(**changes: Any) -> Track:
    return Track.model_validate(
        {"name": "t", "version": "0", "instances": 5, "schedules": {}, "settings": {}, "first_seed": 0, **changes}
    )


def hidden_track(salt: bytes, **changes: Any) -> Track:
    plain = track(first_seed=None, **changes)
    return plain.model_copy(update={"commitment": commit(plain, salt)})


@given(salt=st.binary(min_size=32, max_size=32), other=st.binary(min_size=32, max_size=32), n=st.integers(1, 50))
def test_seeds_are_keyed_hashes(salt: bytes, other: bytes, n: int) -> None:
    one = hidden_track(salt, instances=n)
    seeds = seeds_of(one, salt)
    assert len(set(seeds)) == n
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert seeds_of(one, salt) == seeds
    first = hmac.new(salt, b"drift-agents instance 2\0" + bytes.fromhex(one.digest()) + bytes(8), hashlib.sha256)
    assert seeds[0] == int(first.hexdigest()[:14], 16) >> 3
    if other != salt and n > 1:
        assert seeds_of(hidden_track(other, instances=n), other) != seeds
        assert seeds_of(hidden_track(salt, instances=n, name="u"), salt) != seeds


@given(salt=st.binary(min_size=32, max_size=32), flipped=st.integers(0, 255))
def test_the_commitment_binds_salt_and_track(salt: bytes, flipped: int) -> None:
    hidden = hidden_track(salt)
    check_salt(hidden, salt, "x")
    changed = bytearray(salt)
    changed[flipped // 8] ^= 1 << flipped % 8
    with pytest.raises(SubmissionError, match="is not the one that t committed to"):
        check_salt(hidden, bytes(changed), "x")
    with pytest.raises(SubmissionError, match="or the track was changed since"):
        check_salt(hidden.model_copy(update={"instances": 6}), salt, "x")
    with pytest.raises(SubmissionError, match="need the salt of its organiser"):
        seeds_of(hidden)
    assert seeds_of(hidden.model_copy(update={"salt": salt.hex()})) == seeds_of(hidden, salt)


def test_an_open_track_is_an_experiment_without_agents(file: Path, newest: Path) -> None:
    made = make_track(file)
    assert (made.instances, made.first_seed, made.commitment) == (2, 7, None)
    assert list(made.schedules) == ["frozen_lake/explicit:jittered", "frozen_lake/implicit:choice"]
    experiment = combine(made, read_agent(Path("agent.yaml"), made), seeds_of(made))
    assert experiment.seeds == (7, 8)
    assert experiment.references == ("clairvoyant",), "its interactions are the budget of the ranking"
    assert experiment.name == "lakes-mine"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("agents: {memory: none, policy: planner}", "agents: should not be in a track"),
        ("references: [clairvoyan]", "references"),
    ],
)
def test_a_track_with_a_mistake_is_refused(file: Path, line: str, message: str) -> None:
    file.write_text(f"{TRACK}{line}\n")
    with pytest.raises((SubmissionError, ExperimentError), match=message):
        make_track(file)
    assert main(["track", "new", str(file), "--out", "t.json", "--salt", "s"]) == 1
    assert not Path("s").exists(), "no salt is left behind"


@pytest.mark.parametrize(
    ("schedule", "length", "message"),
    [
        ("frozen_lake/explicit:family", "episodes: 9", "The times of drifts are the same"),
        ("mountain_car/reversed", "episodes: 9", "The times of drifts are the same"),
        ("frozen_lake/explicit:storms", "episodes: 9", None),
        ("mountain_car/reversed:jittered", "episodes: 9", None),
        ("frozen_lake/implicit:choice", "episodes: 9", None),
        ("frozen_lake/explicit:family", "rounds: 3", "a hidden track should have `episodes`"),
    ],
)
def test_a_hidden_track_hides_times_and_maps(file: Path, schedule: str, length: str, message: str | None) -> None:
    """Otherwise an agent could count the episodes up to a drift of the published schedule."""
    file.write_text(f"name: t\nschedules: '{schedule}'\nseeds: 2\n{length}\n")
    assert make_track(file).first_seed == 0, "an open track hides nothing"
    if message is None:
        assert make_track(file, bytes(32)).is_hidden
        return
    with pytest.raises(SubmissionError, match=message):
        make_track(file, bytes(32))


PROGRAM = "name: plain\nprogram: [python3, agent.py]\nfiles: [agent.py]\n"


def test_a_program_enters_with_the_texts_of_its_files(file: Path) -> None:
    Path("agent.yaml").write_text(PROGRAM)
    Path("agent.py").write_text("print('é')\n")
    made = make_track(file)
    entry = read_agent(Path("agent.yaml"), made)
    (experiment,) = [combine(made, entry, (0,))]
    (part,) = experiment.agents[0].policy
    assert experiment.isolated
    assert (part.name, part.options) == (
        "plain",
        {"command": ["python3", "agent.py"], "files": {"agent.py": "print('é')\n"}},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PROGRAM + "agents: {}\n", "`program` should stand without `agents`"),
        (PROGRAM.replace("agent.py]\n", "../agent.py]\n"), r"should be names without a folder. Received '../agent.py'"),
        (PROGRAM.replace("files: [agent.py]", "files: [gone.py]"), "files: gone.py cannot be read: No such file"),
        (
            PROGRAM.replace("[python3, agent.py]", "python3 agent.py"),
            "`command` should be a program with its arguments",
        ),
    ],
)
def test_a_program_with_a_mistake_is_refused(file: Path, text: str, message: str) -> None:
    Path("agent.yaml").write_text(text)
    Path("agent.py").write_text("")
    with pytest.raises((SubmissionError, ExperimentError), match=message):
        read_agent(Path("agent.yaml"), make_track(file))


def test_seeds_that_are_listed_are_refused(file: Path) -> None:
    file.write_text(TRACK.replace("{first: 7, count: 2}", "[3, 9]"))
    with pytest.raises(SubmissionError, match="seeds: should be a number or"):
        make_track(file)


@pytest.mark.parametrize("more", ["seeds: 3", "environments: {frozen_lake/implicit:choice: {episodes: 9}}"])
def test_an_agent_cannot_change_the_track(file: Path, newest: Path, more: str) -> None:
    Path("agent.yaml").write_text(f"{AGENT}{more}\n")
    with pytest.raises(SubmissionError, match="should have the keys"):
        read_agent(Path("agent.yaml"), make_track(file))


def test_a_schedule_that_was_changed_since_is_refused(file: Path, newest: Path) -> None:
    made = make_track(file)
    entry = read_agent(Path("agent.yaml"), made)
    old = {**made.schedules}
    old["frozen_lake/implicit:choice"] = old["frozen_lake/implicit:choice"].model_copy(update={"hash": "0" * 16})
    with pytest.raises(SubmissionError, match="frozen_lake/implicit:choice is not the schedule of the track any more"):
        combine(made.model_copy(update={"schedules": old}), entry, (0,))


def test_the_salt_is_secret_and_never_overwritten(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["track", "new", str(file), "--out", "hidden.json", "--salt", "salt"]) == 0
    assert stat.S_IMODE(Path("salt").stat().st_mode) == 0o600
    salt = read_salt(Path("salt"))
    hidden = read_track(Path("hidden.json"))
    assert hidden.commitment == commit(hidden, salt)
    published = Path("hidden.json").read_text() + capsys.readouterr().out
    assert salt.hex() not in published
    assert not [seed for seed in seeds_of(hidden, salt) if str(seed) in published]
    assert main(["track", "new", str(file), "--out", "hidden2.json", "--salt", "salt"]) == 1
    assert "never overwritten" in capsys.readouterr().err
    assert main(["track", "new", str(file), "--out", "hidden.json"]) == 2
    Path("salt").write_text("secret words")
    with pytest.raises(SubmissionError, match="should hold hexadecimal digits") as refused:
        read_salt(Path("salt"))
    assert "secret words" not in str(refused.value)
    Path("salt").write_text("abcd")
    with pytest.raises(SubmissionError, match=r"should have 32 bytes\. Received 2"):
        read_salt(Path("salt"))


def test_a_track_file_with_both_or_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for wrong in (track(first_seed=None), track(commitment="0" * 64)):
        path.write_text(json.dumps(wrong.model_dump(mode="json")))
        with pytest.raises(SubmissionError, match="should have one of `first_seed` and `commitment`"):
            read_track(path)
    path.write_text(json.dumps(track(first_seed=None, commitment="0" * 64, salt="1" * 64).model_dump(mode="json")))
    with pytest.raises(SubmissionError, match="is not the one that t committed to"):
        read_track(path)


def test_a_hidden_track_from_its_commitment_to_the_board(
    file: Path, newest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*words: str, status: int = 0) -> str:
        assert main(list(words)) == status, capsys.readouterr()
        printed = capsys.readouterr()
        return printed.out + printed.err

    # One schedule, since every cell starts a process. The organiser publishes the commitment; the participant
    # practises and enters.
    file.write_text(TRACK.replace("frozen_lake/explicit:jittered, ", ""))
    call("track", "new", "track.yaml", "--out", "hidden.json", "--salt", "salt")
    call("track", "run", "hidden.json", "agent.yaml", "--practice", "--out", "practice", "--jobs", "1")
    assert {row["seed"] for row in read_rows(Path("practice/episodes.jsonl"))} == {0, 1}
    assert "need the salt" in call("track", "run", "hidden.json", "agent.yaml", "--out", "no", "--jobs", "1", status=1)
    assert "mine enters lakes with drift-newest 0.1.0" in call(
        "track", "enter", "hidden.json", "agent.yaml", "--out", "entry.json"
    )
    # The organiser plays the entry, if its package is the one that was entered.
    more = newest / "drift_newest" / "more.py"
    more.write_text("x = 1\n")
    played = ("track", "run", "hidden.json", "entry.json", "--salt", "salt", "--out", "run", "--jobs", "1")
    assert "should be installed" in call(*played, status=1)
    more.unlink()
    call(*played)
    seeds = seeds_of(read_track(Path("hidden.json")), read_salt(Path("salt")))
    assert {row["seed"] for row in read_rows(Path("run/episodes.jsonl"))} == set(seeds)
    call("submit", "prepare", "run", "--out", "mine.zip")
    call("submit", "replay", "mine.zip", "--cells", "2", "--certificate", "certificate.json")
    # The result can be published before the salt: it holds no seed.
    Path("results/lakes").mkdir(parents=True)
    Path("results/lakes/track.json").write_text(Path("hidden.json").read_text())
    add = ("board", "add", "mine.zip", "--track", "results/lakes/track.json", "--name", "mine")
    add += ("--certificate", "certificate.json")
    assert "need the salt" in call(*add, status=1)
    call(*add, "--salt", "salt")
    result = Path("results/lakes/mine.json").read_text()
    assert not [seed for seed in seeds if str(seed) in result]
    assert json.loads(result)["secret"]
    call("board", "page", "results", "--out", "board.md")
    assert "hidden until revealed" in Path("board.md").read_text()
    # The organiser reveals; anyone verifies.
    assert "need the salt" in call("submit", "validate", "mine.zip", "--track", "hidden.json", status=1)
    call("track", "reveal", "hidden.json", "--salt", "salt", "--out", "revealed.json")
    assert "seeds derived from the salt that was committed to" in call(
        "submit", "validate", "mine.zip", "--track", "revealed.json"
    )
    call("submit", "prepare", "practice", "--out", "practice.zip")
    assert "the seeds are not the 2 of lakes" in call(
        "submit", "validate", "practice.zip", "--track", "revealed.json", status=1
    )
    assert main(["track", "run", "revealed.json", "agent.yaml", "--practice", "--salt", "salt", "--out", "x"]) == 2


def test_a_run_of_another_experiment_is_no_submission_to_the_track(file: Path, prepared: Path) -> None:
    found = list(check_track(check_submission(prepared), make_track(file)))
    assert "run.json: the seeds are not the 2 of lakes" in found
    for key in ("rounds", "environments"):
        assert any(line.startswith(f"run.json: {key}") and "here: lakes" in line for line in found), found
    assert "run.json: the schedules, by hash, are not those of lakes" in found


def test_an_entry_to_another_track_is_refused(file: Path, newest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["track", "new", str(file), "--out", "one.json"]) == 0
    assert main(["track", "enter", "one.json", "agent.yaml", "--out", "entry.json"]) == 0
    file.write_text(TRACK.replace("episodes: 1", "episodes: 3"))
    assert main(["track", "new", str(file), "--out", "two.json"]) == 0
    assert main(["track", "run", "two.json", "entry.json", "--out", "run"]) == 1
    assert "enters another track" in capsys.readouterr().err
