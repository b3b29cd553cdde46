"""When an agent's memory counts as contradicted, and when that moves."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import Memory
from drift_agents.memory.store import StoreMemory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.memory.views import freeze
from drift_agents.policy.base import Policy, Reply
from drift_agents.policy.planner import Planner
from drift_agents.prompt.lessons import Trajectory, render_trajectory
from drift_agents.prompt.view import PromptView
from drift_agents.types import AgentClock, Experience, Note, Retrieved, Verdict
from drift_agents.verifier.base import BaseVerifier, Verifier

from drift_envs.errors import DriftWarning


class TwoDoors(gym.Env[str, Any]):
    """One step an episode; what a door hides is read off a script, one letter for every step.

    Args:
        script: what the next step shows, whichever door is opened.
    """

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Text(64)

    def __init__(self, script: str) -> None:
        self.script = iter(script)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        return json.dumps("hall"), self._info()

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return json.dumps(next(self.script)), 0.0, True, False, self._info()

    def _info(self) -> dict[str, Any]:
        return {"task": "Open a door.", "actions": ["0", "1"], "score": 0.0}


class ScriptedPolicy:
    """Opens doors by a script and notes what the prompts say of doubt."""

    name = "reader"

    def __init__(self, doors: str) -> None:
        self.doors, self.doubts = iter(doors), []

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        self.doubts.append(view.doubt_since)
        return Reply(next(self.doors))


class NewestWins(BaseVerifier):
    """Removes what contradicts and says so, if `says_so`."""

    name = "newest wins"

    def __init__(self, says_so: bool = True) -> None:
        super().__init__()
        self.says_so = says_so

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        known = memory.same_transitions(experience.state, experience.action)
        wrong = [record.id for record in known if record.outcome != experience.outcome]
        removed = memory.remove(wrong)
        memory.observe(experience, now)
        return Verdict(
            surprise=bool(wrong), removed=removed, realigned=bool(wrong), contradicted=bool(wrong) and self.says_so
        )


def doubts(doors: str, script: str, verifier: Verifier | None = None) -> list[int | None]:
    """What each step's prompt says, and last what the one after would."""
    reader = ScriptedPolicy(doors)
    agent = Agent(reader, VanillaMemory(), verifier)
    for _ in script:
        agent.run_episode(TwoDoors(script[agent.clock.step]))
    return [*reader.doubts, agent.doubt_since]


def test_no_contradiction_no_doubt() -> None:
    assert doubts("0101", "abab") == [None] * 5


def test_what_was_never_tried_is_no_contradiction() -> None:
    assert doubts("01", "ab") == [None] * 3


def test_the_eye_notices_what_memory_had_never_seen() -> None:
    assert doubts("000", "aab") == [None, None, None, 2]


def test_a_contradiction_of_something_older_is_the_same_change() -> None:
    """Both doors change at step 2; the second is opened only later."""
    assert doubts("0101", "abcd") == [None, None, None, 2, 2]


def test_a_contradiction_of_something_newer_is_another_change() -> None:
    assert doubts("0000", "aabc") == [None, None, None, 2, 3]


def test_without_a_verifier_an_outcome_seen_before_is_no_surprise() -> None:
    assert doubts("0000", "abba") == [None, None, 1, 1, 1]


def test_with_a_verifier_its_word_counts() -> None:
    assert doubts("0000", "abba", NewestWins()) == [None, None, 1, 1, 3]
    assert doubts("0000", "abba", NewestWins(says_so=False)) == [None] * 5


def test_time_is_counted_in_interactions() -> None:
    agent = Agent(ScriptedPolicy("00"), VanillaMemory())
    for letter in "ab":
        agent.run_episode(TwoDoors(letter))
    assert agent.clock == AgentClock(2, 2)
    assert agent.doubt_since == 1


class Chatty:
    """A memory service that puts what it is told into words of its own."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        self.texts.append(f"I remember something about doors ({len(self.texts)}).")

    def search(self, query: str, k: int) -> list[str]:
        return self.texts[-k:]


class Untagged(Chatty):
    """A memory service that drops tags alone."""

    def add(self, text: str) -> None:
        self.texts.append(text.rpartition(" [record")[0])


class Noting(VanillaMemory):
    """A memory of one's own that shows a note."""

    name = "noting"

    def __init__(self, note: str) -> None:
        super().__init__()
        self.note = note

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        return Retrieved(notes=(Note(999, self.note),))


READABLE = render_trajectory(Trajectory(('"hall"', '"a"'), ("0",), 1.0, True, 3))
WORDS = "They stand in prompts as notes for language models; the planner cannot read them"


@pytest.mark.parametrize(
    ("policy", "memory", "told"),
    [
        (
            Planner(),
            StoreMemory(store=Chatty()),
            f"the memory service has rewritten 1 records beyond .*{WORDS}. .* their tag",
        ),
        (
            Planner(),
            StoreMemory(store=Untagged()),
            r"returned 1 texts without their tag, .*Keep the tag, as \[record 7",
        ),
        (Planner(), Noting("Doors are dangerous."), f"the memory 'noting' has notes in words of its own. {WORDS}"),
        (Planner(), freeze(Noting("Doors are dangerous.")), "the memory 'noting'"),
        (Planner(), Noting(READABLE), ""),
        (Planner(), StoreMemory(), ""),
        (Planner(), VanillaMemory(), ""),
        (ScriptedPolicy("0000"), StoreMemory(store=Chatty()), ""),
    ],
    ids=["service", "untagged", "own", "frozen", "readable", "store", "vanilla", "another policy"],
)
def test_notes_that_the_planner_cannot_read_are_told_once(policy: Policy, memory: Memory, told: str) -> None:
    agent = Agent(policy, memory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for letter in "abab":
            agent.run_episode(TwoDoors(letter))
    assert len(caught) == bool(told)
    for warning in caught:
        assert warning.category is DriftWarning
        assert warning.filename == __file__
        with pytest.raises(DriftWarning, match=told):
            raise warning.message


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "1", None])
def test_a_score_that_is_no_finite_number_is_named(score: Any) -> None:
    class Scored(TwoDoors):
        def step(self, action: int) -> Any:
            *rest, info = TwoDoors.step(self, action)
            return *rest, {**info, "score": score}

    with pytest.raises(ArgumentError, match=r"`score` of an environment's info should be a finite number\. Received"):
        Agent(ScriptedPolicy("0")).run_episode(Scored("a"))
