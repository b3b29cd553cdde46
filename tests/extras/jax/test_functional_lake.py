"""The functional lake against the NumPy one."""

import doctest

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401  registers the ids
from drift_envs.errors import ArgumentError
from tests.documents import read_code, run_code

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
pytest.importorskip("drift_envs.functional")
lake = pytest.importorskip("drift_envs.envs.frozen_lake.functional")

STEPS = 400
MAP = ["SFFFFF", "FFFFFF", "FFFFFF", "FFFFFF", "FFFFFF", "FFFFFG"]
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
    "explicit": ("frozen_lake/explicit", None),
    "forty": ("frozen_lake/explicit:forty", None),
    "alternating": ("frozen_lake/tides:family", None),
    "slippery": ("frozen_lake/slippery", None),
    "sizes": (SIZES, None),
    "in-episode": (IN_EPISODE, None),
    "every-draw": ("frozen_lake/explicit:returning", STEPS),
    "rate-draw": ("frozen_lake/explicit:storms", STEPS),
    "choice-jitter": ("frozen_lake/implicit:choice", STEPS),
    "walk": ("frozen_lake/thaw:walk", STEPS),
}


@pytest.mark.parametrize(("schedule", "ticks"), SCHEDULES.values(), ids=SCHEDULES.keys())
def test_trajectories_equal_the_single_lake_for_equal_draws(schedule, ticks, numbers):
    rng = np.random.default_rng(0)
    draws, actions = rng.random((STEPS + 1, 3)), rng.integers(0, 4, STEPS)
    env = lake.FunctionalLake()
    # episodes of a few steps see more of a schedule
    limit = 30 if isinstance(schedule, dict) else 5
    params = env.params(schedule, max_steps=limit, seed=3, ticks=ticks)

    def move(state, given):
        observation, state, *rest = env.step_with(given[0], state, given[1], params)
        return state, (observation, *rest[:3], rest[3]["final_observation"])

    _, state = env.reset(jax.random.key(0), params)
    env_state = env._start(params, state.drift, jax.numpy.asarray(draws[0]))
    scanned = jax.jit(lambda state: jax.lax.scan(move, state, (draws[1:], actions))[1])(
        state._replace(env_state=env_state)
    )
    observations, rewards, terminations, truncations, last = map(np.asarray, scanned)

    single = gym.make("DriftFrozenLake-v0", schedule=schedule, max_episode_steps=limit)
    single.reset(seed=3)
    single.unwrapped._np_random = numbers

    def start(number):
        numbers.queue = [number]
        return single.reset()[0]

    numbers.queue = [draws[0][2]]
    observation = single.reset(options={"drift_tick": 0})[0]
    assert observation == int(env_state.tile)
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
    env, traces = lake.FunctionalLake(), []

    def lifetime(params, key):
        traces.append(None)
        _, state = env.reset(key, params)

        def move(state, key):
            _, state, reward, *_ = env.step(key, state, 2, params)
            return state, (reward, env.knob_values(state, params)["slip"])

        return jax.lax.scan(move, state, jax.random.split(key, 20))[1]

    run = jax.jit(jax.vmap(lifetime))
    keys = jax.random.split(jax.random.key(0), 2000)
    for shift in (0.0, 0.25):
        schedules = [
            {"version": 1, "clock": "step", "drifts": [{"at": 1 + tick % 15, "set": {"slip": tick / 8000 + shift}}]}
            for tick in range(2000)
        ]
        _, slips = run(env.params_of(schedules), keys)
        # the values after step t are those of tick t + 1
        expected = [[0.0] * (tick % 15) + [tick / 8000 + shift] * (20 - tick % 15) for tick in range(2000)]
        assert np.array_equal(np.asarray(slips), expected)
    assert len(traces) == 1


def test_a_lifetime_of_a_million_steps():
    env, steps = lake.FunctionalLake(), 1_000_000
    drifts = [
        {"name": "tide", "every": 1000, "for": 300, "set": {"slip": 0.5}},
        {"name": "late", "at": 999_990, "set": {"transient": 0.5}},
        {"name": "storms", "rate": 0.01, "for": 5, "set": {"goal_rewards": {"5,5": 0.5}}},
    ]
    params = env.params({"version": 1, "clock": "step", "base": {"map": MAP}, "drifts": drifts})

    def move(state, key):
        _, state, *_ = env.step(key, state, 2, params)
        values = env.knob_values(state, params)
        return state, (values["slip"] > 0, values["transient"] > 0, values["goal_rewards"] > 0)

    def lifetime(key):
        first, rest = jax.random.split(key)
        _, state = env.reset(first, params)
        state, found = jax.lax.scan(move, state, jax.random.split(rest, steps))
        return state.drift.tick, [each.sum() for each in found]

    tick, (tides, late, storms) = jax.jit(lifetime)(jax.random.key(0))
    assert int(tick) == steps
    assert int(tides) == 999 * 300 + 1  # the thousandth begins with the tick after the last step
    assert int(late) == 11
    assert int(storms) / steps == pytest.approx(1 - 0.99**5, abs=0.002)


@pytest.mark.parametrize("when", [{"every": 5}, {"rate": 0.1}])
def test_a_value_drawn_for_each_occurrence_needs_ticks(when):
    drifts = [{"name": "maze", **when, "set": {"map": {"draw": {}}}}]
    with pytest.raises(
        ArgumentError, match="`ticks` should be given for 'unnamed', whose drift 'maze' has a draw of `map`"
    ):
        lake.FunctionalLake().params({"version": 1, "drifts": drifts})


@pytest.mark.parametrize(
    "name",
    [
        *(f"functional.{name}" for name in ("compiler", "drift_state", "base", "gymnax")),
        "envs.frozen_lake.functional",
        "envs.mountain_car.functional",
    ],
)
def test_examples(name):
    from importlib import import_module

    with jax.enable_x64(False):
        assert doctest.testmod(import_module(f"drift_envs.{name}")).failed == 0


def test_the_code_of_the_document(capsys):
    with jax.enable_x64(False):
        first, _, last = read_code("docs/functional.md")
        run_code(first)
        run_code(last)
    assert "0.6" in capsys.readouterr().out
