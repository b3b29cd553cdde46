"""The clairvoyant as a teacher, and what cells with managed memories are given."""

from __future__ import annotations

from typing import Any

import pytest
from drift_agents.experiment.cell_environment import Demonstrator, make_env, memory_dependencies, read_schedule
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.episode import make_setup, play
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import plan_cells
from drift_agents.types import Episode


def cells(memory: Any, schedule: str = "frozen_lake/explicit:family", seeds: int = 2) -> tuple[Any, list[Any]]:
    experiment = load_experiment(
        {
            "name": "few",
            "schedules": [schedule],
            "agents": {"memory": memory, "policy": "planner"},
            "seeds": seeds,
            "rounds": 3,
        }
    )
    return experiment, list(plan_cells(experiment))


@pytest.mark.integration
@pytest.mark.parametrize("schedule", ["frozen_lake/explicit:family", "webshop/explicit", "mountain_car/reversed"])
def test_what_is_shown_first_is_correct_and_of_the_cells_own_environment(schedule: str) -> None:
    experiment, (cell, other) = cells({"managed": {"addition": "fixed", "initial": 2}}, schedule)
    setup = make_setup(cell, experiment.settings_of(schedule))
    shown = list(setup.memory.records())
    assert shown[-1].outcome.ended
    assert shown[-1].outcome.score == 1.0
    assert sum(record.outcome.ended for record in shown) == 2
    assert setup.supervision == "privileged"
    rows = list(play(cell, experiment.settings_of(schedule)))
    assert rows[0]["memory_truth_rate"] == 1.0
    assert {row["memory_size"] for row in rows} == {len(shown)}, "fixed"
    if schedule != "mountain_car/reversed":
        theirs = list(make_setup(other, experiment.settings_of(schedule)).memory.records())
        assert theirs != shown, "another seed, another environment"


def test_an_execution_that_chance_spoils_is_shown_by_another_attempt() -> None:
    schedule = read_schedule("frozen_lake/slippery")
    env = make_env(schedule)
    env.env.reset(seed=0)
    shown = Demonstrator(env, schedule, 0).show(8)
    assert [execution.score for execution in shown] == [1.0] * 8
    assert len({tuple(step.experience.action for step in execution.trace) for execution in shown}) > 1
    assert Demonstrator(env, schedule, 0).show(8) == shown


def test_a_correction_is_the_best_of_its_tick_and_leaves_the_environment_alone() -> None:
    experiment, (cell, _) = cells({"managed": {"error_free": True}})
    alone = [row["score"] for row in play(plan_cells(cells("vanilla")[0])[0], experiment.settings_of(cell.schedule))]
    sizes: list[int] = []
    ended: list[bool] = []

    def note(setup: Any, index: int, episode: Episode) -> None:
        fresh = [r for r in setup.memory.records() if r.now.episode == index]
        assert fresh[-1].outcome.score == 1.0, "what stands in memory reached the goal"
        if episode.score < 1.0:
            ended.append(True)
            assert [r.now.step for r in fresh] == sorted(r.now.step for r in fresh)
            assert fresh[-1].now.step <= episode.trace[-1].experience.now.step
        sizes.append(len(fresh))

    rows = list(play(cell, experiment.settings_of(cell.schedule), note))
    assert ended
    assert rows[0]["score"] == alone[0], "the first episode is the agent's own in either"
    assert rows == list(play(cell, experiment.settings_of(cell.schedule))), "and all of it comes again"


def test_who_needs_no_teacher_gets_none() -> None:
    experiment, (cell, _) = cells("vanilla")
    setup = make_setup(cell, experiment.settings_of(cell.schedule))
    give = lambda part: memory_dependencies(part, setup.env, setup.schedule, 7)  # noqa: E731
    assert give(PartSpec(name="vanilla")) == {}
    assert give(PartSpec(name="managed")) == {"seed": 7}
    given = give(PartSpec(name="managed", options={"initial": 1}))
    assert isinstance(given["teacher"], Demonstrator)


def test_nothing_is_corrected_where_nothing_happened() -> None:
    experiment, (cell, _) = cells("vanilla")
    setup = make_setup(cell, experiment.settings_of(cell.schedule))
    nothing = Episode("t", 0.0, 0, False)
    assert Demonstrator(setup.env, setup.schedule, 0).correct(nothing) is nothing
