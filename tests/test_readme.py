"""What the README shows works as it stands there."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
import typer
from drift_agents.cli.app import app as agents_app

from drift_envs import __version__
from drift_envs.cli.app import app as envs_app
from research.__main__ import app as research_app
from tests.documents import read_code, run_code
from webshop_server.__main__ import app as shop_app

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    run_code(read_code("README.md")[0])
    assert "drift-1" in capsys.readouterr().out


def test_the_citation_is_of_this_version() -> None:
    (entry,) = read_code("README.md", "bibtex")
    assert f"version = {{{__version__}}}" in entry
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_extra_is_named() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    text = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    missing = [extra for extra in config["options.extras_require"] if extra != "test" and f"`{extra}`" not in text]
    assert not missing, "docs/installation.md names every extra"


def parse(app: typer.Typer, arguments: list[str]) -> None:
    """Parse a command line without running it; raises if it is wrong."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    if arguments[0].startswith("-"):
        assert arguments[0] in {option for parameter in group.params for option in parameter.opts}
    elif len(arguments) == 1:
        assert arguments[0] in group.commands, "a command that the text mentions"
    else:
        group.commands[arguments[0]].make_context(arguments[0], arguments[1:])


APPS = {
    "drift-envs": envs_app,
    "drift-agents": agents_app,
    "python -m webshop_server": shop_app,
    "python -m research": research_app,
}


def commands_in(text: str) -> list[str]:
    """The command lines of a page: those of its shell examples, and those in backticks."""
    shell = re.findall(r"^```(?:sh|bash)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line.split("#")[0].strip() for block in shell for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(rf"`((?:{'|'.join(APPS)}) [^`]+)`", text)
    lines = [re.sub(r"\[[^\]]*\]", "", line) for line in lines]  # optional parts of a usage
    return [line for line in lines if line.startswith(tuple(f"{program} " for program in APPS))]


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_documents_can_be_parsed(page: Path) -> None:
    for line in commands_in(page.read_text(encoding="utf-8")):
        program = next(name for name in APPS if line.startswith(f"{name} "))
        words = shlex.split(line.removeprefix(program))
        ends = [index for index, word in enumerate(words) if word in ("|", ">", "&&", ";")]
        try:
            parse(APPS[program], words[: ends[0]] if ends else words)
        except Exception as error:  # noqa: BLE001 - names the line
            pytest.fail(f"{line}: {error!r}")
