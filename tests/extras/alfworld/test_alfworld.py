"""ALFWorld's rooms with knobs: the same games in ALFWorld's own loader, rules, drifts, bad input, copies, agents."""

import json
import pickle
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("textworld", reason="needs the extra `alfworld`")

import textworld
from textworld.envs.pddl.pddl import PddlEnv

from drift_envs.envs.alfworld.episode import (
    TASKS,
    AlfworldEpisode,
    Move,
    apply,
    replay_plans,
    solve_task,
    start_of,
    write_move,
)
from drift_envs.envs.alfworld.knobs import ALFWORLD_KNOBS, SPLITS, list_plans, load_kinds
from drift_envs.envs.alfworld.room import (
    is_done,
    list_tasks,
    make_game,
    make_layout,
    say_task,
    write_domain,
    write_goal,
    write_grammar,
    write_problem,
)
from drift_envs.errors import ArgumentError
from drift_envs.integrations.alfworld import HouseGames
from drift_envs.schedule import load_schedule
from drift_envs.tasks.households import TASK_TYPES, HouseholdTask
from tests.drift_envs.envs.registered_contract import shipped
from tests.extras.task_contract import TaskContract, check_refusals

ENV_ID = "DriftAlfworld-v0"
SHIPPED = shipped(ENV_ID)
PHASES = {"alfworld/weekly": (0, 5, 7), "alfworld/mixed": (0, 15, 30, 45)}
DRIFTED = {
    "effects": {"microwave": "cool", "fridge": "heat", "sinkbasin": "nothing"},
    "locked": ("cabinet 1", "fridge"),
    "names": {"cabinet": "cupboard"},
    "verbs": {"move to": "put in/on", "go to": "walk to", "take from": "grab off", "use": "toggle"},
    "gone": ("drawer 1",),
    "arrangement": 3,
}


def starts(name):
    return PHASES.get(name, (0, 20, 40))


def layout_of(plan, **knobs):
    return make_layout(plan, {name: ALFWORLD_KNOBS[name].check(value) for name, value in knobs.items()})


def load_in_alfworld(layout, task, monkeypatch, tmp_path, **wanted):
    """The game in TextWorld's own environment, with the names that ALFWorld's wrapper gives."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    from alfworld.agents.utils.misc import Demangler

    env = PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True, **wanted))
    env.load(
        {
            "pddl_domain": write_domain(layout),
            "grammar": write_grammar(layout).replace("UNKNOWN GOAL", say_task(task, layout)),
            "pddl_problem": write_problem(layout, write_goal(task)),
        }
    )
    names = Demangler(game_infos=env._entity_infos)
    new = dict(zip((one.id for one in layout.receptacles), layout.names, strict=True))
    for info in env._entity_infos.values():
        info.name = new.get(info.id, names.demangle_alfred_name(info.id))
    return env


class TestAlfworldContract(TaskContract):
    env_id, page, copied = ENV_ID, "docs/alfworld.md", ("alfworld/verbs", 40)
    walked = ("alfworld/mixed", "alfworld/explicit:family")
    foreseen = ("alfworld/implicit", "alfworld/verbs", "alfworld/renamed", "alfworld/transient")
    lost = "Nothing happens."

    @pytest.mark.parametrize("number", [0, *range(1, len(TASK_TYPES))], ids=TASK_TYPES)
    def test_without_a_schedule_it_is_the_packages(self, number, monkeypatch, tmp_path):
        """A task of each type: texts, commands and win as in TextWorld's environment, wandering and by a plan."""
        plan = (404, 302, 405, 14, 14, 404)[number]
        task = next(one for one in list_tasks(plan) if one.type == TASK_TYPES[number])
        layout = layout_of(plan)
        theirs = load_in_alfworld(layout, task, monkeypatch, tmp_path)
        ours = AlfworldEpisode(make_game(layout), task)
        state = theirs.reset()
        assert (ours.answer, ours.actions) == (state.feedback, state["admissible_commands"])
        rng = np.random.default_rng(number)
        wander = [None] * 10
        for planned in (*wander, "sing", *solve_task(layout, task).first()):
            command = planned if isinstance(planned, str) else str(rng.choice(ours.actions))
            state, _, won = theirs.step(command)
            assert ours.act(command) == state.feedback
            assert ours.is_over == won
        for command in ours.plan(50):
            state, _, won = theirs.step(command)
            assert (ours.act(command), ours.is_over) == (state.feedback, won)
            assert won or ours.actions == state["admissible_commands"]
        assert won

    def test_a_drifted_game_is_the_packages_too(self, monkeypatch, tmp_path):
        layout = layout_of(14, **DRIFTED)
        task = HouseholdTask(TASK_TYPES[3], "potato", "countertop")
        theirs = load_in_alfworld(layout, task, monkeypatch, tmp_path)
        ours = AlfworldEpisode(make_game(layout), task)
        assert ours.answer == theirs.reset().feedback
        plan = ours.plan(50)
        assert any(re.fullmatch(r"cool potato \d with fridge 1", command) for command in plan)
        assert any(re.fullmatch(r"put potato \d in/on countertop \d", command) for command in plan)
        for command in ("help", "go to fridge 1", *plan):
            state, _, won = theirs.step(command)
            assert (ours.act(command), ours.is_over) == (state.feedback, won)
        assert won


@pytest.mark.integration
@pytest.mark.parametrize(("plan", "type_"), [(404, 0), (405, 2), (302, 1)])
def test_the_packages_planner_finds_nothing_shorter(plan, type_, monkeypatch, tmp_path):
    task = next(one for one in list_tasks(plan) if one.type == TASK_TYPES[type_])
    layout = layout_of(plan)
    theirs = load_in_alfworld(layout, task, monkeypatch, tmp_path, policy_commands=True)
    found = theirs.reset()["policy_commands"]
    assert len(found) >= solve_task(layout, task).length > 0
    episode = AlfworldEpisode(make_game(layout), task)
    for command in found:
        episode.act(command)
    assert episode.is_over


@pytest.mark.parametrize("knobs", [{}, DRIFTED], ids=["plain", "drifted"])
@pytest.mark.parametrize("plan", [14, 302])
def test_the_rules_of_the_search_are_the_engines(plan, knobs):
    """Along random ways, for commands that the engine takes and others."""
    layout = layout_of(plan, **knobs)
    game, rng = make_game(layout), np.random.default_rng(plan)
    moves = [Move(one, -1, place) for one in ("go to", "open", "close") for place in layout.shown]
    things = range(len(layout.things))
    pairs = ("take from", "move to", "heat with", "cool with", "clean with")
    state = game.start
    assert game.read(state) == start_of(layout)
    for _ in range(250):
        facts = game.read(state)
        near = [Move(one, thing, facts.at) for one in pairs for thing in things if facts.at >= 0]
        near += [Move("use", thing) for thing in things]
        move = (moves, near, [one for one in (*near, *moves) if apply(layout, facts, one)])[int(rng.integers(3))]
        if not move:
            continue
        move = move[int(rng.integers(len(move)))]
        expected = apply(layout, facts, move)
        state, answer = game.act(state, write_move(layout, move))
        assert game.read(state) == (facts if expected is None else expected), (move, answer)
        assert (answer == "Nothing happens.") == (expected is None)


def test_a_search_finds_no_longer_plan_than_one_without_shortcuts():
    """Breadth first over all commands of the rules, in a small room."""
    layout = layout_of(404)
    places = [Move(one, -1, place) for one in ("go to", "open") for place in layout.shown]
    for task in (next(one for one in list_tasks(404) if one.type == TASK_TYPES[number]) for number in (0, 5)):
        wanted = [index for index, one in enumerate(layout.things) if one.kind == task.thing]
        moves = places + [
            Move(one, thing, place) for one in ("take from", "move to") for thing in wanted for place in layout.shown
        ]
        layer, seen, length = {start_of(layout)}, {start_of(layout)}, 0
        while not any(is_done(layout, task, facts) for facts in layer):
            layer = {after for facts in layer for move in moves if (after := apply(layout, facts, move))} - seen
            seen |= layer
            length += 1
        assert solve_task(layout, task).length == length


def test_splits_and_tasks():
    assert [len(list_plans(split)) for split in SPLITS] == [96, 24]
    assert set(list_plans("unseen")) == {first + number for first in (0, 200, 300, 400) for number in range(1, 7)}
    tasks = [task for split in SPLITS for plan in list_plans(split) for task in list_tasks(plan)]
    assert {task.type for task in tasks} == set(TASK_TYPES)
    assert len(tasks) == 12_655
    assert f"{len(tasks):,}" in Path("docs/alfworld.md").read_text(encoding="utf-8")
    for number in TASKS.numbers(302)[::9]:
        _, task = TASKS.find(number)
        assert not is_done(layout_of(302), task, start_of(layout_of(302)))
        assert task.thing not in load_kinds().lamps


@pytest.mark.parametrize("name", SHIPPED)
def test_each_drift_takes_the_plans_and_leaves_the_tasks(name):
    control = load_schedule(name).control
    for seed in (0, 5):
        env = gym.make(ENV_ID, schedule=name)
        env.reset(seed=seed)
        base, oracle = env.unwrapped, env.get_wrapper_attr("oracle")
        assert len(set(base.task_pool)) == 6
        assert not set(base.task_pool) & set(base.other_tasks(4))
        for before, after in pairwise(starts(name)):
            old, new = oracle.setting(before), oracle.setting(after)
            scores = [replay_plans(old, new, TASKS.find(number)[1]) for number in base.task_pool]
            if name == "alfworld/transient" or control:
                assert scores == [1.0] * 6
            else:
                assert sum(scores) / 6 <= 0.95
            assert oracle.value(after) >= 0.99


def test_effects_by_the_oracle():
    env = gym.make(ENV_ID, schedule="alfworld/explicit:unseen")
    env.reset(seed=2)
    effect = env.get_wrapper_attr("oracle").effect(0, 20)
    assert (effect.loss, effect.before, effect.after) == (1.0, 1.0, 1.0)
    assert 0.0 < effect.magnitude < 1.0


def test_other_floor_plans_are_of_the_other_split():
    env = gym.make(ENV_ID, schedule="alfworld/seen")
    env.reset(seed=1)
    numbers = env.unwrapped.tasks_elsewhere(7)
    assert len(set(numbers)) == 7
    assert len({number // 10_000 for number in numbers}) == 3
    assert {number // 10_000 for number in numbers} <= set(list_plans("unseen"))


@pytest.mark.parametrize("name", ["alfworld/implicit", "alfworld/implicit:family", "alfworld/transient"])
def test_an_implicit_drift_is_seen_in_outcomes_alone(name):
    env = gym.make(ENV_ID, schedule=name, text=True)
    firsts = [env.reset(seed=0, options={"drift_tick": tick}) for tick in (0, 20)]
    assert firsts[0] == firsts[1]
    if "transient" not in name:
        walks = []
        for tick in (0, 20):
            env.reset(seed=0, options={"drift_tick": tick, "goal_index": env.unwrapped.goal_index})
            walks.append([env.step(one)[::4] for one in firsts[0][1]["actions"] if one.startswith(("go to", "look"))])
        assert walks[0] == walks[1]


def test_a_lock_looks_like_a_closed_door():
    task = HouseholdTask(TASK_TYPES[3], "mug", "coffeemachine")
    plain, locked = (AlfworldEpisode(make_game(layout_of(14, **one)), task) for one in ({}, {"locked": ["fridge"]}))
    for episode in (plain, locked):
        assert episode.act("go to fridge 1") == "You arrive at fridge 1. The fridge 1 is closed."
    assert [one for one in locked.actions if "fridge" in one] == [one for one in plain.actions if "fridge" in one]
    assert plain.act("open fridge 1").startswith("You open the fridge 1.")
    assert locked.act("open fridge 1") == "Nothing happens."
    assert json.loads(locked.write_state())["says"] == "Nothing happens."


def test_a_change_within_an_episode_acts_on_what_was_not_moved():
    env = gym.make(ENV_ID, schedule=None, text=True)
    env.reset(seed=0, options={"goal_index": TASKS.numbers(14)[0]})
    layout = env.unwrapped.episode.game.layout
    flat = [one for one in layout.starts if not layout.receptacles[one].opens]
    place = next(one for one in flat if flat.count(one) > 1)
    thing, other = [index for index, one in enumerate(layout.starts) if one == place][:2]
    env.step(write_move(layout, Move("go to", -1, place)))
    before = json.loads(env.step(write_move(layout, Move("take from", thing, place)))[0])
    env.unwrapped.arrangement = 1
    after = json.loads(env.step("look")[0])
    new = env.unwrapped.episode.game.layout
    assert (after["at"], after["holds"], after["done"]) == (before["at"], before["holds"], before["done"])
    assert layout.things[other].name in before["sees"]
    assert (layout.things[other].name in after["sees"]) == (new.starts[other] == place)


def test_what_was_carried_is_carried_in_the_room_of_another_tick():
    env = gym.make(ENV_ID, schedule="alfworld/explicit:family", text=True)
    state, _ = env.reset(seed=4)
    oracle, states = env.get_wrapper_attr("oracle"), [state]
    while (state := env.step(oracle.action(states[-1], 0))[0]) and '"holds": "nothing"' in state:
        states.append(state)
    held = json.loads(state)["holds"]
    episode = oracle._restore(state, 20)
    assert json.loads(episode.write_state())["holds"] == held
    assert json.loads(episode.write_state())["done"] == json.loads(state)["done"]


@pytest.mark.parametrize(
    "command",
    ["", " ", "go to", "go to nowhere 1", "take mug 1 from mug 1", "\x00", "{o.name}", "x" * 10_000, "[" * 500],
)
def test_a_command_that_is_none_changes_nothing(command):
    env = gym.make(ENV_ID, schedule=None)
    env.reset(seed=0)
    before = env.unwrapped.episode.save()
    answer, reward, terminated, truncated, _ = env.step(command)
    assert (answer, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
    assert {**env.unwrapped.episode.save(), "answer": "", "says": ""} == {**before, "answer": "", "says": ""}


def test_what_a_user_gets_wrong_is_named():
    env = gym.make(ENV_ID, schedule=None)
    for index, words in (
        (31 * 10_000, "`plan` should be a floor plan of ALFWorld: 1 to 30, 201 to 230"),
        (404 * 10_000 + 9_999, "`goal_index` should be a task of floor plan 404, which has"),
        (431 * 10_000, "`goal_index` should be"),
        (-1, "`goal_index` should be"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(words)):
            env.reset(seed=0, options={"goal_index": index})
    with pytest.raises(ArgumentError, match="`wording` should be"):
        env.reset(seed=0, options={"wording": 2})
    with pytest.raises(ArgumentError, match="should have 9000 tasks"):
        gym.make(ENV_ID, schedule=None, pool=9000).reset(seed=0)
    rows = (
        ("gone", ["cave"], "`gone` should name receptacles such as 'shelf' of ALFWorld's floor plans. Received 'cave'"),
        ("kept", {"dragon": "shelf"}, "`kept` should name things such as 'mug' of ALFWorld's floor plans"),
        ("kept", {"mug": "cave 2"}, "Received 'cave 2'"),
        ("locked", ["mug"], "Received 'mug'"),
        ("names", {"shelf": "drawer"}, "`names` should give 'shelf' no name of another kind. Received 'drawer'"),
        ("names", {"shelf": "mug"}, "Received 'mug'"),
        ("plan", 150, "should be 0, 1 to 30, 201 to 230"),
    )
    check_refusals(ENV_ID, rows)


def test_agents_written_for_alfworld_play_it():
    config = {"general": {"training_method": "dagger"}, "env": {"task_types": [1, 3]}}
    games = HouseGames(config, source="alfworld", houses=2, schedule="alfworld/verbs")
    env = games.init_env(batch_size=2)
    _, info = env.reset()
    done = [False, False]
    while not all(done):
        plans = info["extra.expert_plan"]
        _, scores, done, info = env.step([plan[0] if plan else "look" for plan in plans])
    assert (scores, info["won"]) == ([1.0, 1.0], [True, True])
    assert all("/train/pick_" in file for file in info["extra.gamefile"])
    splits = {
        name: HouseGames(train_eval=name, source="alfworld", houses=30, seed=3).game_files
        for name in ("train", "eval_in_distribution", "eval_out_of_distribution")
    }
    plans = {name: {file.split("/")[2].split("-")[-1] for file in files} for name, files in splits.items()}
    assert plans["train"] >= plans["eval_in_distribution"]
    assert not plans["train"] & plans["eval_out_of_distribution"]
    assert not set(splits["train"]) & set(splits["eval_in_distribution"])
    with pytest.raises(ArgumentError, match="`source` should be"):
        HouseGames(source="virtualhome")


def play_by_planner(schedule, count, seed=0):
    """Scores and steps of the house's planner with a memory of all that happened, one task again and again."""
    from drift_agents import Agent, Recall, make_memory, make_policy
    from drift_agents.envs.base import find_environment

    env, known = gym.make(ENV_ID, schedule=schedule, text=True), find_environment(ENV_ID)
    matching = known.make("matching")
    memory = make_memory("vanilla", matching=matching)
    agent = Agent(make_policy("planner"), memory, matching=matching, recall=Recall(**known.recall))
    found = [agent.run_episode(env, seed=seed if episode == 0 else None) for episode in range(count)]
    return [(one.score, one.steps) for one in found]


def test_the_planner_learns_where_things_are_and_follows_them():
    found = play_by_planner("alfworld/explicit", 32)
    steps = [steps for score, steps in found]
    assert [score for score, _ in found] == [1.0] * 32
    assert sum(steps[14:20]) < sum(steps[:6])
    assert sum(steps[20:26]) > sum(steps[14:20])


def test_the_planner_reads_the_words_of_commands():
    data = {**load_schedule("alfworld/verbs").to_dict(), "name": "soon"}
    for drift, at in zip(data["drifts"], (2, 4), strict=True):
        drift["at"] = at
    assert [score for score, _ in play_by_planner(data, 6, seed=2)] == [1.0] * 6


@pytest.mark.integration
def test_a_copy_goes_on_in_another_process():
    env = gym.make(ENV_ID, schedule="alfworld/implicit", text=True)
    state, _ = env.reset(seed=6, options={"drift_tick": 20})
    oracle = env.get_wrapper_attr("oracle")
    for _ in range(3):
        state, *_ = env.step(oracle.action(state, 20))
    code = """
import pickle, sys, drift_envs
print(pickle.load(sys.stdin.buffer).step("examine" + " microwave 1")[0])
"""
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(env), capture_output=True, check=True)
    assert json.loads(done.stdout) == json.loads(env.step("examine microwave 1")[0])


def test_a_state_that_the_engine_has_forgotten_is_found_again():
    engine = make_game(layout_of(404))._engine
    state = engine.act(engine.start, "go to toilet 1")[0]
    expected = engine.act(state, "look"), engine.commands(state)
    engine._nodes = {}
    engine.act(engine.act(engine.start, "go to sinkbasin 1")[0], "go to garbagecan 1")
    assert (engine.act(state, "look"), engine.commands(state)) == expected
