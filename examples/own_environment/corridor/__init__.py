"""A corridor with a chest at each end: the declarations, which import nothing else before it is used."""

import gymnasium as gym
from drift_agents.environment import AgentEnvironment

from drift_envs.registration import EnvParts

CORRIDOR = EnvParts(env="corridor.env:Corridor", knobs="corridor.env:KNOBS", limit=20, text="corridor.env:CorridorText")
"""What the environment consists of."""

AGENT_SIDE = AgentEnvironment(
    name="corridor",
    about="A corridor with a chest at each end.",
    ids=("corridor:",),
    planner="corridor.planner:CorridorPlanner",
)
"""What agents know of it."""

gym.register("Corridor-v0", entry_point="corridor.env:Corridor", max_episode_steps=CORRIDOR.limit)
