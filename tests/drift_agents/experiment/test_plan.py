"""Cells and episodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_environment import make_env, read_schedule
from drift_agents.experiment.config import ScheduleSettings
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.plan import PlannedEpisode, plan_cells, plan_episodes


def episodes(source: str, settings: ScheduleSettings) -> tuple[PlannedEpisode, ...]:
    watched = make_env(read_schedule(source))
    watched.reset(seed=0)
    return plan_episodes(watched.timeline, settings)


def test_everybody_plays_in_the_order_of_the_file(data: dict[str, Any]) -> None:
    cells = plan_cells(parse_experiment(data))
    assert [cell.labels for cell in cells if cell.seed == 0] == [
        ("none", "none", "planner"),
        ("vanilla", "none", "planner"),
        ("vanilla", "glove", "planner"),
        ("vanilla", "oracle_realign", "planner"),
        ("vanilla", "oracle_reset", "planner"),
        ("none", "none", "clairvoyant"),
    ]
    assert [cell.seed for cell in cells] == [0, 1] * 6
    assert len({cell.key for cell in cells}) == len(cells)


def test_nothing_to_verify_is_played_once(data: dict[str, Any]) -> None:
    data["agents"] = [{"memory": "none", "verifier": ["overwrite", "glove"], "policy": "random"}]
    data["references"] = ["oracle_reset"]
    assert [cell.labels for cell in plan_cells(parse_experiment(data))] == [("none", "none", "random")] * 2


def test_blocks_add_up_and_equal_agents_are_played_once(data: dict[str, Any]) -> None:
    data["agents"] = [
        {"memory": "vanilla", "policy": "random"},
        {"memory": ["vanilla", {"vanilla": {"k": 2}}], "policy": ["random", "planner"]},
    ]
    data["references"] = []
    assert [cell.labels for cell in plan_cells(parse_experiment(data)) if cell.seed == 0] == [
        ("vanilla", "none", "random"),
        ("vanilla(k=2)", "none", "random"),
        ("vanilla", "none", "planner"),
        ("vanilla(k=2)", "none", "planner"),
    ]


def test_a_schedules_own_options_are_laid_over(data: dict[str, Any]) -> None:
    (schedule,) = data["schedules"]
    data["environments"] = {schedule: {"verifier": {"glove": {"epsilon": 0.2}}}}
    cells = plan_cells(parse_experiment(data))
    assert {cell.labels[1]: cell.verifier.options for cell in cells}["glove"] == {"epsilon": 0.2}
    assert all(cell.verifier.options == {} for cell in cells if cell.labels[1] != "glove")


def test_a_label_distinguishes_parts_of_one_name_and_wins(data: dict[str, Any]) -> None:
    (schedule,) = data["schedules"]
    data["agents"] = {
        "memory": ["vanilla", {"vanilla": {"k": 2}}],
        "verifier": [{"glove": {"persistence": 2}}, {"glove": {"persistence": 3}}],
        "policy": "planner",
    }
    options = {"glove(persistence=3)": {"epsilon": 0.4}, "glove": {"epsilon": 0.2, "budget": 3}}
    data["environments"] = {schedule: {"verifier": options, "memory": {"vanilla(k=2)": {"order": "newest"}}}}
    cells = {cell.labels[:2]: cell for cell in plan_cells(parse_experiment(data))}
    patient = cells["vanilla(k=2)", "glove(persistence=2)"], cells["vanilla", "glove(persistence=3)"]
    assert [cell.verifier.options for cell in patient] == [
        {"persistence": 2, "epsilon": 0.2, "budget": 3},
        {"persistence": 3, "epsilon": 0.4, "budget": 3},
    ]
    assert [cell.memory.options for cell in patient] == [{"k": 2, "order": "newest"}, {}]


def test_file_names_are_safe_and_short(data: dict[str, Any]) -> None:
    data["agents"] = {
        "memory": [{"vanilla": {"k": k}} for k in (1, 2)],
        "verifier": [{"glove": {"prober": {"replay": {"attempts": n}}, "budget": "/../ " * 60}} for n in (1, 2)],
        "policy": "random",
    }
    keys = [cell.key for cell in plan_cells(parse_experiment(data))]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[A-Za-z0-9_.=-]{1,200}", key) and not key.startswith(".") for key in keys)


def test_rounds_are_the_first_episodes_of_every_phase() -> None:
    planned = episodes("frozen_lake/explicit", ScheduleSettings(rounds=2))
    assert planned == (
        PlannedEpisode(0, 1, "source", 0),
        PlannedEpisode(1, 2, "source", 1),
        PlannedEpisode(2, 1, "drift-1", 20),
        PlannedEpisode(3, 2, "drift-1", 21),
        PlannedEpisode(4, 1, "drift-2", 40),
        PlannedEpisode(5, 2, "drift-2", 41),
    )


def test_episodes_let_time_go_on() -> None:
    assert episodes("frozen_lake/tides", ScheduleSettings(episodes=3)) == (
        PlannedEpisode(0),
        PlannedEpisode(1),
        PlannedEpisode(2),
    )


@pytest.mark.parametrize(
    ("source", "rounds", "expected"),
    [
        ("frozen_lake/explicit", 21, "Received 21, phase 'source' holds 20"),
        ("frozen_lake/tides", 2, "the drift 'flood' has `every` and `for`"),
    ],
)
def test_rounds_that_a_schedule_cannot_give(source: str, rounds: int, expected: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        episodes(source, ScheduleSettings(rounds=rounds))


def test_rounds_need_the_clock_of_episodes(tmp_path: Path) -> None:
    path = tmp_path / "steps.yaml"
    path.write_text(
        "version: 1\nname: steps\nenv: DriftFrozenLake-v0\nclock: step\ndrifts: [{at: 9, set: {slip: 0.1}}]\n"
    )
    with pytest.raises(
        ExperimentError, match=re.escape("where its clock is `step`. In the file: environments: {steps: {episodes: N}}")
    ):
        episodes(str(path), ScheduleSettings(rounds=2))
    assert len(episodes(str(path), ScheduleSettings(episodes=2))) == 2
