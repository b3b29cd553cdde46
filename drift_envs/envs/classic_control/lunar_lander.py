"""Gymnasium's LunarLander with knobs; needs the extra `box2d`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.box2d import lunar_lander

from drift_envs.attributes.declarations import AttributeKnob
from drift_envs.attributes.env import AttributeEnv
from drift_envs.envs.classic_control import LANDER_ATTRIBUTES, LUNAR_LANDER_KNOBS
from drift_envs.errors import StateError
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts


class LunarLander(AttributeEnv, lunar_lander.LunarLander):
    """Gymnasium's LunarLander with knobs; at their defaults it is bit-identical to Gymnasium's.

    Actions, observations and rewards are Gymnasium's. Box2D's world has no copies, since contacts, sleep and the
    impulses that warm-start its solver cannot be set. So a saved state is the start of the episode with the random
    generator of that time, the knobs and the actions since; loading it replays them, which is exact and takes as
    long as the episode did.

    | knob | default | bounds | meaning |
    |---|---|---|---|
    | `gravity` | -10.0 | -12 to 0 | gravity, in metres a squared second; 0 not included |
    | `enable_wind` | false | | whether there is wind |
    | `wind_power`, `turbulence_power` | 15.0, 1.5 | 0 to 20, 2 | strength of the wind; of its torque |

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        continuous: whether actions are the powers of two engines.

    Example:
        >>> env = LunarLander()  # doctest: +SKIP
        >>> env.set_knobs({"gravity": -5.0})  # doctest: +SKIP
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]] = LANDER_ATTRIBUTES
    knobs: ClassVar[KnobTable] = LUNAR_LANDER_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftLunarLander-v0"]
    wind_idx: Any = 0  # Gymnasium draws both at a reset with wind; they are read when wind begins in an episode
    torque_idx: Any = 0
    _start: dict[str, Any] | None = None
    """What the episode began from: the state of the generator, the knobs and the two numbers of the wind."""

    def __init__(self, render_mode: str | None = None, continuous: bool = False) -> None:
        self._events: list[tuple[str, Any]] = []  # knobs that were set and actions since the reset
        lunar_lander.LunarLander.__init__(self, render_mode, continuous)
        self.make_tunable()

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once; gravity acts within an episode, too.

        Args:
            values: canonical values, by knob.
        """
        super().set_knobs(values)
        self._events.append(("set_knobs", dict(values)))
        if "gravity" in values:
            self.world.gravity = (0, self.gravity)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: seed of the environment's generator.
            options: not used.
        """
        gym.Env.reset(self, seed=seed)
        self._start = {
            "random": copy.deepcopy(self.np_random.bit_generator.state),
            "knobs": self.read_knobs(),
            "wind": (self.wind_idx, self.torque_idx),
        }
        result: tuple[Any, dict[str, Any]] = lunar_lander.LunarLander.reset(self, options=options)
        self._events.clear()  # Gymnasium's `reset` makes a first step
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step.

        Args:
            action: 0 nothing, 1 and 3 the side engines, 2 the main engine; or the powers of two engines.
        """
        self._events.append(("step", copy.copy(action)))
        result: tuple[Any, Any, bool, bool, dict[str, Any]] = lunar_lander.LunarLander.step(  # type: ignore[no-untyped-call]
            self, action
        )
        return result

    def save_state(self) -> dict[str, Any]:
        """The start of the episode, and what has happened since.

        Raises:
            StateError: before the first `reset`.
        """
        if self._start is None:
            raise StateError("the state of LunarLander was saved before its first `reset`")
        return {"start": copy.deepcopy(self._start), "events": list(self._events)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Replay an episode; knobs and random generator are afterwards what they were before.

        Args:
            state: from `save_state`.
        """
        start, events = state["start"], state["events"]
        present, random, mode = self.read_knobs(), self.np_random, self.render_mode
        self.render_mode = None  # a replay is not shown
        self._np_random = np.random.Generator(np.random.PCG64())
        self._np_random.bit_generator.state = start["random"]
        self.wind_idx, self.torque_idx = start["wind"]
        AttributeEnv.set_knobs(self, start["knobs"])
        self.reset()
        for kind, value in events:
            if kind == "set_knobs":
                self.knob_setter(value)
            else:
                self.step(value)
        self._np_random, self.render_mode = random, mode
        self.knob_setter(present)
        self._start = copy.deepcopy(start)

    def __getstate__(self) -> dict[str, Any]:
        """The arguments, the knobs, the random generators and the episode."""
        return {
            "arguments": (self.render_mode, self.continuous),
            "knobs": self.read_knobs(),
            "held": self._held,
            "spec": self.spec,
            "generator": (self._np_random, self._np_random_seed),
            "spaces": (self.action_space, self.observation_space),
            "episode": None if self._start is None else self.save_state(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build a new environment with these arguments, knobs, random generators and episode."""
        self.__init__(*state["arguments"])  # type: ignore[misc]
        self.spec = state["spec"]
        self.set_knobs(state["knobs"])
        self._np_random, self._np_random_seed = state["generator"]
        self.action_space, self.observation_space = state["spaces"]
        if state["episode"] is not None:
            self.load_state(state["episode"])
        self.hold(state["held"])
