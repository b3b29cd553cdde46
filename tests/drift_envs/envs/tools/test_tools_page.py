"""The page of the service desk, and what the site adds to it."""

from __future__ import annotations

from pathlib import Path

from drift_envs.envs.tools.database import POLICY
from drift_envs.envs.tools.interface import TOOLS_KNOBS
from drift_envs.envs.tools.requests import HELD_OUT, KINDS, WORDINGS
from website.desk import BOUNDS, show_desk

TEXT = (Path(__file__).parents[4] / "docs" / "tools.md").read_text(encoding="utf-8")


def test_the_page_of_the_site_shows_tools_values_and_rules() -> None:
    text = "\n".join(show_desk())
    assert "| `find_order(customer_id: C-0000, date: YYYY-MM-DD)` | read |" in text
    assert all(f"| `{rule}` |" in text for rule in POLICY)
    assert "| `return_item` | `register_return` and `complete_return` |" in text
    assert set(BOUNDS) <= set(TOOLS_KNOBS)


def test_every_kind_of_request_is_named() -> None:
    assert not [kind for kind in KINDS if f"`{kind}`" not in TEXT]


def test_each_kind_has_three_wordings_and_two_that_are_held_out() -> None:
    assert list(WORDINGS) == list(HELD_OUT) == list(KINDS)
    for kind in KINDS:
        assert len({*WORDINGS[kind], *HELD_OUT[kind]}) == 5
