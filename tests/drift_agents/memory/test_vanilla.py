"""The vanilla memory: which records are recalled, and in which order."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import NoMemory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, Outcome, Retrieved

NOW = AgentClock()


def fill(memory: VanillaMemory, *pairs: tuple[str, str]) -> VanillaMemory:
    for time, (action, after) in enumerate(pairs):
        now = AgentClock(0, time)
        memory.observe(Experience("s", action, Outcome(after, 0.0, False), 0.0, now), now)
    return memory


def retrieve_pairs(memory: VanillaMemory, k: int | None = None) -> list[tuple[str, str]]:
    return [(record.action, record.outcome.state) for record in memory.retrieve("s", k, NOW).records]


PAIRS = (("1", "a"), ("0", "b"), ("1", "c"), ("1", "d"), ("0", "e"))


def test_the_oldest_of_every_action_come_first() -> None:
    memory = fill(VanillaMemory(k=2), *PAIRS)
    assert retrieve_pairs(memory) == [("1", "a"), ("1", "c"), ("0", "b"), ("0", "e")]
    assert retrieve_pairs(memory, 1) == [("1", "a"), ("0", "b")]


def test_the_newest_can_come_first() -> None:
    memory = fill(VanillaMemory(k=2, order="newest"), *PAIRS)
    assert retrieve_pairs(memory) == [("1", "d"), ("1", "c"), ("0", "e"), ("0", "b")]


def test_a_full_result_excludes_later_records() -> None:
    """The plain agent's failure after a drift: with k records an action, the old ones fill the prompt."""
    memory = fill(VanillaMemory(k=2), ("1", "old"), ("1", "old"), ("1", "new"))
    assert retrieve_pairs(memory) == [("1", "old"), ("1", "old")]


def test_answers_follow_every_change() -> None:
    memory = fill(VanillaMemory(), ("1", "a"))
    assert retrieve_pairs(memory) == [("1", "a")]
    new = memory.observe(Experience("s", "1", Outcome("b", 0.0, False), 0.0, NOW), NOW)
    assert retrieve_pairs(memory) == [("1", "a"), ("1", "b")]
    memory.remove([0])
    assert retrieve_pairs(memory) == [("1", "b")]
    memory.insert_summary("s", "1", [(Outcome("c", 0.0, False), 1.0)], 3, NOW)
    assert retrieve_pairs(memory) == [("1", "b"), ("1", "c")]
    memory.remove([new])
    assert retrieve_pairs(memory) == [("1", "c")]


def test_a_summary_shares_its_responses_out() -> None:
    memory = VanillaMemory()
    memory.insert_summary("s", "1", [(Outcome("a", 0.0, False), 0.25), (Outcome("b", 0.0, False), 0.75)], 8, NOW)
    (record,) = memory.same_transitions("s", "1")
    assert record.verified
    assert record.outcome.state == "b"
    assert [n for _, n in record.transitions()] == [6.0, 2.0]


@pytest.mark.parametrize(("p", "n"), [((), 1), ((1.0,), 0), ((1.0, 0.0), 2), ((float("nan"),), 1)])
def test_a_summary_of_nothing_is_refused(p: tuple[float, ...], n: int) -> None:
    memory = VanillaMemory()
    shares = [(Outcome(str(i), 0.0, False), share) for i, share in enumerate(p)]
    with pytest.raises(ArgumentError, match="outcomes with positive probabilities and at least one response"):
        memory.insert_summary("s", "1", shares, n, NOW)
    assert list(memory.records()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "random"}, "`order` should be one of oldest, newest. Received 'random'"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        VanillaMemory(**options)


def test_no_memory_writes_nothing() -> None:
    memory = NoMemory()
    assert memory.observe(Experience("s", "1", Outcome("t", 1.0, True), 1.0, NOW), NOW) is None
    assert memory.insert_summary("s", "1", [(Outcome("t", 1.0, True), 1.0)], 1, NOW) is None
    assert memory.retrieve("s", None, NOW) == Retrieved()
    assert list(memory.records()) == []
