"""Coding agents of every kind in a repository: what they keep, what they are shown, and what they cannot do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.agents import CoderRun, CodingAgent, make_reference
from drift_agents.experiment.coder.lifetime import log_of
from drift_agents.experiment.coder.runner import run_coders

from tests.processes import children_of, is_alive, wait_until

pytestmark = pytest.mark.integration

SCHEDULE = """
version: 1
name: repository/tried
env: DriftRepository-v0
base: {project: 7}
drifts:
  - {name: drift-1, at: 2, set: {helper: 1, fragment: 1}}
"""


@pytest.fixture
def schedule(tmp_path: Path) -> str:
    file = tmp_path / "tried.yaml"
    file.write_text(SCHEDULE)
    return str(file)


def play(
    folder: Path, schedule: str, *agents: CodingAgent, **options: Any
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """The lines of each agent, and what was noted."""
    notes: list[str] = []
    given = {"episodes": 2, "attempts": 1, "time_limit": 20, "most_bytes": 2**22, **options}
    resume = given.pop("resume", False)
    run = CoderRun(agents, schedule, **given)
    run_coders(run, folder, resume=resume, note=notes.append)
    read = [log_of(folder, agent.name).read_text().splitlines() for agent in run.players]
    return [[json.loads(line) for line in lines] for lines in read], notes


def script(text: str, name: str = "mine", **options: Any) -> CodingAgent:
    """An agent that is a shell script; `$1` is the file of the task, `$2` that of the log."""
    return CodingAgent(name, ("sh", "-c", text, "sh", "{task_file}", "{log_file}"), **options)


WORKS = f"{sys.executable} -s {make_reference('look').command[2]} $1 $2"
"""An agent that solves issues."""


def test_what_an_agent_is_shown(tmp_path: Path, schedule: str) -> None:
    text = f'cat $1 > {tmp_path}/task; pwd > {tmp_path}/pwd; git log --format="%an: %s" > {tmp_path}/log; git status -s'
    (lines,), _ = play(tmp_path / "run", schedule, script(text), episodes=3)
    task, where = (tmp_path / "task").read_text(), Path((tmp_path / "pwd").read_text().strip())
    assert task.startswith("Issue #8: ")
    assert "MEMORY.md" in task
    log = (tmp_path / "log").read_text()
    assert "Rename the function that enters results" in log
    assert "drift" not in f"{task}{log}{where.name}"
    assert not where.exists()
    shared = [parent for parent in where.parents if (tmp_path / "run").is_relative_to(parent)]
    assert all(Path(tempfile.gettempdir()).is_relative_to(parent) for parent in shared)
    output = (tmp_path / "run/coder/mine/0/output/2.txt").read_text()
    assert output == "--- episode 2, attempt 1\n"
    assert [line["phase"] for line in lines] == ["source", "source", "drift-1"]


def test_a_refusal_comes_with_its_log_and_an_unchanged_submission_is_a_rerun(tmp_path: Path, schedule: str) -> None:
    (lines,), _ = play(tmp_path / "run", schedule, script(f"cat $1 $2 >> {tmp_path}/told"), episodes=1, attempts=3)
    assert (tmp_path / "told").read_text().count("no changelog fragment for #6 was found") == 2
    assert (lines[0]["steps"], lines[0]["reruns"], lines[0]["corrections"], lines[0]["score"]) == (3, 2, 0, 0.0)


def test_the_log_stands_with_the_task_where_the_command_has_no_place_for_it(tmp_path: Path, schedule: str) -> None:
    agent = CodingAgent("mine", ("sh", "-c", f'printf %s "$1" >> {tmp_path}/told', "sh", "{task}"))
    play(tmp_path / "run", schedule, agent, episodes=1, attempts=2)
    assert "refused the change" in (tmp_path / "told").read_text()


@pytest.mark.parametrize("place", ["MEMORY.md", ".memory/deep/notes.md", "$HOME/notes.md", "$CODEX_HOME/x.md"])
def test_what_is_kept_stays_and_nothing_else(tmp_path: Path, schedule: str, place: str) -> None:
    text = f'cat "{place}"; ls stray; mkdir -p "$(dirname "{place}")"; echo kept >> "{place}"; touch stray $TMPDIR/x'
    play(tmp_path / "run", schedule, script(text), episodes=3)
    output = (tmp_path / "run/coder/mine/0/output/2.txt").read_text()
    assert output.count("kept") == 2
    assert "cannot access" in output


def test_a_control_begins_each_episode_with_the_first_memory(tmp_path: Path, schedule: str) -> None:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed/MEMORY.md").write_text("first\n")
    agent = script("cat MEMORY.md; echo more >> MEMORY.md; echo more >> $HOME/x; cat $HOME/x")
    play(tmp_path / "run", schedule, agent, has_control=True, seed_memory=tmp_path / "seed")
    ours, control = (
        (tmp_path / f"run/coder/{name}/0/output/1.txt").read_text().split("\n")[1:-1]
        for name in ("mine", "mine-without-memory")
    )
    assert ours == ["first", "more", "more", "more"]
    assert control == ["first", "more"]


def test_homes_are_those_of_the_run_and_a_key_is_stored_nowhere(
    tmp_path: Path, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame-12345")
    monkeypatch.setenv("OTHER_KEY", "sesame-67890")
    text = f"env; {WORKS}; sed -i \"s/    settings = /    raise OSError('$MY_KEY'); settings = /\" */*/*/*.py"
    play(tmp_path / "run", schedule, script(text, env=("MY_KEY",)), episodes=1)
    output = (tmp_path / "run/coder/mine/0/output/0.txt").read_text()
    variables = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        assert "drift-coder-" in variables[name]
    assert variables["MY_KEY"] == "***"
    steps = (tmp_path / "run/coder/mine/0/steps.jsonl").read_text()
    assert "raise OSError('***')" in steps, "the change"
    assert "failed: OSError: ***" in steps, "the log"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert b"sesame" not in stored
    play(tmp_path / "other", schedule, script("echo $HOME", has_own_home=True), episodes=1)
    assert os.environ["HOME"] in (tmp_path / "other/coder/mine/0/output/0.txt").read_text()


HOSTILE = {
    "hangs": "sleep 1000",
    "writes much": "head -c 10000000000 /dev/zero > large; sleep 1000",
    "writes much to its home": "head -c 10000000000 /dev/zero > $HOME/large; sleep 1000",
    "deletes the work tree": 'rm -rf "$PWD"',
    "puts a link in its place": 'here="$PWD"; cd ..; rm -rf "$here"; ln -s OUTSIDE "$here"',
    "deletes all its folders": 'rm -rf "$(dirname "$PWD")"',
    "puts a link in the place of all its folders": 'up="$(dirname "$PWD")"; cd /; rm -rf "$up"; ln -s OUTSIDE "$up"',
    "deletes the repository": "rm -rf .git",
    "has git of its own": "rm -rf .git; git init -q; git config core.fsmonitor 'touch OUTSIDE/hooked'",
    "adds hooks": "mkdir .git/hooks; printf 'touch OUTSIDE/hooked' > .git/hooks/post-checkout; chmod +x .git/hooks/*",
    "changes the checks": "rm -rf tests; echo 'print(\"checks passed\")' > daroku.py; exit 0",
    "leaves processes": "(setsid sleep 1000 &); sleep 1000 & sleep 1000 &",
    "raises what is no text": f"{WORKS}; sed -i 's/settings = /raise OSError(chr(55296) + chr(0)); &/' */*/*/*.py",
    "prints binary": "head -c 100000 /dev/urandom; printf '\\033[2J\\000'",
    "switches branches": "git checkout -qb other; git rm -rq .; git commit -qm gone",
    "commits": "echo x > x; git add -A; git commit -qm x; git gc -q",
    "links out of the folder": "ln -s OUTSIDE MEMORY.md; ln -s OUTSIDE .claude; ln -s OUTSIDE $HOME/out; ln -s / x",
    "keeps what is no file": "mkfifo MEMORY.md; mkdir .claude; mkfifo .claude/pipe; ln -s .claude/pipe AGENTS.md",
    "takes away rights": "mkdir -p .claude/x; touch .claude/x/y; chmod -R 000 .claude; chmod 000 . ..",
    "writes names that are no text": "mkdir .memory; touch \"$(printf '\\377\\n')\" \"$(printf '.memory/\\377')\"",
    "is killed": "kill -9 $$",
    "fills what it keeps": "head -c 10000000 /dev/zero > MEMORY.md",
    "leaves a long usage": "head -c 1000000 /dev/zero > $(dirname $1)/usage.json",
}


TWICE = [kind for kind in HOSTILE if kind.startswith(("deletes", "puts", "takes", "raises"))]
"""What can spoil the next attempt."""


@pytest.mark.parametrize(("kind", "attempts"), [*((kind, 1) for kind in HOSTILE), *((kind, 2) for kind in TWICE)])
def test_the_next_episode_starts_clean_whatever_an_agent_does(
    tmp_path: Path, schedule: str, kind: str, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))  # apart from those of tests beside this one
    outside = tmp_path / "outside"
    for name in ("home/notes.md", "episode/usage.json"):
        (outside / name).parent.mkdir(parents=True)
        (outside / name).write_text("secret")
    there = sorted(outside.rglob("*"))
    before = children_of(os.getpid())
    hostile = HOSTILE[kind].replace("OUTSIDE", str(outside))
    first = f'if [ -z "$(git log --format=%s | grep "(#6)")" ]; then\n{hostile}\nelse {WORKS}; fi'
    agent = CodingAgent("mine", ("sh", "-c", first, "sh", "{task_file}", "{log_file}", "{log}"))
    (lines,), notes = play(tmp_path / "run", schedule, agent, attempts=attempts, time_limit=2)
    assert [line["success"] for line in lines] == [False, True], notes
    assert sorted(outside.rglob("*")) == there
    assert (outside / "home/notes.md").read_text() == "secret"
    assert not children_of(os.getpid(), but=before)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert len(stored) < 2**22
    assert b"secret" not in stored
    assert not list((tmp_path / "tmp").glob("drift-coder-*"))


def test_a_command_that_is_not_there(tmp_path: Path, schedule: str) -> None:
    with pytest.raises(ExperimentError, match="no-such-agent: cannot be started"):
        play(tmp_path / "run", schedule, CodingAgent("mine", ("no-such-agent",)))


def test_without_git(tmp_path: Path, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExperimentError, match="`git` is not installed"):
        play(tmp_path / "run", schedule, make_reference("look"))


def test_a_shell_reads_placeholders_as_variables(tmp_path: Path, schedule: str) -> None:
    agent = CodingAgent("mine", ('printf "%s|" "{task}" | head -c 8; echo " $(basename {log_file})"',), is_shell=True)
    play(tmp_path / "run", schedule, agent, episodes=1)
    assert "Issue #6 log.md" in (tmp_path / "run/coder/mine/0/output/0.txt").read_text()


def test_an_agent_in_a_box_sees_its_place_and_ends_with_it(tmp_path: Path, schedule: str) -> None:
    """The command line of the page, with another file system around the place."""
    if (
        shutil.which("bwrap") is None
        or subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False).returncode
    ):
        pytest.skip("bubblewrap is not installed, or not permitted")
    box: tuple[str, ...] = (
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--bind",
        "{place}",
        "{place}",
    )
    box += ("--unshare-pid", "--die-with-parent")
    program, outside = make_reference("verify").command, tmp_path / "outside"
    text = f"touch {outside}; {' '.join(program[:3])} $1 $2; setsid sleep 1000 &"
    before = children_of(os.getpid())
    (lines,), _ = play(tmp_path / "run", schedule, script(text, wrap=box))
    assert [line["success"] for line in lines] == [True, True]
    assert lines[1]["present_statements"] >= 6
    assert not outside.exists()
    assert not children_of(os.getpid(), but=before)


def test_usage_and_a_memory_service_are_read(tmp_path: Path, schedule: str) -> None:
    usage = '{"usage": {"input_tokens": 100, "output_tokens": 7}, "total_cost_usd": 0.5}'
    agent = CodingAgent(
        "mine", ("sh", "-c", f"echo '{usage}' > $1; touch $HOME/service", "sh", "{usage_file}"),
        memory_command="cat CONTRIBUTING.md; ls $HOME",
    )  # fmt: skip
    (lines,), _ = play(tmp_path / "run", schedule, agent, episodes=1, attempts=2)
    assert (lines[0]["tokens_in"], lines[0]["tokens_out"], lines[0]["cost"]) == (200, 14, 1.0)
    assert lines[0]["present_statements"] >= 6


def test_a_memory_service_that_fails_is_noted(tmp_path: Path, schedule: str) -> None:
    agent = CodingAgent("mine", ("true", "{task_file}"), memory_command="echo none; exit 3")
    _, notes = play(tmp_path / "run", schedule, agent, episodes=1)
    assert notes == ["mine, episode 0: the memory's command: exit status 3"] * 2


def test_statements_of_what_is_kept_are_counted(tmp_path: Path, schedule: str) -> None:
    (lines,), _ = play(tmp_path / "run", schedule, script("cat CONTRIBUTING.md >> MEMORY.md"), episodes=3)
    assert lines[0]["former_statements"] == lines[0]["mixed_statements"] == 0
    assert lines[0]["still_believed"] is None
    assert lines[2]["former_statements"] > 0
    assert lines[2]["still_believed"] == 0.0  # the last statement of each is the present one
    (lines,), _ = play(tmp_path / "other", schedule, make_reference("trust"), episodes=3)
    assert lines[2]["still_believed"] == 1.0


def test_a_run_goes_on_where_it_was_stopped_and_equal_seeds_give_equal_bytes(tmp_path: Path, schedule: str) -> None:
    agents = [make_reference("newest")]
    play(tmp_path / "whole", schedule, *agents, episodes=4, attempts=3)
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    log = log_of(tmp_path / "stopped", "newest")
    lines = log.read_text().splitlines(keepends=True)
    own = tmp_path / "stopped/coder/newest/0"
    # As a process leaves it that is killed in the third episode: a torn line, and a step without its line.
    log.write_text("".join(lines[:2]) + lines[2][:20])
    (own / "memory/4").rename(own / "memory/2")
    memory = tmp_path / "two"
    play(memory, schedule, *agents, episodes=2, attempts=3)
    for file in (own / "memory/2").rglob("*"):
        if file.is_file():
            file.unlink()
    kept = (memory / "coder/newest/0/memory/2/work/MEMORY.md").read_text()
    (own / "memory/2/work/MEMORY.md").write_text(kept)
    (tmp_path / "stopped/episodes.jsonl").unlink()
    play(tmp_path / "stopped", schedule, *agents, episodes=4, attempts=3, resume=True)
    for name in ("run.json", "episodes.jsonl", "episodes.sha256", "traces/newest-0.jsonl.gz"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_lines_that_no_run_has_written_are_refused(tmp_path: Path, schedule: str) -> None:
    play(tmp_path / "run", schedule, script("true $1"), episodes=1)
    with open(log_of(tmp_path / "run", "mine"), "a", encoding="utf-8") as file:
        file.write("{torn\n")
    with pytest.raises(ExperimentError, match=re.escape("mine.jsonl: holds what no run has written")):
        play(tmp_path / "run", schedule, script("true $1"), episodes=1, resume=True)


def test_the_command_line(
    tmp_path: Path, schedule: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--schedule", schedule, "--episodes", "3", "--out", "runs/tried", "--reference", "trust", "--control"]

    def drift_agents(*words: str) -> tuple[int, str, str]:
        return main(["check-coder", *options, *words]), *capsys.readouterr()

    status, output, error = drift_agents("--fail-below", "success=0.9")
    assert status == 1, error
    assert "Before the first drift: 2 episodes" in output
    assert "With memory minus without it" in output
    assert error.endswith("trust: `success` should be at least 0.9. Received 0.667\n")
    again = drift_agents()[2]
    assert "holds a run already" in again
    assert again.count("\n") == 1
    data = json.loads(drift_agents("--resume", "--json")[1])
    assert data["agents"]["trust"]["after"]["success"]["mean"] == 0
    assert data["worth"]["trust"]["after"]["success"]["mean"] == -100


def test_an_interruption_ends_the_agent_and_keeps_what_is_finished(tmp_path: Path, schedule: str) -> None:
    import signal

    pid = tmp_path / "pid"
    text = f'if git log --format=%s | grep -q "(#6)"; then (setsid sleep 1000 & echo $! > {pid}); sleep 1000; fi'
    command = [sys.executable, "-m", "drift_agents", "check-coder", "--schedule", schedule, "--episodes", "3"]
    command += ["--attempts", "1", "--out", str(tmp_path / "run"), "--name", "mine", "--", "sh", "-c", text]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(lambda: pid.exists() and pid.read_text().strip())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert "the same words with --resume go on" in " ".join(error.split())
    assert not is_alive(int(pid.read_text()))
    assert len(log_of(tmp_path / "run", "mine").read_text().splitlines()) == 1
