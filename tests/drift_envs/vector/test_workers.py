"""Native vector environments in several processes: equal results, one error for a lost process, nothing left."""

from __future__ import annotations

import os
import re
import signal
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import ArgumentError, DriftWarning, StateError
from drift_envs.vector.draws import EpisodeDraws, Share, SideDraws, StepDraws

LAKE, CONTINUOUS = "DriftFrozenLake-v0", "DriftMountainCarContinuous-v0"
SCHEDULES = {
    LAKE: {
        "version": 1,
        "name": "both",
        "clock": "step",
        "base": {"slip": 0.2},
        "drifts": [
            {"name": "storms", "rate": 0.05, "for": 5, "set": {"slip": 0.6}},
            {"name": "false", "at": 20, "set": {"transient": 0.3}},
        ],
    },
    CONTINUOUS: {
        "version": 1,
        "name": "false",
        "clock": "episode",
        "drifts": [{"name": "false", "at": 1, "set": {"transient": 0.3}}],
    },
}


def make(env_id: str, number: int, mode: str = "NextStep", workers: int | None = None, **arguments: Any) -> Any:
    more = {} if workers is None else {"num_workers": workers}
    return gym.make_vec(
        env_id, num_envs=number, vectorization_mode="vector_entry_point", autoreset_mode=mode, **more, **arguments
    ).unwrapped


def same(one: Any, other: Any) -> bool:
    """Whether results are equal; of `info` the entries that the masks mark."""
    if isinstance(one, dict):
        return set(one) == set(other) and all(
            same(one[key], other[key])
            if key.startswith("_") or isinstance(one[key], dict)
            else same(one[key][one[f"_{key}"]], other[key][other[f"_{key}"]])
            for key in one
        )
    return one.dtype == other.dtype and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("total", [6, 7, 20_001])
def test_each_part_draws_the_numbers_of_its_columns(total: int) -> None:
    whole = Share(total, 0, total)
    parts = [Share(total, 0, 3), Share(total, 3, 1), Share(total, 4, total - 4)]
    drawn, following = [], []
    for part in (whole, *parts):
        generator = np.random.default_rng(3)
        steps, sides = StepDraws(part), SideDraws(part)
        count = 3 * len(steps._block)  # over the ends of blocks of both
        rows = [(steps.step(generator).copy(), sides.step(generator)[1].copy()) for _ in range(count)]
        episodes = EpisodeDraws(5, part).at(np.arange(part.number), np.full(part.number, 70))
        drawn.append((*(np.stack(each) for each in zip(*rows, strict=True)), episodes[None]))
        following.append(generator.random())
    assert len(set(following)) == 1
    for kind in range(3):
        np.testing.assert_array_equal(np.concatenate([own[kind] for own in drawn[1:]], axis=1), drawn[0][kind])


@pytest.mark.parametrize(
    ("env_id", "mode", "workers"), [(LAKE, "SameStep", 3), (CONTINUOUS, "Disabled", 2)], ids=["lake", "car"]
)
def test_results_equal_those_of_one_process(env_id: str, mode: str, workers: int) -> None:
    number = 7
    arguments = {"schedule": SCHEDULES[env_id], "max_episode_steps": 12, "notify": "full"}
    one, several = (make(env_id, number, mode, count, **arguments) for count in (None, workers))
    assert [part.number for part in several.parts] == ([2, 2, 3] if workers == 3 else [3, 4])
    several.action_space.seed(0)

    def compare(results: list[Any]) -> None:
        assert all(same(a, b) for a, b in zip(*results, strict=True))

    compare([env.reset(seed=5) for env in (one, several)])
    for step in range(80):
        actions = several.action_space.sample()
        results = [env.step(actions) for env in (one, several)]
        compare(results)
        ended = results[0][2] | results[0][3]
        if mode == "Disabled" and ended.any():
            seed = 40 if step % 2 else None
            compare([env.reset(seed=seed, options={"reset_mask": ended.copy()}) for env in (one, several)])
        if step == 30:
            compare([env.reset(seed=[3, None, 5, 6, None, 7, 8], options={"drift_tick": 9}) for env in (one, several)])
        if step == 50:
            compare([env.reset(options={"drift_phase": "false"}) for env in (one, several)])
        if step == 60:
            compare([env.reset(options={"drift_clock": "hold"}) for env in (one, several)])
    assert one.get_attr("drift_state") == several.get_attr("drift_state")
    assert one.get_attr("drift_log") == several.get_attr("drift_log")
    with pytest.raises(ArgumentError, match=re.escape("`actions")):
        several.step(np.full_like(actions, 9 if env_id == LAKE else np.nan))
    with pytest.raises(ArgumentError, match="`options` should have no other drift keys"):
        several.reset(options={"drift_time": 3})
    compare([env.reset(seed=1) for env in (one, several)])
    several.close()


def test_a_killed_process_ends_in_one_error_and_leaves_nothing() -> None:
    lakes = make(LAKE, 4, workers=2, schedule=None, is_slippery=False)
    with pytest.raises(StateError, match="before `reset`"):
        lakes.step(np.zeros(4, int))
    lakes.reset(seed=0)
    lakes.set_attr("slip", [0.0, 0.0, 0.5, 1.0])
    assert lakes.get_attr("slip") == (0.0, 0.0, 0.5, 1.0)
    for _ in range(9):
        lakes.reset(seed=0)
    name = lakes._finalizer.peek()[2][3].name
    processes = list(lakes.processes)
    os.kill(processes[0].pid, signal.SIGKILL)  # the first part is computed here
    rule = "the process of sub-environments 2 to 3 ended with exit code -9; the vector environment is closed"
    with pytest.raises(StateError, match=re.escape(rule)):
        lakes.step(np.zeros(4, int))
    assert not any(process.is_alive() for process in processes)
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)
    with pytest.raises(StateError, match="is closed"):
        lakes.reset()
    lakes.close()


def test_a_vector_environment_that_is_dropped_ends_its_processes_and_warns_of_idle_rewinds() -> None:
    schedule = {"version": 1, "name": "late", "drifts": [{"name": "late", "at": 50, "set": {"slip": 0.5}}]}
    lakes = make(LAKE, 2, workers=2, schedule=schedule)
    for _ in range(10):
        lakes.reset(seed=1)
    with pytest.warns(DriftWarning, match="has rewound the schedule `late` 10 times"):
        lakes.reset(seed=1)
    processes, name = list(lakes.processes), lakes._finalizer.peek()[2][3].name
    del lakes
    assert not any(process.is_alive() for process in processes)
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"workers": 0}, "`num_workers` should be"),
        ({"workers": 5}, "`num_workers` should be"),
        ({"workers": 2, "text": True}, "`num_workers` should not be given with texts"),
        ({"workers": 2, "mode": "Never"}, "`autoreset_mode` should be one of"),
    ],
)
def test_invalid_arguments_start_no_process(arguments: dict[str, Any], rule: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(rule)):
        make(LAKE, 4, **arguments)
