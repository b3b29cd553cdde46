"""The tables of knobs in documents."""

import pytest

from drift_envs.knobs import Knob
from website import knobs


@pytest.mark.parametrize("name", knobs.PAGES)
def test_pages_have_what_environments_declare(name: str) -> None:
    """If this fails, run `python -m website.knobs`."""
    text = (knobs.DOCS / name).read_text("utf-8")
    assert knobs.BLOCK.search(text)
    assert knobs.fill_knobs(text) == text


def test_every_page_with_a_table_is_written() -> None:
    assert {page.name for page in knobs.DOCS.rglob("*.md") if knobs.BLOCK.search(page.read_text("utf-8"))} == set(
        knobs.PAGES
    )


def test_bounds_are_an_interval_choices_or_nothing() -> None:
    shown = [
        knobs.show_bounds(knob)
        for knob in (
            Knob("house", 0, (0, 1_000_000), "", "integer"),
            Knob("slip", 0.0, (0.0, 0.25), ""),
            Knob("order", "newest", ("newest", "oldest"), "", "string"),
            Knob("gone", (), None, "", "rows"),
        )
    ]
    assert shown == ["0 to 1,000,000", "0 to 0.25", "newest, oldest", ""]
