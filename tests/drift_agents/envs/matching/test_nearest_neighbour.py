"""Matching by the nearest neighbour: which texts share a key, and that verification rests on it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from drift_agents import make_memory
from drift_agents.embedding.base import Vectors
from drift_agents.envs.matching import NearestNeighbour, make_matching
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.types import AgentClock, Experience, Outcome, Transition
from drift_agents.verifier.controls import Forget
from hypothesis import given
from hypothesis import strategies as st


class Angles:
    """A text is an angle in degrees."""

    name = "angles"
    dimension = 2

    def embed(self, texts: Sequence[str]) -> Vectors:
        angles = np.radians([float(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def within(degrees: float) -> float:
    """The cosine of an angle, a little lowered."""
    return float(np.cos(np.radians(degrees))) - 1e-5


def test_the_nearest_of_the_states_with_a_key_of_their_own_is_taken() -> None:
    rule = NearestNeighbour(similarity=within(10), embedding=Angles())
    keys = [rule.state_key(state) for state in ("0", "15", "9", "6", "24", "40", "31")]
    assert keys == ["0", "15", "15", "0", "15", "40", "40"]


def test_a_text_keeps_its_key_when_a_nearer_state_comes_later() -> None:
    rule = NearestNeighbour(similarity=within(10), embedding=Angles())
    assert [rule.state_key(state) for state in ("0", "9", "20", "11", "9")] == ["0", "0", "20", "20", "0"]


@given(st.lists(st.integers(0, 359), max_size=200), st.sampled_from([1.0, within(1), within(7)]))
def test_it_agrees_with_a_direct_implementation(angles: list[int], similarity: float) -> None:
    rule = NearestNeighbour(similarity=similarity, embedding=Angles())
    own: list[int] = []
    keys: dict[int, int] = {}
    for angle in angles:
        if angle not in keys:
            near = [(round(float(np.cos(np.radians(angle - one))), 6), -at) for at, one in enumerate(own)]
            best = max(near, default=(-2.0, 0))
            keys[angle] = own[-best[1]] if best[0] >= similarity else angle
            own += [angle] if keys[angle] == angle else []
        assert rule.state_key(str(angle)) == str(keys[angle])


def test_outcomes_are_the_same_by_the_state_after_the_score_and_the_end() -> None:
    rule = NearestNeighbour(similarity=within(10), embedding=Angles())
    here = Transition("90", "go", Outcome("0", 0.5, False))
    assert rule.same_outcome(here, Transition("95", "go", Outcome("4", 0.5, False)))
    for other in (Outcome("30", 0.5, False), Outcome("4", 0.6, False), Outcome("4", 0.5, True)):
        assert not rule.same_outcome(here, Transition("95", "go", other))


def test_a_verifier_finds_the_records_of_similar_states() -> None:
    """The same drift is noticed with the rule, and not with equal texts: no state comes twice."""
    pages = ["shop, 12 visitors: shoes", "shop, 13 visitors: shoes", "shop, 14 visitors: shoes"]
    found = {}
    for name, options in (("nearest", {"similarity": 0.7}), ("exact", {})):
        rule = make_matching(name, **options)
        memory, verifier = make_memory("vanilla", matching=rule), Forget()
        verifier.bind(rule, np.random.default_rng(0))
        for at, page in enumerate(pages):
            now, after = AgentClock(0, at), "sold out" if at == 2 else "the order is placed"
            verdict = verifier.verify(Experience(page, "buy", Outcome(after, 0.0, False), 0.0, now), memory, (), now)
        found[name] = (verdict.surprise, len(verdict.removed.records))
    assert found == {"nearest": (True, 2), "exact": (False, 0)}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"similarity": 0}, ArgumentError, "`similarity` should be in the interval (0, 1]. Received 0"),
        ({"similarity": 1.2}, ArgumentError, "`similarity` should be in the interval (0, 1]. Received 1.2"),
        ({"embedding": "hashd"}, UnknownNameError, "did you mean 'hashed'"),
        ({"embedding": 3}, ArgumentError, "`embedding` should be a name, or one name with its options. Received 3"),
        ({"distance": 2}, ArgumentError, "the matching 'nearest' does not take the option"),
    ],
)
def test_refusals(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make_matching("nearest", **options)
