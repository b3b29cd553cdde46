"""Gymnasium's mountain cars with knobs: force or power, gravity, goal position, false responses.

* `MOUNTAIN_CAR`, `MOUNTAIN_CAR_CONTINUOUS` - the declarations of `DriftMountainCar-v0`, `DriftMountainCarContinuous-v0`
"""

from drift_envs.parts import Controls, EnvParts

_HERE = "drift_envs.envs.mountain_car"
_KEYS = "left and right or a d: push"

MOUNTAIN_CAR = EnvParts(
    env=f"{_HERE}.env:MountainCar",
    knobs=f"{_HERE}.env:MOUNTAIN_CAR_KNOBS",
    limit=300,
    arguments={"goal_velocity": None},
    text=f"{_HERE}.text:describe_car",
    oracle=f"{_HERE}.oracle:make_oracle",
    vector=f"{_HERE}.vector:VectorMountainCar",
    functional=f"{_HERE}.functional:FunctionalCar",
    marks=f"{_HERE}.marks:CarMarks",
    controls=Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, _KEYS),
)

MOUNTAIN_CAR_CONTINUOUS = EnvParts(
    env=f"{_HERE}.env:MountainCarContinuous",
    knobs=f"{_HERE}.env:MOUNTAIN_CAR_CONTINUOUS_KNOBS",
    limit=999,
    arguments={"goal_velocity": None},
    text=f"{_HERE}.text:describe_continuous_car",
    oracle=f"{_HERE}.oracle:make_oracle",
    vector=f"{_HERE}.vector:VectorMountainCarContinuous",
    functional=f"{_HERE}.functional:FunctionalCarContinuous",
    marks=f"{_HERE}.marks:ContinuousCarMarks",
    controls=Controls({"left": (-1.0,), "right": (1.0,), "a": (-1.0,), "d": (1.0,)}, (0.0,), _KEYS),
)
