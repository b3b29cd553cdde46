"""Checkpoints of Stable-Baselines3 from which a training goes on step by step; needs the extra `rl`."""

from __future__ import annotations

import json
import os
import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError, DriftWarning, needs_extra
from drift_envs.vector.progress import is_at_beginning, restore_progress, save_progress
from drift_envs.wrappers.plain_data import digest, from_plain, to_plain

with needs_extra("stable_baselines3", "rl"):
    import torch
    from stable_baselines3.common import callbacks
    from stable_baselines3.common.base_class import BaseAlgorithm

FORMAT = "drift-envs training 1"

_LAST = ("_last_obs", "_last_original_obs", "_last_episode_starts")
"""What a model keeps of its environment; `load` clears the first of them."""


def save_generators() -> dict[str, Any]:
    """The global generators of torch, NumPy and Python, as plain data."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "torch": to_plain(torch.get_rng_state().numpy().copy()),
        "cuda": [to_plain(state.numpy().copy()) for state in cuda],
        "numpy": to_plain(np.random.get_state(legacy=False)),  # noqa: NPY002 - the one that Stable-Baselines3 draws from
        "python": to_plain(random.getstate()),
    }


def restore_generators(saved: dict[str, Any]) -> None:
    """Set the global generators of torch, NumPy and Python.

    Args:
        saved: from `save_generators`.
    """
    torch.set_rng_state(torch.from_numpy(from_plain(saved["torch"])))
    if saved["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([torch.from_numpy(from_plain(state)) for state in saved["cuda"]])
    np.random.set_state(from_plain(saved["numpy"]))  # noqa: NPY002
    random.setstate(from_plain(saved["python"]))


def warn_of_new_time(model: BaseAlgorithm) -> None:
    """Warn of a model that has trained and goes on in an environment that is at its beginning.

    Args:
        model: the model, when its training begins.

    Warns:
        DriftWarning: if it does.
    """
    if model.num_timesteps and model.env is not None and is_at_beginning(model.env):
        warnings.warn(
            f"the model has trained for {model.num_timesteps} steps, and its environment is at tick 0: the schedule "
            "begins again. `drift_envs.integrations.sb3.CheckpointCallback` stores and restores where it stood",
            DriftWarning,
            stacklevel=3,
        )


class CheckpointCallback(callbacks.CheckpointCallback):  # type: ignore[misc, unused-ignore]
    """Stores checkpoints from which a training goes on where it was: the model, and beside it where all else stands.

    A checkpoint is stored between two rollouts, at the first one that begins `save_freq` calls of `step` after the last
    checkpoint, and at the end of `learn`. `NAME_progress_N_steps.json` has the progress of the training environment and
    its wrappers (`drift_envs.save_progress`), the last observation, and the generators of torch, NumPy and Python. When
    a model of such a checkpoint begins to learn in an environment that was not stepped, all of these are restored: the
    training that goes on equals the one that was not interrupted, step by step. For that, algorithms with a replay
    buffer need `save_replay_buffer=True`; it is loaded too.

    Args:
        save_freq: calls of `step` from one checkpoint to the next, at least 1, as in Stable-Baselines3.
        save_path: the folder, one for each training.
        **arguments: those of Stable-Baselines3's `CheckpointCallback`.

    Raises:
        ArgumentError: if `save_freq` is no whole number of at least 1, or `save_path` no folder; when training begins,
            if the environments do not drift, or the checkpoint is of another schedule or number of copies, or damaged.

    Warns:
        DriftWarning: when training begins, if the model has trained, and its environment is at tick 0 without progress
            to restore, or was stepped and stands elsewhere than at the checkpoint of these steps.

    Example:
        >>> import tempfile
        >>> from stable_baselines3 import PPO
        >>> from drift_envs.integrations.sb3 import make_vec_env
        >>> def train(steps, folder):
        ...     cars = make_vec_env("DriftMountainCar-v0", n_envs=2, seed=0)
        ...     checkpoints = CheckpointCallback(32, folder)
        ...     last = checkpoints.last()
        ...     model = PPO.load(last, cars) if last else PPO("MlpPolicy", cars, n_steps=32, batch_size=32, n_epochs=1)
        ...     return model.learn(steps - model.num_timesteps, checkpoints, reset_num_timesteps=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = train(64, folder)
        ...     model = train(128, folder)
        >>> model.num_timesteps, model.env.envs.envs[0].tick
        (128, 0)
    """

    def __init__(self, save_freq: int, save_path: str | os.PathLike[str], **arguments: Any) -> None:
        check_integer("save_freq", save_freq, 1)
        if not isinstance(save_path, (str, os.PathLike)) or not os.fspath(save_path):
            raise ArgumentError(f"`save_path` should be the path of a folder. Received {save_path!r}")
        if Path(save_path).exists() and not Path(save_path).is_dir():
            raise ArgumentError(f"`save_path` should be a folder. Received the file {os.fspath(save_path)!r}")
        super().__init__(save_freq, os.fspath(save_path), **arguments)
        self._saved_at = 0

    def last(self) -> str | None:
        """The path of the newest complete checkpoint, `None` if there is none."""
        name = re.compile(rf"{re.escape(self.name_prefix)}_progress_(\d+)_steps\.json")
        folder = Path(self.save_path)
        found = [int(match[1]) for path in folder.glob("*.json") if (match := name.fullmatch(path.name))]
        paths = [folder / f"{self.name_prefix}_{steps}_steps.zip" for steps in sorted(found, reverse=True)]
        return next((str(path) for path in paths if path.exists()), None)

    def _path(self, kind: str, ending: str) -> Path:
        return Path(self.save_path) / f"{self.name_prefix}_{kind}{self.model.num_timesteps}_steps.{ending}"

    def _init_callback(self) -> None:
        super()._init_callback()
        if not all(self.training_env.env_method("has_wrapper_attr", "drift_state")):
            raise ArgumentError(
                "the training environments should each have a `DriftWrapper` inside, whose time is stored; without "
                "drifts use Stable-Baselines3's own `CheckpointCallback`"
            )

    def _on_training_start(self) -> None:
        model = self.model
        self._saved_at = model.num_timesteps
        path = self._path("progress_", "json")
        if not model.num_timesteps:
            return
        if not path.exists():
            warn_of_new_time(model)
            return
        try:
            saved = json.loads(path.read_text("utf-8"))
            if is_at_beginning(self.training_env):
                self._restore(saved)
            elif save_progress(self.training_env)["digest"] != saved["env"]["digest"]:
                warnings.warn(
                    f"the model has trained for {model.num_timesteps} steps, and its environment has been stepped "
                    f"since `{path}` was stored: nothing is restored. Load the model into a new environment to go on "
                    "there",
                    DriftWarning,
                    stacklevel=2,
                )
        except ArgumentError as error:
            raise ArgumentError(f"`{path}`: {error}") from error
        except (AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"`{path}` should be what `CheckpointCallback` wrote: {type(error).__name__}: {error}"
            ) from error

    def _restore(self, saved: dict[str, Any]) -> None:
        model: Any = self.model
        if saved["format"] != FORMAT:
            raise ArgumentError(f"a progress file should be of the format {FORMAT!r}. Received {saved['format']!r}")
        found = digest({name: value for name, value in saved.items() if name != "digest"})
        if found != saved["digest"]:
            raise ArgumentError(
                f"a progress file should have the digest {saved['digest']!r}. Received data of the digest {found!r}: "
                "it was changed"
            )
        if saved["steps"] != model.num_timesteps:
            raise ArgumentError(
                f"a progress file should be of a model that has trained for {model.num_timesteps} steps. Received that "
                f"of one after {saved['steps']}"
            )
        restored = restore_progress(self.training_env, saved["env"])
        if restored.is_next:
            model._last_obs = restored.observation
            model._last_episode_starts = np.ones((self.training_env.num_envs,), bool)
            if model.get_vec_normalize_env() is not None:
                model._last_original_obs = model.get_vec_normalize_env().get_original_obs()
        else:
            for name in _LAST:
                setattr(model, name, from_plain(saved["model"][name], name))
        if saved["actions"] is not None:
            model.action_space.seed(0)
            model.action_space.np_random.bit_generator.state = from_plain(saved["actions"]).bit_generator.state
        buffer = self._path("replay_buffer_", "pkl")
        if self.save_replay_buffer and buffer.exists():
            model.load_replay_buffer(buffer)
        restore_generators(saved["generators"])

    def _on_rollout_start(self) -> None:
        model: Any = self.model
        if model.num_timesteps - self._saved_at >= self.save_freq * self.training_env.num_envs:
            self._save()
            if model.use_sde:  # the noise was drawn just before; a training that goes on draws it from here on
                model.policy.reset_noise(self.training_env.num_envs)

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if self.model.num_timesteps > self._saved_at:
            self._save()

    def _save(self) -> None:
        """Write the files, that of the progress last: a checkpoint without it does not count."""
        model: Any = self.model
        self._saved_at = model.num_timesteps
        model.save(self._path("", "zip"))
        if self.save_replay_buffer and getattr(model, "replay_buffer", None) is not None:
            model.save_replay_buffer(self._path("replay_buffer_", "pkl"))
        if self.save_vecnormalize and model.get_vec_normalize_env() is not None:
            model.get_vec_normalize_env().save(str(self._path("vecnormalize_", "pkl")))
        actions = getattr(model.action_space, "_np_random", None)
        saved = {
            "format": FORMAT,
            "steps": model.num_timesteps,
            "env": save_progress(self.training_env),
            "model": {name: to_plain(getattr(model, name), name, copies=True) for name in _LAST},
            "actions": None if actions is None else to_plain(actions),
            "generators": save_generators(),
        }
        path = self._path("progress_", "json")
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({**saved, "digest": digest(saved)}), "utf-8")
        partial.replace(path)
        if self.verbose >= 2:
            print(f"Saving checkpoint to {self._path('', 'zip')}")
