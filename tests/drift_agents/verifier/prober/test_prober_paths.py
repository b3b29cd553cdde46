"""Paths of a prober: the agent's trajectory, the transition graph, unused responses, the twin's position."""

from __future__ import annotations

import pytest
from drift_agents.verifier.paths import FADING, ROOM, ProbeTarget, TransitionGraph, TwinPosition, is_blind


@pytest.fixture
def graph() -> TransitionGraph:
    return TransitionGraph(key=str.lower)


class TestTransitionGraph:
    def test_the_shortest_way_is_taken(self, graph):
        for state, action, after in [("a", "far", "b"), ("b", "on", "d"), ("d", "on", "c"), ("a", "near", "d")]:
            graph.note(state, action, after)
        assert graph.path("a", "c") == [("a", "near"), ("d", "on")]

    def test_what_was_seen_most_counts(self, graph):
        for after in ("b", "b", "c"):
            graph.note("a", "1", after)
        assert graph.path("a", "b") == [("a", "1")]
        assert graph.path("a", "c") is None

    def test_two_new_sightings_outweigh_any_number_of_old_ones(self, graph):
        assert 1 + FADING > FADING**2 / (1 - FADING)  # the weight of infinitely many, two sightings later
        for after in ["b"] * 100 + ["c"] * 2:
            graph.note("a", "1", after)
        assert graph.path("a", "c") == [("a", "1")]

    def test_nothing_leads_on_from_an_end(self, graph):
        graph.note("a", "1", "b")
        graph.note("b", "1", None)
        graph.note("b", "1", None)
        assert graph.path("a", "c") is None

    def test_what_was_seen_first_is_dropped_first(self, graph):
        for number in range(ROOM):
            graph.note(f"s{number}", "1", f"s{number + 1}")
        assert graph.path("s0", "s2") == [("s0", "1"), ("s1", "1")]
        graph.note("new", "1", "s5")
        assert graph.path("s0", "s2") is None
        assert graph.path("new", "s6") == [("new", "1"), ("s5", "1")]
        assert graph.path("s1", "s2") == [("s1", "1")]


@pytest.mark.parametrize(("states", "expected"), [(["a", "b"], False), (["b", "a"], True), ([], False)])
def test_states_cannot_be_compared_where_the_episodes_began_apart(states, expected):
    target = ProbeTarget("c", "1", ("0", "0"), states, 1)
    assert is_blind(TwinPosition("x", ("0",), "a"), target) is expected
