"""The row of the map where verifying is a look: its schedules, and who is in which column."""

from __future__ import annotations

from pathlib import Path

import pytest

from drift_envs import load_schedule
from research.verify_map import facts_row


def test_its_schedules_are_valid(tmp_path: Path) -> None:
    paths = facts_row.write_points(tmp_path)
    assert len(paths) == len(facts_row.PRICES) * len(facts_row.FALSE_PERCENT)
    last = load_schedule(paths[-1])
    assert last is not None
    assert (last.base["price"], last.base["transient"]) == (0.5, 0.1)


def test_who_never_asks_loses_and_who_always_asks_pays_its_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PRICES", (0.25,)), ("FALSE_PERCENT", (0,)), ("EPISODES", 40)):
        monkeypatch.setattr(facts_row, name, value)
    (((price, percent, *cells), _),) = facts_row.play_row(tmp_path, seeds=1, jobs=1).rows
    assert (price, percent) == ("0.25", "0")
    never, doubt, _, always = (float(cell.split()[0]) for cell in cells)
    assert always == 75
    assert never < always < doubt
