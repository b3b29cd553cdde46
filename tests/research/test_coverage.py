"""What of the five papers is here: every row of `coverage.yaml`, and every command in it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from drift_agents.cli.app import app as agents_app
from drift_agents.cli.app import main as agents_main
from drift_agents.errors import EvidenceError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.players import needs_model

from research import coverage
from research.__main__ import app as research_app
from research.__main__ import main as research_main
from research.verify_map.pages import ROOT

PAPERS = coverage.read_coverage()
COMMANDS = sorted(
    {one.command for paper in PAPERS for rows in (paper.items, paper.claims) for one in rows if one.command is not None}
)
PROGRAMS = {
    "drift-agents": (agents_app, agents_main),
    "python -m research": (research_app, research_main),
}
PACKAGES = {"alfworld": "textworld", "tau2": "tau2"}
"""The package behind an environment's extra, by the folder of its schedules."""
SHORT = {"study": ["--seeds", "1"], "experience": ["--seeds", "1"]}
"""The options with which a command of `python -m research` is short."""


def split(command: str) -> tuple[str, list[str]]:
    """The program and the words after its name."""
    words = shlex.split(command)
    count = 3 if words[0] == "python" else 1
    return " ".join(words[:count]), words[count:]


def parse(program: str, words: list[str]) -> dict[str, Any]:
    """The values of a command's parameters; usage errors are raised."""
    group: Any = typer.main.get_command(PROGRAMS[program][0])
    context = group.make_context(program, list(words))
    name, command, rest = group.resolve_command(context, list(words))
    return dict(command.make_context(name, rest, parent=context).params)


def test_the_pages_have_the_tables_of_the_file() -> None:
    """`make tables` does not change them."""
    for path, text in coverage.render_coverage().items():
        assert path.read_text("utf-8") == text, f"run `make tables`: {path.name} has other rows"
        assert text.count("<!-- table ") - text.count("<!-- table tau2-") == 1


def test_a_papers_page_begins_with_its_table() -> None:
    for paper in PAPERS:
        before = (ROOT / paper.page).read_text("utf-8").partition("<!-- table coverage -->")[0]
        assert "\n## " not in before


def test_a_row_of_a_table_is_markdown_as_it_stands_in_the_file() -> None:
    """`<` in a code span stays one: an entity there is shown as it is written."""
    (page,) = [text for path, text in coverage.render_coverage().items() if path.name == "edv.md"]
    assert "in part: `<AgentPolicy>` and `<Tools>` are left out" in page


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_given(command: str) -> None:
    """Its options parse, and experiments and tests exist."""
    program, words = split(command)
    if program == "python -m pytest":
        assert all((ROOT / word).is_file() for word in words)
        return
    values = parse(program, words)
    if words[0] in ("run", "experience"):
        assert load_experiment(values["experiment"]).schedules


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs_at_its_smallest_size(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, words = split(command)
    if program == "python -m pytest":
        pytest.skip("a test of the suite")
    if words[0] == "run":
        experiment = load_experiment(parse(program, words)["experiment"])
        if needs_model(experiment):
            pytest.skip("needs a language model")
        extra = experiment.schedules[0].partition("/")[0]
        if extra in PACKAGES:
            pytest.importorskip(PACKAGES[extra], reason=f"needs the extra `{extra}`")
        if "--schedules" not in words:
            words += ["--schedules", experiment.schedules[0]]
        size = ["--set", "episodes=1"] if experiment.rounds is None else ["--rounds", "1"]
        words += ["--seeds", "1", "--jobs", "1", *size]
    else:
        words += SHORT.get(words[0], [])
    words = [str(ROOT / word) if (ROOT / word).is_file() else word for word in words]
    (tmp_path / "research").symlink_to(ROOT / "research")  # weights, which experiments name from the root
    monkeypatch.chdir(tmp_path)
    status = PROGRAMS[program][1](words)
    assert status == 0, capsys.readouterr().err


ITEM = {"item": "table 1", "place": "5.2", "status": "faithful", "command": "drift-agents run glove-explicit"}
CLAIM = {"id": "more", "claim": "more is better", "place": "4", "holds": "untestable", "here": "needs a model"}


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("items", {**ITEM, "status": "in part"}, "a `reason` should stand with every status but `faithful`"),
        ("items", {**ITEM, "reason": "why"}, "a `reason` should stand with every status but `faithful`"),
        ("items", {**ITEM, "command": None}, "a `command` should stand with every status but `not here`"),
        (
            "items",
            {**ITEM, "status": "not here", "reason": "no data"},
            "a `command` should stand with every status but `not here`",
        ),
        ("items", {**ITEM, "status": "done"}, "items.0.status: Input should be 'faithful'"),
        (
            "claims",
            {**CLAIM, "holds": "yes", "n": "30"},
            "should stand with every claim that is tested, and only there",
        ),
        ("claims", {**CLAIM, "n": "30"}, "should stand with every claim that is tested, and only there"),
    ],
)
def test_rows_that_leave_something_out_are_refused(
    kind: str, row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "coverage.yaml"
    paper = {"name": "P", "page": "docs/p.md", "items": [ITEM], kind: [row]}
    path.write_text(json.dumps({"papers": [paper]}), "utf-8")  # JSON is YAML
    with pytest.raises(EvidenceError, match=re.escape(message)):
        coverage.read_coverage(path)
