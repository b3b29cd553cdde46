"""The transition store: its order is a function of the content, with any matching rule."""

from __future__ import annotations

from drift_agents.envs.matching import Exact
from drift_agents.memory.transitions import TransitionStore
from drift_agents.types import AgentClock, Experience, Outcome


class FirstLetter(Exact):
    """States count as the same when they begin alike."""

    def state_key(self, state: str) -> str:
        return state[0]


def make_transitions(*states: str) -> TransitionStore:
    transitions = TransitionStore(FirstLetter())
    for time, state in enumerate(states):
        now = AgentClock(0, time)
        transitions.append(Experience(state, str(time % 2), Outcome("z", 0.0, False), 0.0, now), now)
    return transitions


def test_matching_states_are_one() -> None:
    transitions = make_transitions("apple", "bear", "ant")
    assert list(transitions.states()) == ["apple", "bear"]
    assert [record.state for record in transitions.same_transitions("axe", "0")] == ["apple", "ant"]


def test_a_state_has_text_and_place_of_its_oldest_record() -> None:
    transitions = make_transitions("apple", "bear", "ant", "cat")
    transitions.remove([0])
    assert list(transitions.states()) == ["bear", "ant", "cat"]


def test_actions_come_in_the_order_of_their_oldest_record() -> None:
    transitions = make_transitions("a", "a", "a")
    transitions.remove([0])
    assert list(transitions.by_action("a")) == ["1", "0"]
