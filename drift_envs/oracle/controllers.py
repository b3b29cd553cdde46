"""Reference controllers of classic control, LunarLander and MuJoCo: they are no optima.

* `balance_cart`, `pump`, `swing`, `spin`, `land`, `balance_pole`, `reach`, `run` - controllers of undisturbed worlds
* `REFERENCES` - the controllers that read the knobs of a tick, by the name of the class
* `Reference` - one of them
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from drift_envs.knobs import Value
from drift_envs.wrappers.field_text import FIELD_TEXTS

GAITS = Path(__file__).with_name("gaits.json")
"""The runners' linear policies, found by `examples/search_linear.py`; their origin and returns stand there."""

Knobs = Mapping[str, Value]


def balance_cart(seen: np.ndarray) -> int:
    """CartPole: a linear controller."""
    return int(seen @ np.array([0.1, 0.5, 10.0, 2.0]) > 0)


def pump(seen: np.ndarray) -> int:
    """Acrobot: a torque along the velocity of the lower link."""
    return 2 if seen[5] > 0 else 0


def swing(seen: np.ndarray) -> np.ndarray:
    """Pendulum: energy up to the top, then a linear controller."""
    cosine, sine, velocity = map(float, seen)
    if cosine > 0.85:
        torque = -(12 * math.atan2(sine, cosine) + 3 * velocity)
    else:
        torque = -2.5 * (velocity**2 / 6 + 5 * cosine - 5) * math.copysign(1.0, velocity)
    return np.array([np.clip(torque, -2, 2)], np.float32)


def spin(seen: np.ndarray) -> np.ndarray:
    """Pendulum: as fast as possible."""
    return np.array([math.copysign(2.0, float(seen[2]))], np.float32)


def land(seen: np.ndarray) -> int:
    """LunarLander: Gymnasium's own heuristic."""
    from gymnasium.envs.box2d.lunar_lander import heuristic

    world = SimpleNamespace(unwrapped=SimpleNamespace(continuous=False))
    return int(heuristic(world, seen))  # type: ignore[no-untyped-call]


def balance_pole(seen: np.ndarray) -> np.ndarray:
    """InvertedPendulum: a linear controller."""
    force = np.array([0.5 * seen[0] + 15.0 * seen[1] + seen[2] + 3.0 * seen[3]])
    return force.clip(-3, 3).astype(np.float32)


def reach(seen: np.ndarray, turn: float = 0.0) -> np.ndarray:
    """Reacher: the transposed Jacobian of the way to a point, less the velocities.

    Args:
        seen: the observation.
        turn: angle, in radians, of the point from the target about the origin.
    """
    cos1, cos2, sin1, sin2 = seen[:4]
    cos12, sin12 = cos1 * cos2 - sin1 * sin2, sin1 * cos2 + cos1 * sin2
    tip = np.array([0.1 * cos1 + 0.11 * cos12, 0.1 * sin1 + 0.11 * sin12])
    jacobian = np.array([[-tip[1], -0.11 * sin12], [tip[0], 0.11 * cos12]])
    cosine, sine = math.cos(turn), math.sin(turn)
    point = np.array([[cosine, -sine], [sine, cosine]]) @ seen[4:6]
    torque = 8.0 * jacobian.T @ (point - tip) - 0.02 * seen[6:8]
    clipped: np.ndarray = np.clip(torque, -1, 1).astype(np.float32)
    return clipped


class _Gait(NamedTuple):
    weights: np.ndarray
    bias: np.ndarray
    actions: np.ndarray
    """Those of the text form, of which the nearest is taken."""


@lru_cache(maxsize=1)
def _read_gaits() -> dict[str, _Gait]:
    gaits = {}
    for name, gait in json.loads(GAITS.read_text(encoding="utf-8")).items():
        text = FIELD_TEXTS[gait["env"].removeprefix("Drift").removesuffix("-v0")]
        actions = np.array([json.loads(action) for action in text.actions])
        gaits[name] = _Gait(np.array(gait["weights"]), np.array(gait["bias"]), actions)
    return gaits


def run(seen: np.ndarray, name: str) -> np.ndarray:
    """HalfCheetah and Hopper: the action of the text form that is nearest to a linear function of the observation.

    Args:
        seen: the observation.
        name: of the policy in `GAITS`, as `hopper/forward`.
    """
    weights, bias, actions = _read_gaits()[name]
    nearest: np.ndarray = actions[
        int(np.argmax(actions @ (weights @ seen + bias) - np.square(actions).sum(axis=1) / 2))
    ]
    return nearest.astype(np.float32)


class Reference(NamedTuple):
    """A controller that reads the knobs of a tick.

    Args:
        act: the action for an observation and the knobs.
        limit: the steps of an episode.
        reads_sign: whether it plays for costs where `reward_sign` turns rewards into costs.
    """

    act: Callable[[np.ndarray, Knobs], Any]
    limit: int
    reads_sign: bool = False

    def plays(self, knobs: Knobs) -> bool:
        """Whether it has an answer to these knobs.

        Args:
            knobs: of a tick.
        """
        return self.reads_sign or knobs.get("reward_sign", "+") != "-"


def _scaled(action: np.ndarray, gain: float, limit: float) -> np.ndarray:
    """The action that has the given effect under a gain; beyond the limit it is cut."""
    return action if gain in (0.0, 1.0) else np.clip(action / gain, -limit, limit).astype(np.float32)


def _cart_pole(seen: np.ndarray, knobs: Knobs) -> int:
    push = balance_cart(seen)
    return 1 - push if knobs.get("force_mag", 10.0) < 0 else push


def _acrobot(seen: np.ndarray, knobs: Knobs) -> int:
    return 2 - pump(seen) if knobs.get("torque", 1.0) < 0 else pump(seen)


def _pendulum(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
    wanted = spin(seen) if knobs.get("reward_sign", "+") == "-" else swing(seen)
    return _scaled(wanted, knobs.get("gain", 1.0), 2.0)


def _inverted_pendulum(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
    sign = -1.0 if knobs.get("reward_sign", "+") == "-" else 1.0
    return _scaled(sign * balance_pole(seen), knobs.get("gain", 1.0), 3.0)


def _reacher(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
    return _scaled(reach(seen, knobs.get("target_turn", 0.0)), knobs.get("gain", 1.0), 1.0)


def _runner(name: str) -> Reference:
    def act(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
        way = "backward" if knobs.get("forward_reward", 1.0) < 0 else "forward"
        return _scaled(run(seen, f"{name}/{way}"), knobs.get("gain", 1.0), 1.0)

    return Reference(act, 1000)


REFERENCES = {
    "CartPole": Reference(_cart_pole, 500),
    "Acrobot": Reference(_acrobot, 500),
    "Pendulum": Reference(_pendulum, 200, reads_sign=True),
    "InvertedPendulum": Reference(_inverted_pendulum, 1000, reads_sign=True),
    "Reacher": Reference(_reacher, 50),
    "HalfCheetah": _runner("half_cheetah"),
    "Hopper": _runner("hopper"),
}
"""By the name of the class. The runners' read `gain` and `forward_reward`, and run as if no other knob were turned."""
