"""Small text environments and a prober that follows a script."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.envs.matching import Matching
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import PromptView
from drift_agents.types import AgentClock, Experience, Outcome, ProbeCost, Transition
from drift_agents.verifier.base import Probed

Answers = list[tuple[Outcome, float]]

SOME_COST = ProbeCost(steps=7, resets=1)


@dataclass
class Rules:
    """What an environment answers: (state, action) -> outcomes with their probabilities; its twin shares it."""

    table: dict[tuple[str, str], Answers]
    start: str = '"start"'
    actions: tuple[str, ...] = ("0", "1")


class TableEnv(gym.Env[str, Any]):
    """A text environment that answers by a table; unknown pairs stay where they are."""

    def __init__(self, rules: Rules, seed: int = 0, limit: int = 12) -> None:
        self.rules, self.limit = rules, limit
        self.action_space = gym.spaces.Discrete(len(rules.actions))
        self.observation_space = gym.spaces.Text(64)
        self.draws = np.random.default_rng(seed)
        self.log: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.score, self.steps = self.rules.start, 0.0, 0
        self.log.append("reset")
        return self.state, self._info()

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.log.append(str(action))
        answers = self.rules.table.get((self.state, str(action)), [(Outcome(self.state, self.score, False), 1.0)])
        place = int(self.draws.choice(len(answers), p=[p for _, p in answers])) if len(answers) > 1 else 0
        outcome = answers[place][0]
        reward, self.state, self.score = outcome.score - self.score, outcome.state, outcome.score
        return self.state, reward, outcome.ended, self.steps >= self.limit and not outcome.ended, self._info()

    def _info(self) -> dict[str, Any]:
        return {"task": "Get far.", "actions": list(self.rules.actions), "score": self.score}


@dataclass
class ScriptedProber:
    """Answers every probe with the same outcomes, and remembers what it was asked."""

    outcomes: Sequence[Outcome] = ()
    cost: ProbeCost = SOME_COST
    privileged: bool = False
    live: bool = False
    asked: list[tuple[str, str, tuple[str, ...], int]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    matching: Matching | None = None

    def bind(self, matching: Matching) -> None:
        self.matching = matching

    def begin_episode(self) -> None:
        self.calls.append("begin_episode")

    def moved(self) -> None:
        self.calls.append("moved")

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        self.asked.append((state, action, tuple(prefix), times))
        self.calls.append("probe")
        return Probed(tuple(Transition(state, action, outcome) for outcome in self.outcomes[:times]), self.cost)


def outcome(tile: str, score: float = 0.0, *, ended: bool = False) -> Outcome:
    return Outcome(json.dumps(tile), score, ended)


def lived(step: int, tile: str, *, state: str = '"s"', action: str = "1") -> Experience:
    return Experience(state, action, outcome(tile), 0.0, AgentClock(step // 10, step))


@pytest.fixture(name="Rules")
def _rules() -> type[Rules]:
    return Rules


@pytest.fixture(name="TableEnv")
def _table_env() -> type[TableEnv]:
    return TableEnv


@pytest.fixture(name="ScriptedProber")
def _scripted_prober() -> type[ScriptedProber]:
    return ScriptedProber


@pytest.fixture(name="outcome")
def _outcome() -> Any:
    return outcome


@pytest.fixture(name="lived")
def _lived() -> Any:
    return lived


class Reader:
    """A policy that decides by everything in the prompt but the mark of verification: a checksum of its parts."""

    name = "reader"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        known = sorted((*item[:5], item.value_estimate) for item in (*view.here, *view.elsewhere))
        text = repr((view.state, known, view.step // 5, view.doubt_since))
        if rng.random() < 0.3:
            return Reply(view.actions[int(rng.integers(len(view.actions)))])
        return Reply(view.actions[zlib.crc32(text.encode()) % len(view.actions)])


def random_rules(rng: np.random.Generator, states: int, actions: int, *, chance: bool = False) -> Rules:
    """An environment of so many states where each pair leads somewhere, a third of the pairs to the end."""
    table: dict[tuple[str, str], Answers] = {}
    for state in range(states):
        for action in range(actions):
            answers = []
            for _ in range(3 if chance else 1):
                ended = bool(rng.random() < 0.3)
                score = float(rng.integers(3)) / 2 if ended else 0.0
                answers.append((Outcome(f'"s{int(rng.integers(states))}"', score, ended), 1 / 3 if chance else 1.0))
            table[f'"s{state}"', str(action)] = answers
    return Rules(table, '"s0"', tuple(map(str, range(actions))))


@pytest.fixture(name="Reader")
def _reader() -> type[Reader]:
    return Reader


@pytest.fixture(name="random_rules")
def _random_rules() -> Any:
    return random_rules
