"""The controls that forget by time or by score."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest
from drift_agents.errors import ArgumentError, MissingDependencyError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Episode, Removed, Verdict
from drift_agents.verifier.base import make_verifier

from tests.drift_agents.verifier.feeding import bound


def alarms(name: str, scores: list[float], lived: Any, **options: Any) -> list[int]:
    """The episodes after which memory was wiped; one experience is written in each."""
    memory, verifier, found = VanillaMemory(), bound(name, **options), []
    for index, score in enumerate(scores):
        verifier.begin_episode()
        verifier.verify(lived(index, "F"), memory, (), AgentClock(index, index))
        held = tuple(record.id for record in memory.records())
        for verdict in verifier.end_episode(Episode("task", score, 1, True), memory, AgentClock(index, index + 1)):
            assert verdict == Verdict(
                surprise=True, removed=Removed(held), realigned=True, contradicted=True, newest=index
            )
            assert not list(memory.records())
            found.append(index)
    return found


def test_a_window_holds_the_newest_interactions(lived) -> None:
    memory, verifier = VanillaMemory(), bound("window", size=3)
    steps = (0, 1, 2, 3, 7)
    verdicts = [verifier.verify(lived(step, "F"), memory, (), AgentClock(0, step)) for step in steps]
    assert [verdict.removed for verdict in verdicts] == [
        Removed(),
        Removed(),
        Removed(),
        Removed((0,)),
        Removed((1, 2, 3)),
    ], "interactions count, not records: those of step 7 - 3 and before are too old"
    assert [record.now.step for record in memory.records()] == [7]
    assert not any(verdict.realigned for verdict in verdicts)


# The River that Python 3.10 still gets is slower.
ADWIN_FINDS_AFTER = 13 if sys.version_info >= (3, 11) else 32


@pytest.mark.parametrize(("name", "latest"), [("adwin", ADWIN_FINDS_AFTER), ("page_hinkley", 4)])
def test_a_fall_is_found(name: str, latest: int, lived) -> None:
    found = alarms(name, [1.0] * 20 + [0.0] * 40, lived)
    assert found
    assert 20 <= found[0] <= 19 + latest


@pytest.mark.parametrize("name", ["adwin", "page_hinkley"])
def test_a_rise_is_no_reason_to_forget(name: str, lived) -> None:
    assert alarms(name, [0.0] * 20 + [1.0] * 40, lived) == []


@pytest.mark.parametrize("name", ["adwin", "page_hinkley"])
def test_nothing_is_found_where_nothing_falls(name: str, lived) -> None:
    scores = (np.random.default_rng(3).random(100) < 0.9).astype(float).tolist()
    assert alarms(name, scores, lived) == []


def test_options_reach_the_tests(lived) -> None:
    scores = [1.0] * 20 + [0.0] * 20
    patient = alarms("page_hinkley", scores, lived, threshold=8)
    assert patient[0] > alarms("page_hinkley", scores, lived)[0]
    assert alarms("page_hinkley", scores, lived, minimum=39) == [38]
    assert alarms("page_hinkley", scores, lived, delta=0.9) == []
    assert alarms("adwin", scores, lived, delta=0.002) == []


@pytest.mark.parametrize("name", ["adwin", "page_hinkley"])
def test_without_river_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(MissingDependencyError, match=re.escape('run `pip install ".[drift]"`')):
        make_verifier(name)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("window", {"size": 0}, "`size` should be a whole number, at least 1. Received 0"),
        ("adwin", {"delta": 1}, "`delta` should be in the interval (0, 1). Received 1"),
        ("page_hinkley", {"threshold": 0}, "`threshold` should be in the interval (0, inf). Received 0"),
        ("page_hinkley", {"delta": -1}, "`delta` should be in the interval (0, 1). Received -1"),
        ("page_hinkley", {"minimum": 0}, "`minimum` should be a whole number, at least 1. Received 0"),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_verifier(name, **options)
