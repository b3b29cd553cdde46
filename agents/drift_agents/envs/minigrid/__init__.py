"""What agents know of Minigrid's environments: what is in view, and a planner with a map."""

from drift_agents.envs.base import AgentEnvironment, own_templates

MINIGRID = AgentEnvironment(
    name="minigrid",
    about="Minigrid's rooms, of which a part is in view.",
    ids=("DriftMiniGrid-",),
    matching="drift_agents.envs.minigrid.states:MinigridMatching",
    recall={"states": 160},
    planner="drift_agents.envs.minigrid.planner:MinigridPlanner",
    facts="drift_agents.envs.minigrid.states:MinigridFacts",
    templates=own_templates(__name__),
)
