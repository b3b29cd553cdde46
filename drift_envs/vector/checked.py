"""What the vector environments of this package share, whatever computes their steps.

* `CheckedVectorEnv` - spaces and settings, and the checks before a step
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from drift_envs.checks import LARGEST_COUNT, check_integer
from drift_envs.errors import ArgumentError, StateError
from drift_envs.wrappers.drift import DriftWrapper


class CheckedVectorEnv(VectorEnv[Any, Any, np.ndarray]):
    """The settings of N copies of one drifting environment.

    Subclasses call `_set_up` in their constructor, set `_is_reset` in `reset`, and call `_check_step` in `step`.
    """

    single_env: DriftWrapper
    autoreset_mode: AutoresetMode
    _is_reset: bool = False

    def _set_up(
        self,
        single_env: DriftWrapper,
        num_envs: int,
        max_episode_steps: int | None,
        autoreset_mode: str | AutoresetMode,
    ) -> None:
        """Check and store the settings.

        Args:
            single_env: the single environment of which all sub-environments are copies.
            num_envs: the number of sub-environments, at least 1.
            max_episode_steps: the step limit of an episode, at least 1, `None` for no limit.
            autoreset_mode: `NextStep`, `SameStep`, `Disabled`, or Gymnasium's enumeration of these.

        Raises:
            ArgumentError: if an argument is invalid.
        """
        self.num_envs = check_integer("num_envs", num_envs, 1, LARGEST_COUNT)
        check_integer("max_episode_steps", max_episode_steps, 1, LARGEST_COUNT, optional=True)
        modes = [mode.value for mode in AutoresetMode]
        if not isinstance(autoreset_mode, AutoresetMode) and autoreset_mode not in modes:
            raise ArgumentError(f"`autoreset_mode` should be one of {modes}. Received {autoreset_mode!r}")
        self.single_env = single_env
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.max_episode_steps, self.render_mode = max_episode_steps, single_env.render_mode
        self.metadata = {**single_env.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = single_env.observation_space
        self.single_action_space = single_env.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.schedule = single_env.schedule

    def _check_step(self, ended: np.ndarray | None) -> None:
        """Raise an error if no step is possible.

        Args:
            ended: whether the episode has ended, booleans of shape `(N,)`; `None` if none has.

        Raises:
            StateError: before the first `reset`, or after the end of an episode with autoreset disabled.
        """
        if not self._is_reset:
            raise StateError("`step` was called before `reset`; call `reset` first")
        if ended is not None and self.autoreset_mode is AutoresetMode.DISABLED:
            raise StateError(
                f"sub-environment {int(ended.argmax())} has ended its episode and autoreset is disabled; "
                "call `reset(options={'reset_mask': terminations | truncations})`"
            )

    def close_extras(self, **kwargs: Any) -> None:
        """Close the single environment, which renders the frames.

        Args:
            **kwargs: not used.
        """
        self.single_env.close()
