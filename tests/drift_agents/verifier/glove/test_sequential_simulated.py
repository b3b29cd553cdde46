"""What the sequential tests promise, by simulation: alarms without a change, and probes until a change is found.

The verifiers themselves are run, on a memory of one summary, so that 200 records of history cost no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, Outcome, ProbeCost, Transition
from drift_agents.verifier.base import Probed, make_verifier
from drift_agents.verifier.evidence import change_statistic

pytestmark = pytest.mark.integration

OUTCOMES = tuple(Outcome(f'"{name}"', 0.0, False) for name in "abc")
UNIFORM = (1 / 3, 1 / 3, 1 / 3)


class Source:
    """A prober that draws from a distribution."""

    privileged = False
    live = False

    def __init__(self, chances: Sequence[float], rng: np.random.Generator) -> None:
        self._chances, self._rng = np.array(chances), rng

    def bind(self, matching: Any) -> None:
        pass

    def begin_episode(self) -> None:
        pass

    def moved(self) -> None:
        pass

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        drawn = self._rng.choice(len(OUTCOMES), size=times, p=self._chances)
        return Probed(tuple(Transition(state, action, OUTCOMES[i]) for i in drawn), ProbeCost(steps=times))


class Decided(NamedTuple):
    """One decision of the active test."""

    drift: bool
    probes: int


def decide(
    rng: np.random.Generator, before: Sequence[float], after: Sequence[float], history: int = 200, **options: Any
) -> Decided:
    """Let the active test decide after one surprise, which is an answer of the environment as it is now."""
    memory, counts = VanillaMemory(), rng.multinomial(history, before)
    shares = [(outcome, n / history) for outcome, n in zip(OUTCOMES, counts, strict=True) if n]
    memory.insert_summary('"s"', "1", shares, history, AgentClock())
    # Every outcome surprises that is not certain, so that the test decides on all: the trigger is not at issue here.
    verifier = make_verifier("glove_active", prober=Source(after, rng), epsilon=1.0, limit=1000, **options)
    return next(decisions(verifier, memory, rng, after, history, answers=100), Decided(drift=False, probes=0))


def decisions(
    verifier: Any, memory: VanillaMemory, rng: np.random.Generator, truth: Sequence[float], start: int, answers: int
) -> Iterator[Decided]:
    """Let an environment answer so many times; what the verifier decides at each surprise."""
    verifier.bind(Exact(), rng)
    for step in range(start, start + answers):
        now, outcome = AgentClock(1, step), OUTCOMES[rng.choice(len(OUTCOMES), p=truth)]
        verdict = verifier.verify(Experience('"s"', "1", outcome, 0.0, now), memory, (), now)
        if verdict.surprise:
            yield Decided(verdict.realigned, len(verdict.probed))


HALF_IN_L1 = [
    (UNIFORM, (7 / 12, 1 / 12, 1 / 3)),
    ((0.8, 0.1, 0.1), (0.55, 0.35, 0.1)),
    ((0.5, 0.5, 0.0), (0.25, 0.5, 0.25)),
    ((1.0, 0.0, 0.0), (0.75, 0.25, 0.0)),
]


@pytest.mark.parametrize(("before", "after"), HALF_IN_L1)
def test_a_change_of_half_in_l1_is_decided_with_64_probes_on_average(
    before: Sequence[float], after: Sequence[float]
) -> None:
    """With delta = .05, three outcomes and 200 records; theorem 4.2 requires 254 probes at eps = .2."""
    assert np.abs(np.subtract(before, after)).sum() == pytest.approx(0.5)
    rng = np.random.default_rng(5)
    decided = [decide(rng, before, after) for _ in range(150)]
    assert np.mean([one.probes for one in decided]) <= 64
    assert np.mean([one.drift for one in decided]) > 0.6, "the smallest change of the claim is sometimes missed"


def test_the_active_tests_false_alarms_stay_below_delta_on_average_over_the_prior() -> None:
    rng, alarms = np.random.default_rng(8), 0
    trials = 200
    for _ in range(trials):
        truth = rng.dirichlet([0.5] * 3)
        alarms += decide(rng, truth, truth, delta=0.1).drift
    assert alarms / trials <= 0.1


def test_the_trigger_is_no_evidence_against_memory() -> None:
    """A test begins when something rare comes, so memory is what was lived without it: that must not count as drift."""
    rng, tried, truth = np.random.default_rng(12), [], (0.8, 0.1, 0.1)
    for _ in range(120):
        verifier = make_verifier("glove_active", prober=Source(truth, rng), delta=0.05)
        tried += [one.drift for one in decisions(verifier, VanillaMemory(), rng, truth, 0, answers=60)]
    assert len(tried) > 100
    assert np.mean(tried) <= 0.04, "0.06 when memory alone stands against the probes"


@pytest.mark.parametrize(
    "truth",
    [UNIFORM, (0.98, 0.01, 0.01), (0.5, 0.5, 0.0)],
)
def test_the_strict_tests_false_alarms_stay_below_delta_for_every_distribution(truth: Sequence[float]) -> None:
    rng = np.random.default_rng(9)
    assert sum(decide(rng, truth, truth, delta=0.1, strict=True).drift for _ in range(200)) <= 20


def test_the_strict_test_still_finds_a_drift() -> None:
    """It is slower, and must not take its own caution for peace."""
    rng = np.random.default_rng(10)
    flips = [decide(rng, UNIFORM, (2 / 3, 1 / 3, 0.0), strict=True) for _ in range(30)]
    assert np.mean([one.drift for one in flips]) >= 0.95
    halves = [decide(rng, *HALF_IN_L1[0], strict=True) for _ in range(30)]
    assert np.mean([one.drift for one in halves]) > 0.8
    assert np.mean([one.probes for one in halves]) < 120


@pytest.mark.parametrize("strict", [False, True], ids=["over the prior", "one distribution"])
def test_the_passive_tests_mean_run_length_is_at_least_the_alarm(strict: bool) -> None:
    """Without a window. A run without an alarm until 2 A visits counts as 2 A, which only lowers the mean."""
    rng, eye, alarm = np.random.default_rng(11), np.eye(3), 20
    lengths = []
    for _ in range(150):
        truth = UNIFORM if strict else rng.dirichlet([0.5] * 3)
        rows = eye[rng.choice(3, size=2 * alarm, p=truth)]
        visits = range(2, 2 * alarm + 1)
        lengths.append(next((n for n in visits if change_statistic(rows[:n], strict=strict)[0] >= alarm), 2 * alarm))
    assert np.mean(lengths) >= alarm
