"""Thumbnails and films of environments."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from website import pictures


def test_every_environment_that_can_be_drawn_has_both() -> None:
    """If this fails, run `python -m website.pictures` where the extras of new ids are installed."""
    for ending in (".png", ".webp"):
        assert {path.stem for path in pictures.FOLDER.glob(f"*{ending}")} == set(pictures.DRAWN)
    assert all(path.stat().st_size <= 150_000 for path in pictures.FOLDER.iterdir())


@pytest.mark.integration
def test_pictures_are_the_same_each_time_and_the_film_shows_the_drift() -> None:
    first, second = (pictures.draw_thumbnail("DriftFrozenLake-v0") for _ in range(2))
    assert first.size == (pictures.WIDTH, pictures.HEIGHT)
    assert first.tobytes() == second.tobytes()
    film = Image.open(io.BytesIO(pictures.draw_film("DriftFrozenLake-v0")))
    assert film.n_frames > 10
    film.seek(0)
    before = film.convert("RGB").tobytes()
    film.seek(film.n_frames - 1)
    assert film.convert("RGB").tobytes() != before


def test_films_of_controls_show_another_schedule() -> None:
    assert pictures.film_schedule("DriftFrozenLake-v0") == "frozen_lake/explicit"
    assert pictures.film_schedule("DriftMountainCar-v0") == "mountain_car/fatigue"
    assert pictures.describe_film("DriftMountainCar-v0").startswith("The best policy of the first phase")
