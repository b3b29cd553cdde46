"""A data set in the form of Minari, with the labels in `infos`.

* `write_minari` - writes it by that package
* `minari_id` - its id
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.datasets.columns import EXTRA, decode, join, load_pyarrow, pick
from drift_envs.datasets.folder import DatasetFolder, open_dataset
from drift_envs.datasets.recorder import make_dataset_env
from drift_envs.errors import MissingDependencyError

NAMESPACE = "drift"
PATHS = "MINARI_DATASETS_PATH"
FIELDS = ("lifetime", "episode", "tick", "phase")
"""The columns that become `infos` beside the knobs and the log."""


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
        try:
            import_module(name)
        except ImportError as error:
            raise MissingDependencyError.of(["pillow" if name == "PIL" else name], [EXTRA]) from error
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
                    episodes = list(_episodes(minari, table, env))
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


def _episodes(minari: Any, table: Any, env: gym.Env[Any, Any]) -> Iterator[Any]:
    """The episodes of a part."""
    buffer = import_module("minari.data_collector").EpisodeBuffer
    observations = decode("observation", env.observation_space, table)
    following = decode("next_observation", env.observation_space, table)
    actions = decode("action", env.action_space, table)
    columns = {name: table.column(name).to_numpy() for name in ("reward", "terminated", "truncated", "episode")}
    infos = {name.replace(".", "_"): _info(table.column(name)) for name in _labels(table.column_names)}
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


def _labels(names: list[str]) -> list[str]:
    return [*FIELDS, *(name for name in names if name.startswith("knob.")), "drift_log"]


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
