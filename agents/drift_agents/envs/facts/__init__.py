"""What agents know of facts that change: how statements are read, a matching rule and a planner."""

from drift_agents.envs.base import AgentEnvironment

FACTS = AgentEnvironment(
    name="facts",
    about="Facts about people that change: what is heard, and a question.",
    ids=("DriftFacts-",),
    matching="drift_agents.envs.facts.planner:FactsMatching",
    planner="drift_agents.envs.facts.planner:FactsPlanner",
    facts="drift_agents.envs.facts.planner:HeardFacts",
)
