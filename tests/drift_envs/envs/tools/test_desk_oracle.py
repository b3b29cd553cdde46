"""The oracle of the service desk against the desk itself."""

import json
import re
from itertools import pairwise

import gymnasium as gym
import pytest

from drift_envs.envs.tools.desk import make_desk
from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.envs.tools.episode import START, key_of, replay_plans, solve_request
from drift_envs.envs.tools.oracle import DeskOracle
from drift_envs.envs.tools.requests import find_goal, list_requests, score
from drift_envs.errors import ArgumentError
from drift_envs.schedule import load_schedule, shipped_schedules
from tests.core_ids import by_file

NAMES = [name for name in shipped_schedules() if load_schedule(name).env == "DriftTools-v0"]
SHOP = 7


def make(name, seed=1):
    env = gym.make("DriftTools-v0", schedule=name, text=True)
    return env, *env.reset(seed=seed), env.get_wrapper_attr("oracle")


@pytest.mark.integration
@pytest.mark.parametrize("name", by_file(NAMES))
def test_following_it_meets_every_request_in_every_phase(name):
    env, state, _, oracle = make(name)
    timeline = env.get_wrapper_attr("timeline")
    for phase in timeline.phases(150)[:4]:
        tick = timeline.first_tick(phase.id)
        for _ in env.unwrapped.task_pool:
            state, _ = env.reset(options={"drift_tick": tick, "drift_clock": "hold"})
            is_still = timeline.schedule.clock == "episode"
            for left in range(30, 0, -1):
                now = tick if is_still else env.get_wrapper_attr("drift_state").tick
                action = oracle.action(state, now, left)
                expected = oracle.response(state, action, now)
                state, reward, done, _, info = env.step(action)
                found = next(one for one in expected if one.state == state)
                assert (found.score, found.ended) == (info["score"], done)
                if done:
                    break
            assert reward == 1.0, (tick, info["task"])


def shorter_way(desk, request, length):
    """Whether any calls of the list reach the goal in fewer calls than `length`: an exhaustive search."""
    goal, layer, seen = find_goal(request, desk.rules), {START}, {START}
    for _ in range(length - 1):
        following = set()
        for state in layer:
            for call in desk.list_calls(state.seen, request.stated):
                after = key_of(desk, desk.call(state, call)[0])
                if score(desk.database, request, goal, after) == 1.0:
                    return True
                if after not in seen and not after.ended:
                    seen.add(after)
                    following.add(after)
        layer = following
    return False


@pytest.mark.integration
@pytest.mark.parametrize(
    "knobs", [{}, {"units": "dollars"}, {"order": "oldest"}, {"merged": ("open_account",)}, {"stale": 1}]
)
def test_no_other_calls_are_cheaper(knobs):
    desk, compared = make_desk(SHOP, knobs), 0
    for request in list_requests(SHOP)[:70]:
        plans = solve_request(desk, request._replace(text=""))
        if plans.length <= 4:
            assert not shorter_way(desk, request, plans.length), request
            compared += 1
    assert compared > 10


def test_replaying_at_the_same_desk_pays_and_every_tie_counts():
    old, new = make_desk(SHOP, {}), make_desk(SHOP, {"names": {"find_order": "search_order"}})
    ways = set()
    for request in list_requests(SHOP)[:40]:
        assert replay_plans(old, old, request) == 1.0
        tools = {call.split('"')[3] for calls in solve_request(old, request).best.values() for call in calls}
        if {"find_order", "list_orders"} <= tools:
            ways.add(replay_plans(old, new, request))
    assert ways == {1.0}, "a plan without the renamed tool is as short"


@pytest.mark.integration
@pytest.mark.parametrize(
    "name",
    [
        "tools/explicit",
        "tools/silent",
        *(pytest.param(f"tools/{name}", marks=pytest.mark.slow) for name in ("implicit", "order", "policy")),
    ],
)
def test_what_has_changed_is_what_answers_otherwise(name):
    """The calls of a plan in two environments, one of another tick, after the same calls."""
    env, *_, oracle = make(name)
    differing = 0
    for episode in range(4):
        state, info = env.reset(options={"drift_tick": episode})
        done, history = False, []
        while not done:
            best = oracle.action(state, episode)
            actions = [best, *info["actions"][:: max(len(info["actions"]) // 5, 1)]]
            for action in actions:
                other = gym.make("DriftTools-v0", schedule=name, text=True)
                other.reset(seed=1)
                other.reset(options={"drift_tick": 20, "goal_index": env.unwrapped.goal_index})
                states = [other.step(one)[0] for one in history]
                if states and states[-1] != state:  # the calls before were answered otherwise: no such state there
                    assert oracle.changed(state, action, episode, 20)
                    continue
                after, reward, ended, *_ = other.step(action)
                expected = oracle.response(state, action, 20)[0]
                assert (after, reward, ended) == (expected.state, expected.score, expected.ended), action
                mine = oracle.response(state, action, episode)[0]
                assert oracle.changed(state, action, episode, 20) == (mine != expected)
                assert not oracle.changed(state, action, episode, episode + 4)
                differing += mine != expected
            state, _, done, _, info = env.step(best)
            history.append(best)
    assert differing


def test_records_of_an_earlier_phase_are_judged_by_the_present_one():
    env, state, info, oracle = make("tools/explicit")
    email = info["actions"][0]
    after, *_ = env.step(email)
    assert oracle.holds(state, email, after, False, 0)
    assert not oracle.holds(state, email, after, False, 20)
    oracle.response(state, email, 20)
    second = oracle.action(after, 0)
    assert oracle.response(after, second, 20)[0].state != oracle.response(after, second, 0)[0].state or (
        "list_orders" in second
    )


def test_a_lost_call_is_a_response_that_does_not_hold():
    _, state, info, oracle = make("tools/explicit:transient")
    call = info["actions"][0]
    answers = oracle.response(state, call, 0)
    assert [round(one.probability, 3) for one in answers] == [0.9, 0.1]
    assert oracle.holds(state, call, answers[0].state, False, 0)
    assert not oracle.holds(state, call, answers[1].state, False, 0)
    values = []
    for lost in (0.0, 0.8, 1.0):
        schedule = {"version": 1, "name": "lost", "base": {"transient": lost}, "tasks": {"pool": 3}}
        env = gym.make("DriftTools-v0", schedule=schedule)
        env.reset(seed=0)
        values.append(env.get_wrapper_attr("oracle").value(0))
    assert values[0] == 1.0 > values[1] > values[2] == 0.0


def test_plans_made_without_losses_do_not_repeat_calls():
    """Each call of a plan has to get through: the product of their probabilities."""
    _, _, _, oracle = make("tools/transient")
    effect = oracle.effect(0, 20)
    desk = oracle.setting(0)
    lengths = [solve_request(desk, one).length for one in oracle._tasks(desk)]
    assert effect.carried == pytest.approx(sum(0.7**length for length in lengths) / len(lengths))


def test_without_a_schedule_it_is_the_plain_desk():
    plain, env = ServiceDesk(), gym.make("DriftTools-v0", schedule=None)
    first = [one.reset(seed=5) for one in (plain, env)]
    assert first[0] == first[1]
    for place in range(60):
        actions = first[0][1]["actions"]
        steps = [one.step(actions[7 * place % len(actions)]) for one in (plain, env)]
        assert steps[0][:3] == steps[1][:3]
        assert steps[0][4] == steps[1][4]
        first = [(one[0], one[4]) for one in steps]
        if steps[0][2] or steps[1][3]:
            first = [one.reset() for one in (plain, env)]
            assert first[0] == first[1]


def test_a_release_in_the_middle_of_an_episode():
    """Under `clock: step` the tools change between two calls, and the list of tools with them."""
    env, _, info, _ = make({"version": 1, "name": "soon", "clock": "step", "base": {"shop": SHOP}, "tasks": {"pool": 2},
                            "drifts": [{"at": 1, "set": {"names": {"find_customer": "lookup"}}}]})  # fmt: skip
    call = info["actions"][0]
    assert '"find_customer"' in call
    _, _, _, _, before = env.step(call)
    state, _, _, _, after = env.step(call)
    assert '"error": "unknown_tool"' in state
    assert before["tools"] == info["tools"] != after["tools"]
    assert "lookup(" in after["task"]


def test_what_it_refuses():
    env, _, _, oracle = make("tools/explicit")
    for wrong in ("{}", "nothing", '{"shop": 7, "request": "dance"}', "[]"):
        with pytest.raises(ArgumentError, match=re.escape("`state` should")):
            oracle.action(wrong, 0)
    request = list_requests(SHOP)[0].text
    with pytest.raises(ArgumentError, match="`state` should be a state of the desk"):
        oracle.action(json.dumps({"shop": SHOP, "request": request, "records": 5, "calls": [], "answer": {}}), 0)
    with pytest.raises(ArgumentError, match="`limit` should be a whole number, at least 1"):
        DeskOracle(env.get_wrapper_attr("timeline"), lambda shop: None, lambda: 1, 0)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["tools/explicit:family", "tools/rush"])
def test_seeds_draw_requests_and_families_draw_shops(name):
    pools = {make(name, seed)[0].unwrapped.task_pool for seed in range(3)}
    assert len(pools) == 3
    shops = {number // 10_000 for pool in pools for number in pool}
    assert len(shops) == (3 if name.endswith("family") else 1)
    assert all(len(set(pool)) == 8 for pool in pools)


def test_pools_prefer_what_every_drift_affects():
    env, *_, oracle = make("tools/unwritten")
    ticks = [0, 20]
    for before, after in pairwise(ticks):
        assert oracle.effect(before, after).loss == 1.0
    assert not set(env.unwrapped.task_pool) & set(env.unwrapped.other_tasks(3))
