"""The experiments of stores, and every store with the sentence encoder; nothing leaves this machine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from drift_agents.analysis.leaderboard import write_leaderboard
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.base import make_memory
from drift_agents.registry.tables import STORES
from drift_agents.types import AgentClock, Experience, Outcome

from tests.extras.offline import offline

__all__ = ["offline"]

# mem0 is not imported here: its adapter sets where mem0 keeps its settings first
if missing := [name for name in ("chromadb", "mem0", "langgraph", "tokenizers") if find_spec(name) is None]:
    pytest.skip(f"needs the extra `stores`: {', '.join(missing)}", allow_module_level=True)

NAMES = STORES.names()


@pytest.mark.parametrize("name", NAMES)
def test_the_sentence_encoder_finds_what_means_the_same(name: str) -> None:
    memory = make_memory("store", k=1, store=name, embedding="minilm")
    now = AgentClock()
    for state in ("The cup is on the table.", "A storm is coming tonight.", "The train leaves at nine."):
        memory.observe(Experience(state, "wait", Outcome("nothing", 0.0, False), 0.0, now), now)
    found = memory.retrieve("Bad weather is expected this evening.", None, now).records
    assert [record.state for record in found] == ["A storm is coming tonight."]


def test_the_experiment_is_played_and_ranked(tmp_path: Path) -> None:
    data = load_experiment("stores").to_dict()
    data["schedules"] = [one for one in data["schedules"] if one.startswith("frozen_lake/explicit")]
    experiment = parse_experiment({**data, "seeds": 1, "rounds": 1, "environments": {}})
    rows = read_rows(run_experiment(experiment, tmp_path / "run", jobs=1))
    played = {row["memory"] for row in rows}
    assert {label for label in played if "mem0" in label}
    assert all(
        row["memory_size"] > 0 for row in rows if row["memory"] not in ("none", "") and row["verifier"] == "none"
    )
    write_leaderboard([tmp_path / "run"], tmp_path / "board.md")
    board = (tmp_path / "board.md").read_text("utf-8")
    assert all(f"store={store}" in board or store in board for store in ("chroma", "mem0", "langgraph_sqlite"))
