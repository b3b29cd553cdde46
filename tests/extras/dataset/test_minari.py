"""Data sets in Minari's form, read back by Minari itself."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

for package in ("pyarrow", "minari", "h5py", "PIL"):
    pytest.importorskip(package, reason="needs the extra `dataset`")

import minari

from drift_envs.cli import main
from drift_envs.datasets import DatasetFolder, DatasetOptions, recorder, write_dataset, write_minari

WEAK = {"version": 1, "name": "weak", "clock": "step", "drifts": [{"at": 500, "set": {"power": 0.001}}]}
CASES = [
    ("DriftFrozenLake-v0", "frozen_lake/tides:family", "optimal", 45),
    ("DriftMountainCarContinuous-v0", WEAK, "random", 2),
    ("DriftHouse-v0", "house/locked", "random", 5),
]


def text(values):
    return [value.decode() if isinstance(value, bytes) else value for value in values]


@pytest.mark.integration
@pytest.mark.parametrize(("env_id", "schedule", "policy", "episodes"), CASES)
def test_minari_has_the_steps_and_labels_of_the_parquet_files(
    env_id, schedule, policy, episodes, tmp_path, monkeypatch
):
    monkeypatch.setattr(recorder, "STEPS_PER_PART", 2000)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    folder = write_dataset(DatasetOptions(env_id, schedule, policy, episodes, lifetimes=2), tmp_path)
    name = write_minari(tmp_path)
    found = minari.load_dataset(name)
    assert (found.total_episodes, minari.list_local_datasets().keys()) == (2 * episodes, {name})
    rows = [row for lifetime in (0, 1) for table in folder.tables(lifetime) for row in table.to_pylist()]
    knobs = [column for column in rows[0] if column.startswith("knob.")]
    assert found.total_steps == len(rows)
    for episode in found.iterate_episodes():
        own, rows = rows[: len(episode.rewards)], rows[len(episode.rewards) :]
        assert np.array_equal(episode.observations, [row["observation"] for row in own] + [own[-1]["next_observation"]])
        assert np.array_equal(episode.actions, [row["action"] for row in own])
        for field, column in (("rewards", "reward"), ("terminations", "terminated"), ("truncations", "truncated")):
            assert getattr(episode, field).tolist() == [row[column] for row in own]
        for column in ("lifetime", "episode", "tick", "phase", *knobs):
            # as everywhere in Minari, `infos` begins with that of the reset: the labels of the first step
            assert text(episode.infos[column.replace(".", "_")]) == [row[column] for row in [own[0], *own]]
        logs = [json.loads(entry) if entry else [] for entry in text(episode.infos["drift_log"])]
        assert logs == [row["drift_log"] for row in [own[0], *own]]
    assert not rows
    env = found.recover_environment()
    assert env.observation_space == found.observation_space
    env.close()


def test_the_command_writes_the_same_bytes_again_and_leaves_nothing_else(tmp_path, capsys):
    arguments = ["dataset", "DriftFrozenLake-v0", "--episodes", "30", "--minari", "-q", "--out", str(tmp_path)]

    def read():
        return {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    assert main(arguments) == 0
    (name,) = re.findall(r"minari.load_dataset\('(.+)'\)", capsys.readouterr().out)
    first = read()
    assert main(arguments) == 0
    assert read() == first
    assert {path.name for path in tmp_path.iterdir()} == {"dataset.json", "steps", name.split("/")[0]}
    assert DatasetFolder(tmp_path).manifest()["episodes"] == 30
