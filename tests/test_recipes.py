"""Every recipe runs as it stands and draws its picture; those that need an extra are tested with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.recipes import blocks, check_block
from website.recipes import pictures_in, recipes

WITH_EXTRAS = {"atari_and_minigrid": ("minigrid", "third_party"), "stop_and_go_on": ("rl",)}
"""Recipes that need packages of folders of tests/extras."""


@pytest.mark.integration
@pytest.mark.parametrize(("code", "picture"), blocks(*({page.stem for page in recipes()} - set(WITH_EXTRAS))))
def test_it_draws_its_picture(code: str, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_block(code, picture, tmp_path)


def test_the_overview_shows_all() -> None:
    overview = (ROOT / "docs" / "recipes" / "index.md").read_text("utf-8")
    for page in recipes():
        assert f"({page.name})" in overview
        assert any(f"pictures/recipes/{picture}" in overview for picture in pictures_in(page))


@pytest.mark.parametrize("stem", WITH_EXTRAS)
def test_recipes_with_extras_are_tested_there(stem: str) -> None:
    for folder in WITH_EXTRAS[stem]:
        tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "extras" / folder).glob("test_*.py"))
        assert stem in tests
