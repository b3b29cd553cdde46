"""The tools of BFCL's multi-turn tasks, played by the engines of `bfcl-eval`; needs the extra `bfcl`.

* `BFCL` - the declaration of `DriftBfcl-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.bfcl"

BFCL = EnvParts(
    env=f"{_HERE}.env:BfclTools",
    knobs=f"{_HERE}.knobs:BFCL_KNOBS",
    limit=50,
    arguments={"observation_mode": None, "pool": "tasks", "order": "tasks"},
    build="drift_envs.wrappers.options:build_with_tasks",
    text_mode="state",
    oracle=f"{_HERE}.oracle:make_oracle",
    extra="bfcl",
)
