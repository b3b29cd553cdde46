"""Every page with a table that carries the names of papers and is played by rules says so, and names what is idle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from drift_agents.analysis.mechanism_test import MARK, UNCHANGING
from drift_agents.analysis.schedule_runs import MEMORY_NAMES
from drift_agents.registry import MEMORIES

ROOT = Path(__file__).resolve().parent.parent
BY_MODELS = {"docs/models_played.md"}
"""Pages whose tables are of language models."""

OWN = {"none", "vanilla", "store"}
"""Memories that are called by no paper's name of their own."""
NAMES = {
    memory: re.compile(rf"\b({re.escape(memory)}|{re.escape(MEMORY_NAMES.get(memory, memory))})\b", re.IGNORECASE)
    for memory in MEMORIES.names()
    if memory not in OWN
}
VERIFIER = re.compile(r"\b(glove|EDV)\b", re.IGNORECASE)


def find_results(text: str) -> list[tuple[int, set[str]]]:
    """Where rows with figures of such agents stand in a page, with the memories that they name."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        named = " ".join(cells[:2])
        memories = {memory for memory, name in NAMES.items() if name.search(named)}
        figures = sum(bool(re.match(r"[^\w|]*\d", cell)) for cell in cells[1:])
        figures += sum(bool(re.search(r"\d \[[^\]]*\d\]", cell)) for cell in cells[1:])
        if figures >= 2 and (memories or VERIFIER.search(named)):
            found.append((at, memories))
        at += len(line)
    return found


PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if find_results(page.read_text("utf-8")) and page.relative_to(ROOT).as_posix() not in BY_MODELS
]


def test_rows_of_results_are_found() -> None:
    assert find_results("| memory | a | b |\n|---|---|---|\n| Vanilla | 1 | 2 |\n") == []
    assert find_results("| MemoryBank | 1 [0, 2] |\n| `k` | 5 | MemoryBank |\n") == [(0, {"memory_bank"})]
    assert find_results("| vanilla + GLOVE | 85 | 3 % |\n") == [(0, set())]
    assert len(PAGES) > 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_table_of_rules_says_so_and_names_what_changes_nothing(page: Path) -> None:
    text = page.read_text("utf-8")
    rows = find_results(text)
    mark = text.find(MARK)
    assert 0 <= mark < rows[0][0], f"should have {MARK!r} before its first table of results"
    paragraph = " ".join(re.findall(rf"{re.escape(MARK)}.*", text))
    if page.name == "mechanisms.md":
        return
    idle = {what for _, memories in rows for memory in memories for what in UNCHANGING.get(memory, ())}
    missing = sorted(what for what in idle if what not in paragraph.lower())
    assert not missing, f"should name beside it what changes no episode: {', '.join(missing)}"


def test_what_changes_nothing_is_what_the_study_found() -> None:
    text = (ROOT / "docs" / "mechanisms.md").read_text("utf-8")
    found: dict[str, list[str]] = {}
    for line in re.findall(r"^\| (\S.*) \|$", text, re.MULTILINE):
        memory, what, _, *counts = [cell.strip() for cell in line.split("|")]
        if counts and all(count.startswith("0 of ") for count in counts):
            found.setdefault(memory, []).append(what)
    assert found == {MEMORY_NAMES[memory]: list(what) for memory, what in UNCHANGING.items()}
