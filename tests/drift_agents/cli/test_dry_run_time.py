"""`--dry-run` of an experiment without language models: of long cells the first episodes are played."""

from __future__ import annotations

import pytest
from drift_agents.cli import dry_run
from drift_agents.experiment.loader import load_experiment

CHANGES = {
    "seeds": 2,
    "rounds": 4,
    "schedules": ["tools/implicit"],
    "agents": {"memory": ["vanilla"], "verifier": ["none"], "policy": "planner"},
}


@pytest.mark.integration
def test_episodes_that_are_not_played_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment("desk", CHANGES)
    played: list[int] = []
    true_play = dry_run.play

    def count(*arguments):
        for row in true_play(*arguments):
            played[-1] += 1
            yield row

    monkeypatch.setattr(dry_run, "play", lambda *arguments: (played.append(0), count(*arguments))[1])
    whole = [(row.schedule, row.cells, row.episodes) for row in dry_run.measure(experiment)]
    most = sum(played)
    played.clear()
    monkeypatch.setattr(dry_run, "MEASURED_SECONDS", 0.0)
    rows = dry_run.measure(experiment)
    assert [(row.schedule, row.cells, row.episodes) for row in rows] == whole
    assert set(played) == {1}
    assert sum(played) < most
    assert all(row.seconds > 0 for row in rows)
