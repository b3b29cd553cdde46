"""What agents know of the task pages of MiniWoB++: their controls, and a planner that fills and clicks."""

from drift_agents.envs.base import AgentEnvironment, own_templates

MINIWOB = AgentEnvironment(
    name="miniwob",
    about="The task pages of MiniWoB++, as their controls.",
    ids=("DriftMiniWoB",),
    matching="drift_agents.envs.miniwob.planner:MiniwobMatching",
    recall={"states": 64},
    planner="drift_agents.envs.miniwob.planner:MiniwobPlanner",
    facts="drift_agents.envs.miniwob.planner:MiniwobFacts",
    templates=own_templates(__name__),
)
