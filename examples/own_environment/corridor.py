"""A corridor with a chest at each end: an environment with knobs, its words, and a planner for agents. Copy the file.

Only the first part is needed: without words of its own, states are written as JSON, and a planner repeats what pays.
"""

import json

import gymnasium as gym
from drift_agents.envs.base import AgentEnvironment
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import check_conflict

from drift_envs.knobs import Knob, KnobTable
from drift_envs.registration import EnvParts
from drift_envs.tunable import TunableEnv

CELLS = 7
KNOBS = KnobTable(
    (
        Knob("left", 1.0, (0.0, 1.0), "what the chest at the left end holds"),
        Knob("right", 0.2, (0.0, 1.0), "what the chest at the right end holds"),
    )
)
CORRIDOR = EnvParts(env="corridor:Corridor", knobs="corridor:KNOBS", limit=20, text="corridor:CorridorText")


class Corridor(TunableEnv, gym.Env):
    """Walk left (0) or right (1); an episode ends at a chest."""

    knobs, parts, state_names = KNOBS, CORRIDOR, ("cell",)
    left: float
    right: float
    observation_space = gym.spaces.Discrete(CELLS)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.set_knobs(KNOBS.defaults())

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(2, CELLS - 2))
        return self.cell, {}

    def step(self, action):
        self.cell += 1 if action else -1
        is_over = self.cell in (0, CELLS - 1)
        reward = (self.right if self.cell else self.left) if is_over else 0.0
        return self.cell, reward, is_over, False, {}


gym.register("Corridor-v0", entry_point="corridor:Corridor", max_episode_steps=CORRIDOR.limit)


class CorridorText:
    """States, tasks and actions in words; the scores of the chests are in none of them."""

    actions, max_length, characters = ("0", "1"), 32, '{}": 0123456789cel'

    def __init__(self, env):
        self.env = env

    def state(self, observation, score):
        return f'{{"cell": {observation}}}'

    def task(self, best):
        return f"Find the better of two chests, at cells 0 and {CELLS - 1}. Actions: 0 walk left, 1 walk right."

    def score(self, before, reward, terminated):
        return before + reward

    def best_score(self, knobs):
        return max(knobs["left"], knobs["right"])


class CorridorPlanner:
    """An offline policy: opens each chest once, then walks to the one that held more when it was opened last."""

    name = "corridor"

    def __init__(self, *, conflict="majority"):
        self.conflict = check_conflict(conflict)

    def decide(self, view, rng):
        held = {}
        for item in sorted((*view.here, *view.elsewhere), key=lambda item: item.last):
            if item.outcome.ended:
                held[json.loads(item.outcome.state)["cell"]] = item.outcome.score
        unopened = [end for end in (0, CELLS - 1) if end not in held]
        end = unopened[int(rng.integers(len(unopened)))] if unopened else max(held, key=lambda end: held[end])
        return Reply("1" if end else "0")


AGENT_SIDE = AgentEnvironment(
    name="corridor",
    about="A corridor with a chest at each end.",
    ids=("corridor:",),
    planner="corridor:CorridorPlanner",
)
