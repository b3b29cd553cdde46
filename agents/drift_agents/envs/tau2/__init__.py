"""What agents know of tau2-bench's domains: a planner that follows what worked for a request."""

from drift_agents.envs.base import AgentEnvironment

TAU2 = AgentEnvironment(
    name="tau2",
    about="tau2-bench's airline and retail desks: requests of users, met by calls of tools.",
    ids=("DriftTau2-",),
    matching="drift_agents.envs.tau2.states:Tau2Matching",
    recall={"states": 80},
    planner="drift_agents.envs.tau2.planner:Tau2Planner",
    facts="drift_agents.envs.tau2.states:Tau2Facts",
)
