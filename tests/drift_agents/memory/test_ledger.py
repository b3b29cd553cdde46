"""The ledger: its order is a function of the content, with any matching rule."""

from __future__ import annotations

from drift_agents.matching.base import Exact
from drift_agents.memory.ledger import Ledger
from drift_agents.types import AgentClock, Experience, Outcome


class FirstLetter(Exact):
    """States count as the same when they begin alike."""

    def state_key(self, state: str) -> str:
        return state[0]


def make_ledger(*states: str) -> Ledger:
    ledger = Ledger(FirstLetter())
    for time, state in enumerate(states):
        now = AgentClock(0, time)
        ledger.append(Experience(state, str(time % 2), Outcome("z", 0.0, False), 0.0, now), now)
    return ledger


def restored(ledger: Ledger) -> Ledger:
    other = Ledger(FirstLetter())
    other.restore(ledger.snapshot())
    return other


def test_matching_states_are_one() -> None:
    ledger = make_ledger("apple", "bear", "ant")
    assert list(ledger.states()) == ["apple", "bear"]
    assert [record.state for record in ledger.counterparts("axe", "0")] == ["apple", "ant"]


def test_a_state_has_text_and_place_of_its_oldest_record() -> None:
    ledger = make_ledger("apple", "bear", "ant", "cat")
    ledger.remove([0])
    assert list(ledger.states()) == ["bear", "ant", "cat"] == list(restored(ledger).states())


def test_actions_come_in_the_order_of_their_oldest_record() -> None:
    ledger = make_ledger("a", "a", "a")
    ledger.remove([0])
    assert list(ledger.by_action("a")) == ["1", "0"] == list(restored(ledger).by_action("a"))


def test_ids_are_not_used_again_after_a_restore() -> None:
    ledger = make_ledger("a", "b")
    ledger.remove([1])
    now = AgentClock()
    assert restored(ledger).append(Experience("c", "0", Outcome("z", 0.0, False), 0.0, now), now) == 2


def test_whole_and_real_scores_have_one_hash() -> None:
    now = AgentClock()
    hashes = set()
    for score in (1, 1.0):
        ledger = Ledger()
        ledger.append(Experience("a", "0", Outcome("b", score, True), score, now), now)
        hashes.add(ledger.content_hash())
    assert len(hashes) == 1
