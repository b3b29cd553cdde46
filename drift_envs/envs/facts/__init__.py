"""Facts about people that change: statements over days, and a question a day.

* `FACTS` - the declaration of `DriftFacts-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.facts"

FACTS = EnvParts(
    env=f"{_HERE}.env:Facts",
    knobs=f"{_HERE}.knobs:FACTS_KNOBS",
    limit=30,
    arguments={"observation_mode": None, "held_out": None, "pool": "tasks", "order": "tasks"},
    build="drift_envs.wrappers.options:build_with_tasks",
    text_mode="state",
    oracle=f"{_HERE}.oracle:make_oracle",
)
