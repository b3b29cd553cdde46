"""What `check-coder` decides without starting a process: its command line, the agent's, usage, scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder import world as world_module
from drift_agents.experiment.coder.agents import CoderRun, CodingAgent, find_program, make_reference
from drift_agents.experiment.coder.lifetime import add_usage, write_task
from drift_agents.experiment.coder.place import CoderPlace
from drift_agents.experiment.coder.world import CoderWorld

from drift_envs.envs.repository.checks import CheckResult
from drift_envs.schedule.loader import load_schedule


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "no-such-agent"], "no-such-agent: there is no such program in PATH"),
        ([], "should be given after `--`, or `--reference`"),
        (["--reference", "lok"], "no reference agent is called 'lok', did you mean 'look'?"),
        (["--fail-below", "winning=1", "--", "true"], "should be success or score or first_try"),
        (
            ["--fail-below", "success=.9", "--fail-below", "success=.1", "--", "true"],
            "should be given once for success",
        ),
        (["--shell", "--", "echo", "x"], "should stand with a command of one word"),
        (["--home", "his", "--", "true"], "'his' is not one of 'run', 'mine'"),
        (["--env", "NO_SUCH_KEY", "--", "true"], "should name a variable that is set"),
        (["--wrap", "no-such-docker run", "--", "mine"], "no-such-docker: there is no such program in PATH"),
        (["--wrap", "docker run 'x", "--", "true"], "--wrap: should be words of a command (No closing quotation)"),
        (["--", "true", "{tsk}"], "no placeholder is called 'tsk', did you mean 'task'?"),
        (["--", "true", "{task-file}"], "no placeholder is called 'task-file', did you mean 'task_file'?"),
        (["--", "true", "{TASK}"], "no placeholder is called 'TASK'"),
        (["--", "no-such-agent -p {task}"], "there is no such program in PATH. A command in one text needs --shell"),
        (["--name", "mine", "--reference", "look"], "--name: should stand with a command"),
        (["--wrap", "sh {wrok}", "--", "true"], "no placeholder is called 'wrok', did you mean 'work'?"),
        (["--keep", "notes/memory.md", "--", "true"], "at the top of the work tree, without `/`, and not .git"),
        (["--keep", "notes,*.md", "--", "true"], "`keep` should name nothing that the project has itself"),
        (["--control", "--reference", "look", "--name", "look-without-memory", "--", "true"], "of no other one"),
        (["--time-limit", "nan", "--", "true"], "`time_limit` should be above 0. Received nan"),
        (["--keep", "*", "--", "true"], "Received '*'"),
        (["--seed-memory", "file", "--", "true"], "file: should be a folder of files that --keep names"),
        (["--seed-memory", "notes", "--", "true"], "Received AGENTS.md"),
        (["--seed-memory", ".", "--episodes", "0", "--", "true"], "0 is not in the range"),
        (["--schedule", "repository/nothing", "--", "true"], "repository/nothing"),
        (["--schedule", "frozen_lake/explicit", "--", "true"], "should be a schedule of DriftRepository-v0"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Sequence[str],
    message: str,
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/CLAUDE.md").write_text("")
    (tmp_path / "notes/AGENTS.md").symlink_to("CLAUDE.md")
    monkeypatch.chdir(tmp_path)
    assert main(["check-coder", *words]) in (1, 2)
    error = capsys.readouterr().err
    assert message in " ".join(error.replace("\u2502", "").split())
    assert "Traceback" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "notes"]


def test_files_of_the_users_folder_are_found_from_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("agent.py", "README.md"):
        (tmp_path / name).write_text("")
    assert find_program(["python3", "README.md"]) == ("python3", "README.md")
    long = "Solve it. " * 100 + "{task}"  # no name of a file is that long
    assert find_program(["python3", "agent.py", long]) == ("python3", f"{tmp_path}/agent.py", long)
    assert find_program(["mine", "agent.py"], ["sh"]) == ("mine", f"{tmp_path}/agent.py")
    with pytest.raises(ExperimentError, match="no-such-agent: there is no such program in PATH"):
        find_program(["no-such-agent", "-p", "{task}"])


def test_words_before_the_command_get_the_folders_of_the_place() -> None:
    """The command line of docs/check_coder.md for docker."""
    wrap = ("docker", "run", "-v", "{place}:{place}", "-w", "{work}", "-e", "HOME={home}", "IMAGE")
    agent = CodingAgent("mine", ("claude", "-p", "{task}"), wrap=wrap)
    place = CoderPlace(CoderRun((agent,), "repository/explicit"), agent, "key", "ledger")
    root = place.work.parent
    command = place.fill_in({"task": "Add {log} $HOME", "log": "no"})
    assert command == [
        "docker", "run", "-v", f"{root}:{root}", "-w", f"{root}/ledger", "-e", f"HOME={root}/home", "IMAGE",
        "claude", "-p", "Add {log} $HOME",
    ]  # fmt: skip


def test_what_an_agent_is_told() -> None:
    assert write_task("Issue #6: add.", ["MEMORY.md", ".claude"]).startswith("Issue #6: add.\n\nYou are in a clone")
    assert "MEMORY.md, .claude stay" in write_task("Issue #6: add.", ["MEMORY.md", ".claude"])
    assert "stay" not in write_task("Issue #6: add.", [])


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        ('{"input_tokens": 5, "output_tokens": 2, "cost_usd": 0.25}', {"tokens_in": 5, "tokens_out": 2, "cost": 0.25}),
        ('{"usage": {"prompt_tokens": 5}}\n{"usage": {"prompt_tokens": 6}}\nno JSON', {"tokens_in": 11}),
        ('{"tokens_in": -1, "tokens_out": "7", "cost": NaN, "model_calls": true}', {}),
        ("[" * 100_000, {}),
        ("", {}),
    ],
)
def test_usage_is_what_numbers_say(text: str, usage: dict[str, float]) -> None:
    found: dict[str, float] = {}
    add_usage(found, text)
    assert found == usage


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> CoderWorld:
    """A repository whose checks accept every submission that has a file `right`, and whose first draw is false."""
    monkeypatch.setattr(
        world_module,
        "check",
        lambda files, project, issue: CheckResult("right" in files, () if "right" in files else ("no",)),
    )
    base = {"project": 7, "flaky": 1.0, "rerun_price": 0.25}
    schedule = {"version": 1, "name": "repository/tried", "env": "DriftRepository-v0", "base": base}
    world = CoderWorld(load_schedule(schedule), 0, 3)
    world.begin(0)
    return world


def test_a_rerun_costs_its_price_and_a_correction_a_third(opened: CoderWorld) -> None:
    assert "no" in opened.submit({"wrong": ""})
    assert opened.submit({"right": ""})
    assert opened.submit({"right": ""})
    assert opened.is_over
    assert (opened.counts["corrections"], opened.counts["reruns"]) == (1, 1)
    assert opened.score == pytest.approx(1 - 1 / 3 - 0.25)
    assert opened.success, "whatever a flaky draw said"
    opened.reopen()
    assert not opened.is_over
    assert opened.score == 0.0


def test_a_flaky_refusal_is_that_of_the_attempt_for_every_agent(opened: CoderWorld) -> None:
    logs = [opened.submit({"right": "one"}), opened.submit({"right": "two"})]
    opened.reopen()
    assert [opened.submit({"right": "three"}), opened.submit({"right": "three"})] == logs


def test_the_last_statement_about_a_convention_is_what_is_believed() -> None:
    drift = {"name": "drift-1", "at": 1, "set": {"helper": 1}}
    schedule = {"version": 1, "name": "repository/tried", "env": "DriftRepository-v0", "base": {"project": 7}}
    world = CoderWorld(load_schedule({**schedule, "drifts": [drift]}), 0, 3)
    for episode in range(2):
        world.begin(episode)
    found = world.count_statements({"MEMORY.md": "use fegege"})
    assert (found["former_statements"], found["still_believed"]) == (1, 1.0)
    found = world.count_statements({"MEMORY.md": "use fegege\nno: use fitunu"})
    assert (found["present_statements"], found["still_believed"]) == (1, 0.0)
    assert world.count_statements({})["still_believed"] is None


def test_short_values_that_are_handed_on_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sesame-12345")
    monkeypatch.setenv("USE_BEDROCK", "1")
    assert CodingAgent("mine", ("true",), env=("MY_KEY", "USE_BEDROCK", "NOT_SET")).secrets == ["sesame-12345"]


def test_reference_agents_are_programs() -> None:
    assert Path(make_reference("look").command[2]).is_file()
