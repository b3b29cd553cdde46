"""Paths of a prober: the agent's trajectory, the transition graph, unused responses, the twin's position."""

from __future__ import annotations

import pytest
from drift_agents.types import AgentClock, Experience, Outcome, Transition
from drift_agents.verifier.prober.paths import EpisodePath, ProbeTarget, TwinPosition, advance, is_blind, is_on_path
from drift_agents.verifier.prober.transition_graph import FADING, ROOM, TransitionGraph, UnusedResponses


def answer(state: str, action: str, after: str) -> Transition:
    return Transition(state, action, Outcome(after, 0.0, False))


@pytest.fixture
def way() -> EpisodePath:
    way = EpisodePath()
    for state, action, after in [("a", "1", "b"), ("b", "2", "c")]:
        way.follow(Experience(state, action, Outcome(after, 0.0, False), 0.0, AgentClock()))
    return way


@pytest.fixture
def graph() -> TransitionGraph:
    return TransitionGraph(key=str.lower)


class TestEpisodePath:
    def test_states_are_one_more_than_actions(self, way):
        assert way.states_along(["1", "2"]) == ["a", "b", "c"]
        assert way.states_along(["1"]) == ["a", "b"]
        assert way.states_along([]) == ["a"]

    @pytest.mark.parametrize("prefix", [["2"], ["1", "1"], ["1", "2", "1"]])
    def test_actions_that_were_not_done_lead_nowhere_known(self, way, prefix):
        assert way.states_along(prefix) == []

    def test_a_new_episode_begins_somewhere_unknown(self, way):
        way.clear()
        assert way.states_along([]) == []


class TestTransitionGraph:
    def test_the_shortest_way_is_taken(self, graph):
        for state, action, after in [("a", "far", "b"), ("b", "on", "d"), ("d", "on", "c"), ("a", "near", "d")]:
            graph.note(state, action, after)
        assert graph.path("a", "c") == [("a", "near"), ("d", "on")]

    def test_who_is_there_has_nothing_to_do(self, graph):
        assert graph.path("A", "a") == []

    def test_destinations_are_compared_by_their_key(self, graph):
        graph.note("a", "1", "B")
        assert graph.path("a", "b") == [("a", "1")]
        assert graph.path("a", "B") is None

    def test_circles_end(self, graph):
        graph.note("a", "1", "b")
        graph.note("b", "1", "a")
        assert graph.path("a", "nowhere") is None

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

    def test_a_known_state_makes_no_room(self, graph):
        for number in range(ROOM):
            graph.note(f"s{number}", "1", f"s{number + 1}")
        graph.note("s7", "2", "s0")
        assert graph.path("s0", "s1") == [("s0", "1")]


class TestUnusedResponses:
    def test_the_oldest_come_first_and_each_once(self):
        answers = UnusedResponses()
        given = [answer("s", "1", after) for after in "xyz"]
        for one in given:
            answers.note("s", one)
        assert answers.take("s", "1", 2) == given[:2]
        assert answers.take("s", "1", 2) == given[2:]
        assert answers.take("s", "1", 2) == []

    def test_other_states_and_actions_are_other_questions(self):
        answers = UnusedResponses()
        answers.note("s", answer("s", "1", "x"))
        assert answers.take("s", "2", 1) == []
        assert answers.take("t", "1", 1) == []
        assert len(answers.take("s", "1", 1)) == 1

    def test_what_is_forgotten_is_gone(self):
        answers = UnusedResponses()
        answers.note("s", answer("s", "1", "x"))
        answers.clear()
        assert answers.take("s", "1", 1) == []


SEEN = ProbeTarget("c", "9", ("1", "2"), ["a", "b", "c"], 1)
"""A goal whose way is known, state by state."""
UNSEEN = SEEN._replace(states=[])


class TestTwinPosition:
    @pytest.mark.parametrize(
        ("position", "expected"),
        [
            (TwinPosition("a", (), "a"), True),
            (TwinPosition("b", ("1",), "a"), True),
            (TwinPosition("x", ("1",), "a"), False),  # carried elsewhere, and that can be seen
            (TwinPosition("x", ("1",), "elsewhere"), True),  # states cannot be compared
            (TwinPosition("b", ("2",), "a"), False),
            (TwinPosition("b", None, "a"), False),
        ],
    )
    def test_positions_on_the_path(self, position, expected):
        assert is_on_path(position, SEEN) is expected

    def test_a_twin_that_began_elsewhere_is_blind(self):
        assert is_blind(TwinPosition("x", (), "elsewhere"), SEEN)
        assert not is_blind(TwinPosition("a", (), "a"), SEEN)
        assert not is_blind(TwinPosition("x", (), "elsewhere"), UNSEEN)

    def test_a_step_of_the_way_is_counted(self):
        assert advance(TwinPosition("a", (), "a"), "1", "b", SEEN, at_target=False) == TwinPosition("b", ("1",), "a")

    def test_a_probe_stands_for_the_agents_own_action(self):
        assert advance(TwinPosition("a", (), "a"), "9", "b", SEEN, at_target=True) == TwinPosition("b", ("1",), "a")

    def test_a_probe_leaves_a_way_whose_states_are_unknown(self):
        assert advance(TwinPosition("a", (), "a"), "9", "b", UNSEEN, at_target=True) == TwinPosition("b", None, "a")
        assert advance(TwinPosition("a", (), "a"), "1", "b", UNSEEN, at_target=True) == TwinPosition("b", ("1",), "a")

    def test_at_the_end_of_the_way_it_is_late(self):
        end = TwinPosition("x", ("1", "2"), "elsewhere")
        assert advance(end, "2", "y", SEEN, at_target=False) == end._replace(state="y", late=1)

    def test_who_has_left_the_way_stays_off(self):
        assert advance(TwinPosition("x", None, "a"), "1", "b", SEEN, at_target=False) == TwinPosition("b", None, "a")
