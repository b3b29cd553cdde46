"""The block of the recipe atari_and_minigrid that needs Minigrid."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("minigrid", reason="needs the extra `minigrid`")

from tests.recipes import blocks, check_block


@pytest.mark.parametrize(("code", "picture"), blocks("atari_and_minigrid", picture="minigrid.png"))
def test_it_draws_its_picture(code: str, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_block(code, picture, tmp_path)
