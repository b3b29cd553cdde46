"""The environment, its knobs and its words."""

import gymnasium as gym

from corridor import CORRIDOR
from drift_envs.knobs import Knob, KnobTable
from drift_envs.tunable import KnobAttribute, TunableEnv

CELLS = 7
KNOBS = KnobTable(
    (
        Knob("left", 1.0, (0.0, 1.0), "what the chest at the left end holds"),
        Knob("right", 0.2, (0.0, 1.0), "what the chest at the right end holds"),
    )
)


class Corridor(TunableEnv, gym.Env):
    """Walk left (0) or right (1); an episode ends at a chest."""

    knobs, parts, state_names = KNOBS, CORRIDOR, ("cell",)
    left, right = KnobAttribute(), KnobAttribute()
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
