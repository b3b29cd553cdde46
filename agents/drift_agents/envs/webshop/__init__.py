"""What agents know of the web shop: pages, instructions, and a planner with what it believes from records."""

from drift_agents.envs.base import AgentEnvironment, own_templates

WEBSHOP = AgentEnvironment(
    name="webshop",
    about="The web shop: pages with the instruction on them.",
    ids=("DriftWebShop-",),
    matching="drift_agents.envs.webshop.states:WebShopMatching",
    recall={"states": 64},
    planner="drift_agents.envs.webshop.planner:WebShopPlanner",
    facts="drift_agents.envs.webshop.states:WebShopFacts",
    templates=own_templates(__name__, paper=True),
)
