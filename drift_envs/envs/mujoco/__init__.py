"""Gymnasium's MuJoCo environments with knobs: masses, friction, damping, actuators, rewards; needs the extra `mujoco`.

* `HALF_CHEETAH`, `HOPPER`, `INVERTED_PENDULUM`, `REACHER` - the declarations of `DriftHalfCheetah-v0` and so on; a
  keyboard has too few keys for the actuators of the first two
"""

from drift_envs.parts import Controls, EnvParts

_HERE = "drift_envs.envs.mujoco"


def _declare(name: str, knobs: str, limit: int, controls: Controls | None = None) -> EnvParts:
    return EnvParts(
        env=f"{_HERE}.env:{name}",
        knobs=f"{_HERE}.knobs:{knobs}",
        limit=limit,
        text=f"{_HERE}.text:describe",
        oracle=f"{_HERE}.oracle:make_oracle",
        knows_optimum=False,
        controls=controls,
        extra="mujoco",
    )


HALF_CHEETAH = _declare("HalfCheetah", "RUNNER_KNOBS", 1000)
HOPPER = _declare("Hopper", "RUNNER_KNOBS", 1000)
INVERTED_PENDULUM = _declare(
    "InvertedPendulum",
    "BALANCER_KNOBS",
    1000,
    Controls(
        {"left": (-3.0,), "right": (3.0,), "a": (-3.0,), "d": (3.0,)},
        (0.0,),
        "left and right or a d: push",
        has_goal=False,
    ),
)
REACHER = _declare(
    "Reacher",
    "REACHER_KNOBS",
    50,
    Controls(
        {"left": (0.3, 0.0), "right": (-0.3, 0.0), "up": (0.0, 0.3), "down": (0.0, -0.3)},
        (0.0, 0.0),
        "left and right: turn the upper joint; up and down: the lower one",
        has_goal=False,
    ),
)
