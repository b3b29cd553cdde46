"""Savings of replay: it continues, it uses responses on the path, it gives up in time."""

from __future__ import annotations

import re
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.types import AgentClock, Experience, Outcome, ProbeCost, Transition
from drift_agents.verifier.prober import LAG, ReplayLiveProber, ReplayProber
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def walk(prober: ReplayProber, *states: str, actions: str) -> None:
    """The agent goes through an episode: `actions[i]` leads from one state to the next."""
    prober.begin_episode()
    for (here, after), action in zip(pairwise(states), actions, strict=True):
        prober.follow(Experience(f'"{here}"', action, Outcome(f'"{after}"', 0.0, False), 0.0, AgentClock()))


@pytest.fixture
def line(Rules, outcome):
    """start -0-> a -0-> b -0-> c; elsewhere, and with action 1, one stays."""
    names = ["start", "a", "b", "c"]
    return Rules({(f'"{here}"', "0"): [(outcome(after), 1.0)] for here, after in pairwise(names)})


def test_it_goes_on_from_where_the_twin_stands(line, TableEnv, outcome) -> None:
    twin = TableEnv(line)
    prober = ReplayProber(twin)
    walk(prober, "start", "a", actions="0")
    assert prober.probe('"start"', "0", (), 1).cost == ProbeCost(steps=1, resets=1)
    walk_on = Experience('"a"', "0", outcome("b"), 0.0, AgentClock())
    prober.follow(walk_on)
    assert prober.probe('"a"', "0", ("0",), 1).cost == ProbeCost(steps=1)
    prober.follow(Experience('"b"', "0", outcome("c"), 0.0, AgentClock()))
    assert prober.probe('"b"', "1", ("0", "0"), 3).cost == ProbeCost(steps=3)
    assert twin.log == ["reset", "0", "0", "1", "1", "1"]


def test_on_the_agents_way_it_does_not_give_up_how_far_it_has_come(Rules, TableEnv, outcome) -> None:
    table = {(f'"{a}"', "0"): [(outcome(b), 1.0)] for a, b in pairwise(["start", "a", "b", "c", "start"])}
    prober = ReplayProber(TableEnv(Rules(table)))
    walk(prober, "start", "a", "b", "c", "start", "a", actions="00000")
    prober.probe('"b"', "0", ("0", "0"), 1)
    assert prober.probe('"a"', "1", ("0",) * 5, 1).cost == ProbeCost(steps=3), "a reset would take two, and lose three"


def test_answers_on_the_way_count_once_and_for_this_episode_alone(line, TableEnv, outcome) -> None:
    prober = ReplayProber(TableEnv(line))
    walk(prober, "start", "a", "b", actions="00")
    assert prober.probe('"b"', "1", ("0", "0"), 1).cost == ProbeCost(steps=3, resets=1)
    result = prober.probe('"a"', "0", ("0",), 1)
    assert result[:2] == ((Transition('"a"', "0", outcome("b")),), ProbeCost()), "it passed there"
    assert prober.probe('"a"', "0", ("0",), 1).cost == ProbeCost(steps=2, resets=1), "used up"
    walk(prober, "start", "a", "b", actions="00")
    prober.probe('"b"', "1", ("0", "0"), 1)
    prober.begin_episode()
    assert prober.probe('"start"', "0", (), 1).cost.steps == 1, "of another time"


def test_loops_of_the_agent_are_left_out(line, TableEnv) -> None:
    """The agent dawdled on its way; a way of two steps is known all the same."""
    twin = TableEnv(line)
    prober = ReplayProber(twin)
    walk(prober, "start", "a", "a", "a", "b", actions="0110")
    prober.probe('"b"', "1", tuple("0110"), 1)
    assert twin.log == ["reset", "0", "0", "1"]


def test_a_twin_that_was_carried_elsewhere_takes_another_way(Rules, TableEnv, outcome) -> None:
    """The agent came from start to a by a false answer. The truth is x, from which an older episode knew the way."""
    table = {('"start"', "0"): [(outcome("x"), 1.0)], ('"x"', "1"): [(outcome("a"), 1.0)]}
    twin = TableEnv(Rules(table))
    prober = ReplayProber(twin, attempts=2)
    walk(prober, "start", "x", "a", actions="01")
    walk(prober, "start", "a", "b", actions="00")
    probed = prober.probe('"a"', "0", ("0",), 1)
    assert len(probed.transitions) == 1
    assert twin.log[:3] == ["reset", "0", "1"]
    strange = ReplayProber(TableEnv(Rules(table)), attempts=2)
    walk(strange, "start", "a", "b", actions="00")
    assert strange.probe('"a"', "0", ("0",), 1)[:2] == ((), ProbeCost(steps=2, resets=2)), (
        "it knows no way, and turns back"
    )


def test_this_episode_is_believed_before_older_ones(line, TableEnv) -> None:
    """An old episode knew a short way over `old`, which is gone: the way of today is taken."""
    twin = TableEnv(line)
    prober = ReplayProber(twin)
    for _ in range(5):
        walk(prober, "start", "b", actions="1")
    walk(prober, "start", "a", "b", actions="00")
    prober.probe('"b"', "1", ("0", "0"), 1)
    assert twin.log == ["reset", "0", "0", "1"]


@pytest.mark.parametrize(("max_steps", "resets"), [(1, 1), (5, 3), (40, 20)])
def test_it_gives_up_after_so_many_steps_without_an_answer(max_steps: int, resets: int, line, TableEnv) -> None:
    probed = ReplayProber(TableEnv(line), max_steps=max_steps).probe('"nowhere"', "1", ("0", "0"), 4)
    assert probed[:2] == ((), ProbeCost(steps=max_steps, resets=resets))


def test_steps_that_bring_answers_are_not_counted_against_it(line, TableEnv) -> None:
    probed = ReplayProber(TableEnv(line, limit=100), max_steps=2).probe('"b"', "1", ("0", "0"), 30)
    assert len(probed.transitions) == 30


def test_the_limit_is_checked(line, TableEnv) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`max_steps` should be a whole number, at least 1. Received 0")):
        ReplayProber(TableEnv(line), max_steps=0)
    with pytest.raises(ArgumentError, match=re.escape("`max_steps` should be a whole number, at least 1. Received 0")):
        ReplayLiveProber(TableEnv(line), max_steps=0)


def test_in_the_agents_own_environment_nothing_is_kept(line, TableEnv) -> None:
    """There each replay is an episode, and time goes on between two of them."""
    prober = ReplayLiveProber(TableEnv(line))
    walk(prober, "start", "a", "b", actions="00")
    for _ in range(2):
        assert prober.probe('"b"', "1", ("0", "0"), 1).cost == ProbeCost(steps=3, resets=1)
        assert prober.probe('"a"', "0", ("0",), 1).cost == ProbeCost(steps=2, resets=1)


class Tens:
    """States are numbers, and match by their tens."""

    name = "tens"

    def state_key(self, state: str) -> Hashable:
        return int(state.strip('"')) // 10

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        return True

    def learn(self, experience: Experience) -> None:
        pass


def numbers(Rules: Any, TableEnv: Any, start: int) -> Any:
    """Action 1 adds three; the twin begins elsewhere than the agent."""
    table = {(f'"{i}"', "1"): [(Outcome(f'"{i + 3}"', 0.0, False), 1.0)] for i in range(200)}
    return TableEnv(Rules(table, f'"{start}"'), limit=1000)


@pytest.mark.parametrize(("behind", "steps"), [(0, 3), (2, 4), (9, 6), (14, 8), (18, None)])
def test_a_blind_replay_waits_a_little_for_its_state(behind: int, steps: int | None, Rules, TableEnv) -> None:
    """The agent was in the tens of 40 after three steps; who begins a little lower needs a few more."""
    prober = ReplayProber(numbers(Rules, TableEnv, 31 - behind), attempts=1)
    prober.bind(Tens())
    walk(prober, "31", "34", "37", "40", "43", actions="1111")
    probed = prober.probe('"40"', "0", ("1", "1", "1"), 1)
    if steps is None:
        assert probed[:2] == ((), ProbeCost(steps=3 + LAG, resets=1))
    else:
        assert probed.cost == ProbeCost(steps=steps + 1, resets=1)


def test_what_was_told_on_the_way_is_a_fair_sample(Rules, TableEnv, outcome) -> None:
    """A walker that tries until it gets through sees failures first and one success last, each time."""
    rules = Rules({('"start"', "0"): [(outcome("a"), 0.3), (outcome("start"), 0.7)]})
    prober = ReplayProber(TableEnv(rules, seed=5, limit=1000))
    result = []
    for _ in range(1500):
        walk(prober, "start", "a", "b", actions="00")
        prober.probe('"a"', "1", ("0",), 1)
        result += prober.probe('"start"', "0", (), 2).outcomes
    assert np.mean([o.state == '"a"' for o in result]) == pytest.approx(0.3, abs=0.04)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), chance=st.booleans(), times=st.integers(1, 4), max_steps=st.integers(1, 30))
def test_costs_are_bounded(seed: int, chance: bool, times: int, max_steps: int, random_rules, TableEnv) -> None:
    """Whatever the environment does: at most `max_steps` steps and `attempts` resets for each answer, and for none."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, 5, 2, chance=chance)
    env, twin = TableEnv(rules, seed), TableEnv(rules, seed + 1)
    prober = ReplayProber(twin, attempts=3, max_steps=max_steps)
    for _ in range(3):
        state, prefix, over = env.reset()[0], [], False
        prober.begin_episode()
        while not over:
            action = str(int(rng.integers(2)))
            after, _, ended, cut, info = env.step(int(action))
            over = ended or cut
            prober.follow(Experience(state, action, Outcome(after, info["score"], ended), 0.0, AgentClock()))
            if rng.random() < 0.5:
                logged = len(twin.log)
                probed = prober.probe(state, action, tuple(prefix), times)
                new, n = twin.log[logged:], len(probed.transitions)
                assert probed.cost.resets == new.count("reset") <= 3 * (n + 1)
                assert probed.cost.steps == len(new) - new.count("reset") <= max_steps * (n + 1) + n
                assert {(t.state, t.action) for t in probed.transitions} <= {(state, action)}
            prefix.append(action)
            state = after


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), often=st.floats(0.1, 1.0))
def test_where_nothing_is_left_to_chance_an_episode_costs_at_most_itself(
    seed: int, often: float, random_rules, TableEnv
) -> None:
    """However many surprises: the twin walks the agent's way once, and not once for each of them."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, 6, 2)
    env, twin = TableEnv(rules), TableEnv(rules, limit=1000)
    prober = ReplayProber(twin)
    for _ in range(3):
        state, prefix, over, spent = env.reset()[0], [], False, 0
        prober.begin_episode()
        while not over:
            action = str(int(rng.integers(2)))
            after, _, ended, cut, info = env.step(int(action))
            over = ended or cut
            prober.follow(Experience(state, action, Outcome(after, info["score"], ended), 0.0, AgentClock()))
            if rng.random() < often:
                probed = prober.probe(state, action, tuple(prefix), 1)
                spent += probed.cost.steps
                assert probed.outcomes == (Outcome(after, info["score"], ended),)
            prefix.append(action)
            state = after
        assert spent <= len(prefix)


def test_the_way_of_an_episode_that_has_ended_is_forgotten(Rules, TableEnv, outcome) -> None:
    """The twin is carried to x, where this episode's way, which led over a, is given up at once."""
    prober = ReplayProber(TableEnv(Rules({('"start"', "0"): [(outcome("x"), 1.0)]})), attempts=2)
    walk(prober, "elsewhere", "far", actions="1")
    walk(prober, "start", "a", "b", actions="00")
    assert prober.probe('"b"', "0", ("0", "0"), 1)[:2] == ((), ProbeCost(steps=2, resets=2))
