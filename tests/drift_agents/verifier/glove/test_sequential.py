"""The sequential tests of our own as verifiers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, Outcome, ProbeCost, Removed, Transition, Verdict
from drift_agents.verifier.base import Probed, make_verifier

from tests.drift_agents.verifier.feeding import bound

TILES = "abcX"


def draw(rng: np.random.Generator, chances: list[float]) -> Outcome:
    return Outcome(f'"{TILES[int(rng.choice(4, p=chances))]}"', 0.0, False)


def visit(verifier: Any, memory: VanillaMemory, step: int, outcome: Outcome) -> Verdict:
    now = AgentClock(step, step)
    return verifier.verify(Experience('"s"', "1", outcome, 0.0, now), memory, ["0"], now)


class DrawingProber:
    """Answers from a distribution; one step and one reset a probe."""

    privileged = False
    live = False

    def __init__(self, chances: list[float], patience: int = 10**9) -> None:
        self.chances, self.rng, self.left = chances, np.random.default_rng(7), patience

    def bind(self, matching: Any) -> None:
        pass

    def begin_episode(self) -> None:
        pass

    def moved(self) -> None:
        pass

    def probe(self, state: str, action: str, prefix: Any, times: int) -> Probed:
        cost = ProbeCost(steps=times, resets=times)
        if self.left < times:
            return Probed((), cost)
        self.left -= times
        return Probed(tuple(Transition(state, action, draw(self.rng, self.chances)) for _ in range(times)), cost)


THIRDS, FLIPPED = [1 / 3, 1 / 3, 1 / 3, 0.0], [1 / 3, 1 / 3, 0.0, 1 / 3]


def test_passive_finds_a_tile_that_flips_and_keeps_what_is_new() -> None:
    delays, false_alarms = [], 0
    for seed in range(20):
        rng, memory, verifier = np.random.default_rng(seed), VanillaMemory(), bound("glove_passive")
        for step in range(60):
            false_alarms += visit(verifier, memory, step, draw(rng, THIRDS)).realigned
        for step in range(60, 120):
            verdict = visit(verifier, memory, step, draw(rng, FLIPPED))
            if verdict.realigned:
                break
        assert verdict.realigned
        assert verdict.statistic is not None
        assert verdict.statistic >= 1000
        assert verdict.cost == ProbeCost()
        kept = [record.now.step for record in memory.records()]
        assert kept == list(range(kept[0], step + 1)), "everything after the split, the newest included"
        assert len(verdict.removed.records) > 20
        delays.append(step - 59)
    assert np.median(delays) <= 12
    assert false_alarms <= 3, "of 1,200 visits"


def test_passive_looks_at_the_window_alone_and_wipes_what_lies_before_it() -> None:
    memory, verifier = VanillaMemory(), bound("glove_passive", window=10, alarm=50)
    for step in range(30):
        visit(verifier, memory, step, Outcome('"a"', 0.0, False))
    for step in range(30, 40):
        verdict = visit(verifier, memory, step, Outcome('"b"', 0.0, False))
        if verdict.realigned:
            break
    assert verdict.removed == Removed(tuple(range(30)))


def test_passive_counts_the_responses_of_a_summary() -> None:
    memory, verifier = VanillaMemory(), bound("glove_passive")
    a, b = Outcome('"a"', 0.0, False), Outcome('"b"', 0.0, False)
    memory.insert_summary('"s"', "1", [(a, 1.0)], 100, AgentClock())
    verdicts = [visit(verifier, memory, step, b) for step in range(1, 4)]
    assert [verdict.realigned for verdict in verdicts] == [False, True, False]
    assert [record.outcome for record in memory.records()] == [b, b, b]


def filled(n: int, seed: int) -> VanillaMemory:
    rng, memory = np.random.default_rng(seed), VanillaMemory()
    for step in range(n):
        now = AgentClock(step, step)
        memory.observe(Experience('"s"', "1", draw(rng, THIRDS), 0.0, now), now)
    return memory


def test_active_finds_a_drift_with_few_probes() -> None:
    for seed in range(20):
        memory, verifier = filled(50, seed), bound("glove_active", prober=DrawingProber(FLIPPED))
        verdict = visit(verifier, memory, 50, Outcome('"X"', 0.0, False))
        assert (verdict.surprise, verdict.realigned, verdict.contradicted) == (True, True, True)
        assert len(verdict.probed) <= 20
        assert verdict.cost.steps == len(verdict.probed)
        (record,) = memory.records()
        assert (record.id, record.n, record.verified) == (verdict.inserted, len(verdict.probed), True)
        assert verdict.observed is None


@pytest.mark.parametrize(("known", "is_probed"), [(9, False), (10, True)])
def test_by_default_active_probes_from_ten_responses_on(known: int, is_probed: bool) -> None:
    memory, verifier = filled(known, 0), bound("glove_active", prober=DrawingProber(FLIPPED))
    verdict = visit(verifier, memory, known, Outcome('"X"', 0.0, False))
    assert bool(verdict.probed) is is_probed


def test_active_takes_chance_for_chance() -> None:
    """A lie, one response that never comes again, is probed, found out, and everything is kept."""
    memory, verifier = filled(60, 1), bound("glove_active", prober=DrawingProber(THIRDS))
    verdict = visit(verifier, memory, 60, Outcome('"X"', 0.0, False))
    assert (verdict.surprise, verdict.realigned) == (True, False)
    assert 1 < len(verdict.probed) < 100, "the ratio decided, not the limit"
    assert verdict.removed == Removed()
    assert (verdict.observed, verdict.inserted) == (60, 61)
    assert len(list(memory.records())) == 62


def test_active_writes_when_the_prober_gives_up() -> None:
    memory = filled(60, 1)
    verifier = bound("glove_active", prober=DrawingProber(FLIPPED, patience=0))
    verdict = visit(verifier, memory, 60, Outcome('"X"', 0.0, False))
    assert (verdict.realigned, verdict.observed, verdict.inserted) == (False, 60, None)
    assert verdict.cost == ProbeCost(steps=1, resets=1)
    half = bound("glove_active", prober=DrawingProber(THIRDS, patience=2))
    verdict = visit(half, filled(60, 1), 60, Outcome('"X"', 0.0, False))
    assert (len(verdict.probed), verdict.realigned, verdict.inserted) == (2, False, 61)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("glove_passive", {"alarm": 1}, "`alarm` should be in the interval (1, inf). Received 1"),
        ("glove_passive", {"window": 1}, "`window` should be a whole number, at least 2. Received 1"),
        ("glove_passive", {"outcomes": 0}, "`outcomes` should be a whole number, at least 1. Received 0"),
        ("glove_passive", {"strict": 1}, "`strict` should be true or false. Received 1"),
        ("glove_active", {"delta": 1}, "`delta` should be in the interval (0, 1). Received 1"),
        ("glove_active", {"stable": 0}, "`stable` should be in the interval (0, 1). Received 0"),
        ("glove_active", {"limit": 0}, "`limit` should be a whole number, at least 1. Received 0"),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    if name == "glove_active":
        options = {"prober": DrawingProber(THIRDS), **options}
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_verifier(name, **options)
