"""The functional lake against the NumPy one."""

import doctest
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401  registers the ids
from drift_envs.errors import ArgumentError

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
functional = pytest.importorskip("drift_envs.functional")

STEPS = 400
SIZES = {
    "version": 1,
    "clock": "step",
    "base": {"map": ["SSF", "FHF", "FFG"], "slip": 0.3},
    "drifts": [
        {"name": "large", "every": 37, "for": 11, "set": {"map": ["SFFFF", "FFHFF", "FFFFF", "FHFFG", "FFFFF"]}},
        {"name": "paid", "at": 50, "add": {"slip": 0.2}},
        {"name": "rise", "at": 90, "kind": "incremental", "over": 40, "set": {"transient": 0.5}},
    ],
}
IN_EPISODE = {
    "version": 1,
    "clock": "episode_step",
    "drifts": [{"name": "late", "at": 6, "set": {"slip": 0.9}}],
}
SCHEDULES = {
    "explicit": "frozen_lake/explicit",
    "slippery": "frozen_lake/slippery",
    "sizes": SIZES,
    "in-episode": IN_EPISODE,
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_trajectories_equal_the_single_lake_for_equal_draws(schedule, numbers):
    rng = np.random.default_rng(0)
    draws, actions = rng.random((STEPS + 1, 3)), rng.integers(0, 4, STEPS)
    env = functional.FunctionalLake()
    params = env.params(schedule, max_steps=30)

    def move(state, given):
        observation, state, *rest = env.step_with(given[0], state, given[1], params)
        return state, (observation, *rest[:3], rest[3]["final_observation"])

    _, state = env.reset(jax.random.key(0), params)
    world = env._start(params, state.drift, jax.numpy.asarray(draws[0]))
    scanned = jax.jit(lambda state: jax.lax.scan(move, state, (draws[1:], actions))[1])(state._replace(world=world))
    observations, rewards, terminations, truncations, last = map(np.asarray, scanned)

    single = gym.make("DriftFrozenLake-v0", schedule=schedule, max_episode_steps=30)
    single.reset(seed=0)
    single.unwrapped._np_random = numbers

    def start(number):
        numbers.queue = [number]
        return single.reset()[0]

    numbers.queue = [draws[0][2]]
    observation = single.reset(options={"drift_tick": 0})[0]
    assert observation == int(world.tile)
    for index in range(STEPS):
        numbers.queue = draws[index + 1][:2].tolist()
        observation, reward, terminated, truncated, _ = single.step(int(actions[index]))
        found = (last[index], rewards[index], terminations[index], truncations[index])
        assert found == (observation, reward, terminated, truncated), index
        if terminated or truncated:
            observation = start(draws[index + 1][2])
        assert observations[index] == observation, index
    assert truncations.any() or terminations.any()


def test_thousands_of_schedules_run_without_compiling_again():
    env, traces = functional.FunctionalLake(), []

    def lifetime(params, key):
        traces.append(None)
        _, state = env.reset(key, params)

        def move(state, key):
            _, state, reward, *_ = env.step(key, state, 2, params)
            return state, (reward, env.knob_values(state, params)["slip"])

        return jax.lax.scan(move, state, jax.random.split(key, 20))[1]

    run = jax.jit(jax.vmap(lifetime))
    keys = jax.random.split(jax.random.key(0), 50)
    for shift in (0.0, 0.25):
        schedules = [
            {"version": 1, "clock": "step", "drifts": [{"at": tick % 15, "set": {"slip": 0.5 + shift}}]}
            for tick in range(50)
        ]
        _, slips = run(env.params_of(schedules), keys)
        assert np.asarray(slips)[3].tolist() == [0.0] * 2 + [0.5 + shift] * 18
    assert len(traces) == 1


def test_a_value_drawn_for_each_occurrence_is_refused():
    drifts = [{"name": "maze", "every": 5, "set": {"map": {"draw": {}}}}]
    with pytest.raises(ArgumentError, match="should be drawn once in a compiled schedule"):
        functional.FunctionalLake().params({"version": 1, "drifts": drifts})


@pytest.mark.parametrize("name", ["knob_arrays", "drift_state", "base", "lake", "car", "gymnax", "vector"])
def test_examples(name):
    from importlib import import_module

    with jax.enable_x64(False):
        assert doctest.testmod(import_module(f"drift_envs.functional.{name}")).failed == 0


@pytest.mark.parametrize(("place", "printed"), [(0, "0.6"), (2, "source")], ids=["lifetimes", "vector"])
def test_the_code_of_the_document(capsys, place, printed):
    text = (Path(__file__).resolve().parents[3] / "docs" / "functional.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[place]
    with jax.enable_x64(False):
        exec(code, {})
    assert printed in capsys.readouterr().out
