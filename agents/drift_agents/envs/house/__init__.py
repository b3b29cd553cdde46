"""What agents know of the text house: a planner with the parsed task, knowledge from records, and a choice.

ALFWorld's rooms show their states alike, and are played by the same.
"""

from drift_agents.environment import PLAIN_TEMPLATES, AgentEnvironment

HOUSE = AgentEnvironment(
    name="house",
    about="The text house: errands with things and furniture.",
    ids=("DriftHouse-", "DriftAlfworld-"),
    matching="drift_agents.envs.house.states:HouseMatching",
    recall={"states": 160},
    planner="drift_agents.envs.house.planner:HousePlanner",
    facts="drift_agents.envs.house.states:HouseFacts",
    templates={
        **PLAIN_TEMPLATES,
        "brief": "drift_agents.envs.house:house_brief",
        "ranked": "drift_agents.envs.house:house_facts",
        "raw": "drift_agents.envs.house:house_facts",
    },
)
