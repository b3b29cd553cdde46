"""What commands do in a house, and what is seen."""

import re
from collections import deque
from itertools import pairwise
from unittest.mock import patch

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.envs import House
from drift_envs.envs.house.commands import make_model
from drift_envs.envs.house.knobs import FEWEST, HOUSE_KNOBS, LAMPS, MOST, ROOMS, draw_house
from drift_envs.envs.house.rules import HouseState
from drift_envs.envs.house.tasks import (
    UNTIDY,
    HouseEpisode,
    list_tasks,
    replay_plans,
    restore_episode,
    solve_task,
)
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, freeze
from drift_envs.tasks.households import TASK_TYPES, HouseholdTask

HOUSE = 7


def play(knobs, task, *commands, house=HOUSE):
    """The episode after some commands, and its answers."""
    checked = {name: HOUSE_KNOBS[name].check(value) for name, value in knobs.items()}
    episode = HouseEpisode(make_model(house, checked), task)
    return episode, [episode.act(command) for command in commands]


def find(episode, kind):
    """The first thing of a kind, and the name of its place."""
    model = episode.model
    thing = next(index for index, one in enumerate(model.things) if one.kind == kind)
    return model.things[thing].name, model.names[model.starts[thing]]


def fetch(episode, name, place):
    """Go to a thing and take it."""
    answers = [episode.act(f"go to {place}")]
    if answers[-1].endswith("is closed."):
        answers.append(episode.act(f"open {place}"))
    return [*answers, episode.act(f"take {name} from {place}")]


PUT_MUG = HouseholdTask(TASK_TYPES[0], "mug", "bed")
HOT_MUG = HouseholdTask(TASK_TYPES[3], "mug", "bed")


def test_the_phrases_are_those_of_alfworld():
    episode, _ = play({}, PUT_MUG)
    mug, place = find(episode, "mug")
    assert episode.introduce().startswith(
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
    )
    assert episode.introduce().endswith("\n\nYour task is to: put a mug in bed.")
    assert fetch(episode, mug, place)[-1] == f"You pick up the {mug} from the {place}."
    assert episode.act("inventory") == f"You are carrying: a {mug}."
    assert episode.act(f"examine {mug}") == f"There's nothing special about {mug}."
    assert episode.act("go to microwave 1") == "You arrive at microwave 1. The microwave 1 is closed."
    assert episode.act(f"heat {mug} with microwave 1") == f"You heat the {mug} using the microwave 1."
    assert episode.act(f"examine {mug}") == f"This is a hot {mug}."
    assert episode.act("open microwave 1").startswith(
        "You open the microwave 1. The microwave 1 is open. In it, you see "
    )
    assert episode.act("close microwave 1") == "You close the microwave 1."
    assert episode.act("look") == "You are facing the microwave 1. Next to it, you see nothing."
    episode.act("go to bed 1")
    assert episode.act(f"put {mug} in/on bed 1") == f"You move the {mug} to the bed 1."
    assert episode.score == 1.0
    assert episode.act("inventory") == "You are not carrying anything."


@pytest.mark.parametrize(
    "command",
    ["take mug 1 from bed 1", "open bed 1", "go to bed 9", "use desklamp 1", "heat mug 1 with bed 1", "dance", ""],
)
def test_nothing_happens(command):
    episode, answers = play({}, PUT_MUG, "go to bed 1", command)
    assert answers[-1] == "Nothing happens."
    assert episode.state == HouseState(at=episode.model.by_name["bed 1"])


def test_both_forms_of_putting_down_and_free_spelling():
    for form in ("move {} to bed 1", "put {} in/on bed 1", "put {} on bed 1", "  PUT {} in  bed 1 "):
        episode, _ = play({}, PUT_MUG)
        mug, place = find(episode, "mug")
        fetch(episode, mug, place)
        episode.act("go to bed 1")
        episode.act(form.format(mug))
        assert episode.score == 1.0, form


def test_only_what_was_put_down_counts_and_only_when_treated():
    episode, _ = play({"kept": {"mug": "bed 1"}}, PUT_MUG, "go to bed 1")
    mug, _ = find(episode, "mug")
    assert episode.score == 0.0
    episode.act(f"take {mug} from bed 1")
    episode.act(f"move {mug} to bed 1")
    assert episode.score == 1.0
    episode, _ = play({"kept": {"mug": "bed 1"}}, HOT_MUG, "go to bed 1")
    episode.act(f"take {mug} from bed 1")
    episode.act(f"move {mug} to bed 1")
    assert episode.score == 0.0


def test_appliances_do_what_the_knob_says_and_look_alike():
    swapped = {"effects": {"microwave": "cool", "fridge": "heat"}}
    texts = []
    for knobs in ({}, swapped):
        episode, _ = play(knobs, HOT_MUG)
        mug, place = find(episode, "mug")
        answers = fetch(episode, mug, place)
        answers += [episode.act(line) for line in ("go to microwave 1", f"heat {mug} with microwave 1", "go to bed 1")]
        texts.append([*answers, episode.act(f"move {mug} to bed 1")])
        assert episode.score == float(not knobs)
    assert texts[0] == texts[1]
    episode.act(f"take {mug} from bed 1")
    assert episode.act(f"examine {mug}") == f"This is a cold {mug}."
    for line in ("go to fridge 1", f"cool {mug} with fridge 1", "go to bed 1", f"move {mug} to bed 1"):
        episode.act(line)
    assert episode.score == 1.0


def test_a_key_opens_its_door_alone():
    knobs = {"keys": {"drawer 1": "keychain 2"}, "kept": {"mug": "drawer 1"}}
    for number in (1, 2):
        episode, _ = play(knobs, PUT_MUG)
        key = f"keychain {number}"
        index = episode.model.thing_by_name[key]
        fetch(episode, key, episode.model.names[episode.model.starts[index]])
        assert episode.act("go to drawer 1") == "You arrive at drawer 1. The drawer 1 is closed."
        assert "open drawer 1" in episode.model.admissible(episode.state), "what is admissible does not tell the key"
        assert episode.act("open drawer 1").startswith("You open" if number == 2 else "Nothing happens.")


def test_furniture_whose_key_is_not_in_the_house_is_locked():
    _, answers = play({"keys": {"fridge 1": "keychain 9"}}, PUT_MUG, "go to fridge 1", "open fridge 1")
    assert answers == ["You arrive at fridge 1. The fridge 1 is locked.", "Nothing happens."]


def test_locked_rooms_and_furniture():
    knobs = {"locked": ["bedroom", "fridge 1"]}
    _, answers = play(knobs, PUT_MUG, "go to bed 1", "go to fridge 1", "open fridge 1")
    assert answers == [
        "The door of the bedroom is locked.",
        "You arrive at fridge 1. The fridge 1 is locked.",
        "Nothing happens.",
    ]


def test_names_and_furniture_that_is_gone():
    knobs = {"names": {"cabinet": "cupboard", "shelf 1": "shelf 2", "shelf 2": "shelf 1"}, "gone": ["microwave 1"]}
    episode, _ = play(knobs, HouseholdTask(TASK_TYPES[0], "book", "cabinet"))
    plain, _ = play({}, PUT_MUG)
    seen = episode.introduce()
    assert "cabinet" not in seen
    assert "microwave 1" not in seen
    assert "a cupboard 1" in seen
    assert episode.task_text == "put a book in cupboard"
    assert episode.act("go to shelf 1").split("you see")[1] == plain.act("go to shelf 2").split("you see")[1]
    assert episode.act("go to cabinet 1") == "Nothing happens."


def test_words_and_tidy_places_show_in_the_score_alone():
    cup_for_mug = HouseholdTask(TASK_TYPES[0], "mug", "desk")
    episode, _ = play({"words": {"mug": "cup"}}, cup_for_mug)
    assert episode.task_text == "put a mug in desk"
    assert solve_task(episode.model, cup_for_mug).score == 1.0
    cup = find(episode, "cup")
    fetch(episode, *cup)
    episode.act("go to desk 1")
    episode.act(f"move {cup[0]} to desk 1")
    assert episode.score == 1.0
    shelves = HouseholdTask(TASK_TYPES[0], "apple", "shelf")
    found = []
    for habit in (1, 2):
        scores = []
        for place in ("shelf 1", "shelf 2", "shelf 3"):
            episode, _ = play({"tidy": habit}, shelves)
            fetch(episode, *find(episode, "apple"))
            episode.act(f"go to {place}")
            episode.act(f"move {find(episode, 'apple')[0]} to {place}")
            scores.append(episode.score)
        found.append(scores)
        assert sorted(scores) == [UNTIDY, UNTIDY, 1.0]
    assert found[0] != found[1]


@pytest.mark.parametrize("house", [1, 2, HOUSE, 99])
def test_houses(house):
    blueprint = draw_house(house)
    things = [one for one in blueprint.things if not one.is_lamp]
    assert FEWEST <= len(things) <= MOST
    assert {one.kind for one in blueprint.things} >= {"keychain", *LAMPS}
    models = [make_model(house, {"arrangement": number}) for number in range(3)]
    for one, other in pairwise(models):
        for index, thing in enumerate(blueprint.things):
            assert thing.is_lamp or one.starts[index] != other.starts[index]
    assert {task.type for task in list_tasks(house)} == set(TASK_TYPES)
    kinds = {one.kind for one in blueprint.things}
    assert all(task.thing in kinds for task in list_tasks(house))


def test_things_wander_a_few_at_a_time_and_come_back():
    models = [make_model(HOUSE, {"wander": level}) for level in (0.0, 0.1, 0.5, 1.0, 0.0)]
    moved = [sum(a != b for a, b in zip(models[0].starts, one.starts, strict=True)) for one in models]
    assert 0 == moved[0] < moved[1] < moved[2] < moved[3] == len([t for t in models[0].things if not t.is_lamp])
    assert moved[4] == 0


def brute_force(model, task, limit):
    """The length of a shortest plan, by breadth-first search; of the other things, it may take the books only."""
    others = {one.kind for one in model.things} - {"mug", "keychain", "book", *LAMPS}
    queue = deque([(HouseEpisode(model, task), 0)])
    seen = {HouseState()}
    while queue:
        episode, steps = queue.popleft()
        if steps == limit:
            return None
        for line in model.admissible(episode.state):
            if line.startswith(("examine", "look", "inventory", "close")) or others & set(line.split()):
                continue
            other = HouseEpisode(model, task)
            other.state, other.done = episode.state, episode.done
            other.act(line)
            if other.score == 1.0:
                return steps + 1
            if other.score == 0.0 and other.state not in seen:
                seen.add(other.state)
                queue.append((other, steps + 1))
    return None


SMALL = ("fridge 1", "microwave 1", "sinkbasin 1", "drawer 1", "shelf 1", "shelf 2", "bed 1", "sidetable 1")


def small_house(**knobs):
    """A house with eight pieces of furniture."""
    gone = tuple(one.name for one in draw_house(HOUSE).furniture if one.name not in SMALL)
    return make_model(HOUSE, {"gone": gone, **knobs})


@pytest.mark.parametrize("name", TASK_TYPES)
def test_plans_are_as_short_as_those_of_an_exhaustive_search(name):
    knobs = {"kept": FrozenMapping({"mug": "drawer 1"})}
    if name == TASK_TYPES[0]:
        knobs["keys"] = FrozenMapping({"drawer 1": "keychain 2"})
    model = small_house(**knobs)
    task = HouseholdTask(name, "mug", "desklamp" if name == TASK_TYPES[1] else "bed")
    plan = solve_task(model, task)
    assert plan.score == 1.0
    assert brute_force(model, task, plan.length) == plan.length
    assert plan.length >= 4


@pytest.mark.parametrize(
    ("knobs", "task"),
    [
        ({"effects": {"microwave": "cool", "fridge": "heat"}}, HouseholdTask(TASK_TYPES[4], "lettuce", "drawer")),
        ({"locked": ["drawer"]}, HouseholdTask(TASK_TYPES[0], "mug", "drawer")),
        ({"locked": ["bedroom"]}, HouseholdTask(TASK_TYPES[0], "mug", "bed")),
        ({"words": {"mug": "statue"}, "locked": list(ROOMS)}, HouseholdTask(TASK_TYPES[1], "mug", "desklamp")),
    ],
    ids=["no appliance", "locked furniture", "locked room", "out of reach"],
)
def test_what_cannot_be_done_is_not_searched_for(knobs, task, monkeypatch):
    monkeypatch.setattr("drift_envs.envs.house.tasks.find_plans", lambda *_: pytest.fail("a search over all states"))
    plans = solve_task(make_model(HOUSE, freeze(knobs)), task)
    assert (plans.score, plans.best) == (0.0, {})


@pytest.mark.integration
@given(data=st.data())
def test_no_plan_is_missed_since_its_task_seems_impossible(data):
    knobs = {
        "locked": data.draw(st.lists(st.sampled_from(["fridge", "drawer 1", "kitchen", "bedroom"]), max_size=2)),
        "keys": data.draw(st.sampled_from([{}, {"drawer 1": "keychain 2"}, {"fridge 1": "keychain 1"}])),
        "effects": data.draw(st.sampled_from([{}, {"microwave": "cool", "fridge": "heat"}, {"sinkbasin": "nothing"}])),
        "words": data.draw(st.sampled_from([{}, {"mug": "egg"}])),
        "tidy": data.draw(st.integers(0, 2)),
    }
    model = small_house(**freeze(knobs))
    kinds = {name.rpartition(" ")[0] for name in SMALL} | LAMPS.keys()
    task = data.draw(st.sampled_from([task for task in list_tasks(HOUSE) if task.target in kinds]))
    start = HouseState()
    for _ in range(data.draw(st.integers(0, 6))):
        start = model.apply(start, model.parse(data.draw(st.sampled_from(model.admissible(start))))) or start
    search = solve_task.__wrapped__  # without its cache
    with patch("drift_envs.envs.house.tasks.may_score", return_value=True):
        expected = search(model, task, start, 8)
    assert search(model, task, start, 8) == expected


@given(st.integers(1, 40), st.integers(0, 10_000), st.integers(0, 3))
def test_plans_reach_what_they_promise(house, number, arrangement):
    model = make_model(house, {"arrangement": arrangement, "tidy": number % 3})
    task = list_tasks(house)[number % len(list_tasks(house))]
    plans = solve_task(model, task)
    assert plans.score == 1.0
    episode, state = HouseEpisode(model, task), plans.start
    for _ in range(plans.length):
        command = plans.best[state][number % len(plans.best[state])]
        assert model.write(command) in model.admissible(state)
        episode.act(model.write(command))
        state = episode.state
    assert episode.score == 1.0
    assert replay_plans(model, model, task) == 1.0


@given(st.integers(1, 20), st.integers(0, 2**31))
def test_states_can_be_restored_from_their_text(house, seed):
    env = House(observation_mode="state", pool=4)
    env.house = house
    text, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    rng = env.np_random
    for _ in range(15):
        text, _, done, _, info = env.step(info["actions"][int(rng.integers(len(info["actions"])))])
        if done:
            break
        again = restore_episode(env.episode.model, env.task, text)
        assert again.state == env.episode.state
        assert again.write_state() == text


def test_one_house_serves_many_tasks():
    env = House(pool=4)
    _, info = env.reset(seed=3)
    tasks, house = [info["task"]], env.drawn_place
    for _ in range(11):
        tasks.append(env.reset()[1]["task"])
        assert env.episode.model.number == house
    assert len(set(tasks)) == 4
    assert all(len(set(tasks[start : start + 4])) == 4 for start in (0, 4, 8))
    assert not set(env.other_tasks(5)) & set(env.task_pool)
    elsewhere = env.tasks_elsewhere(6, places=2)
    assert len({number // 10_000 for number in elsewhere}) == 2
    assert house not in {number // 10_000 for number in elsewhere}
    env.reset(options={"goal_index": elsewhere[0]})
    assert env.episode.model.number == elsewhere[0] // 10_000


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("kept", {"unicorn": "shelf 1"}, "`kept` should name kinds of things such as 'mug'. Received 'unicorn'"),
        ("kept", {"mug": "shelf"}, "`kept` should name furniture such as 'shelf 2'. Received 'shelf'"),
        ("gone", ["fridge 0"], "`gone` should name furniture such as 'shelf 2' or a kind such as 'shelf'"),
        ("locked", ["attic"], "`locked` should name"),
        ("keys", {"bed 1": "keychain 1"}, "`keys` should name furniture that opens. Received 'bed 1'"),
        ("keys", {"drawer 1": "key"}, "`keys` should give 'drawer 1' a keychain such as 'keychain 1'. Received 'key'"),
        ("effects", {"bed": "heat"}, "`effects` should name one of microwave, fridge, sinkbasin, bathtubbasin"),
        ("effects", {"fridge": "toast"}, "`effects` should give 'fridge' one of heat, cool, clean, nothing"),
        ("names", {"shelf": "Shelf 2"}, "`names` should give 'shelf' a word of lower-case letters"),
        ("names", {"shelf 1": "shelf 2"}, "'shelf 2' is the name of other furniture; give that another name too"),
        ("names", {"shelf": "mug"}, "a receptacle should not be called like a thing"),
        ("names", {"shelf": "bed"}, "two kinds should not have one name"),
        ("words", {"mug": "bed"}, "`words` should map kinds of things such as 'mug'. Received 'bed'"),
        ("arrangement", 1001, "`arrangement` should be in the interval [0, 1000]. Received 1001"),
    ],
)
def test_what_the_knobs_refuse(knob, value, message):
    with pytest.raises(KnobError, match=re.escape(message)):
        setattr(House(), knob, value)


def test_lost_commands_change_nothing():
    env = gym.make("DriftHouse-v0", schedule={"version": 1, "name": "lost", "base": {"transient": 1.0}}, text=True)
    before, _ = env.reset(seed=0)
    after, *_ = env.step("go to bed 1")
    assert after == before.replace('"says": ""', '"says": "Nothing happens."')


def test_documented_info():
    env = gym.make("DriftHouse-v0")
    _, info = env.reset(seed=0)
    for key in info:
        assert f"| `{key}` |" in House.__doc__
