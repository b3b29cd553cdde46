"""The declaration of an environment: what it consists of, by reference, so that nothing is imported before it is used.

* `EnvParts` - the declaration; each folder of `drift_envs/envs` holds its own in `__init__.py`
* `Controls` - the keys by which a person plays an environment
* `parts_of` - the declaration of an environment that was made
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.lazy import load_object

if TYPE_CHECKING:
    from drift_envs.knobs import KnobTable


@dataclass(frozen=True)
class Controls:
    """The keys by which a person plays an environment.

    Args:
        keys: the action of each key, by pygame's name of the key; a tuple of numbers for a `Box` space.
        idle: the action while no key is held; `None` if the environment waits for a key.
        help: the keys in words.
        ends_at_goal: whether episodes terminate at the goal only; if not, a positive reward marks success.
        has_goal: whether there is a goal; if not, the return is printed.
    """

    keys: Mapping[str, Any]
    idle: Any
    help: str
    ends_at_goal: bool = True
    has_goal: bool = True


@dataclass(frozen=True)
class EnvParts:
    """What an environment consists of. References are strings `module:name`; `None` where it has no such part.

    Args:
        env: the class of the innermost environment.
        knobs: its knob table, which can be loaded without the environment's extra.
        limit: the steps of an episode.
        arguments: the arguments of the class, each with the part of a schedule that sets the same, or `None`.
        fixed: arguments of the class that belong to the id.
        with_schedule: arguments of the class that have another default where a schedule drives the environment.
        build: builds the environment from the declaration, the schedule, the shared options and the arguments;
            by default `drift_envs.wrappers.options:build_plain`.
        text: the describer, a function of the environment: its states, tasks and actions in words.
        text_mode: the `observation_mode` with which the environment itself shows text; needs no describer.
        oracle: builds the oracle from the drifting environment, a function that returns the innermost environment
            after its first reset, and the step limit.
        knows_optimum: whether the oracle knows the optimum, or only what an action leads to.
        vector: the class of the native NumPy vector environment.
        functional: the class of the form as pure functions for JAX.
        marks: what is drawn on pictures for people, a class as `drift_envs.wrappers.overlay.marks:Marks`.
        controls: the keys for `drift-envs play`; `None` where a person cannot control it.
        extra: the extra of this package that the environment needs.

    Example:
        >>> from drift_envs.envs.frozen_lake import FROZEN_LAKE
        >>> FROZEN_LAKE.env_class.__name__, FROZEN_LAKE.extra
        ('FrozenLake', None)
    """

    env: str
    knobs: str
    limit: int
    arguments: Mapping[str, str | None] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    with_schedule: Mapping[str, Any] = field(default_factory=dict)
    build: str = "drift_envs.wrappers.options:build_plain"
    text: str | None = None
    text_mode: str | None = None
    oracle: str | None = None
    knows_optimum: bool = True
    vector: str | None = None
    functional: str | None = None
    marks: str | None = None
    controls: Controls | None = None
    extra: str | None = None

    @property
    def env_class(self) -> type[gym.Env[Any, Any]]:
        """The class of the innermost environment.

        Raises:
            MissingDependencyError: if the extra that it needs is not installed.
        """
        found: type[gym.Env[Any, Any]] = self.load("env")
        return found

    @property
    def knob_table(self) -> KnobTable:
        """The environment's own knobs."""
        table: KnobTable = self.load("knobs")
        return table

    def load(self, name: str) -> Any:
        """The object behind a reference.

        Args:
            name: the reference, as `text`.

        Raises:
            ArgumentError: if the environment has no such part.
            MissingDependencyError: if the extra that it needs is not installed.
        """
        reference = getattr(self, name)
        if reference is None:
            raise ArgumentError(f"`{name}` should be a part of {self.env.rpartition(':')[2]}, which has none")
        try:
            return load_object(reference)
        except (ImportError, gym.error.DependencyNotInstalled) as error:
            if self.extra is None or isinstance(error, MissingDependencyError):
                raise
            missing = getattr(error, "name", None) or self.extra
            raise MissingDependencyError.of([missing], [self.extra]) from error


def parts_of(env: gym.Env[Any, Any]) -> EnvParts | None:
    """The declaration of an environment; `None` if its class has none in the attribute `parts`.

    Args:
        env: the environment, in wrappers or not.
    """
    parts = getattr(type(env.unwrapped), "parts", None)
    return parts if isinstance(parts, EnvParts) else None
