"""The blocks of the recipe stop_and_go_on: what was stopped equals what was not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")

from tests.recipes import blocks, check_block


@pytest.mark.parametrize(("code", "picture"), blocks("stop_and_go_on"))
def test_it_draws_its_picture_and_goes_on(
    code: str, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    check_block(code, picture, tmp_path)
    printed = capsys.readouterr().out
    assert "equal weights: True" in printed
    assert "False" not in printed
