"""When states of Minigrid's environments, and what they lead to, are the same."""

import json

import pytest
from drift_agents.envs.minigrid.states import MinigridMatching, read_room_state
from drift_agents.types import Outcome, Transition


def state(**changes):
    base = {
        "pos": [1, 1], "facing": "east", "carries": "nothing", "changed": {}, "corner": [0, 1], "rows": ["#.o?"],
        "things": {"2,1": "red key"},
    }  # fmt: skip
    return json.dumps({**base, **changes})


def outcome(text, score=0.0, ended=False):
    return Transition(state(), "2", Outcome(text, score, ended))


@pytest.mark.parametrize(
    "changes", [{"pos": [2, 1]}, {"facing": "west"}, {"carries": "red key"}, {"changed": {"2,1": "nothing"}}], ids=str
)
def test_what_belongs_to_the_state(changes):
    rule = MinigridMatching()
    assert rule.state_key(state()) == rule.state_key(state(rows=["...?"], things={}))
    assert rule.state_key(state()) != rule.state_key(state(**changes))
    assert not rule.same_outcome(outcome(state()), outcome(state(**changes)))


def test_outcomes_are_compared_where_both_show_a_cell():
    rule = MinigridMatching()
    assert rule.same_outcome(outcome(state()), outcome(state(rows=["?.??"], things={})))
    assert not rule.same_outcome(outcome(state()), outcome(state(rows=["..o?"])))
    assert not rule.same_outcome(outcome(state()), outcome(state(things={"2,1": "blue key"})))
    assert not rule.same_outcome(outcome(state()), outcome(state(), score=1.0))
    assert not rule.same_outcome(outcome(state()), outcome(state(), ended=True))


@pytest.mark.parametrize("text", ["", "[]", "{}", state(rows=["o"]), state(facing="up"), state(pos=[1])])
def test_other_texts_are_compared_as_they_are(text):
    rule = MinigridMatching()
    assert read_room_state(text) is None
    assert rule.state_key(text) != rule.state_key(text + " ")
    assert rule.same_outcome(outcome(text), outcome(text))
