"""Gymnasium's frozen lake with knobs: map, slip, goal rewards, false responses, places that turn bad.

* `FROZEN_LAKE` - the declaration of `DriftFrozenLake-v0`
"""

from drift_envs.parts import Controls, EnvParts

_HERE = "drift_envs.envs.frozen_lake"

FROZEN_LAKE = EnvParts(
    env=f"{_HERE}.env:FrozenLake",
    knobs=f"{_HERE}.knobs:FROZEN_LAKE_KNOBS",
    limit=100,
    arguments={
        "desc": "map",
        "map_name": "map",
        "is_slippery": "slip",
        "success_rate": "slip",
        "reward_schedule": "goal_rewards",
    },
    with_schedule={"is_slippery": False},
    build=f"{_HERE}.build:build",
    text=f"{_HERE}.text:LakeDescriber",
    oracle=f"{_HERE}.oracle:make_oracle",
    vector=f"{_HERE}.vector:VectorFrozenLake",
    functional=f"{_HERE}.functional:FunctionalLake",
    marks=f"{_HERE}.marks:LakeMarks",
    controls=Controls(
        {"left": 0, "down": 1, "right": 2, "up": 3, "a": 0, "s": 1, "d": 2, "w": 3},
        None,
        "arrows or w a s d: move",
        ends_at_goal=False,
    ),
)
