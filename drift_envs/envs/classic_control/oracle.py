"""The oracle of classic control and LunarLander: exact responses, and reference controllers that are no optima."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace

import numpy as np

from drift_envs.oracle.transitions import Knobs, Reference, TransitionOracle, scale_action


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

    env = SimpleNamespace(unwrapped=SimpleNamespace(continuous=False))
    return int(heuristic(env, seen))  # type: ignore[no-untyped-call]


def _cart_pole(seen: np.ndarray, knobs: Knobs) -> int:
    push = balance_cart(seen)
    return 1 - push if knobs.get("force_mag", 10.0) < 0 else push


def _acrobot(seen: np.ndarray, knobs: Knobs) -> int:
    return 2 - pump(seen) if knobs.get("torque", 1.0) < 0 else pump(seen)


def _pendulum(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
    wanted = spin(seen) if knobs.get("reward_sign", "+") == "-" else swing(seen)
    return scale_action(wanted, knobs.get("gain", 1.0), 2.0)


REFERENCES = {
    "CartPole": Reference(_cart_pole, 500),
    "Acrobot": Reference(_acrobot, 500),
    "Pendulum": Reference(_pendulum, 200, reads_sign=True),
}
"""By the name of the class; LunarLander has none, since `land` reads no knobs."""


make_oracle = partial(TransitionOracle.among, REFERENCES)
