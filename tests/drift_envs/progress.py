"""What the tests of saved progress share: two environments that are played alike, and compared step by step."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs

Play = Callable[[Any, np.random.Generator, int, Any], tuple[list[Any], Any]]


def is_same(one: Any, other: Any) -> bool:
    """Whether two results are equal, types included."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(is_same(one[name], other[name]) for name in one)
        )
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return is_same(one.tolist(), other.tolist())
        return one.dtype == other.dtype and bool(np.array_equal(one, other))
    return type(one) is type(other) and bool(one == other)


def choose(env: Any, info: dict[str, Any], rng: np.random.Generator) -> Any:
    """An action, some of them out of a car's bounds."""
    space = env.action_space
    if isinstance(space, gym.spaces.Text):
        actions = info["actions"]
        return str(actions[int(rng.integers(len(actions)))]) if actions else "look"
    if isinstance(space, gym.spaces.Discrete):
        return int(rng.integers(space.n)) + int(space.start)
    return rng.uniform(-1.5, 1.5, space.shape).astype(space.dtype)


def play_single(env: Any, rng: np.random.Generator, steps: int, state: Any) -> tuple[list[Any], Any]:
    """Play; the state is observation, `info`, and whether the episode has ended."""
    observation, info, ended = state
    seen: list[Any] = []
    for _ in range(steps):
        if ended:
            observation, info = env.reset()
            ended = False
            seen.append((observation, info))
        else:
            result = env.step(choose(env, info, rng))
            observation, info, ended = result[0], result[4], result[2] or result[3]
            seen.append(result)
        seen.append(env.get_wrapper_attr("drift_state"))
    return seen, (observation, info, ended)


def play_copies(envs: Any, rng: np.random.Generator, steps: int, state: Any) -> tuple[list[Any], Any]:
    """The same for copies, with autoreset disabled too; what returns the end of an episode stays in the state."""
    observation, info, ended = state
    mode = envs.metadata["autoreset_mode"].value
    seen: list[Any] = []
    for _ in range(steps):
        if mode == "Disabled" and ended.any():
            seen.append(envs.reset(options={"reset_mask": ended}))
        single = envs.single_action_space
        if isinstance(single, gym.spaces.Discrete):
            actions = rng.integers(single.n, size=envs.num_envs) + single.start
        else:
            actions = rng.uniform(-1.5, 1.5, (envs.num_envs, *single.shape)).astype(single.dtype)
        result = envs.step(actions)
        observation, info = result[0], result[4]
        ended = result[2] | result[3] if mode != "SameStep" else np.zeros(envs.num_envs, bool)
        seen += [result, list(envs.get_attr("drift_state"))]
    return seen, (observation, info, ended)


def check_goes_on(make: Callable[[], Any], before: int, after: int = 40, begin: dict[str, Any] | None = None) -> None:
    """Play an environment, save its progress, and hold it against another one that goes on from there.

    Args:
        make: makes the environment.
        before: the steps before progress is saved.
        after: the steps after it.
        begin: options of a second reset, before the steps.
    """
    first, second = make(), make()
    is_single = isinstance(first, gym.Env)
    play: Play = play_single if is_single else play_copies
    rng = np.random.default_rng(before)
    observation, info = first.reset(seed=3)
    if begin is not None:
        observation, info = first.reset(options=begin)
    ended = False if is_single else np.zeros(first.num_envs, bool)
    _, state = play(first, rng, before, (observation, info, ended))
    text = json.dumps(drift_envs.save_progress(first, state[0], state[2]), allow_nan=False)
    restored = drift_envs.restore_progress(second, json.loads(text))
    assert not restored.is_next
    assert is_same(restored.observation, state[0])
    assert np.array_equal(restored.ended, state[2])
    same = copy.deepcopy(rng)
    seen, _ = play(first, rng, after, state)
    again, _ = play(second, same, after, (restored.observation, state[1], restored.ended))
    for step, (one, other) in enumerate(zip(seen, again, strict=True)):
        assert is_same(one, other) if not hasattr(one, "knobs") else one == other, step
    logs = [env.get_wrapper_attr("drift_log") if is_single else env.get_attr("drift_log") for env in (first, second)]
    assert logs[0] == logs[1]
    first.close()
    second.close()
