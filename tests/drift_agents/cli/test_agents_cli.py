"""The command `drift-agents`: what it prints, and its exit status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from drift_agents.cli.app import main
from drift_agents.cli.root import read_summaries
from drift_agents.cli.run import ProgressBars
from drift_agents.experiment.config import Reference
from drift_agents.experiment.folder import read_manifest
from drift_agents.experiment.loader import AXES, load_experiment, shipped_experiments
from drift_agents.experiment.logs import read_rows
from drift_agents.llm.service import Totals
from drift_agents.registry.tables import ENVIRONMENTS
from rich.console import Console, Group

from tests.drift_agents.experiment.cells import cell_files

COMMANDS = ("list", "run", "report", "inspect", "replay", "leaderboard", "export-stepmft")

EXPERIMENT = """\
name: short
about: two agents on a lake
schedules: frozen_lake/explicit
agents: {memory: [none, {vanilla: {k: 3}}], policy: random}
seeds: 2
rounds: 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text(EXPERIMENT)
    return path


def run(file: Path, *more: str) -> int:
    return main(["run", str(file), "--out", str(file.parent / "run"), "--jobs", "1", *more])


def test_the_help_of_a_run_groups_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    heads = [part.partition(":\n") for part in capsys.readouterr().out.split("\n\n")]
    options = {head: set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", body, re.MULTILINE)) for head, _, body in heads}
    assert {"--seeds", "--memory", "--model", "--set"} <= options["What is played"]
    assert {"--out", "--jobs", "--resume", "--dry-run"} <= options["How it is played"]
    assert options["Options"] == {"--debug", "--quiet", "--verbose", "--help"}


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    axes = (name for axis in AXES.values() for name in axis.names())
    for name in (*shipped_experiments(), *axes, *ENVIRONMENTS.names(), *get_args(Reference)):
        assert re.search(rf"^ *{re.escape(name)} ", printed, re.MULTILINE), name
    assert max(map(len, printed.splitlines())) <= 100
    assert main(["list", "--json"]) == 0
    sections = json.loads(capsys.readouterr().out)
    assert sections.pop("version") == 1
    assert set(sections["memories"]) == set(AXES["memory"].names())
    assert all(f"  {name} " in printed for names in sections.values() for name in names)


def test_run_prints_its_report_and_writes_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file) == 0
    printed = capsys.readouterr()
    assert "played 1 schedule with 2 seeds: 12 episodes" in " ".join(printed.out.split())
    assert re.search(r"frozen_lake/explicit .* 12/12 elapsed \d:\d\d:\d\d left 0:00:00", printed.err)
    last = printed.err.splitlines()[-1]
    assert re.fullmatch(rf"drift-agents: played in \d:\d\d:\d\d; the run is in {file.parent / 'run'}", last)
    assert sorted(path.name for path in (file.parent / "run").iterdir()) == [
        "cells",
        "episodes.jsonl",
        "episodes.sha256",
        "report.md",
        "run.json",
    ]
    assert main(["report", str(file.parent / "run")]) == 0
    assert capsys.readouterr().out == printed.out
    assert main(["report", str(file.parent / "run"), "--full"]) == 0
    title = "frozen_lake/explicit (DriftFrozenLake-v0, explicit drift; success in percent, 2 instances)"
    assert title in " ".join(capsys.readouterr().out.split())


def test_quiet_and_verbose_runs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "-q") == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert run(file, "--fresh", "-v") == 0
    verbose = capsys.readouterr()
    assert verbose.out == quiet.out
    counts = re.findall(r"^drift-agents: frozen_lake/explicit: (\d+) of 12 episodes", verbose.err, re.MULTILINE)
    assert counts == ["3", "6", "9", "12"], "a line for each cell"
    assert re.search(r"^drift-agents run: [0-9.]+ s$", verbose.err, re.MULTILINE)


def test_report_and_leaderboard_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "--policy", "planner", "-q") == 0
    folder, rows = str(file.parent / "run"), read_rows(file.parent / "run" / "episodes.jsonl")
    capsys.readouterr()
    assert main(["report", folder, "--json"]) == 0
    (schedule,) = json.loads(capsys.readouterr().out)["schedules"]
    assert (schedule["name"], schedule["measure"]) == ("frozen_lake/explicit", "success")
    assert [agent["memory"] for agent in schedule["agents"]] == ["none", "vanilla"]
    for agent in schedule["agents"]:
        for phase in agent["phases"]:
            played = [row for row in rows if row["memory"] == agent["memory"] and row["phase"] == phase["id"]]
            assert phase["mean"] == pytest.approx(100 * sum(row["success"] for row in played) / len(played))
        steps = [row for row in rows if row["memory"] == agent["memory"]]
        assert sum(agent["per_seed"]["steps"]) == sum(row["steps"] for row in steps)
    assert main(["leaderboard", folder, "--json"]) == 0
    board = json.loads(capsys.readouterr().out)
    assert (board["version"], board["measure"]) == (1, "unlimited")
    assert {agent["memory"] for agent in board["agents"]} == {"none", "vanilla"}
    assert min(agent["rank"] for agent in board["agents"]) == 1
    assert all(agent["success"]["area"] is None for agent in board["agents"]), "the clairvoyant did not play"
    for arguments in (["report", folder, "--json", "--html"], ["leaderboard", folder]):
        assert main(arguments) == 2


def test_a_bar_is_one_line_with_a_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    service = SimpleNamespace(totals=lambda: Totals(123_456, 3_000, 45_000_000, 12.0123))
    bars = ProgressBars(service)  # type: ignore[arg-type]
    bars.begin("mountain_car_continuous/reversed:transient", 6_000)
    console = Console(width=80)
    lines = console.render_lines(Group(*bars._progress.get_renderables()), console.options)
    texts = ["".join(segment.text for segment in line) for line in lines]
    assert len(texts) == 2
    assert re.search(r"0/6000 elapsed 0:00:0\d left -:--:--", texts[0])
    assert texts[1].startswith("123456 requests")


def test_options_replace_what_the_file_says(file: Path) -> None:
    folder = file.parent / "run"
    assert run(file, "--seeds", "1", "--rounds", "2", "--memory", "vanilla", "--policy", "random,planner") == 0
    rows = read_rows(folder / "episodes.jsonl")
    assert {(row["memory"], row["policy"], row["seed"]) for row in rows} == {
        ("vanilla", "random", 0),
        ("vanilla", "planner", 0),
    }
    assert len(rows) == 2 * 3 * 2
    memory = read_manifest(folder)["experiment"]["agents"][0]["memory"]
    assert memory == [{"name": "vanilla", "options": {"k": 3}}]  # as the file has it


def test_a_folder_in_use_is_refused_resumed_and_replaced(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file) == 0
    before = (file.parent / "run" / "episodes.jsonl").read_bytes()
    assert run(file) == 1
    assert "holds a run already. Go on with it with --resume" in capsys.readouterr().err
    assert run(file, "--resume") == 0
    assert run(file, "--fresh") == 0
    assert (file.parent / "run" / "episodes.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        ([], 2, "Missing command"),
        (["run"], 2, "Missing argument 'NAME|FILE'"),
        (["run", "glove-quik"], 2, "drift-agents: no experiment is called 'glove-quik', did you mean 'glove-quick'?"),
        (["run", "glove-quick", "--seeds", "0"], 2, "Invalid value for '--seeds'"),
        (["run", "glove-quick", "--seeds", "x"], 2, "Invalid value for '--seeds': 'x' is not a whole number. (try"),
        (["run", "glove-quick", "--jobs", "-1"], 2, "--jobs"),
        (["run", "glove-quick", "--memory", "vanila"], 2, "no memory is called 'vanila', did you mean 'vanilla'?"),
        (
            ["run", "glove-quick", "--memory", "chroma"],
            2,
            "It is a store: --memory store --set memory.store=chroma",
        ),
        (["run", "glove-quick", "--verifier", "vanilla"], 2, "no verifier is called 'vanilla'. It is a memory"),
        (["run", "glove-quick", "--memory", "none,"], 2, "should be names separated by commas"),
        (["run", "glove-quick", "--resume", "--fresh"], 2, "--resume: should not be given with `--fresh`"),
        (["run", "glove-quick", "--rounds", "21", "--out", "."], 1, "phase 'source' holds 20"),
        (
            ["run", "mine.py"],
            2,
            "no experiment is called 'mine.py'. It is a YAML file; parts of a Python file are named",
        ),
        (["run", "glove-quick", "--model", "a,b"], 2, "no policy of this run has a model. Received 'a,b'"),
        (["run", "glove-quick", "--set", "verifier.glove.epsilon=1"], 2, "a part: --set verifier.epsilon=VALUE"),
        (["run", "absent.yaml"], 1, "drift-agents: absent.yaml: can't be read: No such file or directory"),
        (["report", "absent"], 1, "drift-agents: absent: does not exist"),
        (["leaderboard", "absent", "--json"], 2, "drift-agents: absent: does not exist"),
        (["report", "tests"], 1, "drift-agents: tests: holds no run, run.json is missing"),
        (["report", __file__], 1, f"drift-agents: {__file__}: should be the folder of a run, and is a file"),
        (["lst"], 2, "No such command 'lst'"),
        (["run", "zzz"], 2, "The nearest of "),
    ],
)
def test_errors_are_told_without_a_traceback(
    arguments: list[str], status: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    printed = capsys.readouterr()
    assert expected in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_folder_that_does_not_exist_is_called_that_with_the_runs_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "run.json").write_text("{}")
    (tmp_path / "notes").mkdir()
    assert main(["report", str(tmp_path / "lakes")]) == 1
    told = f"{tmp_path}/lakes: does not exist. The nearest runs in {tmp_path}: lake\n"
    assert capsys.readouterr().err == f"drift-agents: {told}"
    assert main(["report", str(tmp_path / "notes")]) == 1
    assert "notes: holds no run, run.json is missing" in capsys.readouterr().err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "absent", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=lambda c: " ".join(c) or "drift-agents")
def test_every_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    assert "Example: drift-agents" in capsys.readouterr().out


def test_an_interrupted_run_says_how_to_go_on(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    folder = file.parent / "run"
    monkeypatch.setattr("drift_agents.experiment.folder.RunFolder.keep_cell", interrupt)
    assert run(file, "--fresh") == 130
    expected = f"continue with: drift-agents run {file} --out {folder} --jobs 1 --resume"
    assert f"drift-agents: 0 of 4 cells are played. What is done is kept; {expected}" in capsys.readouterr().err
    monkeypatch.undo()
    assert run(file, "--resume") == 0
    for cell in cell_files(folder)[3:]:
        cell.unlink()
    monkeypatch.setattr("drift_agents.experiment.folder.RunFolder.keep_cell", interrupt)
    assert run(file, "--resume") == 130
    assert f"drift-agents: 3 of 4 cells are played. What is done is kept; {expected}" in capsys.readouterr().err


def test_where_no_bar_moves_ten_lines_say_how_many_cells_are_played(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def counts(printed: str) -> list[int]:
        return [int(done) for done in re.findall(r"^drift-agents: (\d+) of 24 cells played$", printed, re.MULTILINE)]

    arguments = ("--seeds", "12", "--rounds", "1")
    assert run(file, *arguments) == 0
    whole = counts(capsys.readouterr().err)
    assert whole == [3, 5, 8, 10, 12, 15, 17, 20, 22, 24]
    for cell in cell_files(file.parent / "run")[20:]:
        cell.unlink()
    assert run(file, *arguments, "--resume") == 0
    assert counts(capsys.readouterr().err) == [22, 24], "what was played before is no news"


def test_a_terminal_shows_bars_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich's word for a terminal
    with ProgressBars() as bars:
        bars.begin("frozen_lake/explicit", 2)
        for done in range(3):
            bars.count(done, 2)
    assert "frozen_lake/explicit" in (printed := capsys.readouterr().err)
    assert "cells played" not in printed


def test_a_file_never_names_something_to_import(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = {
        "name": "evil",
        "schedules": ["frozen_lake/explicit"],
        "agents": {"memory": "os:system", "policy": "random"},
        "seeds": 1,
        "rounds": 1,
    }
    file.write_text(json.dumps(data))
    assert run(file) == 1
    assert "no memory is called 'os:system'" in capsys.readouterr().err


@pytest.mark.integration
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize(("redirection", "reason"), [(">&-", "it is closed"), ("> /dev/full", "No space left")])
def test_an_output_that_cannot_be_written(redirection: str, reason: str) -> None:
    command = f"{sys.executable} -m drift_agents list {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"drift-agents: standard output cannot be written: {reason}")
    assert done.stderr.count("\n") == 1


@pytest.mark.integration
def test_help_imports_no_part() -> None:
    code = (
        "import sys; from drift_agents.cli.app import main; main(['run', '--help']); "
        "print({'numpy', 'gymnasium', 'rich', 'drift_envs', 'research'} & set(sys.modules), 'loaded')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.endswith("set() loaded\n")
    assert done.stderr == ""


def test_the_list_agrees_with_the_checked_experiments() -> None:
    summaries = read_summaries()
    assert tuple(summaries) == shipped_experiments()
    for name, about in summaries.items():
        assert about == load_experiment(name).about
