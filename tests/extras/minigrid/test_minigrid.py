"""Minigrid's environments with knobs: bit identity, rules, drifts, text form, oracle, copies."""

import copy
import json
import re
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

pytest.importorskip("minigrid", reason="needs the extra `minigrid`")

from drift_agents.analysis.leaderboard import write_leaderboard
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from minigrid.utils.baby_ai_bot import BabyAIBot

from drift_envs import twin
from drift_envs.cli.scheduled import open_schedule
from drift_envs.envs.make import knob_table_of
from drift_envs.envs.minigrid.dynamics import ACTIONS, MINIGRID_KNOBS
from drift_envs.envs.minigrid.env import GoToLocalGrid
from drift_envs.envs.minigrid.oracle import plan_grid
from drift_envs.errors import ArgumentError, DrivenKnobError, NoOracleError, ScheduleError, StateError
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule, shipped_schedules
from drift_envs.utils.lazy import load_object
from drift_envs.wrappers.twin import snapshot
from tests.documents import read_code, run_code
from tests.drift_envs.envs.registered_contract import RegisteredContract

ENVIRONMENTS = [env_id for env_id in IDS if env_id.startswith("DriftMiniGrid-")]
SHIPPED = [name for name in shipped_schedules() if name.startswith("minigrid_")]
OTHER_RHYTHMS = {"minigrid_empty/explicit:tides", "minigrid_unlock/implicit:weekly", "minigrid_door_key/wander"}
"""Schedules whose phases are not twenty episodes long."""
FAMILY_SEEDS = range(6)
THINGS = ("nothing", "wall", "lava", "green goal", "blue goal", "blue ball", "grey ball", "purple ball", "green ball",
          "red key", "closed red door", "open blue door")  # fmt: skip
ids = pytest.mark.parametrize("env_id", ENVIRONMENTS)
shipped = pytest.mark.parametrize("name", SHIPPED)


def make(env_id, text=False, **base):
    return gym.make(env_id, schedule={"version": 1, "name": "s", "base": base}, text=text)


def env_of(name, **arguments):
    return gym.make(load_schedule(name).env, schedule=name, **arguments)


class GridContract(RegisteredContract):
    forms, steps, renders = (False, True), 1500, True


class TestEmpty(GridContract):
    env_id, plain_id = "DriftMiniGrid-Empty-v0", "MiniGrid-Empty-8x8-v0"


class TestDoorKey(GridContract):
    env_id, plain_id = "DriftMiniGrid-DoorKey-v0", "MiniGrid-DoorKey-8x8-v0"


class TestMultiRoom(GridContract):
    env_id, plain_id = "DriftMiniGrid-MultiRoom-v0", "MiniGrid-MultiRoom-N2-S4-v0"


class TestLavaGap(GridContract):
    env_id, plain_id = "DriftMiniGrid-LavaGap-v0", "MiniGrid-LavaGapS7-v0"


class TestKeyCorridor(GridContract):
    env_id, plain_id = "DriftMiniGrid-KeyCorridor-v0", "MiniGrid-KeyCorridorS3R2-v0"


class TestUnlock(GridContract):
    env_id, plain_id = "DriftMiniGrid-Unlock-v0", "MiniGrid-Unlock-v0"


class TestGoToLocal(GridContract):
    env_id, plain_id = "DriftMiniGrid-GoToLocal-v0", "BabyAI-GoToLocalS6N4-v0"


def test_every_environment_of_the_table_is_tested():
    assert {env_id for env_id, entry in IDS.items() if entry.extra == "minigrid"} == set(ENVIRONMENTS)
    assert {contract.env_id for contract in GridContract.__subclasses__()} == set(ENVIRONMENTS)
    for env_id in ENVIRONMENTS:
        assert IDS[env_id].knob_table is IDS[env_id].env_class.knobs is MINIGRID_KNOBS
        assert "action_delay" in knob_table_of(env_id)


def check_walk(env, number):
    """A random walk: state, end and reward agree with the rules at each step."""
    model, chance = env.grid_model, np.random.default_rng(number)
    state = model.start
    for _ in range(150):
        action = int(chance.choice(7, p=[0.2, 0.2, 0.35, 0.1, 0.05, 0.08, 0.02]))
        expected = model.step(state, ACTIONS[action])
        _, reward, terminated, truncated, _ = env.step(action)
        assert env.grid_state == expected.state
        assert (reward > 0, terminated) == (expected.paid, expected.ended)
        state = expected.state
        if terminated or truncated:
            break


@ids
def test_the_rules_for_the_search_are_those_of_the_environment(env_id):
    """Random walks over random maps, with and without knobs."""
    for number in range(1, 16):
        knobs = {"layout": number}
        if number % 3 == 0:
            knobs |= {"meanings": {"left": "right", "right": "left", "pickup": "toggle", "toggle": "pickup"}}
        if number % 4 == 0:
            knobs |= {"opens": {"red": "blue", "blue": "red", "yellow": "grey"}}
        env = make(env_id, **knobs).unwrapped
        env.knob_setter(knobs)
        env.reset(seed=0)
        check_walk(env, number)


@ids
def test_the_rules_hold_among_other_things_and_under_other_words(env_id):
    """Doors, goals, lava and balls of several colours near the agent, and in the place of what the task names."""
    for number in range(1, 41):
        env = make(env_id).unwrapped
        env.layout = number
        env.reset(seed=0)
        chance, (x, y) = np.random.default_rng(number), env.grid_model.start.cell
        around = {(x + across, y + down) for across in (-2, -1, 0, 1, 2) for down in (-2, -1, 0, 1, 2)} - {(x, y)}
        named = {cell for cell, thing in env.grid_model.cells.items() if thing.startswith("locked ")}
        inside = sorted(one for one in around | named if 0 < one[0] < env.width - 1 and 0 < one[1] < env.height - 1)
        cells = [inside[int(place)] for place in chance.permutation(len(inside))[: 1 + number % 8]]
        env.objects = {f"{column},{row}": str(chance.choice(THINGS)) for column, row in cells}
        if number % 2:
            env.words = {"green": "blue", "blue": "green", "red": "grey", "purple": "grey", "grey": "purple"}
        env.reset(seed=0)
        check_walk(env, number)


def test_nobody_leaves_the_map_through_a_wall_that_is_gone():
    for env_id in ("DriftMiniGrid-Empty-v0", "DriftMiniGrid-MultiRoom-v0"):
        env = make(env_id).unwrapped
        env.layout = 3
        env.reset(seed=0)
        walls = sorted(cell for cell, thing in env.grid_model.cells.items() if thing == "wall")
        outer = [(x, y) for x, y in walls if x in (0, env.width - 1) or y in (0, env.height - 1)]
        for x, y in outer[:2]:
            env.objects = {f"{x},{y}": "nothing"}
            with pytest.raises(ArgumentError, match="`objects` should name cells inside the outer walls of a map"):
                env.reset(seed=0)
        env.objects = {f"{x},{y}": "nothing" for x, y in sorted({*walls} - {*outer})}
        env.reset(seed=0)
        chance = np.random.default_rng(0)
        for _ in range(600):
            _, _, terminated, truncated, _ = env.step(int(chance.choice(3, p=[0.1, 0.1, 0.8])))
            if terminated or truncated:
                env.reset(seed=0)


def test_a_state_restored_in_another_instance_pays_for_the_same_thing():
    saved = make("DriftMiniGrid-KeyCorridor-v0", text=True, layout=1)
    state, _ = saved.reset(seed=0)
    other = make("DriftMiniGrid-KeyCorridor-v0", text=True, layout=2)
    other.reset(seed=0)
    other.unwrapped.load_state(copy.deepcopy(saved.unwrapped.save_state()))
    oracle, over = saved.get_wrapper_attr("oracle"), False
    while not over:
        state, reward, over, truncated, _ = other.step(oracle.action(state, 0))
        assert not truncated
    assert reward > 0


@ids
def test_shortest_plans_pay_and_no_shorter_ones_are_found_by_chance(env_id):
    for number in range(1, 6):
        env = make(env_id, text=True, layout=number)
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        length = plan_grid(env.unwrapped.grid_model, env.unwrapped.grid_state, 300).length
        steps, over, info = 0, False, {}
        while not over:
            action = oracle.action(state, 0)
            expected = oracle.response(state, action, 0)[0]
            before, (state, _, over, _, info) = state, env.step(action)
            assert oracle.holds(before, action, state, over, 0, info["score"])
            assert not oracle.holds(before, action, state, over, 0, 1.0 - info["score"])
            assert json.loads(expected.state).items() <= json.loads(state).items()
            steps += 1
        assert (steps, info["score"]) == (length, 1.0)
        chance = np.random.default_rng(number)
        for _ in range(50):
            env.reset(seed=0)
            for _ in range(length - 1):
                action = int(chance.choice(7, p=[0.2, 0.2, 0.4, 0.1, 0.02, 0.08, 0]))
                _, reward, terminated, _, _ = env.step(action)
                assert reward == 0
                if terminated:
                    break


def test_babyais_bot_is_never_faster_and_often_as_fast():
    equal = 0
    for number in range(1, 16):
        env = GoToLocalGrid()
        env.set_knobs({"layout": number})
        env.reset(seed=0)
        length = plan_grid(env.grid_model, env.grid_state, env.max_steps).length
        bot, action, steps, reward = BabyAIBot(env), None, 0, 0
        while not reward:
            action = bot.replan(action)
            _, reward, _, truncated, _ = env.step(action)
            steps += 1
            assert not truncated
        assert steps >= length
        equal += steps == length
    assert equal >= 5


@shipped
def test_every_drift_matters_and_leaves_the_mission_possible(name):
    schedule = load_schedule(name)
    assert (schedule.name, schedule.seed) == (name, None)
    assert schedule.control == name.endswith(("/null", "/harmless", "/narrow"))
    for seed in FAMILY_SEEDS if name.endswith(":family") else (0,):
        env = open_schedule(name, seed)
        assert env.oracle is not None
        phases = env.phases(4)
        if name == "minigrid_door_key/wander":  # a day may change nothing
            phases = [env.timeline.phases(61)[tick] for tick in (0, 20, 60)]
        elif name not in OTHER_RHYTHMS:
            assert [phase.start for phase in phases] == [20 * number for number in range(len(phases))]
        for old, new in pairwise(phases):
            effect = env.oracle.effect(env.full_tick(old), env.full_tick(new))
            assert min(effect.before, effect.after) >= 0.7
            if schedule.control:
                assert effect.loss == 0.0
            else:
                assert effect.loss >= 0.05
                assert effect.magnitude > 0


def test_things_wander_step_by_step_within_their_room_and_come_back():
    places = {}
    for steps in (0, 1, 2, 3, 40, 0):
        env = make("DriftMiniGrid-DoorKey-v0", layout=1, wander=steps)
        env.reset(seed=0)
        model = env.unwrapped.grid_model
        places[steps] = {thing: cell for cell, thing in model.cells.items() if thing.endswith((" key", " goal"))}
        assert {thing for thing in model.cells.values() if thing.endswith(" door")} == {"locked yellow door"}
        door = next(column for (column, _), thing in model.cells.items() if thing.endswith(" door"))
        assert places[steps]["yellow key"][0] < door < places[steps]["green goal"][0]
        assert places[steps]["yellow key"] != model.start.cell
        assert env.get_wrapper_attr("oracle").value(0) == 1.0
    for one, other in pairwise((0, 1, 2, 3)):
        for thing, (column, row) in places[one].items():
            assert abs(places[other][thing][0] - column) + abs(places[other][thing][1] - row) <= 1
    assert places[40] != places[0]


@shipped
def test_an_implicit_drift_is_seen_in_outcomes_alone(name):
    if load_schedule(name).visibility != "implicit":
        pytest.skip("explicit")
    for text in (False, True):
        env = env_of(name, text=text)
        views = []
        for tick in (0, 5 if name == "minigrid_unlock/implicit:weekly" else 40 if name.endswith(":gradual") else 20):
            view = [env.reset(seed=0, options={"drift_tick": tick})]
            turn = [1, 1, 1, 1] if "mirrored" not in name else [2]
            for action in turn:  # looking around
                observation, _, terminated, _, info = env.step(action)
                view.append((observation, info))
                if terminated:
                    break
            views.append(view)
        count = min(map(len, views))
        assert data_equivalence(views[0][:count], views[1][:count], exact=True)


@ids
def test_snapshots_and_twins(env_id):
    env = make(env_id, text=True, layout=3, transient=0.3)
    env.reset(seed=0)
    for action in (2, 1, 2, 3):
        env.step(action)
    saved = snapshot(env)
    first = [env.step(action)[:4] for action in (2, 2, 5, 0, 4, 2)]
    for _ in range(2):
        saved.restore()
        assert [env.step(action)[:4] for action in (2, 2, 5, 0, 4, 2)] == first
    second = twin(env)
    seen, info = second.reset()
    assert json.loads(seen)["changed"] == {}
    assert seen == env.reset()[0]
    assert set(info) == {"task", "actions", "score"}


@pytest.mark.parametrize("name", ["GoToLocal", "KeyCorridor", "Unlock"])
def test_a_snapshot_keeps_what_the_task_refers_to(name):
    env = make(f"DriftMiniGrid-{name}-v0", text=True, layout=1)
    state, _ = env.reset(seed=0)
    oracle = env.get_wrapper_attr("oracle")
    saved = snapshot(env)
    for _ in range(2):
        saved.restore()
        here, over = state, False
        while not over:
            here, _, over, truncated, info = env.step(oracle.action(here, 0))
            assert not truncated
        assert info["score"] == 1.0


@pytest.mark.parametrize(("size", "drift"), [(7, {}), (3, {"view_size": 3}), (5, {"view_size": 5})])
def test_a_narrow_view_hides_cells_and_keeps_the_space(size, drift):
    env = make("DriftMiniGrid-Empty-v0", layout=1, **drift)
    observation, _ = env.reset(seed=0)
    for action in (1, 1, 2, 1, 2, 1):
        seen = observation["image"][:, :, 0] > 0
        assert observation["image"].shape == (7, 7, 3)
        edge = (7 - size) // 2
        outside = np.ones((7, 7), bool)
        outside[edge : 7 - edge, 7 - size :] = False
        assert not seen[outside].any()
        assert seen[3, 6]
        observation = env.step(action)[0]


def test_which_key_opens_and_that_the_wrong_one_does_not():
    knobs = {"layout": 1, "objects": {"2,2": "blue key"}, "opens": {"yellow": "blue"}}
    env = make("DriftMiniGrid-DoorKey-v0", **knobs)
    env.reset(seed=0)
    inner = env.unwrapped
    for color, opens in (("yellow", False), ("blue", True)):
        inner.agent_pos, inner.agent_dir = (3, 5), 0
        inner.carrying = load_object("minigrid.core.world_object:Key")(color)
        env.step(ACTIONS.index("toggle"))
        assert inner.grid.get(4, 5).is_open == opens
        assert inner.carrying.color == color


def test_which_goal_pays_and_that_the_other_one_ends_the_episode():
    for words, paid in (({}, False), ({"green": "blue"}, True)):
        env = make("DriftMiniGrid-Empty-v0", layout=1, objects={"1,6": "blue goal"}, words=words)
        env.reset(seed=0)
        env.step(1)
        for _ in range(5):
            _, reward, terminated, _, _ = env.step(2)
        assert (reward > 0, terminated) == (paid, True)


def test_what_is_false_in_its_score_alone_does_not_hold():
    drift = {"name": "blue", "at": 1, "set": {"words": {"green": "blue"}}}
    base = {"layout": 1, "objects": {"1,6": "blue goal"}}
    schedule = {"version": 1, "name": "w", "base": base, "drifts": [drift]}
    env = gym.make("DriftMiniGrid-Empty-v0", schedule=schedule, text=True)
    oracle = env.get_wrapper_attr("oracle")
    for tick, score in enumerate((0.0, 1.0)):
        env.reset(seed=0 if tick == 0 else None)
        env.step(1)
        for _ in range(4):
            before = env.step(2)[0]
        after, _, over, _, info = env.step(2)
        assert (over, info["score"]) == (True, score)
        for other in (0, 1):
            assert oracle.holds(before, 2, after, over, other)
            assert oracle.holds(before, 2, after, over, other, score) == (other == tick)


def test_which_ball_pays():
    knobs = {"layout": 1, "objects": {"1,3": "red ball"}}
    for words, color in (({}, "blue"), ({"blue": "red"}, "red")):
        env = make("DriftMiniGrid-KeyCorridor-v0", **knobs, words=words)
        for other in ("blue", "red"):
            env.reset(seed=0)
            inner = env.unwrapped
            assert inner.mission == "pick up the blue ball"
            column, row = (5, 3) if other == "blue" else (1, 3)
            inner.agent_pos, inner.agent_dir = (column - 1, row), 0
            if other == "red":
                inner.agent_pos, inner.agent_dir = (1, 2), 1
            _, reward, terminated, _, _ = env.step(ACTIONS.index("pickup"))
            assert (reward > 0, terminated) == (other == color, other == color)


def test_a_lost_action_changes_nothing():
    env = make("DriftMiniGrid-Empty-v0", layout=1, transient=1.0)
    before = env.reset(seed=0)[0]
    assert all(data_equivalence(env.step(action)[0], before, exact=True) for action in (0, 1, 2))


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({"objects": {"3": "wall"}}, "`objects` should name cells such as '3,4'. Received '3'"),
        ({"objects": {"3,4": "cat"}}, "Received 'cat'"),
        ({"words": {"green": "pink"}}, "`words` should map colours"),
        ({"opens": {"pink": "red"}}, "`opens` should map colours"),
        ({"meanings": {"left": "right"}}, "`meanings` should use every action once"),
        ({"meanings": {"jump": "right"}}, "`meanings` should map left, right"),
        ({"view_size": 4}, "`view_size` should be odd. Received 4"),
        ({"view_size": 9}, "`view_size` should be in the interval [3, 7]. Received 9"),
        ({"layout": -1}, "`layout` should be in the interval"),
        ({"layout": {"draw": {"size": 3}}}, "`draw` takes no arguments here"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_with_rule_and_value(base, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        make("DriftMiniGrid-Empty-v0", **base)


def test_wrong_use():
    env = make("DriftMiniGrid-Empty-v0", objects={"9,9": "wall"})
    with pytest.raises(
        ArgumentError, match=re.escape("inside the outer walls of a map of 8 x 8, other than the agent's (1, 1)")
    ):
        env.reset(seed=0)
    env = make("DriftMiniGrid-Empty-v0", layout=1)
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        env.step(0)
    env.reset(seed=0)
    for wrong in (7, -1, 1.5, "left"):
        with pytest.raises(ArgumentError, match="`action` should be one of 0, 1, 2"):
            env.step(wrong)
    with pytest.raises(DrivenKnobError):
        env.unwrapped.layout = 2
    oracle = env.get_wrapper_attr("oracle")
    with pytest.raises(ArgumentError, match="`state` should be the JSON text of a grid"):
        oracle.response("{}", 0, 0)
    plain = gym.make("DriftMiniGrid-Empty-v0", schedule={"version": 1, "name": "n", "base": {"layout": 0}})
    with pytest.raises(NoOracleError, match="drawn for each episode"):
        plain.get_wrapper_attr("oracle").value(0)


def test_changed_is_exact_at_the_right_places():
    env = env_of("minigrid_empty/implicit", text=True)
    state, _ = env.reset(seed=0)
    oracle = env.get_wrapper_attr("oracle")
    assert not any(oracle.changed(state, action, 0, 20) for action in range(7))
    env.step(1)
    for _ in range(4):
        state = env.step(2)[0]
    assert [action for action in range(7) if oracle.changed(state, action, 0, 20)] == [2]


def test_pictures_show_the_overlay():
    plain, overlaid = (
        gym.make("DriftMiniGrid-LavaGap-v0", render_mode="rgb_array", overlay=overlay) for overlay in (None, True)
    )
    for env in (plain, overlaid):
        env.reset(seed=0)
    one, other = plain.render(), overlaid.render()
    assert one.shape == (7 * 32, 7 * 32, 3)
    assert np.array_equal(other[: one.shape[0]], one) or other.shape[1] > one.shape[1]
    assert other.shape[0] > one.shape[0]


def test_the_page_runs():
    examples = read_code("docs/minigrid.md")
    assert examples
    for example in examples:
        run_code(example)


def test_the_experiment_is_played_and_ranked(tmp_path):
    data = load_experiment("minigrid").to_dict()
    data["agents"][0]["memory"] = ["none", "vanilla"]
    data["schedules"] = ["minigrid_unlock/implicit"]
    experiment = parse_experiment({**data, "seeds": 1, "rounds": 2, "environments": {}})
    rows = read_rows(run_experiment(experiment, tmp_path / "run", jobs=1))
    after = {(row["memory"], row["verifier"], row["policy"]): row["score"] for row in rows if row["phase"] != "source"}
    assert after["none", "none", "clairvoyant"] == after["vanilla", "glove", "planner"] == 1.0
    write_leaderboard([tmp_path / "run"], tmp_path / "board.md")
    assert "Vanilla + GLOVE" in (tmp_path / "board.md").read_text("utf-8")
