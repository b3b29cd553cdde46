"""Addresses of pages that the site makes itself."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

from website import hooks

ROOT = Path(__file__).resolve().parents[2]


def test_the_way_back_of_the_interactive_board_is_a_file() -> None:
    """Files that are opened without a server have no `index.html` behind a folder's name."""
    assert "use_directory_urls: false" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert hooks.BOARD.endswith(".html")
    assert (ROOT / "docs" / hooks.BOARD).with_suffix(".md").is_file()
