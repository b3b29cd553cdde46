"""Gymnasium's classic control and LunarLander with knobs: masses, lengths, forces, gravity, wind, time steps.

* `CART_POLE`, `ACROBOT`, `PENDULUM` - the declarations of `DriftCartPole-v0`, `DriftAcrobot-v0`, `DriftPendulum-v0`
* `LUNAR_LANDER` - the declaration of `DriftLunarLander-v0`, which needs the extra `box2d`
"""

from drift_envs.parts import Controls, EnvParts

_HERE = "drift_envs.envs.classic_control"
_ORACLE = f"{_HERE}.oracle:make_oracle"

CART_POLE = EnvParts(
    env=f"{_HERE}.env:CartPole",
    knobs=f"{_HERE}.knobs:CART_POLE_KNOBS",
    limit=500,
    arguments={"sutton_barto_reward": None},
    text=f"{_HERE}.text:describe",
    oracle=_ORACLE,
    knows_optimum=False,
    controls=Controls(
        {"left": 0, "right": 1, "a": 0, "d": 1}, None, "left and right or a d: push, one step each", has_goal=False
    ),
)
ACROBOT = EnvParts(
    env=f"{_HERE}.env:Acrobot",
    knobs=f"{_HERE}.knobs:ACROBOT_KNOBS",
    limit=500,
    text=f"{_HERE}.text:describe",
    oracle=_ORACLE,
    knows_optimum=False,
    controls=Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, "left and right or a d: turn the joint"),
)
PENDULUM = EnvParts(
    env=f"{_HERE}.env:Pendulum",
    knobs=f"{_HERE}.knobs:PENDULUM_KNOBS",
    limit=200,
    arguments={"g": "g"},
    text=f"{_HERE}.text:describe",
    oracle=_ORACLE,
    knows_optimum=False,
    controls=Controls(
        {"left": (-2.0,), "right": (2.0,), "a": (-2.0,), "d": (2.0,)},
        (0.0,),
        "left and right or a d: torque",
        has_goal=False,
    ),
)
LUNAR_LANDER = EnvParts(
    env=f"{_HERE}.lunar_lander:LunarLander",
    knobs=f"{_HERE}.knobs:LUNAR_LANDER_KNOBS",
    limit=1000,
    arguments={"continuous": None},
    oracle=_ORACLE,
    knows_optimum=False,
    controls=Controls(
        {"left": 1, "up": 2, "right": 3, "a": 1, "w": 2, "d": 3},
        0,
        "left, up, right or a w d: fire an engine",
        ends_at_goal=False,
    ),
    extra="box2d",
)
