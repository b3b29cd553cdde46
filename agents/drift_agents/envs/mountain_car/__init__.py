"""What agents know of the mountain cars: cells of motions, and a planner with a fitted model, values and a plan."""

from drift_agents.envs.base import AgentEnvironment, own_templates

MOUNTAIN_CAR = AgentEnvironment(
    name="mountain_car",
    about="Both mountain cars: position and velocity in a valley.",
    ids=("DriftMountainCar-", "DriftMountainCarContinuous-"),
    matching="drift_agents.envs.mountain_car.states:MountainCarMatching",
    planner="drift_agents.envs.mountain_car.planner:MountainCarPlanner",
    facts="drift_agents.envs.mountain_car.states:MountainCarFacts",
    templates=own_templates(__name__, paper=True),
)
