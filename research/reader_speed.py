"""Decisions a second of the learned reader: `python -m research.reader_speed`.

* `Recorder` - a policy that keeps its prompts and times its decisions
* `measure` - the decisions and seconds of one agent, in all and in the policy
* `run_benchmark` - prints a table

Beside it stands the rule-based policy that it learned from, played in the same way: GLOVE on development lakes. Counted
is the processor time of one core.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from drift_agents.agent.agent import Agent
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import Policy, Reply
from drift_agents.policy.learned_reader.reader import LearnedReader
from drift_agents.prompt.view import PromptView
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.prober import ReplayProber

import drift_envs
from research.experiments.readers import MessageReader

POLICIES = (LearnedReader, MessageReader)
LAKES, EPISODES, FIRST = 3, 60, 90_000


class Speed(NamedTuple):
    """What some lifetimes took.

    Args:
        decisions: how many were made.
        policy: seconds of the policy, from the prompt to the action.
        total: seconds in all, with environment, memory, probes and prompts.
    """

    decisions: int
    policy: float
    total: float


class Recorder:
    """A policy that times its decisions.

    Args:
        policy: what decides.
    """

    def __init__(self, policy: Policy) -> None:
        self.name, self.needs_history = policy.name, getattr(policy, "needs_history", False)
        self._policy, self.decisions, self.seconds = policy, 0, 0.0

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            rng: for the policy.
        """
        begin = time.process_time()
        reply = self._policy.decide(view, rng)
        self.seconds += time.process_time() - begin
        self.decisions += 1
        return reply


def measure(made: type[Policy], lakes: int = LAKES, episodes: int = EPISODES) -> Speed:
    """Play lifetimes on lakes.

    Args:
        made: makes the policy.
        lakes: how many lifetimes.
        episodes: of each.
    """
    policy, begin = Recorder(made()), time.process_time()
    for seed in range(FIRST, FIRST + lakes):
        env: gym.Env[Any, Any] = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:family", text=True)
        verifier = make_verifier("glove", prober=ReplayProber(drift_envs.twin(env)))
        agent = Agent(policy, make_memory("vanilla", k=5), verifier, seed=seed, keep_trace=False)
        for episode in range(episodes):
            agent.run_episode(env, seed=None if episode else seed)
        env.close()
    return Speed(policy.decisions, policy.seconds, time.process_time() - begin)


def run_benchmark(lakes: int = LAKES) -> None:
    """Print decisions a second.

    Args:
        lakes: how many lifetimes of each policy.
    """
    print(f"{'policy':<16}{'decisions':>11}{'a second, policy alone':>25}{'a second, in all':>19}")
    for made in POLICIES:
        speed = measure(made, lakes)
        rates = (speed.decisions / speed.policy, speed.decisions / speed.total)
        print(f"{made.name:<16}{speed.decisions:>11,}{rates[0]:>25,.0f}{rates[1]:>19,.0f}", flush=True)


if __name__ == "__main__":
    run_benchmark(*map(int, sys.argv[1:2]))
