"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml
from drift_agents.cli.app import app as agents_app

from drift_envs.cli.app import app as envs_app
from drift_envs.registration import knob_table_of
from drift_envs.schedule import load_schedule

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_the_python_examples_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for number, block in enumerate(blocks("python")):
        exec(compile(block, f"README.md, example {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert "drift-1" in printed
    assert printed.count("\n") > 60, "one line for every round of the agent"


def test_the_schedule_is_a_schedule() -> None:
    (text,) = blocks("yaml")
    schedule = load_schedule(yaml.safe_load(text), table=knob_table_of("DriftFrozenLake-v0"))
    assert [drift.name for drift in schedule.drifts] == ["new-map", "thaw", "regime", "weekends", "storms"]


def parse(app: typer.Typer, arguments: list[str]) -> None:
    """Parse a command line without running it; raises if it is wrong."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    group.commands[arguments[0]].make_context(arguments[0], arguments[1:])


def test_the_commands_are_commands() -> None:
    apps = {"drift-envs": envs_app, "drift-agents": agents_app}
    lines = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    lines += re.findall(r"`(drift-(?:envs|agents) [^`]+)`", TEXT)
    asked = [shlex.split(line) for line in lines if line.startswith(tuple(apps))]
    assert len(asked) >= 5
    for program, *arguments in asked:
        parse(apps[program], arguments)


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
