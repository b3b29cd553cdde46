"""Addresses as folders of runs; `tests/extras/remote` has runs in object stores."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.experiment.remote import is_remote


@pytest.mark.parametrize("words", [["run", "glove-quick", "--out"], ["report"], ["inspect"]])
def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any, words: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert main([*words, "s3://bucket/run"]) == 1
    assert 'pip install "drift-envs[remote]"' in capsys.readouterr().err
    assert not Path("s3:").exists()


def test_a_path_is_no_address() -> None:
    assert not is_remote(Path("runs/s3"))
    assert is_remote("memory://run")
