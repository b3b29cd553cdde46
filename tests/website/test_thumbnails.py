"""The thumbnails of all environments."""

import pytest

from tests.core_ids import CORE_IDS
from website import thumbnails


def test_the_page_shows_every_environment() -> None:
    """If this fails, run `python -m website.thumbnails` where the extras of new ids are installed."""
    assert thumbnails.show_thumbnails() in thumbnails.PAGE.read_text("utf-8")
    assert {path.stem for path in thumbnails.FOLDER.iterdir()} == set(thumbnails.DRAWN)


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_a_thumbnail_shows_something_and_is_drawn_equal_twice(env_id: str) -> None:
    first, second = (thumbnails.draw_thumbnail(env_id) for _ in range(2))
    assert first.size == (thumbnails.WIDTH, thumbnails.HEIGHT)
    assert len(first.getcolors() or ()) > 2
    assert first.tobytes() == second.tobytes()
