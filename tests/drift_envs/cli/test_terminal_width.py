"""Tables of `drift-envs` at 80 columns break no word."""

from __future__ import annotations

import pytest

from drift_envs.cli import main


def words_at(
    width: int, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> set[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    return {word for line in lines for word in line.split()}


@pytest.mark.parametrize(
    "command",
    [
        ["list", "--env", "DriftWebShop-v0"],
        ["list", "--schedules", "DriftWebShop-v0"],
        ["list"],
        ["show", "frozen_lake/tides"],
        ["show", "webshop/explicit"],
    ],
    ids=" ".join,
)
def test_no_word_is_broken(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    wide = words_at(400, command, monkeypatch, capsys)
    narrow = words_at(80, command, monkeypatch, capsys)
    heads = {"tick", "each;"}  # of `list`, where descriptions stand below the drifts
    assert narrow - wide - heads == set()
    assert wide - narrow - heads == set(), "nothing is cut"
