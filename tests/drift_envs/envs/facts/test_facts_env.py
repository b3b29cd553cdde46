"""Facts that change: what is heard, what pays, and what the oracle knows."""

from __future__ import annotations

import json
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs.facts.env import Facts
from drift_envs.envs.facts.oracle import plan_asking
from drift_envs.envs.facts.world import EXPLICIT
from drift_envs.errors import ArgumentError
from drift_envs.wrappers.twin import twin

SAID = [f"facts/{kind}" for kind in EXPLICIT if kind != "change"] + ["facts/explicit:family", "facts/rush"]


def begin_day(env: gym.Env[str, str], seed: int | None) -> str:
    """The observation of a day, which ends at once."""
    state, _ = env.reset(seed=seed)
    env.step("pass")
    return state


def heard(state: str) -> list[str]:
    found: list[str] = json.loads(state)["heard"]
    return found


@pytest.mark.parametrize("schedule", [*SAID, "facts/implicit", "facts/mixed", "facts/hearsay"])
def test_the_oracle_scores_what_it_says(schedule: str) -> None:
    env = gym.make("DriftFacts-v0", schedule=schedule)
    oracle = env.get_wrapper_attr("oracle")
    for tick in (0, 20, 41):
        scores, asked = [], 0
        env.reset(seed=3)
        for number in env.unwrapped.task_pool:
            state, info = env.reset(options={"goal_index": number, "drift_tick": tick})
            over, asked = False, asked + (not oracle.knows(state, tick))
            while not over:
                state, _, over, _, info = env.step(oracle.action(state, tick))
            scores.append(info["score"])
        # What nobody says is asked for on the day of the change, and is known on later days.
        assert (asked > 0) == (tick == 20 and schedule in ("facts/implicit", "facts/mixed"))
        assert sum(scores) == pytest.approx(len(scores) * oracle.value(tick) - 0.1 * asked)


def test_the_cheapest_plan_asks_until_two_answers_agree() -> None:
    """Against a simulation of the plan, where answers are false with this probability."""
    rng = np.random.default_rng(0)
    for price, lost in ((0.02, 0.3), (0.1, 0.1), (0.05, 0.5), (0.3, 0.4), (0.9, 0.3)):
        scores = []
        for _ in range(4000):
            told, is_among, is_last, score = 0, False, False, 0.0
            while plan_asking(price, lost, told, 29 - told) > 0:
                score -= price
                is_last = rng.random() >= lost
                if is_last and is_among:
                    break
                told, is_among = told + 1, is_among or is_last
            scores.append(score + is_last)
        assert np.mean(scores) == pytest.approx(max(plan_asking(price, lost, 0, 29), 0.0), abs=0.02)


def test_the_oracle_asks_again_where_answers_can_be_false() -> None:
    base = {"world": 3, "transient": 0.5, "price": 0.01}
    drifts = [{"at": 1, "set": {"silent": 6}}]
    schedule = {"version": 1, "name": "t", "base": base, "drifts": drifts, "tasks": {"pool": 6}}
    env = gym.make("DriftFacts-v0", schedule=schedule)
    oracle = env.get_wrapper_attr("oracle")
    scores, asks = [], []
    for seed in range(20):
        state, _ = env.reset(seed=seed, options={"drift_tick": 1})
        assert not oracle.knows(state, 1)
        over, count = False, 0
        while not over:
            action = oracle.action(state, 1)
            count += action == "ask"
            state, _, over, _, info = env.step(action)
        scores.append(info["score"])
        asks.append(count)
    assert np.mean(scores) == pytest.approx(plan_asking(0.01, 0.5, 0, 29), abs=0.05)
    assert max(asks) > min(asks) >= 2


@pytest.mark.parametrize("schedule", ["facts/implicit", "facts/implicit:transient", "facts/mixed"])
def test_regret_is_never_negative(schedule: str) -> None:
    """Also of an agent that remembers what it was told."""
    env = gym.make("DriftFacts-v0", schedule=schedule)
    oracle = env.get_wrapper_attr("oracle")
    known: dict[str, str] = {}
    for day in range(60):
        state, info = env.reset(seed=4 if day == 0 else None)
        question = json.loads(state)["question"]
        if known.get(question) is None:
            known[question] = heard(env.step("ask")[0])[-1].split()[-1].rstrip(".")
        *_, info = env.step(known[question])
        if info["score"] <= 0:
            known.pop(question)
        assert oracle.value(day) - info["score"] >= 0


def test_the_first_day_lasts_until_a_step() -> None:
    """An experiment seeds the environment, and then begins its first episode."""
    env = gym.make("DriftFacts-v0")
    first, _ = env.reset(seed=5)
    again, _ = env.reset(seed=9, options={"drift_clock": "continue", "drift_tick": 0})
    assert set(heard(again)) == set(heard(first))
    env.step("ask")
    assert len(heard(env.reset()[0])) == 1


def test_a_new_world_is_introduced_as_the_first_one_was() -> None:
    move = {"version": 1, "name": "move", "base": {"world": 3}, "drifts": [{"at": 2, "set": {"world": 5}}]}
    env = gym.make("DriftFacts-v0", schedule=move, pool=3)
    second = twin(env)
    for day, sentences in enumerate([4, 1, 4, 1]):
        state, info = env.reset(seed=0 if day == 0 else None)
        assert json.loads(state)["day"] == day
        assert len(heard(state)) == sentences
        assert env.get_wrapper_attr("oracle").action(state, day) in info["actions"]
        assert second.reset()[0] == state
        env.step("pass")


@pytest.mark.parametrize("schedule", SAID)
def test_a_change_that_is_said_is_heard_once(schedule: str) -> None:
    env = gym.make("DriftFacts-v0", schedule=schedule)
    days = [heard(begin_day(env, 5 if day == 0 else None)) for day in range(22)]
    if schedule != "facts/rush":
        assert [len(day) for day in days[1:20]] == [1] * 19
        assert len(days[20]) > 6
        assert len(days[21]) == 1


def test_nobody_says_a_silent_change_and_asking_tells_it() -> None:
    env = gym.make("DriftFacts-v0", schedule="facts/implicit")
    for day in range(45):
        state = begin_day(env, 1 if day == 0 else None)
        assert day == 0 or len(heard(state)) == 1
    state, info = env.reset()
    known = set(info["actions"])
    state, reward, over, _, info = env.step(" ASK ")
    assert (reward, over) == (-0.1, False)
    (told,) = set(info["actions"]) - known
    assert heard(state)[-1].endswith(f"is {told}.")
    assert env.step(told)[1:3] == (1.0, True)


def test_a_wrong_answer_pays_nothing_and_tells_nothing() -> None:
    env = gym.make("DriftFacts-v0")
    state, info = env.reset(seed=1)
    right = env.get_wrapper_attr("oracle").action(state, 0)
    wrong = next(action for action in info["actions"] if action != right)
    after, reward, over, _, info = env.step(wrong)
    assert (after, reward, over, info["actions"]) == (state, 0.0, True, [])


def test_false_answers_are_as_frequent_as_the_knob_says() -> None:
    env = gym.make("DriftFacts-v0", schedule={"version": 1, "name": "t", "base": {"world": 3, "transient": 0.3}})
    false = 0
    for day in range(400):
        state, _ = env.reset(seed=0 if day == 0 else None)
        right = env.get_wrapper_attr("oracle").action(state, 0)
        false += not heard(env.step("ask")[0])[-1].endswith(f"is {right}.")
    assert 90 < false < 150


def test_a_twin_hears_the_same_day() -> None:
    env = gym.make("DriftFacts-v0", schedule="facts/mixed")
    second = twin(env)
    for day in range(22):
        state, _ = env.reset(seed=2 if day == 0 else None)
        assert second.reset()[0] == state


def test_the_wording_that_is_held_out_is_another_one() -> None:
    seen = []
    for held_out in (False, True):
        facts = Facts(pool=6, held_out=held_out)
        seen.append(heard(facts.reset(seed=4)[0])[:-1])
    assert not set(seen[0]) & set(seen[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal_index": 60}, "`goal_index` should be a question of world 0, which has 54 (0 to 53). Received 60"),
        ({"day": -1}, "`day` should be"),
        ({"since": [1]}, "`since` should be None or 8 numbers. Received [1]"),
        ({"task": 1}, "no keys but goal_index. Received task"),
    ],
)
def test_wrong_options_are_refused_and_change_nothing(options: dict[str, Any], message: str) -> None:
    facts = Facts(pool=3)
    facts.reset(seed=1)
    before = facts.save_state()
    with pytest.raises(ArgumentError, match=re.escape(message)):
        facts.reset(options=options)
    assert facts.save_state() == before
    with pytest.raises(ArgumentError, match="`pool` should be at most 54"):
        Facts(pool=55).reset(seed=0)
