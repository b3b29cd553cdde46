"""What reads a data set: streams on which drift detectors are played, and the form of Minari with labels in `infos`."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.checks import check_choice
from drift_envs.datasets.folder import (
    EXTRA,
    DatasetFolder,
    column_names,
    decode,
    join,
    load_pyarrow,
    open_dataset,
    pick,
)
from drift_envs.datasets.recorder import make_dataset_env
from drift_envs.errors import ArgumentError, needs_extra
from drift_envs.metrics.detection import Stream

STREAMS = ("returns", "rewards", "errors")
"""A value for each episode, and one for each step: the reward, or the error of a prediction of the response."""

FORGETTING, RIDGE = 0.999, 1.0
"""Of the recursive least squares."""

NAMESPACE = "drift"
PATHS = "MINARI_DATASETS_PATH"

FIELDS = ("lifetime", "episode", "tick", "phase")
"""The columns that become `infos` beside the knobs and the log."""


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


def minari_id(manifest: Mapping[str, Any]) -> str:
    """The id of a data set.

    Example:
        >>> minari_id({"env": "DriftFrozenLake-v0", "schedule": {"name": "frozen_lake/tides"}, "policy": "my.own:make"})
        'drift/DriftFrozenLake/frozen_lake-tides-my-own-make-v0'
    """

    def plain(text: str) -> str:
        return "".join(letter if letter.isalnum() or letter == "_" else "-" for letter in text)

    env = plain(re.sub(r"-v\d+\Z", "", manifest["env"].rpartition(":")[2]))
    return f"{NAMESPACE}/{env}/{plain(manifest['schedule']['name'])}-{plain(manifest['policy'])}-v0"


def load_minari() -> Any:
    """Minari, with what stores its data.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    for name in ("minari", "h5py", "PIL"):
        with needs_extra("pillow" if name == "PIL" else name, EXTRA):
            import_module(name)
    return import_module("minari")


def write_minari(
    path: str | os.PathLike[str], progress: Callable[[int, int], object] = lambda done, steps: None
) -> str:
    """Write the Minari form of a data set into its own folder.

    With `MINARI_DATASETS_PATH` set to the folder, `minari.load_dataset(id)` reads it. It is written as a whole, and
    replaces one that is there.

    Args:
        path: the folder of a complete data set.
        progress: gets the episodes and steps of each part that was written; return values are ignored.

    Returns:
        The id.

    Raises:
        ArgumentError: if the folder holds no data set.
        StateError: if parts are missing.
        MissingDependencyError: without Minari.
    """
    minari = load_minari()
    folder = open_dataset(path)
    manifest = folder.manifest()
    name = minari_id(manifest)
    env = make_dataset_env(manifest)
    try:
        with _datasets_path((folder.path / "minari.part").resolve()) as root:
            dataset = None
            for lifetime in range(manifest["lifetimes"]):
                for table in folder.tables(lifetime):
                    episodes = list(_episodes(table, env))
                    if dataset is None:
                        dataset = _create(minari, name, episodes, env, manifest)
                    else:
                        dataset.storage.update_episodes(episodes)
                    progress(len(episodes), table.num_rows)
            _move(root, folder, name)
    finally:
        env.close()
    return name


def _create(minari: Any, name: str, episodes: list[Any], env: gym.Env[Any, Any], manifest: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():  # of author, mail and a link to code, which a data set of one's own need not have
        warnings.simplefilter("ignore", UserWarning)
        create = minari.create_dataset_from_buffers
        # versions before 0.5.4 have no such argument, and keep arrays as they are
        plain = {"jpeg_encoding": False} if "jpeg_encoding" in inspect.signature(create).parameters else {}
        return create(
            name,
            episodes,
            env=env,
            algorithm_name=manifest["policy"],
            description=f"Lifetimes with drifts of {manifest['schedule']['name']}; `infos` has the truth about them.",
            **plain,
        )


def _episodes(table: Any, env: gym.Env[Any, Any]) -> Iterator[Any]:
    """The episodes of a part."""
    buffer = import_module("minari.data_collector").EpisodeBuffer
    observations = decode("observation", env.observation_space, table)
    following = decode("next_observation", env.observation_space, table)
    actions = decode("action", env.action_space, table)
    columns = {name: table.column(name).to_numpy() for name in ("reward", "terminated", "truncated", "episode")}
    labels = (*FIELDS, *(name for name in table.column_names if name.startswith("knob.")), "drift_log")
    infos = {name.replace(".", "_"): _info(table.column(name)) for name in labels}
    begins = np.flatnonzero(np.concatenate([[True], np.diff(columns["episode"]) != 0]))
    for start, stop in zip(begins.tolist(), [*begins[1:].tolist(), table.num_rows], strict=True):
        rows = slice(start, stop)
        yield buffer(
            observations=join(pick(observations, rows), pick(following, slice(stop - 1, stop))),
            actions=pick(actions, rows),
            rewards=columns["reward"][rows],
            terminations=columns["terminated"][rows],
            truncations=columns["truncated"][rows],
            # one more than steps, as that of the reset: the labels of the first step
            infos={name: join(values[start : start + 1], values[rows]) for name, values in infos.items()},
        )


def _info(column: Any) -> Any:
    """The values of a label: numbers as an array, all else as texts."""
    pyarrow = load_pyarrow()
    if pyarrow.types.is_list(column.type):
        return [json.dumps(entries, ensure_ascii=False) if entries else "" for entries in column.to_pylist()]
    if pyarrow.types.is_dictionary(column.type):
        return column.to_pylist()
    return column.to_numpy()


@contextmanager
def _datasets_path(root: Path) -> Iterator[Path]:
    """Let Minari write below another folder, which is empty at first and gone in the end."""
    before = os.environ.get(PATHS)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    os.environ[PATHS] = str(root)
    try:
        yield root
    finally:
        if before is None:
            del os.environ[PATHS]
        else:
            os.environ[PATHS] = before
        shutil.rmtree(root, ignore_errors=True)


def _move(root: Path, folder: DatasetFolder, name: str) -> None:
    """Move what is complete to its place."""
    target = folder.path / name
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    (root / name).rename(target)
