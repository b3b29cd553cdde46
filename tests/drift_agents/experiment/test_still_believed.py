"""What memory still believes of what a drift has changed: by hand on the lake, and in lines of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drift_agents.envs.matching import Exact, Matching, NearestNeighbour, make_matching
from drift_agents.experiment.cell_environment import EvaluationWrapper, make_env, read_schedule
from drift_agents.experiment.evaluator import BeliefTracker, answer_of
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, Outcome

NOW = AgentClock(1, 9)


def state(row: int, column: int, tile: str) -> str:
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": 0}}'


START, ICE, HOLE = state(0, 0, "S"), Outcome(state(0, 1, "F"), 0.0, False), Outcome(state(0, 1, "H"), 0.0, True)
# On `puddle` right was ice and becomes a hole, down the other way round; up stays.
BEFORE = (("2", ICE), ("1", Outcome(state(1, 0, "H"), 0.0, True)), ("3", Outcome(START, 0.0, False)))


def see(memory: Memory, action: str, outcome: Outcome, now: AgentClock = NOW) -> None:
    memory.observe(Experience(START, action, outcome, 0.0, now), now)


def make_tracker(env: EvaluationWrapper, matching: Matching | None = None) -> BeliefTracker:
    return BeliefTracker(env, Exact() if matching is None else matching, env.true_share)


def begin(schedule_file: Path, memory: Memory, matching: Matching | None = None) -> BeliefTracker:
    """Three steps before the drift; the next episode is after it."""
    env = make_env(read_schedule(str(schedule_file)))
    tracker = make_tracker(env, matching)
    env.reset(seed=0)
    for step, (action, outcome) in enumerate(BEFORE):
        env.step(3)
        see(memory, action, outcome, AgentClock(0, step))
    assert tracker.evaluate(memory, NOW) is None
    env.reset(options={"drift_tick": 4})
    return tracker


def test_what_changed_is_believed_until_memory_answers_otherwise(schedule_file: Path) -> None:
    memory = VanillaMemory(k=1, order="newest")
    tracker = begin(schedule_file, memory)
    assert tracker.evaluate(memory, NOW) == 1.0
    see(memory, "2", HOLE)
    assert tracker.evaluate(memory, NOW) == 0.5, "of two changed facts one is corrected; the third has not changed"
    memory.remove([1])
    assert tracker.evaluate(memory, NOW) == 0.0, "what was removed is not believed"


def test_the_agents_rule_does_not_remember_what_the_oracle_answers(schedule_file: Path) -> None:
    """A rule of neighbours keeps the states that it is asked about, and later ones may count as these."""
    rule, untouched = NearestNeighbour(similarity=1.0), NearestNeighbour(similarity=1.0)
    memory = VanillaMemory(k=1, order="newest", matching=rule)
    tracker = begin(schedule_file, memory, rule)
    assert tracker.evaluate(memory, NOW) == 1.0
    untouched.state_key(START)
    assert vars(rule)["_own"] == vars(untouched)["_own"]


def test_a_memory_that_shows_the_oldest_believes_on(schedule_file: Path) -> None:
    memory = VanillaMemory(k=1, order="oldest")
    tracker = begin(schedule_file, memory)
    for _ in range(5):
        see(memory, "2", HOLE)
    assert tracker.evaluate(memory, NOW) == 1.0


def test_a_response_that_was_never_true_is_no_changed_fact(schedule_file: Path) -> None:
    memory = VanillaMemory()
    env = make_env(read_schedule(str(schedule_file)))
    tracker = make_tracker(env)
    env.reset(seed=0)
    env.step(3)
    see(memory, "2", Outcome(START, 0.0, False), AgentClock(0, 0))
    tracker.evaluate(memory, NOW)
    env.reset(options={"drift_tick": 4})
    assert tracker.evaluate(memory, NOW) is None


def test_a_change_that_the_matching_rule_does_not_see_is_none(tmp_path: Path) -> None:
    """A weaker engine leads to another position in the same cell."""
    path = tmp_path / "weaker.yaml"
    path.write_text(
        "version: 1\nname: weaker\nenv: DriftMountainCar-v0\nclock: episode\ndrifts: [{at: 1, set: {force: 0.00099}}]\n"
    )
    shares = []
    for matching in (Exact(), make_matching("mountain_car")):
        memory, env = VanillaMemory(matching=matching), make_env(read_schedule(str(path)))
        tracker = BeliefTracker(env, matching, env.true_share)
        before, _ = env.reset(seed=0)
        outcome = Outcome(env.step(2)[0], 0.0, False)
        memory.observe(Experience(before, "2", outcome, 0.0, AgentClock()), AgentClock())
        tracker.evaluate(memory, NOW)
        env.reset(options={"drift_tick": 1})
        shares.append(tracker.evaluate(memory, NOW))
    assert shares == [1.0, None]


@pytest.mark.parametrize("name", ["vanilla", "memory_bank", "voyager", "generative_agents", "beliefmem", "store"])
def test_reading_a_memory_leaves_it_as_it_was(name: str) -> None:
    read, left = (make_memory(name, matching=Exact()) for _ in range(2))
    for memory in (read, left):
        for step in range(3):
            see(memory, "2", ICE, AgentClock(0, step))
            see(memory, "1", HOLE, AgentClock(0, step))
    for step in range(3, 9):
        now = AgentClock(step // 3, step)
        shown = read.peek(START, now)  # type: ignore[attr-defined]
        assert answer_of(read, START, "2", now, Exact()) == (ICE.state, 0.0, False)
        found = [memory.retrieve(START, None, now) for memory in (read, left)]
        assert found[0] == found[1]
        assert shown.records == found[0].records


def test_a_memory_of_another_package_is_judged_by_its_records() -> None:
    memory: Any = make_memory("full_transcript", matching=Exact())
    for outcome in (ICE, HOLE, HOLE):
        see(memory, "2", outcome)
    assert answer_of(memory, START, "2", NOW, Exact()) == (HOLE.state, 0.0, True)
    assert answer_of(memory, START, "0", NOW, Exact()) is None


def test_lines_have_the_share_by_phase(tmp_path: Path) -> None:
    experiment: dict[str, Any] = {
        "name": "believed",
        "schedules": ["frozen_lake/explicit", "facts/implicit"],
        "agents": {"memory": ["vanilla"], "verifier": ["none", "overwrite"], "policy": "planner"},
        "seeds": 1,
        "rounds": 12,
    }
    rows = read_rows(run_experiment(parse_experiment(experiment), tmp_path / "run"))
    assert all(row["still_believed"] is None for row in rows if row["phase"] == "source")
    last = {(row["schedule"], row["verifier"], row["phase"]): row["still_believed"] for row in rows}
    for schedule in experiment["schedules"]:
        assert 0 < last[schedule, "overwrite", "drift-2"] < last[schedule, "none", "drift-2"] <= 1, schedule
