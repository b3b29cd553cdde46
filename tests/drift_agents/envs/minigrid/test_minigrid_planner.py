"""The planner of Minigrid's environments, on prompts as text."""

import json
import re

import numpy as np
import pytest
from drift_agents.envs.minigrid.planner import MinigridPlanner
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

TASK = "You are in a building. Your mission: {}. The highest score is 1. Actions: 0 turn left, 1 turn right."
GOAL = "get to the green goal square"
ALL = ("0", "1", "2", "3", "4", "5")


def state(rows, pos, facing="east", carries="nothing", things=None, changed=None, corner=(0, 0)):
    """A state as the environment writes it."""
    return json.dumps(
        {
            "pos": list(pos), "facing": facing, "carries": carries, "changed": changed or {},
            "corner": list(corner), "rows": rows, "things": things or {},
        }
    )  # fmt: skip


def record(before, action, after, last, score=0.0, ended=False):
    return Recollection(before, action, Outcome(after, score, ended), 1.0, last)


def decide(here, mission=GOAL, records=(), doubt=None, step=100, actions=ALL, seed=0, **options):
    view = PromptView(TASK.format(mission), here, actions, (), tuple(records), step=step, doubt_since=doubt)
    return MinigridPlanner(**options).decide(view, np.random.default_rng(seed)).text


CORRIDOR = ["######", "#...o#", "######"]
TWO = ["######", "#o..o#", "######"]
TWO_THINGS = {"1,1": "blue goal", "4,1": "green goal"}


def test_it_walks_to_the_goal_that_it_sees():
    assert decide(state(CORRIDOR, (1, 1), things={"4,1": "green goal"})) == "2"
    assert decide(state(CORRIDOR, (1, 1), "north", things={"4,1": "green goal"})) == "1"


def test_it_remembers_a_goal_that_is_out_of_sight():
    seen = state(CORRIDOR, (2, 1), things={"4,1": "green goal"})
    here = state(["###", "#.."], (1, 1), "west")
    assert decide(here, records=[record(seen, "0", seen, 5)]) in ("0", "1")
    north = state(["##", "#."], (1, 1), "north")
    assert decide(north, records=[record(seen, "0", seen, 5)]) == "1"


def test_the_goal_that_paid_last_counts_more_than_the_word():
    here = state(TWO, (3, 1), "west", things=TWO_THINGS)
    assert decide(here) in ("0", "1")  # round to the green one
    at_blue = state(TWO, (1, 1), "west", things=TWO_THINGS)
    at_green = state(TWO, (4, 1), things=TWO_THINGS)
    before_blue, before_green = (state(TWO, place, things=TWO_THINGS) for place in ((2, 1), (3, 1)))
    paid = record(before_blue, "2", at_blue, 9, 1.0, True)
    in_vain = record(before_green, "2", at_green, 8, 0.0, True)
    assert decide(here, records=[in_vain, paid]) == "2"
    paid_since = record(before_green, "2", at_green, 12, 1.0, True)
    assert decide(here, records=[in_vain, paid, paid_since]) in ("0", "1")


def test_it_goes_through_no_goal_that_does_not_pay_and_no_lava():
    rows = ["#####", "#.~.#", "#.o.#", "#...#", "#####"]
    here = state(rows, (1, 2), "east", things={"2,2": "blue goal", "3,2": "green goal"})
    rows[2] = "#.oo#"
    here = state(rows, (1, 2), "east", things={"2,2": "blue goal", "3,2": "green goal"})
    assert decide(here) == "1"


def test_actions_that_have_changed_places():
    here = state(CORRIDOR, (1, 1), "north", things={"4,1": "green goal"})
    east, north, west = (
        state(CORRIDOR, (1, 1), facing, things={"4,1": "green goal"}) for facing in ("east", "north", "west")
    )
    turned_left = record(east, "1", north, 9)
    assert decide(here, records=[turned_left]) == "0"  # the other action is taken for the missing one
    both = [turned_left, record(west, "0", north, 10)]
    assert decide(here, records=both) == "0"
    back = [*both, record(north, "1", east, 11)]
    assert decide(here, records=back) == "1"


def test_it_fetches_the_key_of_a_locked_door():
    rows = ["######", "#o.o.#", "####.#"]
    things = {"1,1": "red key", "3,1": "locked red door"}
    here = state(rows[:2], (2, 1), "west", things=things)
    assert decide(here, "open the door") == "3"
    taken = [rows[0], "#..o.#"]
    with_key = state(taken, (2, 1), "west", "red key", {"3,1": "locked red door"}, {"1,1": "nothing"})
    assert decide(with_key, "open the door") in ("0", "1")
    ready = state(taken, (2, 1), "east", "red key", {"3,1": "locked red door"}, {"1,1": "nothing"})
    assert decide(ready, "open the door") == "5"


def test_the_key_that_opened_last_is_tried_first_and_one_that_failed_last():
    rows = ["#####", "##o##", "#o.o#", "#####"]
    things = {"2,1": "locked red door", "1,2": "red key", "3,2": "blue key"}
    west = state(rows, (2, 2), "west", things=things)
    assert decide(west, "open the door") == "3"
    tried = state(rows, (2, 2), "north", "red key", {**things}, {"1,2": "nothing"})
    failed = record(tried, "5", tried, 20)
    assert decide(west, "open the door", [failed]) in ("0", "1")
    opened = state(rows, (2, 2), "north", "blue key", things, {"3,2": "nothing", "2,1": "open red door"})
    before = state(rows, (2, 2), "north", "blue key", things, {"3,2": "nothing"})
    east = state(rows, (2, 2), "east", things=things)
    assert decide(east, "open the door", [failed, record(before, "5", opened, 21)]) == "3"


def test_it_puts_down_what_it_carries_before_it_takes():
    rows = ["#####", "#...#", "#..o#", "#...#", "#####"]
    here = state(rows, (2, 2), "east", "red key", {"3,2": "blue ball"})
    assert decide(here, "pick up the blue ball") in ("0", "1")
    turned = state(rows, (2, 2), "north", "red key", {"3,2": "blue ball"})
    assert decide(turned, "pick up the blue ball") == "4"
    empty = state(rows, (2, 2), "east", things={"3,2": "blue ball"})
    assert decide(empty, "pick up the blue ball") == "3"


def test_it_looks_where_it_has_not_been():
    here = state(["####", "#...", "####"], (1, 1), "east")
    assert decide(here) == "2"
    assert decide(here, actions=("0", "1", "2"), explores=False, seed=1) in ("0", "1", "2")


def test_records_of_another_map_are_dropped_where_they_leave_no_way():
    old = state(["####", "#.o#", "####"], (1, 1), things={"2,1": "green goal"}, corner=(5, 5))
    walls = state(["#####", "#.#.#", "#####"], (1, 1))
    here = state(["#####", "#...."], (1, 1), "east")
    assert decide(here, records=[record(walls, "0", walls, 3), record(old, "0", old, 2)]) == "2"


@pytest.mark.parametrize("text", ["{}", '{"pos": [1, 1]}', '{"url": "x"}'])
def test_other_states_are_refused(text):
    view = PromptView(TASK.format(GOAL), text, ALL)
    with pytest.raises(ArgumentError, match=re.escape("the state should be one of Minigrid's environments")):
        MinigridPlanner().decide(view, np.random.default_rng(0))


def test_options_are_checked():
    with pytest.raises(ArgumentError, match="`explores`"):
        MinigridPlanner(explores="yes")
    with pytest.raises(ArgumentError, match="`conflict`"):
        MinigridPlanner(conflict="oldest")
