"""The table of shipped schedules."""

from __future__ import annotations

from drift_envs import load_schedule
from website import shipped


def test_named_rows_are_computed_again_and_others_stay(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    monkeypatch.setattr(shipped, "listed", lambda: ["frozen_lake/null", "frozen_lake/thaw"])
    kept = ["frozen_lake/null", *"abcde"]
    shipped.write_table([kept], path)
    assert shipped.main(["frozen_lake/thaw"], path) == 0
    about = load_schedule("frozen_lake/thaw").description
    computed = ["frozen_lake/thaw", "explicit", "thaw", "100%", "57%", about]
    assert list(shipped.read_table(path).values()) == [kept, computed]


def test_a_name_without_a_row_is_refused(capsys):
    assert shipped.main(["lake/nowhere"]) == 2
    assert "lake/nowhere" in capsys.readouterr().err
