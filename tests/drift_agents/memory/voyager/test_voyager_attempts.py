"""Voyager's attempts: the critic's marks, the row of attempts, and what is refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

import pytest
from drift_agents.errors import ArgumentError, ModelError
from drift_agents.llm.base import RuleModel
from drift_agents.memory.voyager import CRITIQUE, RULES, Voyager
from drift_agents.types import AgentClock, Episode, Experience, Outcome

from tests.drift_agents.memory.contents import contents
from tests.drift_agents.memory.voyager.retrieving import TASK, retrieve_notes, retrieve_weights

# glove: transitions marked by the critic


def test_marks_are_weights(walk) -> None:
    memory = Voyager()
    walk(memory, 0, "a1b2c", score=1.0)
    walk(memory, 1, "a1b2d", score=0.0)
    memory.observe(Experience("b", "2", Outcome("c", 0.0, False), 0.0, AgentClock(2, 20)), AgentClock(2, 20))
    assert [memory.mark(i) for i in range(4)] == [True, True, False, False]
    judged = {i: w for i, w in retrieve_weights(memory, "b", 2).items() if memory.mark(i) is not None}
    assert judged == {1: 1.0, 3: 0.5}
    assert retrieve_weights(memory, "b", 2).keys() - judged.keys() == {5}, "what is not judged yet counts in full"
    assert retrieve_weights(memory, "b", 2)[5] == 1.0
    assert retrieve_weights(with_options(memory, failed=0.2), "b", 2)[3] == 0.2


def test_a_removed_record_has_no_mark(walk) -> None:
    memory = Voyager()
    walk(memory, 0, "a1b2c", score=1.0)
    memory.remove([0])
    assert [memory.mark(number) for number in (0, 1)] == [None, True]


def with_options(memory: Voyager, **options: Any) -> Voyager:
    """The same content under other options."""
    other = copy.deepcopy(memory)
    vars(other).update(options)
    other._cache.clear()
    return other


def test_successes_come_first_then_what_is_not_judged_then_failures(walk) -> None:
    memory = Voyager(k=3)
    failed = walk(memory, 0, "a1b")
    best = walk(memory, 1, "a1c", score=1.0)
    late = walk(memory, 2, "a1d")
    now = AgentClock(3, 30)
    new = memory.observe(Experience("a", "1", Outcome("e", 0.0, False), 0.0, now), now)
    assert list(retrieve_weights(memory, "a", 3)) == [*best, new, *failed]
    assert list(retrieve_weights(memory, "a", 3, k=4)) == [*best, new, *failed, *late]
    assert list(retrieve_weights(with_options(memory, order="newest"), "a", 3, k=3)) == [*best, new, *late]


def test_a_verified_summary_needs_no_critic(walk) -> None:
    memory = Voyager(k=1)
    walk(memory, 0, "a1b")
    now = AgentClock(1, 10)
    summary = memory.insert_summary("a", "1", [(Outcome("c", 0.0, False), 1.0)], 3, now)
    walk(memory, 1, "b1d")
    assert memory.mark(summary) is True
    assert retrieve_weights(memory, "a", 2) == {summary: 1.0}


def test_old_successes_hide_a_drift(walk) -> None:
    """What the paper's table shows for Voyager without a verifier: the environment changed, memory did not."""
    memory = Voyager(k=2)
    old = [walk(memory, episode, "a1b", score=1.0)[0] for episode in range(2)]
    for episode in range(2, 9):
        walk(memory, episode, "a1h", score=0.0)
    assert list(retrieve_weights(memory, "a", 9)) == old


# the row of attempts


@pytest.mark.parametrize("mode", ["glove", "skills"])
def test_a_critique_is_in_the_prompt_until_the_next_success_or_the_last_attempt(walk, mode: str) -> None:
    memory = Voyager(mode=mode, attempts=3)
    assert retrieve_notes(memory, "a", 0) == []
    walk(memory, 0, "a1b")
    (critique,) = retrieve_notes(memory, "a", 1)
    assert (
        critique == f'Critique of attempt 1 of 3 at {TASK!r}: Do not take "1" in a: it ended the episode for nothing.'
    )
    walk(memory, 1, "a2b")
    (critique,) = retrieve_notes(memory, "z", 2)
    assert critique.startswith("Critique of attempt 2 of 3 at ")
    assert '"2" in a' in critique
    walk(memory, 2, "a3b")
    assert retrieve_notes(memory, "a", 3) == [], "after the third attempt the row begins anew"
    walk(memory, 3, "a1b")
    assert retrieve_notes(memory, "a", 4)[0].startswith("Critique of attempt 1 of 3")
    walk(memory, 4, "a2c", score=1.0)
    assert not any(critique.startswith("Critique") for critique in retrieve_notes(memory, "a", 5))
    walk(memory, 5, "a1b")
    assert retrieve_notes(memory, "a", 6)[-1].startswith("Critique of attempt 1 of 3"), "a success ends the row"


def test_another_task_begins_another_row(walk) -> None:
    memory = Voyager(mode="skills", attempts=2)
    first = walk(memory, 0, "a1b")
    second = walk(memory, 1, "c1d", task="Something else.")
    assert [record.id for record in memory.records()] == second != first
    assert "attempt 1 of 2 at 'Something else.'" in retrieve_notes(memory, "a", 2)[0]


@pytest.mark.parametrize("cascade", ["any", "majority", "cut"])
def test_a_critique_is_removed_with_its_evidence(walk, cascade: str) -> None:
    memory = Voyager(cascade=cascade)
    ids = walk(memory, 0, "a1b2c3d4e")
    (note,) = memory.retrieve("a", None, AgentClock(1, 10)).notes
    assert note.evidence == tuple(ids)
    assert bool(memory.remove(ids[:1]).notes) == (cascade == "any")
    if cascade != "any":
        assert memory.remove(ids[1:2]).notes == (), "half of it is left"
        assert memory.remove(ids[2:3]).notes == (note.id,)
    assert retrieve_notes(memory, "a", 1) == []


# models and options


class FailingModel:
    """A model that answers by a table of titles."""

    name = "stubborn"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.rules = RuleModel({**RULES, **{title: lambda text, a=a: a for title, a in answers.items()}})

    def complete(self, *args: Any, **kwargs: Any) -> Any:
        return self.rules.complete(*args, **kwargs)


@pytest.mark.parametrize("title", [CRITIQUE["title"], "voyager_skill"])
def test_a_model_that_fails_leaves_memory_as_it_was(title: str) -> None:
    memory = Voyager(mode="skills", model=FailingModel({title: {"success": "yes"}}))
    now = AgentClock()
    memory.observe(Experience("a", "1", Outcome("g", 1.0, True), 1.0, now), now)
    before = contents(memory)
    with pytest.raises(ModelError, match=f"the model 'stubborn' should answer '{title}' by its schema"):
        memory.end_episode(Episode(TASK, 1.0, 1, True), now)
    assert contents(memory) == before


def test_the_critic_decides_and_not_the_score(walk) -> None:
    memory = Voyager(model=FailingModel({CRITIQUE["title"]: {"reasoning": "", "success": True, "critique": ""}}))
    ids = walk(memory, 0, "a1b", score=0.0)
    assert [memory.mark(i) for i in ids] == [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": True}, "`attempts` should be a whole number, at least 1. Received True"),
        ({"mode": "both"}, "`mode` should be one of glove, skills. Received 'both'"),
        ({"order": "best"}, "`order` should be one of oldest, newest. Received 'best'"),
        ({"failed": 0}, "`failed` should be in the interval (0, 1]. Received 0"),
        ({"failed": float("nan")}, "`failed` should be in the interval (0, 1]. Received nan"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Voyager(**options)
