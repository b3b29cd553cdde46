"""The evaluator's figures: the truth of a memory, false realignments, references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drift_agents.experiment.cell_environment import make_env, read_schedule
from drift_agents.experiment.config import PartSpec, ScheduleSettings, SweptValue
from drift_agents.experiment.episode import make_setup, play
from drift_agents.experiment.evaluator import GroundTruth
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.players import OracleVerifier
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Removed, StepTrace, Verdict


def state(row: int, column: int, tile: str, gold: float = 0) -> str:
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": {gold:g}}}'


RIGHT, DOWN = "2", "1"
START = state(0, 0, "S")
# Moves from the start of `puddle` and what follows: right was ice and becomes a hole, down the other way round.
RIGHT_BEFORE = Experience(START, RIGHT, Outcome(state(0, 1, "F"), 0.0, False), 0.0, AgentClock(0, 0))
DOWN_BEFORE = Experience(START, DOWN, Outcome(state(1, 0, "H"), 0.0, True), 0.0, AgentClock(0, 1))
UP_BEFORE = Experience(START, "3", Outcome(START, 0.0, False), 0.0, AgentClock(0, 2))


@pytest.fixture
def remembered() -> VanillaMemory:
    memory = VanillaMemory()
    for experience in (RIGHT_BEFORE, DOWN_BEFORE, UP_BEFORE):
        memory.observe(experience, experience.now)
    return memory


def test_truth_of_memory(schedule_file: Path, remembered: VanillaMemory) -> None:
    env = make_env(read_schedule(str(schedule_file)))
    env.reset(seed=0)
    truth, episode = GroundTruth(env), Episode("", 0.0, 0, True)
    assert truth.evaluate(episode, remembered).memory_truth_rate == 1.0
    env.reset(options={"drift_tick": 4})
    judged = truth.evaluate(episode, remembered)
    assert judged.memory_truth_rate == pytest.approx(1 / 3)  # only the move against the edge is still true
    assert (judged.memory_size, judged.regret) == (3, 1.0)


def test_the_truth_of_a_summary_is_that_of_its_shares(schedule_file: Path) -> None:
    env = make_env(read_schedule(str(schedule_file)))
    env.reset(seed=0)
    memory = VanillaMemory()
    memory.insert_summary(START, RIGHT, [(RIGHT_BEFORE.outcome, 0.75), (DOWN_BEFORE.outcome, 0.25)], 4, AgentClock())
    assert GroundTruth(env).evaluate(Episode("", 0.0, 0, True), memory).memory_truth_rate == 0.75


def realignment(experience: Experience, removed: int) -> StepTrace:
    verdict = Verdict(surprise=True, realigned=True, removed=Removed((removed,)))
    return StepTrace(experience, "", "", (), verdict)


def test_a_realignment_that_touches_nothing_changed_is_false(schedule_file: Path, remembered: VanillaMemory) -> None:
    env = make_env(read_schedule(str(schedule_file)))
    env.reset(seed=0)
    for action in (2, 3, 3):
        env.step(action)
    truth = GroundTruth(env)
    truth.evaluate(Episode("", 0.0, 3, False), remembered)
    env.reset(options={"drift_tick": 4})
    now = AgentClock(1, 3)
    trace = (realignment(RIGHT_BEFORE._replace(now=now), 0), realignment(UP_BEFORE._replace(now=now), 2))
    remembered.remove([0, 2])
    assert truth.evaluate(Episode("", 0.0, 2, True, trace=trace), remembered).false_realignments == 1


def test_oracle_realign_removes_exactly_what_changed(schedule_file: Path, remembered: VanillaMemory) -> None:
    env = make_env(read_schedule(str(schedule_file)))
    verifier = OracleVerifier("oracle_realign", env, remembered)
    for tick, left in ((0, 3), (1, 3), (4, 1), (5, 1)):
        env.reset(seed=0, options={"drift_clock": "continue", "drift_tick": tick})
        verifier.begin_episode()
        assert len(list(remembered.records())) == left
        for action in (2, 0, 3) if tick == 0 else (3,):
            env.step(action)
    assert [record.action for record in remembered.records()] == ["3"]


def test_oracle_reset_wipes(schedule_file: Path, remembered: VanillaMemory) -> None:
    env = make_env(read_schedule(str(schedule_file)))
    verifier = OracleVerifier("oracle_reset", env, remembered)
    for tick, left in ((0, 3), (4, 0)):
        env.reset(seed=0, options={"drift_clock": "continue", "drift_tick": tick})
        verifier.begin_episode()
        assert len(list(remembered.records())) == left


def test_a_drift_within_an_episode_is_followed_at_its_step(tmp_path: Path) -> None:
    path = tmp_path / "steps.yaml"
    path.write_text(
        "version: 1\nname: steps\nenv: DriftFrozenLake-v0\nclock: step\nbase: {map: [SFF, HFF, HFG]}\n"
        "drifts: [{at: 3, set: {map: [SHH, FFF, FFG]}}]\n"
    )
    env, memory = make_env(read_schedule(str(path))), VanillaMemory()
    verifier = OracleVerifier("oracle_realign", env, memory)
    env.reset(seed=0)
    verifier.begin_episode()
    sizes, removed = [], []
    for step in range(4):
        answer = env.step(3)
        experience = Experience(START, RIGHT, RIGHT_BEFORE.outcome, 0.0, AgentClock(0, step))
        removed.append(verifier.verify(experience, memory, [], experience.now).removed.records)
        sizes.append(len(list(memory.records())))
        assert env.tick_of(step) == step, answer
    # The drift comes with the fourth interaction: what was written before is gone ahead of it.
    assert sizes == [1, 2, 0, 1]
    assert removed == [(), (), (0, 1, 2), ()], "the controller drops a strategy that rests on it"


def test_references_are_sane(data: dict[str, Any], tmp_path: Path) -> None:
    rows = read_rows(run_experiment(parse_experiment(data), tmp_path / "run"))

    def regret(**wanted: Any) -> float:
        return sum(row["regret"] for row in rows if all(row[key] == value for key, value in wanted.items()))

    assert regret(policy="clairvoyant") == 0
    realigned = regret(memory="vanilla", verifier="oracle_realign", phase="turn")
    assert realigned <= regret(memory="vanilla", verifier="none", phase="turn")
    assert all(row["memory_truth_rate"] == 1.0 for row in rows if row["verifier"].startswith("oracle"))
    assert all(row["memory_truth_rate"] is None and row["memory_size"] == 0 for row in rows if row["memory"] == "none")


@pytest.mark.parametrize(
    ("schedule", "change"),
    [
        ("frozen_lake/slippery", None),
        ("frozen_lake/null", SweptValue("base.slip", 0.2)),
    ],  # on the second, waiting is safe
)
def test_clairvoyant_reaches_the_optimum_on_slippery_ice(schedule: str, change: SweptValue | None) -> None:
    nothing, oracle = PartSpec(name="none"), PartSpec(name="clairvoyant")
    labels = ("none", "none", "clairvoyant")
    cell = Cell(schedule, nothing, nothing, oracle, 0, labels, "clairvoyant", change)
    rows = list(play(cell, ScheduleSettings(rounds=20)))
    mean, optimum = (
        sum(value) / len(rows) for value in ([r["score"] for r in rows], [r["score"] + r["regret"] for r in rows])
    )
    assert mean == pytest.approx(optimum, abs=4 * (optimum * (1 - optimum) / len(rows)) ** 0.5)


def test_supervision_is_the_strongest_of_the_parts(data: dict[str, Any]) -> None:
    data["agents"]["verifier"] = ["none", "glove", {"glove": {"prober": "snapshot"}}]
    cells = {cell.labels[1:]: cell for cell in plan_cells(parse_experiment(data))}
    levels = {labels: make_setup(cell, ScheduleSettings(rounds=4)).supervision for labels, cell in cells.items()}
    assert levels == {
        ("none", "planner"): "none",
        ("glove", "planner"): "none",
        ("glove(prober=snapshot)", "planner"): "privileged",
        ("oracle_realign", "planner"): "privileged",
        ("oracle_reset", "planner"): "privileged",
        ("none", "clairvoyant"): "privileged",
    }


def test_oracle_truth_removes_what_was_never_true(schedule_file: Path, remembered: VanillaMemory) -> None:
    env = make_env(read_schedule(str(schedule_file)))
    verifier = OracleVerifier("oracle_truth", env, remembered)
    env.reset(seed=0, options={"drift_clock": "continue", "drift_tick": 0})
    verifier.begin_episode()
    assert len(list(remembered.records())) == 3, "what is true stays"
    lie = RIGHT_BEFORE._replace(outcome=RIGHT_BEFORE.outcome._replace(ended=not RIGHT_BEFORE.outcome.ended))
    now = AgentClock(0, 3)
    verdict = verifier.verify(lie._replace(now=now), remembered, [], now)
    assert verdict.removed.records == (verdict.observed,)
    assert len(list(remembered.records())) == 3, "a false response is gone at once"
    env.reset(options={"drift_tick": 4})
    verifier.begin_episode()
    assert len(list(remembered.records())) == 1, "and so is what a drift made false"
