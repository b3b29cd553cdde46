"""Vector environments and drift suites of other packages, for comparison.

* `peers` - the steps of all that are installed (`pip install -r benchmarks/requirements.txt`), by name
* `LAKE`, `CAR`, `CONTINUOUS` - the plain ids
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym

import drift_envs  # noqa: F401  registers the ids

LAKE, CAR, CONTINUOUS = "FrozenLake-v1", "MountainCar-v0", "MountainCarContinuous-v0"

Step = Callable[[Any], Any]

NEVER = 1_000_000_000


def drifting(plain: str) -> str:
    """The id of the drifting environment for a plain id."""
    return f"Drift{plain.rsplit('-', 1)[0]}-v0"


def peers(plain: str, number: int) -> Iterator[tuple[str, int, Step]]:
    """Name, number of sub-environments and step of each installed package; prints the missing ones.

    Args:
        plain: the plain id, `LAKE` or `CAR`.
        number: the number of sub-environments, for packages with vector environments.
    """
    env = gym.make_vec(drifting(plain), num_envs=number, vectorization_mode="sync")
    env.reset(seed=0)
    yield "the same in SyncVectorEnv", number, env.step
    for package, build in (("envpool", envpool_step), ("gymnax", gymnax_step)):
        try:
            module = importlib.import_module(package)
        except ImportError as error:
            print(f"{package} can't be imported: {error}")
        else:
            yield f"{package}, no drift", number, build(module, plain, number)
    try:
        ns_gym = importlib.import_module("ns_gym")
        for name in ("wrappers", "schedulers", "update_functions"):
            importlib.import_module(f"ns_gym.{name}")
    except ImportError as error:
        print(f"ns_gym can't be imported: {error}")
        return
    for name, period in (("never", NEVER), ("every 10 steps", 10), ("at each step", 1)):
        yield f"NS-Gym, drifts {name}", 1, ns_gym_step(ns_gym, plain, period)


def envpool_step(envpool: Any, plain: str, number: int) -> Step:
    """A step of EnvPool, one thread."""
    pool = envpool.make_gymnasium(plain, num_envs=number, num_threads=1)
    pool.reset()
    return lambda actions: pool.step(actions.astype("int32"))


def gymnax_step(gymnax: Any, plain: str, number: int) -> Step:
    """A compiled step of gymnax."""
    jax = importlib.import_module("jax")
    env, parameters = gymnax.make({LAKE: "FrozenLake-misc", CAR: CAR}[plain])
    keys = jax.random.split(jax.random.PRNGKey(0), number)
    state = [jax.vmap(env.reset, in_axes=(0, None))(keys, parameters)[1]]
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))

    def run(actions: Any) -> None:
        result = step(keys, state[0], actions, parameters)
        state[0] = result[1]
        jax.block_until_ready(result)

    return run


def ns_gym_step(ns_gym: Any, plain: str, period: int) -> Step:
    """A step of one environment of NS-Gym, resets included, whose slip or force changes with a period in steps."""
    scheduler = ns_gym.schedulers.PeriodicScheduler(period=period, start=1)
    functions = ns_gym.update_functions
    if plain == LAKE:
        update = functions.DistributionDecrementUpdate(scheduler, 1e-5)
        env = ns_gym.wrappers.NSFrozenLakeWrapper(gym.make(LAKE), {"P": update}, initial_prob_dist=[0.9, 0.05, 0.05])
    else:
        update = functions.DecrementUpdate(scheduler, 1e-9)
        env = ns_gym.wrappers.NSClassicControlWrapper(gym.make(CAR), {"force": update})
    env.reset(seed=0)

    def run(actions: Any) -> None:
        _, _, terminated, truncated, _ = env.step(int(actions[0]))
        if terminated or truncated:
            env.reset()

    return run
