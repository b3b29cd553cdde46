"""Options are chosen on development instances, by what memories keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import FIELDS

from studies.tuning import choose

LAKE = "frozen_lake/explicit"
TUNED = Path(__file__).parents[2] / "studies" / "tuned.yaml"


def run(kept: dict[tuple[str, str, str], float], seeds: tuple[int, ...] = (0, 1)) -> tuple[dict[str, Any], list[Any]]:
    """A run by hand: (memory, verifier, policy) -> the score after the drift."""
    agents = {
        "memory": [{"vanilla": {"k": 5}}, {"vanilla": {"k": 50}}, {"voyager": {"k": 5}}],
        "verifier": ["none", "glove"],
        "policy": [{"planner": {"conflict": "majority"}}, {"planner": {"conflict": "newest"}}],
    }
    file = {"name": "tuning", "schedules": [LAKE], "agents": agents, "seeds": list(seeds), "rounds": 1}
    manifest = {"name": "tuning", "config_hash": "abc", "versions": {}, "experiment": file}
    rows = []
    for (memory, verifier, policy), score in kept.items():
        for seed in seeds:
            for episode, (phase, reached) in enumerate((("source", 1.0), ("drift", score))):
                row: dict[str, Any] = dict.fromkeys(FIELDS, 0)
                row |= {"schedule": LAKE, "memory": memory, "verifier": verifier, "policy": policy, "seed": seed}
                row |= {"controller": "direct", "team": "solo", "stage": "test", "episode": episode, "phase": phase}
                rows.append(row | {"score": reached, "regret": 1 - reached, "steps": 10})
    return manifest, rows


def scores(**changed: float) -> dict[tuple[str, str, str], float]:
    found = {}
    for memory in ("vanilla(k=5)", "vanilla(k=50)", "voyager"):
        for verifier in ("none", "glove"):
            for rule in ("majority", "newest"):
                found[memory, verifier, f"planner(conflict={rule})"] = changed.get(f"{memory}/{rule}", 0.5)
    return found


def test_the_rule_is_chosen_for_all_memories_and_then_each_memorys_options() -> None:
    # With `newest` the best of vanilla is lower than with `majority`, but voyager gains more than vanilla loses.
    kept = scores(**{"vanilla(k=50)/majority": 0.8, "voyager/newest": 1.0, "vanilla(k=50)/newest": 0.6})
    chosen = choose(*run(kept))["worlds"][LAKE]
    assert chosen["policy"] == {"planner": {"conflict": "newest"}}
    assert chosen["memory"] == {"vanilla": {"k": 50}, "voyager": {"k": 5}}
    assert chosen["kept"]["planner(conflict=newest)"]["voyager"] == 100


def test_of_equals_the_first_of_the_file_is_taken() -> None:
    chosen = choose(*run(scores()))["worlds"][LAKE]
    assert chosen["policy"] == {"planner": {"conflict": "majority"}}
    assert chosen["memory"]["vanilla"] == {"k": 5}


def test_held_out_instances_and_missing_candidates_are_refused() -> None:
    with pytest.raises(ExperimentError, match=re.escape("seeds below 1000. Received seeds up to 1000")):
        choose(*run(scores(), (999, 1000)))
    kept = {key: value for key, value in scores().items() if key[0] != "voyager"}
    with pytest.raises(ExperimentError, match="voyager did not play"):
        choose(*run(kept))


def test_the_shipped_choices_are_those_of_the_shipped_experiment() -> None:
    tuned = yaml.safe_load(TUNED.read_text("utf-8"))
    experiment: Experiment = load_experiment("tuning")
    assert list(tuned["worlds"]) == list(experiment.schedules)
    assert max(experiment.seeds) < 1000


LIKE = {
    "frozen_lake/slippery": "frozen_lake/slippery-family",
    "frozen_lake/slippery-family": "frozen_lake/slippery-family",
    "frozen_lake/thaw": "frozen_lake/slippery-family",
}
"""Worlds whose options are those of another than the first of their kind."""


@pytest.mark.parametrize("name", ["board", "all-memories"])
def test_boards_play_with_the_chosen_options(name: str) -> None:
    tuned = yaml.safe_load(TUNED.read_text("utf-8"))["worlds"]
    experiment = load_experiment(name)
    names = {part.name for block in experiment.agents for part in block.memory}
    for schedule in experiment.schedules:
        kind = schedule.partition("/")[0]
        world = experiment.world(schedule)
        if kind.startswith("mountain_car"):
            assert not world.memory, "cars have no candidates"
            continue
        default = {"frozen_lake": "frozen_lake/explicit-family", "webshop": "webshop/explicit"}[kind]
        chosen = tuned[LIKE.get(schedule, default)]
        assert world.policy == chosen["policy"]
        # Vanilla's order is an axis of the board.
        options = {memory: {"k": own["k"]} for memory, own in chosen["memory"].items() if memory in names}
        assert world.memory == options
    orders = [part.options["order"] for part in experiment.agents[0].memory if part.name == "vanilla"]
    assert orders == ["newest", "oldest"]


def test_the_chosen_order_is_the_better_one_of_its_candidates() -> None:
    for world in yaml.safe_load(TUNED.read_text("utf-8"))["worlds"].values():
        rule = next(one for one in world["kept"] if one.endswith(f"={world['policy']['planner']['conflict']})"))
        for memory, options in world["memory"].items():
            own = {label: kept for label, kept in world["kept"][rule].items() if label.startswith(memory)}
            label = max(own, key=lambda one: own[one])
            assert all(f"{key}={value}" in label for key, value in options.items())
