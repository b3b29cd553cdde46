"""ALFWorld's household tasks on its floor plans, played by TextWorld's engine; needs the extra `alfworld`.

* `ALFWORLD` - the declaration of `DriftAlfworld-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.alfworld"

ALFWORLD = EnvParts(
    env=f"{_HERE}.env:Alfworld",
    knobs=f"{_HERE}.knobs:ALFWORLD_KNOBS",
    limit=50,
    arguments={"observation_mode": None, "pool": "tasks", "order": "tasks"},
    build=f"{_HERE}.build:build",
    text_mode="state",
    oracle=f"{_HERE}.oracle:make_oracle",
    extra="alfworld",
)
