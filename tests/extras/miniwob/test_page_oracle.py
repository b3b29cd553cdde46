"""The oracle of the task pages: values in every setting, responses, what drifts change, and readers of words."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.leaderboard import write_leaderboard
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import play
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.runner import run_experiment

from drift_envs.cli.scheduled import open_schedule
from drift_envs.envs.miniwob.oracle import PageSolver, read_words
from drift_envs.envs.miniwob.page import TASKS
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.schedule import load_schedule, shipped_schedules

PAGES = {name: name.title().replace("-", "") for name in TASKS}
SHIPPED = [name for name in shipped_schedules() if name.startswith("miniwob/")]
DRIFTS = {
    "miniwob/explicit": (0, 20, 40),
    "miniwob/implicit": (0, 20, 40),
    "miniwob/interstitial": (0, 20, 40),
    "miniwob/implicit:family": (0, 20, 40, 60),
    "miniwob/words": (0, 20, 40),
    "miniwob/implicit:gradual": (0, 40),
    "miniwob/interstitial:weekly": (0, 5, 7, 12),
}
"""Ticks of full weight, one in each phase."""
CONTROLS = {"miniwob/null", "miniwob/harmless"}
WORDS = {"LoginUser": range(1), "ClickTab": range(3), "BookFlight": range(3), "SearchEngine": range(6)}
"""The pages whose instructions have words of `miniwob/words`, with the tasks that are tried."""


def oracle_of(env: Any) -> Any:
    return env.get_wrapper_attr("oracle")


def finish(env: Any, solver: PageSolver) -> float:
    """The score of a solver in the episode that has begun."""
    ended, info = False, {"score": 0.0}
    while not ended:
        _, _, ended, truncated, info = env.step(solver.action())
        assert not truncated
    return float(info["score"])


def test_every_schedule_is_tested() -> None:
    assert {*DRIFTS, *CONTROLS, "miniwob/implicit:walk"} == set(SHIPPED)
    assert {name for name in SHIPPED if load_schedule(name).control} == CONTROLS


@pytest.mark.parametrize("name", DRIFTS)
def test_every_drift_costs_what_solved_the_page(make: Any, name: str) -> None:
    env = make("LoginUser", schedule=name, text=True)
    env.reset(seed=1)
    for old, new in pairwise(DRIFTS[name]):
        effect = oracle_of(env).effect(old, new)
        assert (effect.before, effect.carried, effect.after) == (1.0, 0.0, 1.0), (old, new)
        assert effect.magnitude > 0


def test_a_walk_costs_where_it_has_moved(make: Any) -> None:
    env = make("LoginUser", schedule="miniwob/implicit:walk", text=True)
    env.reset(seed=1)
    oracle, timeline = oracle_of(env), env.get_wrapper_attr("timeline")
    copies = {tick: timeline.values(tick)["acting_copy"] for tick in range(9, 60, 5)}
    assert len(set(copies.values())) > 2
    for (old, one), (new, other) in pairwise(copies.items()):
        effect = oracle.effect(old, new)
        assert (effect.loss, effect.after) == (float(one != other), 1.0)


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_cost_nothing(make: Any, name: str) -> None:
    env = make("LoginUser", schedule=name, text=True)
    env.reset(seed=1)
    for old, new in ((0, 20), (20, 40)):
        effect = oracle_of(env).effect(old, new)
        assert (effect.magnitude, effect.carried, effect.after) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("page", WORDS)
def test_who_reads_words_as_before_loses_and_who_reads_them_anew_does_not(make: Any, page: str) -> None:
    env = make(page, schedule="miniwob/words", text=True)
    env.reset(seed=1)
    for tick, words in ((20, {}), (40, dict(env.get_wrapper_attr("timeline").values(20)["words"]))):
        kept = []
        for number in WORDS[page]:
            env.reset(options={"goal_index": number, "drift_tick": tick})
            truth = env.unwrapped.read_truth()
            old = read_words(truth.shown, words)
            if old == truth.task:
                continue  # this instruction has none of the words
            kept.append(finish(env, PageSolver(env, old)))
            env.reset(options={"goal_index": number, "drift_tick": tick})
            assert finish(env, PageSolver(env)) == 1.0
        # the cheapest of a few flights may be the shortest, too
        assert 0.0 in kept
        assert page == "BookFlight" or not any(kept)


def test_who_clicks_the_former_copy_loses_at_every_drift_of_the_family(make: Any) -> None:
    for seed in range(3):
        env = make("LoginUser", schedule="miniwob/implicit:family", text=True)
        env.reset(seed=seed)
        oracle = oracle_of(env)
        for old, new in ((0, 20), (20, 40), (40, 60)):
            scores = []
            for meaning in (old, new):
                state, info = env.reset(options={"goal_index": 5, "drift_tick": new})
                ended = False
                while not ended:
                    state, _, ended, _, info = env.step(oracle.action(state, meaning))
                scores.append(info["score"])
            assert scores == [0.0, 1.0], (seed, old, new)


SETTINGS: tuple[dict[str, Any], ...] = (
    {"copies": 3, "acting_copy": 2, "layout": "mirrored", "theme": "glossy"},
    {"layout": "upside_down", "interstitial": True, "interstitial_right": "Next"},
    {"layout": "shifted", "labels": {"Submit": "Send", "Login": "Go", "Search": "Find", "Close": "Bye"}},
    {"words": {"cheapest": "shortest", "shortest": "cheapest", "4th": "7th", "7th": "4th", "ok": "no", "no": "ok"}},
)


@pytest.mark.parametrize(
    "page", [name if name == "enter-text" else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]
)
def test_every_setting_can_be_solved(make: Any, page: str) -> None:
    drifts = [{"name": f"d{number}", "at": number, "set": knobs} for number, knobs in enumerate(SETTINGS)]
    env = make(PAGES[page], schedule={"version": 1, "name": "s", "drifts": drifts}, text=True, pool=2)
    env.reset(seed=0)
    assert [oracle_of(env).value(tick) for tick in range(4)] == [1.0] * 4


def test_a_page_that_nobody_can_solve_is_worth_nothing(make: Any) -> None:
    schedule = {"version": 1, "name": "s", "base": {"transient": 0.5}, "drifts": [{"at": 1, "set": {"transient": 1.0}}]}
    env = make("LoginUser", schedule=schedule, text=True, pool=1)
    env.reset(seed=0)
    oracle = oracle_of(env)
    # three actions in ten steps, each lost with probability one half: 1 - (1 + 10 + 45) / 1024
    assert oracle.value(0) == pytest.approx(1 - 56 / 1024)
    assert oracle.value(1) == 0.0


def test_responses_are_those_of_the_environment_and_change_where_the_drift_acts(make: Any) -> None:
    env = make("LoginUser", schedule="miniwob/implicit", text=True)
    oracle = oracle_of(env)
    for tick in (0, 20):
        state, info = env.reset(seed=0 if tick == 0 else None, options={"drift_tick": tick})
        ended = False
        while not ended:
            for other in info["actions"]:
                is_login = other.startswith("click[Login") and '"value": ""' not in state
                changes = oracle.changed(state, other, 0, 20)
                assert changes == oracle.changed(state, other, 20, 40)
                assert changes or not is_login
            action = oracle.action(state, tick)
            (expected,) = oracle.response(state, action, tick)
            before, (state, reward, ended, _, info) = state, env.step(action)
            assert (expected.state, expected.score, expected.ended) == (state, info["score"], ended)
            assert oracle.holds(before, action, state, ended, tick, info["score"])
            assert not oracle.holds(before, action, state, ended, tick, 1.0 - info["score"])
        assert reward == 1.0


def test_from_where_an_agent_has_lost_its_way_the_oracle_goes_on(make: Any) -> None:
    env = make("NavigateTree", schedule="miniwob/null", text=True)
    state, info = env.reset(seed=3)
    oracle = oracle_of(env)
    for _ in range(4):
        folder = next(action for action in info["actions"] if f'"folder": "{action[6:-1]}"' in state)
        state, _, ended, _, info = env.step(folder)
        assert not ended
    while not ended:
        state, _, ended, truncated, info = env.step(oracle.action(state, 0))
        assert not truncated
    assert info["score"] == 1.0


def test_a_change_of_copies_within_an_episode_reaches_the_page(make: Any) -> None:
    drifts = [{"at": 1, "set": {"copies": 3}}, {"at": 2, "set": {"copies": 1}}]
    env = make("EnterText", schedule={"version": 1, "name": "s", "clock": "step", "drifts": drifts}, text=True)
    observation, _ = env.reset(seed=0)
    counts = [observation.count('{"button"')]
    for _ in range(3):
        counts.append(env.step("click[text field]")[0].count('{"button"'))
    assert counts == [1, 1, 3, 1]


def test_an_agent_is_measured_and_the_clairvoyant_loses_nothing() -> None:
    data = {
        "name": "pages",
        "schedules": "miniwob/implicit",
        "agents": {"memory": "vanilla", "policy": "planner"},
        "references": "clairvoyant",
        "seeds": 1,
        "rounds": 2,
    }
    experiment = Experiment.model_validate(data)
    for cell in plan_cells(experiment):
        rows = list(play(cell, experiment.settings_of(cell.schedule)))
        assert [row["regret"] for row in rows] == [1.0 - row["score"] for row in rows]
        if cell.reference == "clairvoyant":
            assert [row["score"] for row in rows] == [1.0] * 6
        else:
            assert all(row["memory_truth_rate"] is not None for row in rows)


def test_the_commands_have_the_oracle_too() -> None:
    env = open_schedule("miniwob/words", 1)
    assert env.oracle is not None
    assert env.oracle.effect(0, 20).loss == 1.0


def test_what_the_oracle_does_not_know(make: Any) -> None:
    env = make("EnterText", schedule="miniwob/null", text=True)
    env.reset(seed=0)
    with pytest.raises(
        ArgumentError, match=re.escape("`state` should be one that this environment has shown. Received '{}'")
    ):
        oracle_of(env).response("{}", "click[Submit]", 0)
    drift = {"at": 1, "set": {"reward_scale": 0.5}}
    env = make("EnterText", schedule={"version": 1, "name": "s", "drifts": [drift]}, text=True)
    with pytest.raises(NoOracleError, match="while its schedule sets `reward_scale`"):
        oracle_of(env)


def test_the_experiment_is_played_and_ranked(tmp_path: Path) -> None:
    data = load_experiment("web-pages").to_dict()
    data["agents"][0] |= {"memory": ["vanilla"], "verifier": ["none", "glove"]}
    data["sweep"] = {"env": ["DriftMiniWoBEnterText-v0"]}
    rows = read_rows(run_experiment(parse_experiment({**data, "seeds": 1, "rounds": 2}), tmp_path / "run", jobs=1))
    assert {row["env"] for row in rows} == {"DriftMiniWoBEnterText-v0"}
    second = {(row["verifier"], row["policy"]): row["score"] for row in rows if row["phase"] == "second"}
    assert second["none", "clairvoyant"] == 1.0
    write_leaderboard([tmp_path / "run"], tmp_path / "board.md")
    assert "Vanilla + GLOVE" in (tmp_path / "board.md").read_text("utf-8")
