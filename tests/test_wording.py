"""Code, documents and messages are written in plain technical English."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = (".py", ".md", ".yaml", ".yml", ".txt", ".js", ".html", ".css", ".cfg", ".toml", "Makefile")
WORDS = re.compile(
    r"\b(?:(?i:whoever|somebody|nobody|everybody|anybody|vouch(?:es)?|in the same coin|luck of|bad luck|speaks? for"
    r"|in mind(?!\.)|what becomes? of|what became of|(?:is|was|were) told|told apart|tells? apart|for whom|with whom"
    r"|against whom|who decides|own affair|before the agent's eyes|let a shopper in)|TODO|FIXME)\b"
)
EXEMPT = {
    Path("tests/test_wording.py"),
    Path("agents/drift_agents/team/templates/edv_vote.txt"),  # a prompt, whose bytes the recorded digests hold
    Path("docs/prompts.md"),  # shows that prompt
}


def tracked_files() -> list[Path]:
    """The text files of the checkout; of an unpacked archive, which has no git, all of its text files."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = filter(None, listed.stdout.split("\0")) if listed.returncode == 0 else []
    found = [Path(name) for name in names] or [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [path for path in found if path.name.endswith(SUFFIXES) and path not in EXEMPT and (ROOT / path).is_file()]


def test_no_file_uses_a_word_that_hides_its_subject() -> None:
    found = []
    for path in tracked_files():
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), start=1):
            if match := WORDS.search(line):
                found.append(f"{path}:{number}: {match[0]}")
    if found:
        pytest.fail("name the subject (the agent, the caller, no agent, all agents):\n" + "\n".join(found))
