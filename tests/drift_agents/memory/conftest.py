"""What tests of memories share: two ways to live through an episode, an embedding by hand, a prober."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from drift_agents.embedding.base import Vectors
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Outcome, StepTrace, Transition, Verdict
from drift_agents.verifier.base import Probed

TASK = "Reach the goal. The highest score is 1. Actions: 0 left, 1 down."


def live_with_verifier(
    memory: Memory, number: int, lived: Sequence[Any], score: float = 1.0, ended: bool = True
) -> Episode:
    """Live through an episode as the agent does, with a verifier that now and then does something."""
    trace = []
    for place, (state, action, outcome, extra) in enumerate(lived):
        now = AgentClock(number, 10 * number + place)
        retrieved = memory.retrieve(state, None, now).ids
        known = memory.same_transitions(state, action)
        if extra == "remove" and known:
            memory.remove([known[0].id])
        if extra == "summary":
            memory.insert_summary(state, action, [(outcome, 1.0)], 3, now)
        experience = Experience(state, action, outcome, 0.0, now)
        if extra == "late":  # quarantined before, written now
            earlier = AgentClock(max(number - 1, 0), max(10 * number - 1, 0))
            memory.observe(experience._replace(now=earlier), now)
        memory.observe(experience, now)
        trace.append(StepTrace(experience, "", action, retrieved, Verdict()))
    result = Episode("task", score, len(lived), ended, trace=tuple(trace))
    memory.end_episode(result, AgentClock(number, 10 * number + len(lived)))
    return result


def walk_along(
    memory: Memory, episode: int, way: str, score: float = 0.0, task: str = TASK, ended: bool = True
) -> list[int]:
    """Live an episode along `way`, as in `a1b2c`: from a by 1 to b by 2 to c; the score comes at its end."""
    steps = len(way) // 2
    ids = []
    for place in range(steps):
        state, action, after = way[2 * place : 2 * place + 3]
        last = place == steps - 1
        now = AgentClock(episode, 10 * episode + place)
        outcome = Outcome(after, score if last else 0.0, last and ended)
        ids.append(memory.observe(Experience(state, action, outcome, 0.0, now), now))
    memory.end_episode(Episode(task, score, steps, ended), AgentClock(episode, 10 * episode + steps))
    return ids


class OneLetter:
    """An embedding by hand: similarity to `a` is 1 for a, .5 for b, 0 for c."""

    name = "one letter"
    dimension = 2

    def embed(self, texts: Sequence[str]) -> Vectors:
        cosines = {"a": 1.0, "b": 0.5, "c": 0.0}
        return np.array([(x, np.sqrt(1 - x * x)) for x in (cosines.get(text[:1], 0.0) for text in texts)]).reshape(
            -1, 2
        )


class OneAnswer:
    """A prober that finds the same outcome again."""

    privileged = False
    live = False

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def bind(self, matching: Any) -> None: ...

    def begin_episode(self) -> None: ...

    def moved(self) -> None: ...

    def probe(self, state: str, action: str, prefix: Any, times: int) -> Probed:
        return Probed((Transition(state, action, self.outcome),) * times)


@pytest.fixture(name="live", scope="session")
def _live() -> Callable[..., Episode]:
    return live_with_verifier


@pytest.fixture(name="walk", scope="session")
def _walk() -> Callable[..., list[int]]:
    return walk_along


@pytest.fixture(name="OneLetter")
def _one_letter() -> type[OneLetter]:
    return OneLetter


@pytest.fixture(name="OneAnswer")
def _one_answer() -> type[OneAnswer]:
    return OneAnswer
