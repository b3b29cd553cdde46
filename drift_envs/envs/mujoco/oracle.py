"""The oracle of MuJoCo's environments: exact responses, and reference controllers that are no optima."""

from __future__ import annotations

import json
import math
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drift_envs.envs.mujoco import TEXTS
from drift_envs.oracle.transitions import Knobs, Reference, TransitionOracle, scale_action

GAITS = Path(__file__).with_name("gaits.json")
"""The runners' linear policies, found by `examples/search_linear.py`; their origin and returns stand there."""


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
        text = TEXTS[gait["env"].removeprefix("Drift").removesuffix("-v0")]
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


def _inverted_pendulum(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
    sign = -1.0 if knobs.get("reward_sign", "+") == "-" else 1.0
    return scale_action(sign * balance_pole(seen), knobs.get("gain", 1.0), 3.0)


def _reacher(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
    return scale_action(reach(seen, knobs.get("target_turn", 0.0)), knobs.get("gain", 1.0), 1.0)


def _runner(name: str) -> Reference:
    def act(seen: np.ndarray, knobs: Knobs) -> np.ndarray:
        way = "backward" if knobs.get("forward_reward", 1.0) < 0 else "forward"
        return scale_action(run(seen, f"{name}/{way}"), knobs.get("gain", 1.0), 1.0)

    return Reference(act, 1000)


REFERENCES = {
    "InvertedPendulum": Reference(_inverted_pendulum, 1000, reads_sign=True),
    "Reacher": Reference(_reacher, 50),
    "HalfCheetah": _runner("half_cheetah"),
    "Hopper": _runner("hopper"),
}
"""By the name of the class. The runners' read `gain` and `forward_reward`, and run as if no other knob had changed."""


make_oracle = partial(TransitionOracle.among, REFERENCES)
