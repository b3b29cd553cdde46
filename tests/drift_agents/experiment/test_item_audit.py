"""Audits of written items, pools, and EDV's experiments in short."""

from __future__ import annotations

from typing import Any

import pytest
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.experiment.cell_environment import make_env, read_schedule
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.evaluator import ItemAudit
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.plan import POOLS, read_members
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.consensus import ConsensusMemory
from drift_agents.memory.distillation import ProposedItem
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Episode, Experience, Outcome, StepTrace, Verdict

NOW = AgentClock()


def state(row: int, column: int, tile: str) -> str:
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": 0}}'


def write(memory: ConsensusMemory, action: str, after: str, ended: bool, owner: str = "") -> int:
    lived = Experience(state(0, 0, "S"), action, Outcome(after, 0.0, ended), 0.0, NOW)
    record = memory.observe(lived, NOW)
    memory.write_item(ProposedItem("T", "D.", "C.", (record,)), "task", (owner,), NOW)
    return memory.items()[-1].id


def read(*numbers: int) -> Episode:
    lived = Experience(state(0, 0, "S"), "0", Outcome(state(0, 0, "S"), 0.0, False), 0.0, NOW)
    return Episode("task", 0.0, 1, False, trace=(StepTrace(lived, "", "", numbers, Verdict()),))


def test_items_are_true_as_long_as_the_environment_could_answer_so() -> None:
    env = make_env(read_schedule("frozen_lake/explicit"))
    env.reset(seed=0)
    memory, audit = ConsensusMemory(), ItemAudit(env)
    right = state(0, 1, env.knobs(0)["map"][0][1])
    shared = write(memory, "2", right, right.count('"H"') > 0)
    private = write(memory, "2", state(4, 4, "F"), False, "me")
    assert audit.evaluate(read(), memory) == (2, 0.5, 0, 0)
    assert audit.evaluate(read(shared), memory)[2:] == (1, 0)
    assert audit.evaluate(read(private), memory)[2:] == (0, 1)
    memory.remove(memory.items()[1].evidence)
    assert audit.evaluate(read(private, shared), memory) == (1, 1.0, 1, 1), "it was there when it was read"


def test_a_memory_without_items_has_nothing_to_audit() -> None:
    env = make_env(read_schedule("frozen_lake/explicit"))
    env.reset(seed=0)
    assert ItemAudit(env).evaluate(read(1), VanillaMemory()) == (None, None, 0, 0)
    assert ItemAudit(env).evaluate(read(), ConsensusMemory()) == (0, None, 0, 0)


@pytest.mark.parametrize("name", POOLS)
def test_every_pool_can_be_read(name: str) -> None:
    members = read_members(PartSpec(name="edv", options={"members": name}))
    assert len({member.name for member in members}) == len(members) == 4


def test_an_unknown_pool_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="pool of members"):
        read_members(PartSpec(name="edv", options={"members": "planer"}))
    with pytest.raises(ArgumentError, match="should be a list"):
        read_members(PartSpec(name="edv", options={"members": 3}))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], str]:
    experiment = load_experiment(
        {
            "name": "tiny",
            "schedules": ["frozen_lake/explicit"],
            "agents": {"memory": "consensus", "policy": "planner", "team": ["solo", "edv"]},
            "seeds": 2,
            "rounds": 2,
            "train": {"episodes": 2, "where": "same", "epochs": 2},
        }
    )
    folder = tmp_path_factory.mktemp("edv") / "run"
    run_experiment(experiment, folder, jobs=1)
    return read_rows(folder / "episodes.jsonl")


def test_every_trajectory_of_the_training_has_a_line(rows: Any) -> None:
    stages = [[row["stage"] for row in rows if row["team"] == team and row["seed"] == 0] for team in ("solo", "edv")]
    assert [stage.count("train") for stage in stages] == [4, 16]
    assert [stage.count("test") for stage in stages] == [6, 6]


def test_lines_tell_of_items(rows: Any) -> None:
    last = [row for row in rows if row["team"] == "edv" and row["seed"] == 0][-1]
    assert last["items"] > 0
    assert 0 <= last["item_truth_rate"] <= 1
    assert any(row["shared_hits"] > 0 for row in rows if row["stage"] == "test")


def test_a_team_without_members_is_the_default_pool_of_planners_and_nothing_else() -> None:
    from drift_agents.agent.team_agent import TeamAgent
    from drift_agents.experiment.episode import make_setup
    from drift_agents.experiment.plan import plan_cells

    agents = {"memory": "vanilla", "policy": ["planner", "random"], "team": "judge"}
    experiment = load_experiment(
        {"name": "tiny", "schedules": ["frozen_lake/explicit"], "agents": agents, "seeds": 1, "rounds": 1}
    )
    names = []
    for cell in plan_cells(experiment):
        agent = make_setup(cell, experiment.settings_of(cell.schedule)).agent
        assert isinstance(agent, TeamAgent)
        names.append([member.name for member in agent.team.members])
    assert names == [["bold", "careful", "newest", "literal"], ["solo"]]
