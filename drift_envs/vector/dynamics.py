"""What a native vector environment says of its dynamics; everything else is the same for all.

* `Dynamics` - the part of `DriftVectorEnv` that each environment fills
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from drift_envs.knobs import Value
from drift_envs.vector.knob_pool import Columns


class Dynamics(ABC):
    """How the sub-environments of one kind begin, move and look: arrays of N, no notion of time or drift.

    `DriftVectorEnv` calls these; N is its number of sub-environments, a mask has shape `(N,)`.
    `kind` is the class of the single environment, `state_names` says what `read_state` knows.
    """

    kind: ClassVar[type]
    state_names: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def read_state(self, index: int, name: str) -> Any:
        """A part of what says where an episode stands.

        Args:
            index: the sub-environment.
            name: one of `state_names`.
        """

    @abstractmethod
    def write_state(self, index: int, name: str, value: Any) -> None:
        """Put an episode somewhere else.

        Args:
            index: the sub-environment.
            name: one of `state_names`.
            value: as `read_state` gives it.
        """

    def _check_options(self, options: Mapping[str, Any]) -> None:  # noqa: B027 - not all need it
        """Refuse options that break a rule."""

    def _reset_infos(self, mask: np.ndarray) -> dict[str, Any]:
        """What the environment's `reset` tells, of these sub-environments."""
        return {}

    @abstractmethod
    def _build(self) -> None:
        """Make the arrays of the dynamics, at the end of the constructor."""

    @abstractmethod
    def _columns(self) -> dict[str, np.ndarray]:
        """What the knobs are as columns of numbers, shape `(N,)` each; a schedule writes into these arrays."""

    @abstractmethod
    def _encode(self, values: Mapping[str, Any]) -> Columns:
        """Knob values of a stretch of ticks as columns of numbers."""

    def _follows_knobs(self) -> bool:
        """Whether something follows from other values of the driven knobs, so that `_turned` has to be called."""
        return False

    def _turned(self, indices: np.ndarray) -> None:  # noqa: B027 - not all need it
        """Other values hold in these sub-environments."""

    def _strand(self, truncations: np.ndarray) -> None:  # noqa: B027 - not all need it
        """The limit has ended these episodes."""

    @abstractmethod
    def _place(self, mask: np.ndarray, options: Mapping[str, Any]) -> None:
        """Put these sub-environments where an episode begins."""

    @abstractmethod
    def _observe(self) -> Any:
        """The present observations, an array of its own."""

    @abstractmethod
    def _check_actions(self, actions: Any) -> np.ndarray:
        """The actions as an array, or an error."""

    @abstractmethod
    def _transition(
        self, actions: np.ndarray, dead: np.ndarray | None
    ) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all; where a step is dead, begin the episode in place of that."""

    @abstractmethod
    def pose(self, env: Any, index: int) -> None:
        """Put the single environment where a sub-environment stands, for a picture.

        Args:
            env: the innermost single environment, turned already.
            index: the sub-environment.
        """

    @abstractmethod
    def read_knob(self, index: int, name: str) -> Value:
        """The present value of a knob, read back from what the dynamics use.

        Args:
            index: the sub-environment.
            name: the knob.
        """

    @abstractmethod
    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Turn a knob that no schedule drives.

        Args:
            index: the sub-environment.
            name: the knob.
            value: a canonical value.
        """
