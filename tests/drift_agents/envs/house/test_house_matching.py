"""When states of a house count as the same."""

import json

from drift_agents.envs.house.states import HouseMatching, read_house_state
from drift_agents.types import Outcome, Transition

RULE = HouseMatching()
STATE = {
    "house": 7,
    "task": "put a mug in bed",
    "at": "shelf 1",
    "door": "none",
    "sees": ["mug 1"],
    "holds": "nothing",
    "done": [],
    "opened": [],
    "visited": ["shelf 1"],
    "says": "",
}


def state(**fields):
    return json.dumps({**STATE, **fields})


def same(score=0.0, other_score=0.0, one=None, other=None):
    """Whether two outcomes of one command are the same."""
    first, second = (
        Outcome(state(**(fields or {})), value, value > 0) for fields, value in ((one, score), (other, other_score))
    )
    return RULE.same_outcome(Transition(state(), "go to shelf 1", first), Transition(state(), "go to shelf 1", second))


def test_with_nothing_done_the_task_does_not_matter():
    assert RULE.state_key(state()) == RULE.state_key(state(task="put a cup in sofa", visited=[], opened=["fridge 1"]))
    done = {"done": ["take mug 1 from shelf 1"], "holds": "mug 1"}
    assert RULE.state_key(state(**done)) != RULE.state_key(state(**done, task="put a cup in sofa"))
    for fields in ({"at": "bed 1"}, {"house": 8}, {"holds": "mug 1"}, done):
        assert RULE.state_key(state()) != RULE.state_key(state(**fields))


def test_what_is_seen_is_the_outcome():
    assert same(other={"sees": ["mug 1"], "visited": []})
    assert same(one={"sees": ["mug 1", "cup 1"]}, other={"sees": ["cup 1", "mug 1"]})
    assert not same(other={"sees": []})
    assert not same(other={"at": "nothing", "says": "The door of the bedroom is locked."})
    assert not same(score=1.0)
    assert not same(score=1.0, other_score=0.6)
    assert same(one={"door": "closed", "sees": []}, other={"door": "open"})
    assert not same(one={"door": "locked", "sees": []}, other={"door": "open"})
    assert not same(one={"says": "This is a hot mug 1."}, other={"says": "This is a cold mug 1."})


def test_paths_tell_closed_doors_from_open_ones():
    assert RULE.state_key(state(door="closed")) == RULE.state_key(state(door="open"))
    assert RULE.path_key(state(door="closed")) != RULE.path_key(state(door="open"))


def test_paths_lead_to_the_score_of_their_own_task():
    assert RULE.state_key(state()) == RULE.state_key(state(task="put a pen in bed"))
    assert RULE.path_key(state()) != RULE.path_key(state(task="put a pen in bed"))


def test_related_states():
    done = {"done": ["take mug 1 from shelf 1"]}
    treated = {"done": ["take mug 1 from shelf 1", "heat mug 1 with microwave 1"]}
    assert RULE.related(state(), state(house=9))
    assert RULE.related(state(), state(**done))
    assert not RULE.related(state(), state(house=9, **done))
    assert RULE.related(state(), state(house=9, **treated))


def test_other_texts_are_compared_as_they_are():
    assert read_house_state('{"at": 1}') is None
    assert RULE.state_key("a") == "a"
    assert RULE.path_key("a") == "a"
    assert RULE.same_outcome(
        Transition("a", "1", Outcome("b", 0.0, False)), Transition("a", "1", Outcome("b", 0.0, False))
    )
    assert not RULE.same_outcome(
        Transition("a", "1", Outcome("b", 0.0, False)), Transition("a", "1", Outcome("c", 0.0, False))
    )
