"""`drift-agents stale` on exported memories; stores of other packages are in `tests/extras`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.experiment.environments import make_env, read_schedule
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.export import export_memory
from drift_agents.types import AgentClock, Experience, Outcome

SCHEDULE = "frozen_lake/explicit"
"""From tick 20 on the map is another one."""


def fill(memory: Memory, actions: str = "1122112") -> int:
    """Walk to a goal of the first phase, and write every step; returns the number of steps."""
    env = make_env(read_schedule(SCHEDULE))
    state, _ = env.reset(seed=0)
    for step, action in enumerate(actions):
        after, reward, terminated, truncated, _ = env.step(int(action))
        now = AgentClock(0, step)
        outcome = Outcome(after, float(reward), terminated or truncated)
        memory.observe(Experience(state, action, outcome, float(reward), now), now)
        state = after
        if outcome.ended:
            break
    env.close()
    return step + 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path, memory = tmp_path / "memory.json", make_memory("vanilla")
    fill(memory)
    # A false record from the beginning: the first step does not end an episode.
    state = next(memory.states())
    now = AgentClock(1, 99)
    memory.observe(Experience(state, "1", Outcome(state, 0.0, True), 0.0, now), now)
    half = [(Outcome(state, 0.0, True), 0.5), (next(memory.records()).outcome, 0.5)]
    memory.insert_summary(state, "1", half, 4, now)
    export_memory(memory, path)
    return path


def run(*words: object) -> int:
    return main(["stale", *map(str, words)])


def test_it_counts_what_the_environment_contradicts(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = file.read_bytes()
    assert run(file, "--schedule", SCHEDULE, "--tick", 0) == 0
    rows = capsys.readouterr().out.splitlines()
    lines = dict(row.strip().split(None, 1) for row in rows if not row.startswith("in part"))
    count = int(lines["records"])
    assert lines["store"] == "memory"
    assert lines["environment"] == f"{SCHEDULE}, seed 0, tick 0 (source)"
    assert lines["contradicted"].split()[0] == "1"
    assert lines["true"].split()[0] == str(count - 2)
    assert run(file, "--schedule", SCHEDULE, "--phase", "drift-1", "--show", 3) == 0
    later = capsys.readouterr().out
    assert "tick 20 (drift-1)" in later
    assert int(later.split("contradicted")[1].split()[0]) > 1
    assert later.count("\nepisode ") == 3
    assert later.index("episode 1, step 99") < later.index("episode 0, step"), "the newest first"
    assert "4 of 4" not in later
    assert "2 of 4 responses, verified" in later
    assert file.read_bytes() == before


def test_the_exit_status_says_whether_too_much_is_contradicted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = (file, "--schedule", SCHEDULE, "--tick", 0)
    assert run(*env, "--most", 0.5) == 0
    assert run(*env, "--most", 0.1) == 1
    assert "more than 10 %" in capsys.readouterr().err


def test_an_empty_memory_contradicts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_memory(make_memory("vanilla"), tmp_path / "m.json")
    assert run(tmp_path / "m.json", "--schedule", SCHEDULE, "--tick", 0, "--most", 0) == 0
    assert "contradicted  0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), 2, "one of `--tick` and `--phase` should be given"),
        (("--tick", 1, "--phase", "drift-1"), 2, "one of `--tick` and `--phase` should be given"),
        (("--phase", "drift-9"), 2, "drift-9"),
        (("--tick", 0, "--kind", "chroma"), 1, "chroma"),
    ],
)
def test_wrong_usage_is_refused(
    file: Path, words: tuple[object, ...], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "--schedule", SCHEDULE, *words) == status
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_records_of_another_environment_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = make_memory("vanilla")
    memory.observe(Experience("a", "2", Outcome("b", 0.0, False), 0.0, AgentClock()), AgentClock())
    export_memory(memory, tmp_path / "m.json")
    assert run(tmp_path / "m.json", "--schedule", SCHEDULE, "--tick", 0) == 1
    assert f"record 0 does not fit the environment of {SCHEDULE}: " in capsys.readouterr().err


def test_what_is_no_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.json").write_text(json.dumps({}))
    (tmp_path / "text.txt").write_text("text")
    for path, message in (
        (tmp_path / "none", "does not exist"),
        (tmp_path, "is neither"),
        (tmp_path / "text.json", "is no export of a memory"),
        (tmp_path / "text.txt", "is neither"),
    ):
        assert run(path, "--schedule", SCHEDULE, "--tick", 0) == 1
        assert message in capsys.readouterr().err
