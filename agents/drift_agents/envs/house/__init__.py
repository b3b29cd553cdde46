"""What agents know of the text house: a planner with the parsed task, knowledge from records, and a choice.

ALFWorld's rooms show their states alike, and are played by the same.
"""

from drift_agents.envs.base import AgentEnvironment, own_templates

HOUSE = AgentEnvironment(
    name="house",
    about="The text house: errands with things and furniture.",
    ids=("DriftHouse-", "DriftAlfworld-"),
    matching="drift_agents.envs.house.states:HouseMatching",
    recall={"states": 160},
    planner="drift_agents.envs.house.planner:HousePlanner",
    facts="drift_agents.envs.house.states:HouseFacts",
    templates=own_templates(__name__),
)
