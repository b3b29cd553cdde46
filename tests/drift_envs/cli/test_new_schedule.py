"""The command `new-schedule`: its file is valid, as it is and with the examples in its comments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drift_envs.cli import main
from drift_envs.cli.listing import draft_schedule
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule
from tests.core_ids import CORE_IDS


@pytest.mark.parametrize("env_id", IDS)
def test_the_draft_is_valid_with_and_without_its_examples(env_id: str, tmp_path: Path) -> None:
    table, path = IDS[env_id].knob_table, tmp_path / "mine.yaml"
    default = load_schedule(IDS[env_id].schedule, table=table)
    for text, drifts in (
        (draft_schedule(env_id), 1),
        (re.sub(r"^#(?=  - )", "", draft_schedule(env_id), flags=re.MULTILINE), 4),
    ):
        path.write_text(text, encoding="utf-8")
        loaded = load_schedule(path, table=table)
        assert loaded is not None
        assert default is not None
        assert (loaded.env, loaded.base, len(loaded.drifts)) == (env_id, default.base, drifts)
        assert loaded.drifts[0].set == default.drifts[0].set
    assert all(f"#   {name}: " in draft_schedule(env_id) for name in table)


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_the_file_works_with_validate_and_show(env_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    assert main(["new-schedule", env_id, "--out", str(path)]) == 0
    assert main(["validate", str(path)]) == 0
    assert main(["plot", "--schedule", str(path)]) == 0
    assert "mine" in capsys.readouterr().out
    assert main(["new-schedule", env_id, "--out", str(path)]) == 1
    assert "should be a file that does not exist" in capsys.readouterr().err
