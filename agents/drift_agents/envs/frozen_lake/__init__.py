"""What agents know of the frozen lake: a planner with beliefs and a plan; states match by their texts."""

from drift_agents.envs.base import AgentEnvironment, own_templates

FROZEN_LAKE = AgentEnvironment(
    name="frozen_lake",
    about="The frozen lake: tiles, holes and destinations.",
    ids=("DriftFrozenLake-",),
    planner="drift_agents.envs.frozen_lake.planner:FrozenLakePlanner",
    facts="drift_agents.envs.frozen_lake.knowledge:FrozenLakeFacts",
    templates=own_templates(__name__, paper=True),
)
