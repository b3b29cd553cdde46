"""CONTRIBUTING shows the order of folders that `tests/test_architecture.py` checks, and its paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_architecture import ORDER

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def render_order(order: dict[str, list[list[str]]]) -> str:
    """The table as Markdown, highest row first."""
    height = max(map(len, order.values()))
    lines = [f"| row | {' | '.join(f'`{package}`' for package in order)} |", "|---" * (len(order) + 1) + "|"]
    for row in range(height, 0, -1):
        cells = [
            ", ".join(f"`{name}`" for name in rows[row - 1]) if row <= len(rows) else "" for rows in order.values()
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_order_of_folders_is_the_tested_one() -> None:
    expected = render_order(ORDER)
    assert expected in TEXT, f"CONTRIBUTING.md should show\n{expected}"


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:drift_envs|agents|tests|docs|schedules)/[\w./]+)`", TEXT)))
)
def test_paths_exist(path: str) -> None:
    assert (ROOT / path).exists()
