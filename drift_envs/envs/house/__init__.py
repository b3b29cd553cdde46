"""A text house: places, names, locks, keys, appliances, words, tidiness, lost commands.

* `HOUSE` - the declaration of `DriftHouse-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.house"

HOUSE = EnvParts(
    env=f"{_HERE}.env:House",
    knobs=f"{_HERE}.knobs:HOUSE_KNOBS",
    limit=50,
    arguments={"observation_mode": None, "pool": "tasks", "order": "tasks"},
    build="drift_envs.wrappers.options:build_with_tasks",
    text_mode="state",
    oracle=f"{_HERE}.oracle:make_oracle",
    marks=f"{_HERE}.marks:HouseMarks",
)
