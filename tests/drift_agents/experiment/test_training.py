"""Training before the test: other tasks, in the source phase, counted, without an effect on the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from drift_agents.agent.agent import Agent
from drift_agents.analysis.inspect.page import gather
from drift_agents.analysis.report import make_report
from drift_agents.analysis.rows import group
from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_environment import make_env, read_schedule
from drift_agents.experiment.config import PartSpec, ScheduleSettings, TrainingSettings
from drift_agents.experiment.episode import episode_seed, make_setup, plan_training, play
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows, to_line
from drift_agents.experiment.plan import NO_PART, Cell, plan_cells
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.trace import read_trace
from drift_agents.policy.base import RandomPolicy

from drift_envs.errors import ArgumentError

pytestmark = pytest.mark.integration

FAMILY, CAR, SHOP = "frozen_lake/explicit:family", "mountain_car/reversed", "webshop/explicit"


def cell(source: str, memory: str = "vanilla", verifier: str = "none", seed: int = 0, **more: Any) -> Cell:
    policy = PartSpec(name=more.pop("policy", "planner"))
    return Cell(
        source, PartSpec(name=memory), PartSpec(name=verifier), policy, seed, (memory, verifier, policy.name), **more
    )


def settings(rounds: int = 2, learning: str = "online", **training: Any) -> ScheduleSettings:
    return ScheduleSettings(rounds=rounds, learning=learning, train={"episodes": 3, **training})


def stages(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    first, second = ([row for row in rows if row["stage"] == stage] for stage in ("train", "test"))
    assert rows == [*first, *second]
    return first, second


def test_training_comes_first_in_the_source_and_is_numbered_on() -> None:
    before, test = stages(list(play(cell(FAMILY), settings(epochs=2))))
    assert [(row["episode"], row["round"], row["phase"], row["tick"]) for row in before] == [
        (number, number + 1, "source", 0) for number in range(6)
    ]
    assert [(row["episode"], row["round"], row["phase"], row["tick"]) for row in test] == [
        (6, 1, "source", 0),
        (7, 2, "source", 1),
        (8, 1, "drift-1", 20),
        (9, 2, "drift-1", 21),
        (10, 1, "drift-2", 40),
        (11, 2, "drift-2", 41),
    ]
    assert test[0]["memory_size"] > sum(row["steps"] for row in before[:1])


def test_the_test_has_the_luck_that_it_has_without_training(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, dict[str, Any]]] = []
    maps: list[Any] = []
    play_one = Agent.run_episode

    def note(self: Agent, env: Any, seed: Any = None, options: Any = None) -> Any:
        asked.append((seed, options))
        episode = play_one(self, env, seed, options)
        maps.append(env.knobs(env.start)["map"])
        return episode

    monkeypatch.setattr(Agent, "run_episode", note)
    list(play(cell(FAMILY), ScheduleSettings(rounds=2)))
    plain, plain_maps = list(asked), list(maps)
    for where in ("other", "same"):
        asked.clear()
        maps.clear()
        list(play(cell(FAMILY), settings(where=where)))
        assert asked[3:] == plain
        assert maps[3:] == plain_maps
        assert [options for _, options in asked[:3]] == [{"drift_clock": "continue", "drift_tick": 0}] * 3
        assert not {seed for seed, _ in asked[:3]} & {seed for seed, _ in plain}, "its random stream is its own"
        assert [tiles == plain_maps[0] for tiles in maps[:3]] == [where == "same"] * 3
        assert len(set(maps[:3])) == 1


def test_other_goals_of_the_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    goals: list[int] = []
    play_one = Agent.run_episode

    def note(self: Agent, env: Any, seed: Any = None, options: Any = None) -> Any:
        goals.append(-1)
        episode = play_one(self, env, seed, options)
        goals[-1] = env.unwrapped.goal_index
        return episode

    monkeypatch.setattr(Agent, "run_episode", note)
    where = cell(SHOP, policy="random")
    list(play(where, ScheduleSettings(rounds=5)))
    test = list(goals)
    goals.clear()
    list(play(where, settings(5, episodes=7)))
    assert goals[7:] == test, "which goal comes next in the test does not depend on it"
    assert len(set(goals[:7])) == 5, "as many other goals as the test has, in turn"
    assert goals[5:7] == goals[:2]
    assert not set(goals[:7]) & set(test)
    goals.clear()
    list(play(where, settings(5, episodes=3, epochs=2, where="same")))
    assert goals[:3] == goals[3:6], "an epoch plays the same tasks"
    assert set(goals[:3]) <= set(test)


def test_other_starts_of_the_car() -> None:
    def starts(**training: Any) -> tuple[list[int], list[int]]:
        setup = make_setup(cell(CAR), settings(**training))
        assert setup.training_phase is not None
        return [task.seed for task in setup.training_phase.tasks], [episode_seed(0, n) for n in range(3)]

    other, test = starts(epochs=2)
    assert other[:3] == other[3:]
    assert not set(other) & set(test)
    same, _ = starts(where="same")
    assert same == test


def test_what_cannot_be_trained_on(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"has one map, .* Say `train: \{where: same\}`"):
        make_setup(cell("frozen_lake/explicit"), settings())
    pinned = tmp_path / "pinned.yaml"
    head = "version: 1\nname: mine\nenv: DriftFrozenLake-v0\n"
    drawn = "base: {map: {draw: {size: 4, holes: 2}}}\n"
    pinned.write_text(f"{head}seed: 5\n{drawn}drifts: [{{at: 20, set: {{slip: 0.2}}}}]\n")
    with pytest.raises(ExperimentError, match="has one map"):
        make_setup(cell(str(pinned)), settings())
    assert make_setup(cell(str(pinned)), settings(where="same")).training_phase is not None
    pinned.write_text(f"{head}{drawn}drifts: [{{at: 0, set: {{slip: 0.2}}}}]\n")
    with pytest.raises(ExperimentError, match="needs a phase before any drift"):
        make_setup(cell(str(pinned)), ScheduleSettings(episodes=2, train={"episodes": 1}))
    pinned.write_text(f"{head}clock: step\n{drawn}drifts: [{{at: 40, set: {{slip: 0.2}}}}]\n")
    with pytest.raises(ExperimentError, match="Received 40 steps, an episode takes up to 100"):
        make_setup(cell(str(pinned)), ScheduleSettings(episodes=2, train={"episodes": 1}))


def test_who_has_nothing_to_fill_trains_nothing() -> None:
    without = ScheduleSettings(rounds=2)
    for who in (
        cell(FAMILY, "none"),
        Cell(FAMILY, NO_PART, NO_PART, PartSpec(name="clairvoyant"), 0, ("none", "none", "clairvoyant"), "clairvoyant"),
    ):
        assert list(play(who, settings())) == list(play(who, without))
    assert list(play(cell(FAMILY), settings(episodes=0))) == list(play(cell(FAMILY), without))


def test_frozen_memory_stays_as_training_left_it() -> None:
    before, test = stages(list(play(cell(FAMILY), settings(learning="frozen"))))
    assert {row["memory_size"] for row in test} == {before[-1]["memory_size"]}
    _, online = stages(list(play(cell(FAMILY), settings())))
    assert online[-1]["memory_size"] > test[-1]["memory_size"]


def test_a_verifier_puts_a_frozen_memory_right() -> None:
    """Where the controls are the other way round, frozen memory stays wrong; overwrite and GLOVE repair it."""
    truth = {
        verifier: list(play(cell(CAR, verifier=verifier), settings(3, "frozen", where="same")))[-1]
        for verifier in ("none", "overwrite", "glove")
    }
    assert truth["none"]["memory_truth_rate"] < 0.1
    assert truth["overwrite"]["memory_truth_rate"] > 0.9
    assert truth["glove"]["memory_truth_rate"] > 0.9
    assert truth["glove"]["memory_size"] <= truth["none"]["memory_size"]


def test_another_policy_builds_the_memory() -> None:
    before, test = stages(list(play(cell(FAMILY), settings(policy="random"))))
    own, _ = stages(list(play(cell(FAMILY), settings())))
    assert [row["steps"] for row in before] != [row["steps"] for row in own]
    assert {row["policy"] for row in before + test} == {"planner"}
    setup = make_setup(cell(FAMILY), settings(policy="random"))
    assert isinstance(setup.training_policy, RandomPolicy)
    assert isinstance(setup.agent, Agent)
    assert setup.agent.policy is not setup.training_policy


def test_the_way_to_another_environment_is_no_drift_and_no_false_alarm() -> None:
    """Oracles act on drifts alone; what another environment taught is judged by what this one answers."""
    reset = list(play(cell(FAMILY, reference="oracle_reset"), settings()))
    before, test = stages(reset)
    assert test[0]["memory_size"] == before[-1]["memory_size"] + test[0]["steps"], "nothing is lost between the stages"
    realigned = stages(list(play(cell(FAMILY, reference="oracle_realign"), settings())))[1]
    assert realigned[0]["memory_truth_rate"] < 1.0
    assert realigned[-1]["memory_truth_rate"] == 1.0
    for verifier in ("overwrite", "glove"):
        rows = stages(list(play(cell(FAMILY, verifier=verifier), settings(6, episodes=6))))[1]
        source = [row for row in rows if row["phase"] == "source"]
        assert sum(row["realignments"] for row in source) > 0, "the other map's records are wrong here"
        assert sum(row["false_realignments"] for row in source) == 0


@pytest.fixture
def data(data: dict[str, Any]) -> dict[str, Any]:
    del data["rounds"]
    return {**data, "rounds": 4, "train": {"episodes": 3, "where": "same", "epochs": 2}, "learning": "frozen"}


def test_reports_leave_it_out_of_phases_and_count_its_interactions(data: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    rows = read_rows(run_experiment(parse_experiment(data), folder, trace="all"))
    run = next(run for run in group(rows)["puddle"] if run.player[:2] == ("vanilla", "glove"))
    assert [len(test) for test in run.rows] == [8, 8]
    assert [len(before) for before in run.training] == [6, 6]
    assert [len(both) for both in run.whole.rows] == [14, 14]
    assert len(run.phase("source").rows[0]) == 4
    manifest = json.loads((folder / "run.json").read_text())
    (section,) = make_report(manifest, rows).sections
    assert section.about.endswith("; before the test 3 tasks of the test in 2 epochs; memory frozen in the test")
    manifest["schedules"]["puddle"]["train"]["where"] = "elsewhere"
    assert "before the test 3 tasks of other houses" in make_report(manifest, rows).sections[0].about
    tables = {table.title: table for table in section.tables}
    costs = tables["Costs of the whole run, mean of an instance"]
    steps = dict(zip(costs.columns, next(cells for cells, _ in costs.rows if "GLOVE" in cells[0]), strict=True))
    spent = [sum(row["steps"] + row["probe_steps"] for row in before) for before in run.training]
    assert steps["steps before\nthe test"] == f"{sum(spent) / 2:g}"
    total = sum(row["steps"] + row["probe_steps"] for instance in run.whole.rows for row in instance) / 2
    assert steps["total\nsteps"] == f"{total:g}"
    cells = {(one["memory"], one["verifier"]): one for one in gather(folder).index["cells"]}
    assert cells["vanilla", "glove"]["training"] == 6
    assert cells["none", "none"]["training"] == 0
    (path,) = sorted((folder / "traces").glob("*vanilla--glove--planner--0*"))
    assert [trace.episode for trace in read_trace(path)] == list(range(14))


def test_a_schedule_can_have_stages_of_its_own(data: dict[str, Any]) -> None:
    (schedule,) = data["schedules"]
    data["environments"] = {schedule: {"train": {"episodes": 0}, "learning": "online"}}
    experiment = parse_experiment(data)
    plain = parse_experiment({key: data[key] for key in data if key not in ("train", "learning", "environments")})
    assert experiment.settings_of(schedule).training == TrainingSettings(episodes=0)
    for ours, theirs in zip(plan_cells(experiment), plan_cells(plain), strict=True):
        lines = [to_line(row) for row in play(ours, experiment.settings_of(schedule))]
        assert lines == [to_line(row) for row in play(theirs, plain.settings_of(schedule))]


def test_houses_are_filled_in_other_houses_or_with_other_tasks() -> None:
    seen: dict[str, set[int]] = {}
    for where in ("other", "elsewhere"):
        own = settings(1, where=where)
        env = make_env(read_schedule("house/unseen"))
        env.reset(seed=0)
        assert own.training is not None
        plan = plan_training(read_schedule("house/unseen"), env, own.training, 0)
        tasks = [task.options["goal_index"] for task in plan.tasks]
        assert not set(tasks) & set(env.unwrapped.task_pool)  # type: ignore[attr-defined]
        house = env.unwrapped.drawn_place  # type: ignore[attr-defined]
        seen[where] = {task // 10_000 - house for task in tasks}
    assert seen["other"] == {0}
    assert 0 not in seen["elsewhere"]
    with pytest.raises(ExperimentError, match="needs an environment of several houses"):
        list(play(cell(FAMILY), settings(where="elsewhere")))


def test_a_place_with_fewer_other_tasks_trains_on_those(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_env(read_schedule("house/seen"))
    env.reset(seed=0)
    draw = env.unwrapped.other_tasks  # type: ignore[attr-defined]

    def few(count: int) -> tuple[int, ...]:
        if count > 4:
            raise ArgumentError("the house has too few")
        return tuple(draw(count))

    monkeypatch.setattr(env.unwrapped, "other_tasks", few, raising=False)
    plan = plan_training(read_schedule("house/seen"), env, TrainingSettings(episodes=6, where="other"), 0)
    tasks = [task.options["goal_index"] for task in plan.tasks]
    assert tasks == [*draw(4), *draw(4)[:2]]
    monkeypatch.setattr(env.unwrapped, "other_tasks", lambda count: few(5), raising=False)
    with pytest.raises(ArgumentError, match="too few"):
        plan_training(read_schedule("house/seen"), env, TrainingSettings(episodes=6, where="other"), 0)
