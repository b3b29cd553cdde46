"""Where a native vector environment stands, as plain data: clocks, states, generators and knobs of all copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError, StateError
from drift_envs.vector.dynamics import EpisodeDraws, StepDraws
from drift_envs.vector.sub_environment import DriftInfos, SubEnvironmentAccess
from drift_envs.wrappers.clock import TimeWarnings
from drift_envs.wrappers.plain_data import from_plain, to_plain


class ResumableVectorEnv(SubEnvironmentAccess, VectorEnv[Any, Any, np.ndarray]):
    """A native vector environment that goes on in another process; its subclass sets the attributes below."""

    _begun: int
    _is_torn: bool
    _ended: np.ndarray
    _has_ended: bool
    _start_draws: EpisodeDraws
    _response_draws: StepDraws
    _time_warnings: TimeWarnings
    _drift_infos: DriftInfos | None

    @property
    def ended(self) -> np.ndarray:
        """The copies whose episode has ended, and whose next step or reset begins the next one; shape `(N,)`."""
        return self._ended.copy()

    def observe(self) -> Any:
        """The present observations, as a new array."""
        return self._observe()

    def save_progress(self) -> dict[str, Any]:
        """Where all copies stand, as plain data; see `drift_envs.save_progress`.

        Raises:
            StateError: before the first `reset`, or if a step or reset was interrupted.
        """
        if not self._is_reset or self._is_torn:
            raise StateError("progress was saved before `reset`, or after an interrupted step; call `reset` first")
        free = [name for name in self.envs[0].unwrapped.knobs if name not in self.driven]
        return {
            "clocks": to_plain(self.clocks.save(), "clocks"),
            "seeds": [self.pool.timeline(index).seed for index in range(self.num_envs)],
            "begun": self._begun,
            "ended": self._ended.tolist(),
            "generator": to_plain(self.np_random, "generator"),
            "seed": to_plain(self.np_random_seed, "seed"),
            "starts": self._start_draws.seed,
            "responses": to_plain(self._response_draws.save(), "responses"),
            "knobs": to_plain({name: [self.read_knob(index, name) for index in range(self.num_envs)] for name in free}),
            "dynamics": to_plain(self.save_dynamics(), "dynamics"),
            "warnings": vars(self._time_warnings).copy(),
        }

    def load_progress(self, saved: Mapping[str, Any]) -> None:
        """Go on where others stood.

        Args:
            saved: from `save_progress`.

        Raises:
            ArgumentError: if the data is not as it was written.
        """
        clocks, knobs = from_plain(saved["clocks"], "clocks"), from_plain(saved["knobs"], "knobs")
        generator, dynamics = from_plain(saved["generator"], "generator"), from_plain(saved["dynamics"], "dynamics")
        responses, own_seed = from_plain(saved["responses"], "responses"), from_plain(saved["seed"], "seed")
        seeds = [check_integer("seeds", seed) for seed in saved["seeds"]]
        ended = np.array(saved["ended"], bool)
        if len(seeds) != self.num_envs or ended.shape != (self.num_envs,):
            raise ArgumentError(f"`seeds` should be {self.num_envs} seeds. Received {seeds}")
        self.pool.reseed(np.arange(self.num_envs), seeds)
        self.clocks.load(clocks)
        for name, values in knobs.items():
            for index, value in enumerate(values):
                if value != self.read_knob(index, name):
                    self.write_knob(index, name, value)
        self.load_dynamics(dynamics)
        self.np_random = generator
        self._np_random_seed = own_seed
        self._start_draws = EpisodeDraws(check_integer("starts", saved["starts"]), self.num_envs)
        self._response_draws.load(responses)
        self._begun = check_integer("begun", saved["begun"])
        self._ended, self._has_ended = ended, bool(ended.any())
        vars(self._time_warnings).update(saved["warnings"])
        self._is_reset, self._is_torn = True, False
        if self._drift_infos is not None:
            self._drift_infos.rewind(np.arange(self.num_envs))
