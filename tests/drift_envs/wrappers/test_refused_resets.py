"""A refused `reset` says name, rule and value, and moves neither time nor a generator."""

from __future__ import annotations

from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import drift_envs
from drift_envs import DriftWrapper
from drift_envs.errors import ArgumentError
from drift_envs.metrics import compare_phases

DRIFT = {"version": 1, "name": "p", "drifts": [{"at": 2, "set": {"gravity": 12.0}}, {"at": 3, "set": {"gravity": 9.0}}]}

MAKERS = {
    "lake": lambda: gym.make("DriftFrozenLake-v0"),
    "car as text": lambda: gym.make("DriftMountainCar-v0", text=True),
    "house": lambda: gym.make("DriftHouse-v0", schedule="house/locked"),
    "shop": lambda: gym.make("DriftWebShop-v0", text=True),
    "other package": lambda: DriftWrapper(gym.make("CartPole-v1"), DRIFT),
    "vector": lambda: gym.make_vec("DriftMountainCar-v0", num_envs=2, vectorization_mode="vector_entry_point"),
}
EVERYWHERE = [
    (11, "`options` should be a dictionary"),
    ("drift_tick", "`options` should be a dictionary"),
    ({"drift_phase": 4.5}, "`drift_phase` should be the id of a phase"),
    ({"drift_phase": np.array(["source"])}, "`drift_phase` should be the id of a phase"),
    ({"drift_clock": ["continue"]}, "`drift_clock` should be one of continue, hold"),
    ({"drift_clock": np.array(["hold", "hold"])}, "`drift_clock` should be one of continue, hold"),
    ({"drift_tick": "2"}, "`drift_tick` should be a whole number"),
]
OWN = [
    ("car as text", {"low": "left"}, "`low` should be a number"),
    ("car as text", {"low": 0.1, "high": -0.1}, "`low` should be at most `high`"),
    ("vector", {"high": float("nan")}, "`high` should be a number"),
    ("house", {"goal_index": 0.5}, "`goal_index` should be a whole number"),
    ("house", {7: 7}, "`options` should have no keys but goal_index. Received 7"),
    ("shop", {"goal_index": [1]}, "`goal_index` should be a whole number"),
    ("other package", {"low": "x"}, "`options` should be those that CartPoleEnv takes: .*Received {'low': 'x'}"),
    ("other package", {"low": 3, "high": 2, "drift_phase": "drift-2"}, "those that CartPoleEnv takes"),
]


def look(env: Any) -> tuple[str, str]:
    base = env.unwrapped
    state = [each.drift_state for each in base.envs] if hasattr(base, "envs") else env.get_wrapper_attr("drift_state")
    return repr(state), str(base.np_random.bit_generator.state)


@pytest.mark.parametrize("name", MAKERS)
def test_refused_options_change_nothing(name: str) -> None:
    env, other = MAKERS[name](), MAKERS[name]()
    for each in (env, other):
        each.reset(seed=4)
        each.reset()
    before = look(env)
    own = [case for kind, *case in OWN if kind == name]
    for (options, rule), seed in product([*EVERYWHERE, *own], (None, 9)):
        with pytest.raises(ArgumentError, match=rule):
            env.reset(seed=seed, options=options)
        assert look(env) == before, options
    assert str(env.reset()[0]) == str(other.reset()[0]), "the next episode is that of one that refused nothing"
    assert look(env) == look(other)


def test_a_refused_seed_that_goes_on_does_not_keep_the_tasks_of_a_later_one_that_rewinds() -> None:
    env, other = MAKERS["house"](), MAKERS["house"]()
    env.reset(seed=4)
    with pytest.raises(ArgumentError):
        env.reset(seed=4, options={"drift_clock": "continue", "goal_index": -1})
    assert env.reset(seed=5)[1]["task"] == other.reset(seed=5)[1]["task"]
    assert env.unwrapped.task_pool == other.unwrapped.task_pool


def test_the_log_has_no_tick_of_a_refused_reset() -> None:
    env = MAKERS["other package"]()
    env.reset(seed=0)
    with pytest.raises(ArgumentError):
        env.reset(options={"low": "x", "drift_tick": 3})
    assert len(env.drift_log) == 0
    assert env.unwrapped.gravity == 9.8
    env.step(0)


@pytest.mark.parametrize(
    "refused",
    [{"seed": -1}, {"seed": 0.5}, {"options": {"drift_phase": "nowhere"}}, {"options": 3}],
    ids=["seed", "fraction", "phase", "no options"],
)
@pytest.mark.parametrize("name", ["car", "house", "shop", "other package", "sync"])
def test_a_refused_reset_leaves_the_step_limit(name: str, refused: dict[str, Any]) -> None:
    env: Any = {
        "car": lambda: gym.make("DriftMountainCar-v0", max_episode_steps=9),
        "house": lambda: gym.make("DriftHouse-v0", max_episode_steps=9),
        "shop": lambda: gym.make("DriftWebShop-v0", text=True, max_episode_steps=9),
        "other package": lambda: gym.wrappers.TimeLimit(
            DriftWrapper(gym.make("Acrobot-v1").unwrapped, DRIFT | {"drifts": []}), 9
        ),
        "sync": lambda: gym.make_vec("DriftMountainCar-v0", 2, vectorization_mode="sync", max_episode_steps=9),
    }[name]()
    env.reset(seed=4)
    action: Any = "wait" if name in ("house", "shop") else [1, 1] if name == "sync" else 0
    lengths = []
    for step in range(1, 20):
        if step in (3, 9):
            with pytest.raises((ArgumentError, TypeError)):
                env.reset(**refused)
        truncated = env.step(action)[3]
        if np.any(truncated):
            lengths.append(step)
            break
    assert lengths == [9]


@pytest.mark.parametrize("wrong", ["nope", 4])
def test_an_error_names_the_argument_that_holds_the_phase(wrong: Any) -> None:
    car = gym.make("DriftMountainCar-v0")
    two = gym.make_vec("DriftMountainCar-v0", num_envs=2, vectorization_mode="vector_entry_point")
    timeline = car.get_wrapper_attr("timeline")
    refused = [
        ("drift_phase", lambda: car.reset(options={"drift_phase": wrong})),
        ("drift_phase", lambda: two.reset(options={"drift_phase": wrong})),
        ("phase", lambda: car.get_wrapper_attr("move_time")(phase=wrong)),
        ("phase", lambda: drift_envs.move_time(two, phase=wrong)),
        ("before", lambda: compare_phases(timeline, wrong, "source")),
        ("after", lambda: compare_phases(timeline, "source", wrong)),
        ("phase_id", lambda: timeline.first_tick(wrong)),
    ]
    for name, call in refused:
        with pytest.raises(ArgumentError, match=f"^`{name}` should be the id of a phase"):
            call()
