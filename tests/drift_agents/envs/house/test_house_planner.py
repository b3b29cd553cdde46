"""The planner of the house, with prompts as text and in the environment."""

import json

import gymnasium as gym
import numpy as np
import pytest
from drift_agents import Agent, make_memory, make_policy
from drift_agents.envs.house.planner import HousePlanner
from drift_agents.envs.house.states import HouseMatching
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

import drift_envs  # noqa: F401  registers the ids


def agent(memory="vanilla", **options):
    matching = HouseMatching()
    made = make_memory(memory) if memory == "none" else make_memory(memory, matching=matching)
    return Agent(policy=make_policy("planner", **options), memory=made, matching=matching, seed=0)


def make_env(base, **arguments):
    schedule = {"version": 1, "name": "one", "base": {"house": 7, **base}, "tasks": {"pool": 4, "order": "fixed"}}
    return gym.make("DriftHouse-v0", schedule=schedule, text=True, **arguments)


@pytest.mark.parametrize("base", [{}, {"tidy": 3}, {"effects": {"microwave": "cool", "fridge": "heat"}}])
def test_it_completes_tasks_and_needs_fewer_steps_when_it_remembers(base):
    env, player = make_env(base), agent()
    rounds = []
    for number in range(3):
        rounds.append([player.run_episode(env, seed=5 if number == 0 and not one else None) for one in range(4)])
    assert np.mean([episode.score for episode in rounds[2]]) >= 0.9
    assert sum(episode.steps for episode in rounds[2]) < sum(episode.steps for episode in rounds[0])


STATE = {
    "house": 7,
    "task": "put a mug in bed",
    "at": "nothing",
    "door": "none",
    "sees": [],
    "holds": "nothing",
    "done": [],
    "opened": [],
    "visited": [],
    "says": "",
}
PLACES = ("bed 1", "bed 2", "shelf 1", "cabinet 1", "microwave 1", "fridge 1", "sinkbasin 1", "sinkbasin 2", "drawer 1")


def state(**fields):
    return json.dumps({**STATE, **fields})


def decide(here, actions=(), known=(), **options):
    """The command of the planner; known are triples of state, action and outcome, oldest first."""
    at = json.loads(here)["at"]
    actions = [*actions, *(f"go to {place}" for place in PLACES if place != at)]
    recalled = tuple(
        Recollection(before, action, Outcome(after, score, score > 0), 1.0, step)
        for step, (before, action, after, score) in enumerate(known)
    )
    view = PromptView(json.loads(here)["task"], here, tuple(actions), (), recalled, step=len(known))
    return HousePlanner(**options).decide(view, np.random.default_rng(0)).text


def seen_at(place, *things, **fields):
    after = state(at=place, sees=list(things), visited=[place], **fields)
    return (state(**fields), f"go to {place}", after, 0.0)


def test_it_goes_where_a_thing_was_seen_and_not_where_it_was_not():
    known = [seen_at("cabinet 1", door="open"), seen_at("drawer 1", "mug 2", door="open")]
    assert decide(state(), known=known) == "go to drawer 1"
    looked = state(at="drawer 1", door="open", visited=["drawer 1"])
    assert decide(looked, known=known) not in ("go to drawer 1", "go to cabinet 1")


def test_common_sense_is_an_option():
    picks = {decide(state(task="put a mug in sofa"), common_sense=False) for _ in range(3)}
    assert picks == {"go to shelf 1"} or len(picks) == 1
    assert decide(state(task="put an egg in sofa")) in ("go to cabinet 1", "go to fridge 1")


def test_it_reads_what_another_house_shows_about_kinds():
    known = [
        (state(house=9), "go to bed 5", state(house=9, at="bed 5", sees=["mug 1", "book 1"], visited=["bed 5"]), 0.0)
    ]
    assert decide(state(task="put a mug in shelf"), known=known).startswith("go to bed")


def holding(*done, **fields):
    return state(holds="mug 1", done=["take mug 1 from shelf 1", *done], visited=["shelf 1"], **fields)


def test_a_treatment_that_failed_is_replaced_by_another_appliance():
    task = "put a hot mug in bed"
    here = holding(task=task, at="shelf 1")
    assert decide(here) == "go to microwave 1"
    heated = holding("heat mug 1 with microwave 1", task=task, at="bed 1")
    failed = json.loads(heated)
    failed["holds"], failed["done"] = "nothing", [*failed["done"], "move mug 1 to bed 1"]
    known = [(heated, "move mug 1 to bed 1", json.dumps(failed), 0.0)]
    assert decide(here, known=known) == "go to fridge 1"
    at_fridge = holding(task=task, at="fridge 1", door="closed")
    assert decide(at_fridge, ["cool mug 1 with fridge 1"], known) == "cool mug 1 with fridge 1"
    cooled = holding("cool mug 1 with fridge 1", task=task, at="fridge 1", door="closed")
    assert decide(cooled, ["examine mug 1"], known) == "examine mug 1"


def test_of_things_to_treat_again_the_first_one_put_down_comes_first():
    """Not the one that comes first in a set, whose order differs from process to process."""
    drawers = [f"drawer {number}" for number in (4, 2, 6, 1, 5, 3)]
    done = []
    for number, drawer in enumerate(drawers, 1):
        done += [f"take mug {number} from shelf 1", f"move mug {number} to {drawer}"]
    here = state(task="put a hot mug in drawer", at="shelf 1", done=done, visited=[*PLACES, *drawers])
    assert decide(here, [f"go to {drawer}" for drawer in drawers]) == "go to drawer 4"


def test_a_place_that_was_worth_more_is_used_again():
    put = holding(at="bed 1")
    known = [(put, "move mug 1 to bed 1", state(at="bed 1"), 0.6)]
    assert decide(holding(at="shelf 1"), known=known) == "go to bed 2"
    known.append((holding(at="bed 2"), "move mug 1 to bed 2", state(at="bed 2"), 0.6))
    known.append((put, "move mug 1 to bed 1", state(at="bed 1"), 1.0))
    assert decide(holding(at="shelf 1"), known=known) == "go to bed 1"
    assert decide(holding(at="shelf 1"), known=known[:1], explores=False) == "go to bed 1"


def test_a_locked_door_is_opened_with_the_key_that_opened_it():
    closed = state(at="drawer 1", door="closed")
    key = state(at="drawer 1", door="closed", holds="keychain 2", done=["take keychain 2 from bed 2"])
    opened = json.dumps({**json.loads(key), "door": "open", "sees": ["mug 1"], "opened": ["drawer 1"]})
    known = [
        seen_at("bed 1", "keychain 1"),
        seen_at("bed 2", "keychain 2"),
        (closed, "open drawer 1", state(at="drawer 1", door="closed", says="Nothing happens."), 0.0),
        (key, "open drawer 1", opened, 0.0),
    ]
    assert decide(state(), known=known) == "go to bed 2"
    assert decide(state(at="bed 2", sees=["keychain 2"]), ["take keychain 2 from bed 2"], known).startswith("take")
    assert decide(key, ["open drawer 1"], known) == "open drawer 1"


def test_a_word_that_failed_is_taken_for_its_like():
    put = holding(at="bed 1")
    lying = state(at="bed 1", sees=["mug 1"], done=["take mug 1 from shelf 1", "move mug 1 to bed 1"])
    known = [seen_at("cabinet 1", "mug 2", door="open"), seen_at("shelf 1", "cup 1")]
    assert decide(state(), known=known) == "go to cabinet 1"
    assert decide(state(), known=[*known, (put, "move mug 1 to bed 1", lying, 0.0)]) == "go to shelf 1"


def test_texts_that_are_no_house_and_tasks_that_are_none():
    with pytest.raises(ArgumentError, match="the state should be one of a house"):
        HousePlanner().decide(PromptView("x", '{"at": 1}', ("a",)), np.random.default_rng(0))
    assert decide(state(task="dance")).startswith("go to ")
    with pytest.raises(ArgumentError, match="`explores` should be"):
        HousePlanner(explores="no")
