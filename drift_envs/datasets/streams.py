"""The streams of a data set on which drift detectors are played.

* `STREAMS` - `returns`, `rewards` and `errors`
* `read_streams` - one stream for each lifetime
* `prediction_errors`, `linear_errors` - the errors of simple models of the responses, learned on the way
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.checks import check_choice
from drift_envs.datasets.columns import column_names, decode, load_pyarrow
from drift_envs.datasets.folder import open_dataset
from drift_envs.datasets.recorder import make_dataset_env
from drift_envs.errors import ArgumentError
from drift_envs.metrics.detectors import Stream

STREAMS = ("returns", "rewards", "errors")
"""A value for each episode, and one for each step: the reward, or the error of a prediction of the response."""

FORGETTING, RIDGE = 0.999, 1.0
"""Of the recursive least squares."""


def read_streams(path: str | os.PathLike[str], kind: str = "returns") -> list[Stream]:
    """The stream of each lifetime of a data set.

    A drift is the first step of a phase other than the first one.

    Args:
        path: the folder of the data set.
        kind: one of `STREAMS`.

    Raises:
        ArgumentError: if there is no such kind, no data set, or no prediction for its observations.
        StateError: if parts of the data set are missing.
        MissingDependencyError: without PyArrow.
    """
    check_choice("stream", kind, STREAMS)
    pyarrow = load_pyarrow()
    folder = open_dataset(path)
    manifest = folder.manifest()
    env = make_dataset_env(manifest) if kind == "errors" else None
    try:
        names = ["episode", "reward", "terminated", "phase"]
        if env is not None:
            names += column_names("observation", env.observation_space)
            names += column_names("next_observation", env.observation_space)
            names += column_names("action", env.action_space)
        streams = []
        for lifetime in range(manifest["lifetimes"]):
            # the parts have dictionaries of their own for the phases
            table = pyarrow.concat_tables(list(folder.tables(lifetime, names))).unify_dictionaries().combine_chunks()
            streams.append(_stream(table, kind, env))
        return streams
    finally:
        if env is not None:
            env.close()


def _stream(table: Any, kind: str, env: gym.Env[Any, Any] | None) -> Stream:
    rewards, episodes = table.column("reward").to_numpy(), table.column("episode").to_numpy()
    phases = table.column("phase").combine_chunks().indices.to_numpy()
    drifts = tuple((np.flatnonzero(phases[1:] != phases[:-1]) + 1).tolist())
    length = len(rewards)
    if kind == "returns":
        begins = np.flatnonzero(np.concatenate([[True], episodes[1:] != episodes[:-1]]))
        return Stream(np.add.reduceat(rewards, begins), np.append(begins[1:], length), drifts, length)
    values = rewards if env is None else _errors(table, rewards, env)
    return Stream(values, np.arange(1, length + 1), drifts, length)


def _errors(table: Any, rewards: np.ndarray, env: gym.Env[Any, Any]) -> np.ndarray:
    space = env.observation_space
    observations = decode("observation", space, table)
    following = decode("next_observation", space, table)
    actions = decode("action", env.action_space, table)
    ends = table.column("terminated").to_numpy()
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and isinstance(actions, np.ndarray):
        inputs = _one_hot(actions, env.action_space) if actions.ndim == 1 else actions
        return linear_errors(observations, inputs, following, np.column_stack([rewards, ends]))
    if not isinstance(space, (gym.spaces.Discrete, gym.spaces.Text)):
        raise ArgumentError(
            f"`errors` should be of observations of a space Discrete, Text, or Box with one dimension. Received {space}"
        )
    keys = [tuple(np.atleast_1d(action).tolist()) for action in actions]
    return prediction_errors(
        list(observations), keys, list(zip(following, rewards.tolist(), ends.tolist(), strict=True))
    )


def prediction_errors(
    observations: Sequence[Hashable], actions: Sequence[Hashable], responses: Sequence[Hashable]
) -> np.ndarray:
    """How rare each response was among the earlier ones to the same action after the same observation.

    That is 1 - Q_hist in the terms of GLOVE.

    Args:
        observations: before each step.
        actions: of each step.
        responses: to each, as observation, reward and whether the episode terminates.

    Returns:
        One minus the share of the response, 0 where there was none yet, shape `(N,)`.

    Example:
        >>> prediction_errors("aabaa", "lllll", [1, 1, 5, 2, 2])
        array([0.        , 0.        , 0.        , 1.        , 0.66666667])
    """
    counts: defaultdict[tuple[Hashable, Hashable], Counter[Hashable]] = defaultdict(Counter)
    errors = np.zeros(len(responses))
    for index, (observation, action, response) in enumerate(zip(observations, actions, responses, strict=True)):
        known = counts[observation, action]
        if known:
            errors[index] = 1 - known[response] / known.total()
        known[response] += 1
    return errors


def linear_errors(
    observations: np.ndarray, actions: np.ndarray, following: np.ndarray, outcomes: np.ndarray
) -> np.ndarray:
    """The errors of a linear model that is learned on the way by recursive least squares with forgetting.

    The model gives the change of the observation and the outcomes from observation, action and their products. Each
    output is in units of its standard deviation over the stream.

    Args:
        observations: before each step, shape `(N, D)`.
        actions: of each step, shape `(N, A)`; discrete ones as indicators.
        following: the observations after each step, shape `(N, D)`.
        outcomes: what else a step brings, as the reward, shape `(N, K)`.

    Returns:
        The root of the mean squared error of each prediction, which is made before the step is learned; shape `(N,)`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> seen, push = rng.normal(size=(400, 1)), rng.normal(size=(400, 1))
        >>> gain = np.repeat([1.0, -1.0], 200)[:, None]
        >>> errors = linear_errors(seen, push, seen + gain * push, np.zeros((400, 1)))
        >>> bool(errors[150:200].max() < 0.1 < errors[200:210].max())
        True
    """
    seen = np.asarray(observations, float)
    given = np.asarray(actions, float)
    targets = np.column_stack([np.asarray(following, float) - seen, np.asarray(outcomes, float)])
    spread = targets.std(axis=0)
    targets /= np.where(spread > 0, spread, 1.0)
    scale = seen.std(axis=0)
    seen = (seen - seen.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    products = (given[:, :, None] * seen[:, None, :]).reshape(len(seen), -1)
    features = np.column_stack([np.ones(len(seen)), seen, given, products])
    weights = np.zeros((features.shape[1], targets.shape[1]))
    covariance = np.eye(features.shape[1]) / RIDGE
    errors = np.zeros(len(seen))
    for index, (row, target) in enumerate(zip(features, targets, strict=True)):
        error = target - row @ weights
        errors[index] = np.sqrt(np.mean(error**2))
        projected = covariance @ row
        gain = projected / (FORGETTING + row @ projected)
        weights += np.outer(gain, error)
        covariance = (covariance - np.outer(gain, projected)) / FORGETTING
    return errors


def _one_hot(actions: np.ndarray, space: gym.Space[Any]) -> np.ndarray:
    """Discrete actions as indicators; the first one is that of none."""
    first, count = int(getattr(space, "start", 0)), int(getattr(space, "n", 1))
    return np.asarray(np.eye(count)[actions - first][:, 1:], float)
