"""Gymnasium's LunarLander with knobs; needs the extra `box2d`.

* `LunarLander` - gravity, wind and turbulence
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium.envs.box2d import lunar_lander

from drift_envs.envs.attributes import AttributeEnv, AttributeKnob
from drift_envs.envs.physics_knobs import LANDER_ATTRIBUTES, LUNAR_LANDER_KNOBS
from drift_envs.errors import StateError
from drift_envs.knobs import KnobTable, Value


class LunarLander(AttributeEnv, lunar_lander.LunarLander):
    """Gymnasium's LunarLander with knobs; at their defaults it is bit-identical to Gymnasium's.

    Actions, observations and rewards are Gymnasium's. Box2D's world can be neither copied nor saved: a copy has the
    same arguments, knobs and random generator, and no episode until its `reset`; there are no snapshots.

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
        >>> env.turn({"gravity": -5.0})  # doctest: +SKIP
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]] = LANDER_ATTRIBUTES
    knobs: ClassVar[KnobTable] = LUNAR_LANDER_KNOBS
    wind_idx: Any = 0  # Gymnasium draws both at a reset with wind; they are read when wind begins in an episode
    torque_idx: Any = 0

    def __init__(self, render_mode: str | None = None, continuous: bool = False) -> None:
        lunar_lander.LunarLander.__init__(self, render_mode, continuous)
        self.make_tunable()

    def turn(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once; gravity acts within an episode, too.

        Args:
            values: canonical values, by knob.
        """
        super().turn(values)
        if "gravity" in values:
            self.world.gravity = (0, self.gravity)

    def save_state(self) -> dict[str, Any]:
        """Refuse: Box2D's world cannot be saved.

        Raises:
            StateError: always.
        """
        raise StateError("the state of LunarLander cannot be saved: Box2D's world has no copies")

    def __getstate__(self) -> dict[str, Any]:
        """The arguments, the knobs and the random generator."""
        return {
            "arguments": (self.render_mode, self.continuous),
            "knobs": self.read_knobs(),
            "held": self._held,
            "spec": self.spec,
            "generator": (self._np_random, self._np_random_seed),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build a new environment with these arguments, knobs and random generator."""
        self.__init__(*state["arguments"])  # type: ignore[misc]
        self._held = state["held"]
        self.spec = state["spec"]
        self._np_random, self._np_random_seed = state["generator"]
        self.turn(state["knobs"])
