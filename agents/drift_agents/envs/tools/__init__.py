"""What agents know of the service desk: a planner with the parsed request, the tools on offer, and beliefs."""

from drift_agents.envs.base import AgentEnvironment, own_templates

TOOLS = AgentEnvironment(
    name="tools",
    about="The service desk: requests of customers, met by calls of tools.",
    ids=("DriftTools-",),
    matching="drift_agents.envs.tools.states:ToolsMatching",
    recall={"states": 160},
    planner="drift_agents.envs.tools.planner:ToolsPlanner",
    facts="drift_agents.envs.tools.states:ToolsFacts",
    templates=own_templates(__name__),
)
