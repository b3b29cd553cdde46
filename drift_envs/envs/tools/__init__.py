"""A service desk: tools that read and write a shop's database, a policy page, requests in words.

* `TOOLS` - the declaration of `DriftTools-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.tools"

TOOLS = EnvParts(
    env=f"{_HERE}.env:ServiceDesk",
    knobs=f"{_HERE}.knobs:TOOLS_KNOBS",
    limit=30,
    arguments={"observation_mode": None, "held_out": None, "pool": "tasks", "order": "tasks"},
    build="drift_envs.wrappers.options:build_with_tasks",
    text_mode="state",
    oracle=f"{_HERE}.oracle:make_oracle",
    marks=f"{_HERE}.marks:DeskMarks",
)
