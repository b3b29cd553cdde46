"""The leaderboard: figures by hand, ranks by resampling, and a page that equal runs write alike."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents.analysis.aggregates import Resamples, interquartile
from drift_agents.analysis.leaderboard import to_page, write_leaderboard
from drift_agents.analysis.plots.board import pareto_front
from drift_agents.analysis.ranking import make_standings
from drift_agents.cli.app import main
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import FIELDS, read_rows, to_line
from drift_agents.experiment.runner import run_experiment
from hypothesis import given

from drift_envs.metrics import bootstrap, interquartile_mean

LAKE, SHOP, CONTROL = "frozen_lake/explicit", "webshop/implicit", "frozen_lake/null"
KEPT = {
    ("vanilla", "none"): {LAKE: [0.0, 0.2, 0.2, 0.4], SHOP: [0.5, 0.5, 0.5, 0.5]},
    ("vanilla", "glove"): {LAKE: [1.0, 0.8, 0.8, 0.6], SHOP: [1.0, 1.0, 0.5, 1.0]},
    ("none", "none"): {LAKE: [0.0, 0.0, 0.0, 0.0], SHOP: [0.5, 0.5, 0.5, 0.5]},
}


def row(memory: str, verifier: str, schedule: str, seed: int, episode: int, score: float) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(FIELDS, 0)
    values.update(env="DriftWebShop-v0" if schedule == SHOP else "DriftFrozenLake-v0", schedule=schedule)
    values.update(schedule_hash="0", memory=memory, verifier=verifier, controller="direct", team="solo")
    values.update(policy="planner", stage="test", seed=seed, episode=episode, round=1, tick=episode)
    values.update(phase="source" if episode != 1 else "drift", score=score, regret=1.0 - score, steps=10)
    values.update(success=score == 1, probe_steps=10 if verifier == "glove" else 0, memory_size=episode, cost=0.0)
    values.update(detected=None, detection_delay=None, exposures=None, tokens_estimated=500)
    values.update((field, None) for field in FIELDS if field.endswith("truth_rate"))
    return values


def rows() -> list[dict[str, Any]]:
    found = []
    for (memory, verifier), schedules in KEPT.items():
        for schedule, scores in {**schedules, CONTROL: [1.0] * 4}.items():
            for seed, score in enumerate(scores):
                # The third episode is another one after the first drift, whatever its phase is called.
                found += [row(memory, verifier, schedule, seed, n, one) for n, one in enumerate([1.0, score, score])]
    return found


def manifest() -> dict[str, Any]:
    return {
        "name": "by-hand",
        "config_hash": "abc",
        "versions": {"drift-envs": "0"},
        "experiment": {"name": "by-hand", "seeds": [0, 1, 2, 3]},
        "schedules": {
            name: {
                "env": "DriftWebShop-v0" if name == SHOP else "DriftFrozenLake-v0",
                "visibility": "implicit" if name == SHOP else "explicit",
                "hash": "0",
                "episodes": 3,
                "control": name == CONTROL,
            }
            for name in (LAKE, SHOP, CONTROL)
        },
        "players": [
            {
                "schedule": schedule,
                "memory": memory,
                "verifier": verifier,
                "policy": "planner",
                "reference": None,
                "supervision": "own reward" if (memory, schedule) == ("vanilla", SHOP) else "none",
            }
            for schedule in (LAKE, SHOP, CONTROL)
            for memory, verifier in KEPT
        ],
    }


def test_figures_by_hand() -> None:
    standings = make_standings(manifest(), rows())
    assert [one.key[:2] for one in standings.ranked] == [("vanilla", "glove"), ("vanilla", "none"), ("none", "none")]
    assert (standings.schedules, standings.instances, standings.left_out) == ((LAKE, SHOP), 8, {})
    glove, plain, nothing = standings.ranked
    assert glove.kept.mean == pytest.approx(90)  # of 50 60 80 80 100 100 100 100
    assert plain.kept.mean == pytest.approx(40)  # of 0 20 20 40 50 50 50 50
    assert glove.gain is not None
    assert glove.gain.mean == pytest.approx(50)
    assert plain.gain is None
    assert nothing.gain is None
    assert (glove.groups["lakes"].mean, glove.groups["shop"].mean) == (pytest.approx(80), pytest.approx(100))
    assert glove.groups["explicit"] == glove.groups["lakes"]
    assert "cars" not in glove.groups
    assert (glove.before, glove.mean, glove.lost, plain.lost) == (100, pytest.approx(83.75), 12.5, 100)
    assert (glove.probing, plain.probing, glove.interactions, glove.tokens, glove.records) == (50, 0, 20, 50, 2)
    assert (glove.supervision, nothing.supervision) == ("own reward", "none")
    assert glove.ranks == (1, 1)


def test_what_requests_cost_is_a_column_where_a_price_is_known() -> None:
    assert "dollars" not in to_page(manifest(), make_standings(manifest(), rows())).split("How to read")[0]
    costly = [
        one | {"cost": 0.03 if one["episode"] == 1 else 0.0} if one["verifier"] == "glove" else one for one in rows()
    ]
    standings = make_standings(manifest(), costly)
    glove, plain, _ = standings.ranked
    assert glove.dollars == pytest.approx(0.01), "three episodes an instance"
    assert math.isnan(plain.dollars)
    table = to_page(manifest(), standings).split("How to read")[0]
    assert re.search(r"\| Vanilla \+ GLOVE .* 0\.0100 \|", table)
    assert re.search(r"tokens +\| dollars \|", table)


def test_what_somebody_did_not_play_to_a_drift_is_left_out() -> None:
    shorter = [one for one in rows() if (one["memory"], one["schedule"], one["seed"]) != ("none", LAKE, 3)]
    cut = [one for one in shorter if (one["verifier"], one["schedule"], one["seed"]) != ("glove", SHOP, 0)]
    cut += [row("vanilla", "glove", SHOP, 0, 0, 1.0)]
    standings = make_standings(manifest(), cut)
    assert standings.left_out == {LAKE: 1, SHOP: 1}
    wanted = f"Left out, since not every agent played beyond a drift there: 1 of `{LAKE}`, 1 of `{SHOP}`."
    assert wanted in to_page(manifest(), standings)
    with pytest.raises(ExperimentError, match="no instance that every agent played beyond a drift"):
        make_standings(manifest(), [one for one in rows() if one["episode"] == 0])


def with_optimal(steps: int, probes: int = 10) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The run with an optimal policy that takes so many steps an episode."""
    told = manifest()
    keys = {"memory": "none", "verifier": "none", "policy": "clairvoyant", "reference": "clairvoyant"}
    told["players"] += [{"schedule": name, "supervision": "privileged", **keys} for name in (LAKE, SHOP, CONTROL)]
    best = [
        {**row("none", "none", name, seed, n, 1.0), "policy": "clairvoyant", "steps": steps}
        for name in (LAKE, SHOP)
        for seed in range(4)
        for n in range(3)
    ]
    played = [{**one, "probe_steps": probes if one["verifier"] == "glove" else 0} for one in rows()]
    return told, played + best


def test_agents_are_ranked_at_equal_interactions() -> None:
    # After the drift: two episodes of 10 steps, with 10 probes each for GLOVE. Within 20 it ends one of them.
    glove = make_standings(*with_optimal(10)).ranked
    by_name = {one.key[:2]: one.at_equal for one in glove}
    assert by_name["vanilla", "glove"] is not None
    assert by_name["vanilla", "glove"].mean == pytest.approx(45)  # half of 90
    assert by_name["vanilla", "none"] is not None
    assert by_name["vanilla", "none"].mean == pytest.approx(40)
    free = make_standings(*with_optimal(10, probes=0)).ranked[0]
    assert (free.key[1], free.at_equal) == ("glove", free.kept)
    dear = make_standings(*with_optimal(10, probes=11)).ranked
    assert dear[0].key[1] == "none"
    told, played = with_optimal(10)
    page = to_page(told, make_standings(told, played))
    assert "at equal interactions" in page
    assert "Mechanism test by rules, no language model" in page


def test_agents_that_played_the_same_episodes_take_one_row_and_one_rank() -> None:
    told, played = manifest(), rows()
    for memory in ("voyager", "synapse"):
        told["players"] += [{**one, "memory": memory} for one in told["players"] if one["memory"] == "vanilla"]
        played += [{**one, "memory": memory} for one in rows() if one["memory"] == "vanilla"]
    for one in played:  # one of them finds the same without probes
        one["probe_steps"] = 0 if one["memory"] == "synapse" else one["probe_steps"]
    standings = make_standings(told, played)
    assert {first[:2]: [one[:2] for one in others] for first, others in standings.same.items()} == {
        ("synapse", "none"): [("vanilla", "none"), ("voyager", "none")],
        ("vanilla", "glove"): [("voyager", "glove")],
    }
    page = to_page(told, standings)
    assert page.count("| Synapse = Vanilla = Voyager ") == 2
    ranks = {one.key[:2]: one.ranks for one in standings.ranked}
    assert ranks["vanilla", "none"] == ranks["voyager", "none"] == (3, 3)  # behind two rows, not three agents
    assert ranks["none", "none"] == (3, 4)  # a resample of the shop alone has both at 50


def test_schedules_that_show_no_difference_do_not_count() -> None:
    told, played = manifest(), rows()
    told["schedules"][SHOP]["episodes"] = 2
    standings = make_standings(told, played)
    assert (standings.short, standings.schedules) == ((SHOP,), (LAKE,))
    even = [
        {**one, "score": 1.0, "regret": 0.0} if one["schedule"] == SHOP and one["memory"] != "none" else one
        for one in rows()
    ]
    standings = make_standings(manifest(), even)
    assert (standings.saturated, standings.schedules, standings.instances) == ((SHOP,), (LAKE,), 4)
    assert f"Not counted, since more than half of the agents keep everything there: `{SHOP}`" in to_page(
        manifest(), standings
    )


def test_training_does_not_count() -> None:
    built = [{**row("vanilla", "none", LAKE, seed, 0, 0.0), "stage": "train"} for seed in range(4)]
    assert make_standings(manifest(), built + rows()) == make_standings(manifest(), rows())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_interquartile_means_are_those_of_the_metrics(values: list[float]) -> None:
    assert float(interquartile(values)) == pytest.approx(interquartile_mean(values))


def test_resamples_draw_strata_and_instances_within_them() -> None:
    drawn = Resamples(["a"] * 3 + ["b"] * 5, resamples=2000)
    means = drawn.means([0.0] * 3 + [1.0] * 5)
    # Both strata stand in a resample half of the time, in either order; else it is one of them alone.
    assert [float((means == value).mean()) for value in (0.0, 1.0)] == pytest.approx([0.375, 0.375], abs=0.2)
    assert (means == 1.0).mean() > 0.2 < (means == 0.0).mean()
    within = drawn.part([True] * 3 + [False] * 5)
    assert within.estimate([0.0, 0.5, 1.0]).high <= 1
    assert within.strata == ("a",) * 3
    assert drawn.difference([0.0] * 8, [0.0] * 8)[:3] == (0, 0, 0)
    with pytest.raises(ArgumentError, match="at least one instance"):
        Resamples([])


def test_the_interval_of_an_environment_that_differs_from_the_others_is_wider_than_that_of_its_instances() -> None:
    values = [0.0, 0.1] * 5 + [0.9, 1.0] * 5 + [0.4, 0.5] * 5
    strata = ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    alone = [Resamples(["a"] * 10).estimate(values[place : place + 10]) for place in (0, 10, 20)]
    whole = Resamples(strata).estimate(values)
    assert whole.high - whole.low > 3 * max(one.high - one.low for one in alone)


def test_intervals_agree_with_the_ordinary_bootstrap_where_nothing_is_cut() -> None:
    values = np.random.default_rng(1).random(3)
    ours, theirs = Resamples(["a"] * 3, resamples=20_000).estimate(values), bootstrap(values)
    assert ours[:3] == pytest.approx(theirs[:3], abs=0.02)


def test_ranks_say_how_sure_they_are() -> None:
    rng = np.random.default_rng(0)
    close, baseline, far = rng.random(40), rng.random(40), rng.random(40) + 5
    ranks = Resamples(["a"] * 40).ranks([close, baseline, far])
    assert ranks[2] == (1, 1)
    assert ranks[0] == ranks[1] == (2, 3)


def test_the_page_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest()))
    with pytest.raises(ExperimentError, match="the run is not finished"):
        write_leaderboard(tmp_path, tmp_path / "board.md")
    (tmp_path / "episodes.jsonl").write_text("".join(f"{to_line(one)}\n" for one in rows()))
    assert main(["leaderboard", str(tmp_path), "--out", str(tmp_path / "board.md")]) == 0
    page = (tmp_path / "board.md").read_text()
    assert re.search(r"\| Vanilla \+ GLOVE \| +1 \| +1 \| 90\.0 \[\d", page)
    assert "hash `abc`. This is not the experiment of that name as it is shipped" in page
    assert f"`{CONTROL}`" not in page
    with pytest.raises(ExperimentError, match="cannot be written"):
        write_leaderboard(tmp_path, tmp_path / "no" / "board.md")


@pytest.mark.parametrize(
    ("name", "changed", "options", "said"),
    [
        ("all-memories", {}, "", None),
        ("all-memories", {"seeds": 2}, " --seeds 2", "These are 2 of the 30 instances of the file."),
    ],
)
def test_the_command_plays_what_was_played(
    tmp_path: Path, name: str, changed: dict[str, Any], options: str, said: str | None
) -> None:
    played = load_experiment(name, changed)
    there = manifest() | {"name": name, "config_hash": played.config_hash()}
    (tmp_path / "run.json").write_text(json.dumps(there | {"experiment": played.to_dict()}))
    (tmp_path / "episodes.jsonl").write_text("".join(f"{to_line(one)}\n" for one in rows()))
    write_leaderboard(tmp_path, tmp_path / "board.md")
    page = (tmp_path / "board.md").read_text()
    assert f"drift-agents run {name}{options} --out" in page
    assert "as it is shipped" not in page
    assert said is None or said in page


def test_a_run_becomes_the_same_page_each_time(tmp_path: Path) -> None:
    data = load_experiment("all-memories", {"seeds": 1, "rounds": 1}).to_dict()
    data |= {"schedules": ["frozen_lake/explicit"], "environments": {}}
    data["agents"] = [{"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"}]
    pages = []
    for name in ("one", "two"):
        assert read_rows(run_experiment(load_experiment(data), tmp_path / name))
        pages.append(write_leaderboard(tmp_path / name, tmp_path / f"{name}.md").read_bytes())
    assert pages[0] == pages[1]


def test_the_picture_of_a_board(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({**manifest(), "experiment": {"seeds": [0, 1, 2, 3]}}), "utf-8")
    (run / "episodes.jsonl").write_text("".join(f"{to_line(one)}\n" for one in rows()), "utf-8")
    plots = tmp_path / "plots"
    arguments = ["leaderboard", str(run), "--out", str(tmp_path / "board.md"), "--plots", str(plots)]
    assert main(arguments) == 0
    names = sorted(path.name for path in plots.iterdir() if path.name.endswith(".png"))
    assert names == ["board-pareto.png"]
    picture = (plots / "board-pareto.svg").read_text("utf-8")
    assert "Vanilla + GLOVE" in picture
    assert "Pareto front" in picture


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5).map(float)), max_size=8))
def test_nobody_on_the_front_is_beaten(points: list[tuple[int, float]]) -> None:
    best = pareto_front(points)

    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] <= b[0] and a[1] >= b[1] and a != b

    assert all(not beats(other, points[place]) for place in best for other in points)
    unbeaten = {point for point in points if not any(beats(other, point) for other in points)}
    assert {points[place] for place in best} == unbeaten, "equal ones stand there once"
    assert [points[place][0] for place in best] == sorted(points[place][0] for place in best)
