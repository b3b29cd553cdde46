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
RUNS = ("tuning", "tuning-episodes", "tuning-cars")
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
    chosen = choose([run(kept)])["environments"][LAKE]
    assert chosen["policy"] == {"planner": {"conflict": "newest"}}
    assert chosen["memory"] == {"vanilla": {"k": 50}, "voyager": {"k": 5}}
    assert chosen["kept"]["planner(conflict=newest)"]["voyager"] == 100


def test_of_equals_the_first_of_the_file_is_taken() -> None:
    chosen = choose([run(scores())])["environments"][LAKE]
    assert chosen["policy"] == {"planner": {"conflict": "majority"}}
    assert chosen["memory"]["vanilla"] == {"k": 5}


def test_held_out_instances_and_missing_candidates_are_refused() -> None:
    with pytest.raises(ExperimentError, match=re.escape("seeds below 1000. Received seeds up to 1000")):
        choose([run(scores(), (999, 1000))])
    kept = {key: value for key, value in scores().items() if key[0] != "voyager"}
    with pytest.raises(ExperimentError, match="voyager did not play"):
        choose([run(kept)])


def test_the_shipped_choices_are_those_of_the_shipped_experiment() -> None:
    tuned = yaml.safe_load(TUNED.read_text("utf-8"))
    experiments: list[Experiment] = [load_experiment(name) for name in RUNS]
    assert [one["experiment"] for one in tuned["runs"]] == list(RUNS)
    assert list(tuned["environments"]) == list(dict.fromkeys(name for one in experiments for name in one.schedules))
    for stated, experiment in zip(tuned["runs"], experiments, strict=True):
        played = load_experiment(experiment.name, {"seeds": len(stated["seeds"])})
        assert stated["config_hash"] == played.config_hash()
        assert max(stated["seeds"]) < 1000
        for name in experiment.schedules:
            candidates = {part.name for block in experiment.agents for part in block.memory}
            assert candidates <= set(tuned["environments"][name]["memory"])


def test_a_later_run_adds_memories_played_with_the_chosen_rule() -> None:
    first = run(scores(**{"voyager/newest": 1.0}))
    manifest, rows = run(scores())
    agents = {"memory": [{"synapse": {"k": 1}}, {"synapse": {"k": 4}}], "verifier": ["none", "glove"]}
    kept = {"vanilla(k=5)": "synapse(k=1)", "vanilla(k=50)": "synapse(k=4)"}

    def play(rule: str) -> tuple[dict[str, Any], list[Any]]:
        file = {**manifest["experiment"], "agents": {**agents, "policy": {"planner": {"conflict": rule}}}}
        own = [
            row | {"memory": kept[row["memory"]], "policy": "planner"}
            for row in rows
            if row["memory"] in kept and row["policy"] == f"planner(conflict={rule})"
        ]
        return {**manifest, "experiment": file}, own

    chosen = choose([first, play("newest")])["environments"][LAKE]
    assert chosen["memory"] == {"vanilla": {"k": 5}, "voyager": {"k": 5}, "synapse": {"k": 1}}
    assert chosen["kept"]["planner(conflict=newest)"]["synapse(k=4)"] == 50
    assert "synapse(k=4)" not in chosen["kept"]["planner(conflict=majority)"]
    with pytest.raises(ExperimentError, match="should be played with the rule that was chosen there, planner"):
        choose([first, play("majority")])


LIKE = {
    "frozen_lake/slippery": "frozen_lake/slippery:family",
    "frozen_lake/slippery:family": "frozen_lake/slippery:family",
    "frozen_lake/thaw": "frozen_lake/slippery:family",
}
"""Environments whose options are those of another than the first of their kind."""


@pytest.mark.parametrize("name", ["board", "all-memories"])
def test_boards_play_with_the_chosen_options(name: str) -> None:
    tuned = yaml.safe_load(TUNED.read_text("utf-8"))["environments"]
    experiment = load_experiment(name)
    # The choices of later runs are newer than `all-memories`.
    names = {part.name for block in experiment.agents for part in block.memory}
    if name == "all-memories":
        names &= {part.name for part in load_experiment("tuning").agents[0].memory}
    for schedule in experiment.schedules:
        kind = schedule.partition("/")[0]
        env = experiment.settings_of(schedule)
        if kind.startswith("mountain_car"):
            assert not env.memory, "cars play with the defaults"
            continue
        default = {"frozen_lake": "frozen_lake/explicit:family", "webshop": "webshop/explicit"}[kind]
        chosen = tuned[LIKE.get(schedule, default)]
        assert env.policy == chosen["policy"]
        # Vanilla's order is an axis of the board.
        options = {memory: {"k": own["k"]} for memory, own in chosen["memory"].items() if memory in names}
        if "beliefmem" in options:  # its k is the default
            options["beliefmem"] = {key: value for key, value in chosen["memory"]["beliefmem"].items() if key != "k"}
        assert env.memory == {memory: own for memory, own in options.items() if own}
    orders = [part.options["order"] for part in experiment.agents[0].memory if part.name == "vanilla"]
    assert orders == ["newest", "oldest"]


def test_the_chosen_options_are_the_best_of_their_candidates() -> None:
    environments = yaml.safe_load(TUNED.read_text("utf-8"))["environments"]
    for name in RUNS:
        experiment = load_experiment(name)
        parts = [part for block in experiment.agents for part in block.memory]
        for schedule in experiment.schedules:
            env = environments[schedule]
            rule = max(env["kept"], key=lambda one: one.endswith(f"={env['policy']['planner']['conflict']})"))
            kept = {part.label(parts): env["kept"][rule][part.label(parts)] for part in parts}
            for memory, options in env["memory"].items():
                own = [part for part in parts if part.name == memory]
                if own:
                    best = max(own, key=lambda part: kept[part.label(parts)])
                    assert dict(best.options) == options
