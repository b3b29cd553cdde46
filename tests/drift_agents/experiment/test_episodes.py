"""One cell: seeds, ticks and phases as the schedule's clock has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.matching import Exact
from drift_agents.envs.mountain_car.states import MountainCarMatching
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import PartSpec, RecallOptions, ScheduleSettings
from drift_agents.experiment.episode import episode_seed, make_setup, play
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.plan import Cell
from drift_agents.prompt.lessons import read_view
from drift_agents.types import AgentClock, Experience, Outcome


def cell(source: str, verifier: str = "none", seed: int = 0, policy: str = "random") -> Cell:
    parts = PartSpec(name="vanilla"), PartSpec(name=verifier), PartSpec(name=policy)
    return Cell(source, *parts, seed, ("vanilla", verifier, policy))


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "schedule.yaml"
    path.write_text(f"version: 1\nname: mine\n{text}", encoding="utf-8")
    return str(path)


def test_every_episode_has_the_stream_of_its_seed_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, Any]] = []
    play_one = Agent.run_episode

    def note(self: Agent, env: Any, seed: Any = None, options: Any = None) -> Any:
        asked.append((seed, options))
        return play_one(self, env, seed, options)

    monkeypatch.setattr(Agent, "run_episode", note)
    list(play(cell("frozen_lake/explicit", seed=7), ScheduleSettings(rounds=1)))
    assert asked == [
        (episode_seed(7, index), {"drift_clock": "continue", "drift_tick": tick})
        for index, tick in enumerate((0, 20, 40))
    ]
    seeds = {episode_seed(seed, index) for seed in range(50) for index in range(50)}
    assert len(seeds) == 2500


def test_the_cells_seed_fixes_the_drift_for_everybody() -> None:
    """Reseeding episodes must not draw another family of maps."""
    maps = {}
    for seed, verifier in ((0, "none"), (0, "overwrite"), (1, "none")):
        setup = make_setup(cell("frozen_lake/explicit:family", verifier, seed), ScheduleSettings(rounds=1))
        setup.env.env.reset(seed=seed)
        for index in range(3):
            setup.env.reset(
                seed=episode_seed(seed, index), options={"drift_clock": "continue", "drift_tick": index * 20}
            )
            maps[seed, verifier, index] = setup.env.knobs(setup.env.tick)["map"]
    assert all(maps[0, "none", index] == maps[0, "overwrite", index] for index in range(3))
    assert all(maps[0, "none", index] != maps[1, "none", index] for index in range(3))
    assert len({maps[0, "none", index] for index in range(3)}) == 3


def test_time_goes_on_by_itself_with_episodes(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        "env: DriftFrozenLake-v0\nbase: {map: [SFF, FFF, FFG]}\n"
        "drifts: [{name: wet, at: 2, every: 4, for: 2, set: {slip: 0.5}}]\n",
    )
    rows = list(play(cell(source), ScheduleSettings(episodes=7)))
    assert [(row["tick"], row["phase"].split("#")[0], row["round"]) for row in rows] == [
        (0, "source", 1),
        (1, "source", 2),
        (2, "wet", 1),
        (3, "wet", 2),
        (4, "source", 1),
        (5, "source", 2),
        (6, "wet", 1),
    ]
    assert len({row["phase"] for row in rows}) == 4


def test_ticks_of_the_step_clock_are_the_steps_before(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        "env: DriftFrozenLake-v0\nclock: step\nbase: {map: [SFF, FFF, FFG]}\ndrifts: [{at: 9, set: {slip: 0.5}}]\n",
    )
    rows = list(play(cell(source), ScheduleSettings(episodes=4)))
    assert [row["tick"] for row in rows] == [sum(row["steps"] for row in rows[:index]) for index in range(4)]


def test_the_clock_of_an_episode_restarts(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        "env: DriftFrozenLake-v0\nclock: episode_step\nbase: {map: [SFF, FFF, FFG]}\n"
        "drifts: [{at: 3, set: {slip: 0.5}}]\n",
    )
    rows = list(play(cell(source, "glove"), ScheduleSettings(episodes=3)))
    assert [row["tick"] for row in rows] == [0, 0, 0]


def test_each_environment_has_its_own_rule_and_a_schedule_may_replace_it() -> None:
    assert isinstance(make_setup(cell("frozen_lake/explicit"), ScheduleSettings(rounds=1)).agent.matching, Exact)
    assert isinstance(
        make_setup(cell("mountain_car/reversed"), ScheduleSettings(rounds=1)).agent.matching, MountainCarMatching
    )
    settings = ScheduleSettings(rounds=1, matching=PartSpec(name="exact"), recall=RecallOptions(states=3))
    agent = make_setup(cell("mountain_car/reversed"), settings).agent
    assert isinstance(agent.matching, Exact)
    assert agent.recall.states == 3


@pytest.mark.parametrize(("rule", "expected"), [(None, None), ("max", 1.0), ("newest", 0.0)])
def test_an_experiment_file_sets_the_outlook_of_prompts(
    tmp_path: Path, rule: str | None, expected: float | None
) -> None:
    """The estimate joins the records of all states, and its rule weighs those that contradict each other."""
    source = write(tmp_path, "env: DriftFrozenLake-v0\nbase: {map: [SFG, FFF]}\ndrifts: []\n")
    recall = {} if rule is None else {"recall": {"outlook": rule}}
    text = {
        "name": "outlooks",
        "about": "rules of the estimate",
        "schedules": [source],
        "agents": {"memory": "vanilla", "verifier": "none", "policy": "planner"},
        "seeds": 1,
        "episodes": 1,
        "environments": {source: recall},
    }
    setup = make_setup(cell(source, policy="planner"), parse_experiment(text).settings_of(source))
    agent = setup.agent
    assert isinstance(agent, Agent)
    start, ice, goal, hole = (
        json.dumps({"cur_pos": place, "tile_type": tile, "gold_collected": gold})
        for place, tile, gold in (([0, 0], "S", 0), ([0, 1], "F", 0), ([0, 2], "G", 1), ([0, 2], "H", 0))
    )
    for time, (state, outcome) in enumerate(
        [(start, Outcome(ice, 0.0, False)), (ice, Outcome(goal, 1.0, True)), (ice, Outcome(hole, 0.0, True))]
    ):
        setup.memory.observe(Experience(state, "2", outcome, 0.0, AgentClock(0, time)), AgentClock(0, time))
    first, *_ = agent.run_episode(setup.env, seed=0).trace
    (known,) = read_view(first.prompt).here
    assert known.value_estimate == expected


def test_who_needs_an_oracle_is_told_when_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drift_agents.experiment.cell_environment.EvaluationWrapper.oracle", None)
    rows = list(play(cell("frozen_lake/explicit"), ScheduleSettings(rounds=1)))
    assert all(row[field] is None for row in rows for field in ("regret", "memory_truth_rate", "false_realignments"))
    clairvoyant = Cell(
        "frozen_lake/explicit",
        *(PartSpec(name=name) for name in ("none", "none", "clairvoyant")),
        0,
        ("none", "none", "clairvoyant"),
        "clairvoyant",
    )
    with pytest.raises(ExperimentError, match="no oracle is known for DriftFrozenLake-v0, which 'clairvoyant' needs"):
        make_setup(clairvoyant, ScheduleSettings(rounds=1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("drifts: []\n", "should name its environment under `env`"),
        ("env: DriftFrozenPond-v0\n", "DriftFrozenPond"),
    ],
)
def test_environments_that_cannot_be_made(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ExperimentError, match=expected):
        make_setup(cell(write(tmp_path, text)), ScheduleSettings(rounds=1))


def test_probes_in_the_environment_itself_take_episodes_of_an_agents_number(tmp_path: Path) -> None:
    path = write(tmp_path, "env: DriftFrozenLake-v0\nbase: {transient: 0.2, map: [SFFF, FHFH, FFFH, HFFG]}\n")
    verifier = PartSpec(name="glove", options={"prober": "replay_live"})
    probing = Cell(
        path, PartSpec(name="vanilla"), verifier, PartSpec(name="planner"), 0, ("vanilla", "glove", "planner")
    )
    rows = list(play(probing, ScheduleSettings(episodes=30)))
    ticks = [row["tick"] for row in rows]
    resets = sum(row["probe_resets"] for row in rows)
    assert resets > 0
    assert len(rows) < 30
    assert ticks == sorted(set(ticks))
    # The probes of the last episode may pass the end.
    assert max(ticks) < 30 <= len(rows) + resets
    assert len(list(play(cell(path), ScheduleSettings(episodes=30)))) == 30
