"""Noticing a drift: after how many interactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.experiment.cell_environment import EvaluationWrapper, make_env, read_schedule
from drift_agents.experiment.config import PartSpec, ScheduleSettings
from drift_agents.experiment.episode import play
from drift_agents.experiment.evaluator import DetectionResult, DetectionTracker
from drift_agents.experiment.plan import Cell
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Removed, StepTrace, Verdict


def state(row: int, column: int, tile: str) -> str:
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": 0}}'


# In `puddle` right of the start was ice and becomes a hole; the move against the upper edge stays what it was.
START = state(0, 0, "S")
RIGHT, UP = "2", "3"
ICE, STILL = Outcome(state(0, 1, "F"), 0.0, False), Outcome(START, 0.0, False)
FELL = Outcome(state(0, 1, "H"), 0.0, True)


@pytest.fixture
def env(schedule_file: Path) -> EvaluationWrapper:
    env = make_env(read_schedule(str(schedule_file)))
    env.reset(seed=0)
    for action in (3, 2):
        env.step(action)
    return env


def step(number: int, action: str, outcome: Outcome, removed: tuple[int, ...] | None = None) -> StepTrace:
    realigned = removed is not None
    verdict = Verdict(surprise=realigned, realigned=realigned, removed=Removed(removed or ()))
    return StepTrace(Experience(START, action, outcome, 0.0, AgentClock(1, number)), "", "", (), verdict)


def follow(env: EvaluationWrapper, *steps: StepTrace) -> tuple[DetectionTracker, DetectionResult]:
    """Two records from before the drift (0: up, 1: right), then an episode after it."""
    memory, noticing = VanillaMemory(), DetectionTracker(env)
    for number, (action, outcome) in enumerate([(UP, STILL), (RIGHT, ICE)]):
        memory.observe(Experience(START, action, outcome, 0.0, AgentClock(0, number)), AgentClock(0, number))
    assert noticing.evaluate(Episode("", 0.0, 2, False), memory) == DetectionResult()
    env.reset(options={"drift_tick": 4})
    return noticing, noticing.evaluate(Episode("", 0.0, len(steps), True, trace=steps), memory)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([step(2, UP, STILL, removed=(0,))], DetectionResult(), id="what was not changed"),
        pytest.param(
            [step(2, UP, STILL), step(3, RIGHT, FELL), step(4, RIGHT, FELL, removed=(1,)), step(5, RIGHT, FELL)],
            DetectionResult(3, "turn"),
            id="the first that touches what changed",
        ),
        pytest.param([step(2, RIGHT, FELL, removed=())], DetectionResult(1, "turn"), id="one that removes nothing"),
    ],
)
def test_a_realignment_notices_what_it_touches(
    env: EvaluationWrapper, steps: list[StepTrace], expected: DetectionResult
) -> None:
    assert follow(env, *steps)[1] == expected


def test_a_delay_goes_on_over_episodes_and_comes_once(env: EvaluationWrapper) -> None:
    noticing, first = follow(env, step(2, RIGHT, FELL), step(3, UP, STILL))
    assert first == DetectionResult()
    memory = VanillaMemory()
    memory.observe(Experience(START, RIGHT, ICE, 0.0, AgentClock(0, 1)), AgentClock(0, 1))
    for _ in range(2):
        env.step(2)
    found = []
    for episode in (2, 3):
        env.reset(options={"drift_tick": 4 + episode})
        again = step(episode + 2, RIGHT, FELL, removed=())
        found.append(noticing.evaluate(Episode("", 0.0, 1, True, trace=(again,)), memory))
    assert found == [DetectionResult(3, "turn"), DetectionResult()]


def test_a_realignment_after_the_episode_notices_too(env: EvaluationWrapper) -> None:
    """Probes in the agent's own environment come when the episode is over."""
    noticing, _ = follow(env, step(2, UP, STILL))
    memory = VanillaMemory()
    memory.observe(Experience(START, RIGHT, ICE, 0.0, AgentClock(0, 1)), AgentClock(0, 1))
    env.step(2)
    env.reset(options={"drift_tick": 5})
    verdict = Verdict(surprise=True, realigned=True, about=(START, RIGHT))
    episode = Episode("", 0.0, 1, True, trace=(step(3, RIGHT, FELL),), closing=(verdict,))
    assert noticing.evaluate(episode, memory) == DetectionResult(2, "turn")


def test_glove_notices_a_lake_at_its_first_changed_step() -> None:
    parts = PartSpec(name="vanilla"), PartSpec(name="glove"), PartSpec(name="planner")
    rows = list(
        play(Cell("frozen_lake/explicit", *parts, 0, ("vanilla", "glove", "planner")), ScheduleSettings(rounds=20))
    )
    for phase in ("drift-1", "drift-2"):
        here = [row for row in rows if row["phase"] == phase]
        (delay,) = [row["detection_delay"] for row in here if row["detection_delay"] is not None]
        assert 0 < delay <= here[0]["steps"]


def test_a_drift_within_an_episode(tmp_path: Path) -> None:
    path = tmp_path / "steps.yaml"
    path.write_text(
        "version: 1\nname: steps\nenv: DriftFrozenLake-v0\nclock: step\nbase: {map: [SFF, HFF, HFG]}\n"
        "drifts: [{at: 3, set: {map: [SHH, FFF, FFG]}}]\n"
    )
    env, memory = make_env(read_schedule(str(path))), VanillaMemory()
    env.reset(seed=0)
    noticing, trace = DetectionTracker(env), []
    for number in range(5):
        env.step(3)
        experience = Experience(START, RIGHT, ICE, 0.0, AgentClock(0, number))
        removed = Removed((0, 1, 2)) if number == 4 else Removed()
        observed = None if number == 4 else memory.observe(experience, experience.now)
        verdict = Verdict(realigned=number == 4, removed=removed, observed=observed)
        trace.append(StepTrace(experience, "", "", (), verdict))
    # Interactions 3 and 4 come after the drift; the second one showed it.
    assert noticing.evaluate(Episode("", 0.0, 5, False, trace=tuple(trace)), memory) == DetectionResult(2, "drift-1")
    assert env.tick_of(4) == 4


@pytest.mark.parametrize("clock", ["episode", "episode_step"])
def test_who_has_no_oracle_or_no_lasting_time_says_nothing(
    clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        f"version: 1\nname: p\nenv: DriftFrozenLake-v0\nclock: {clock}\nbase: {{map: [SFF, HFF, HFG]}}\n"
        "drifts: [{at: 1, set: {map: [SHH, FFF, FFG]}}]\n"
    )
    if clock == "episode":
        monkeypatch.setattr(EvaluationWrapper, "oracle", None)
    parts = PartSpec(name="vanilla"), PartSpec(name="overwrite"), PartSpec(name="random")
    rows = list(play(Cell(str(path), *parts, 0, ("vanilla", "overwrite", "random")), ScheduleSettings(episodes=4)))
    assert {(row["detection_delay"], row["detected"]) for row in rows} == {(None, None)}
