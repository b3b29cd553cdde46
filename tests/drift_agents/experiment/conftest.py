"""One place for the schedule of a module's tests: its path stands in a run, so that tests can share one."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the schedule, and for one run of it."""
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture
def schedule_file(place: Path, puddle: str) -> Path:
    path = place / "puddle.yaml"
    path.write_text(puddle, encoding="utf-8")
    return path
