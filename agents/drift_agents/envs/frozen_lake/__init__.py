"""What agents know of the frozen lake: a planner with beliefs and a plan; states match by their texts."""

from drift_agents.environment import PLAIN_TEMPLATES, AgentEnvironment

FROZEN_LAKE = AgentEnvironment(
    name="frozen_lake",
    about="The frozen lake: tiles, holes and destinations.",
    ids=("DriftFrozenLake-",),
    planner="drift_agents.envs.frozen_lake.planner:FrozenLakePlanner",
    facts="drift_agents.envs.frozen_lake.facts:FrozenLakeFacts",
    templates={
        **PLAIN_TEMPLATES,
        "brief": "drift_agents.envs.frozen_lake:frozen_lake_brief",
        "ranked": "drift_agents.envs.frozen_lake:frozen_lake_facts",
        "raw": "drift_agents.envs.frozen_lake:frozen_lake_facts",
        "paper": "drift_agents.envs.frozen_lake:frozen_lake",
        "full": "drift_agents.envs.frozen_lake:frozen_lake",
    },
)
