"""The two probers: what they bring, what they charge, when they give up."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.types import Experience, ProbeCost, Transition
from drift_agents.verifier.prober import ReplayProber, SnapshotProber


@pytest.fixture
def corridor(Rules, outcome):
    """start -0-> a -0-> b; in b action 1 falls, in a it pays, at the start it stays."""
    return Rules(
        {
            ('"start"', "0"): [(outcome("a"), 1.0)],
            ('"a"', "0"): [(outcome("b"), 1.0)],
            ('"b"', "1"): [(outcome("hole", ended=True), 1.0)],
            ('"a"', "1"): [(outcome("goal", 0.5, ended=True), 1.0)],
        }
    )


def test_a_replay_charges_the_way_and_the_fall(corridor, TableEnv, outcome) -> None:
    twin = TableEnv(corridor)
    probed = ReplayProber(twin).probe('"b"', "1", ("0", "0"), 2)
    assert probed.transitions == (Transition('"b"', "1", outcome("hole", ended=True)),) * 2
    assert probed.cost == ProbeCost(steps=6, resets=2, falls=2, purchases=0)
    assert twin.log == ["reset", "0", "0", "1"] * 2


def test_an_end_with_a_score_is_a_purchase(corridor, TableEnv, outcome) -> None:
    probed = ReplayProber(TableEnv(corridor)).probe('"a"', "1", ("0",), 1)
    assert probed.outcomes == (outcome("goal", 0.5, ended=True),)
    assert probed.cost == ProbeCost(steps=2, resets=1, falls=0, purchases=1)


def test_the_first_time_in_the_state_is_taken(corridor, TableEnv) -> None:
    """The agent dawdled at the start (action 1 stays there); the replay does not have to."""
    twin = TableEnv(corridor)
    ReplayProber(twin).probe('"start"', "0", ("1", "1", "1"), 1)
    assert twin.log == ["reset", "0"]


def test_while_it_still_stands_there_it_probes_again(corridor, TableEnv) -> None:
    twin = TableEnv(corridor)
    probed = ReplayProber(twin).probe('"start"', "1", (), 5)
    assert len(probed.transitions) == 5
    assert probed.cost == ProbeCost(steps=5, resets=1)
    assert twin.log == ["reset", "1", "1", "1", "1", "1"]


def test_it_gives_up_after_so_many_misses(corridor, TableEnv) -> None:
    twin = TableEnv(corridor)
    probed = ReplayProber(twin, attempts=3).probe('"nowhere"', "1", ("0", "0"), 4)
    assert probed.transitions == ()
    assert probed.cost == ProbeCost(steps=6, resets=3), "three replays of the whole way, no fall"


def test_by_default_it_gives_up_after_twenty_misses(corridor, TableEnv) -> None:
    probed = ReplayProber(TableEnv(corridor)).probe('"nowhere"', "1", ("0", "0"), 4)
    assert probed.cost == ProbeCost(steps=40, resets=20)


def test_running_out_of_time_is_neither_fall_nor_purchase(corridor, TableEnv) -> None:
    probed = ReplayProber(TableEnv(corridor, limit=2), attempts=1).probe('"b"', "1", ("0", "1", "1"), 1)
    assert probed.cost.falls == 0
    assert probed.cost.steps == 2


def test_on_a_slippery_environment_it_tries_until_it_arrives(Rules, TableEnv, outcome) -> None:
    """The first step goes right in half of the replays; misses in a row count, not misses altogether."""
    rules = Rules(
        {
            ('"start"', "0"): [(outcome("a"), 0.5), (outcome("hole", ended=True), 0.5)],
            ('"a"', "1"): [(outcome("x", ended=True), 0.7), (outcome("y", ended=True), 0.3)],
        }
    )
    probed = ReplayProber(TableEnv(rules, seed=3), attempts=12).probe('"a"', "1", ("0",), 400)
    assert len(probed.transitions) == 400
    assert np.mean([o.state == '"x"' for o in probed.outcomes]) == pytest.approx(0.7, abs=0.07)
    assert probed.cost.resets > 700
    assert probed.cost.steps == probed.cost.resets + 400
    assert probed.cost.falls == probed.cost.resets


def test_chained_probes_are_not_biased(Rules, TableEnv, outcome) -> None:
    """Staying put is an outcome like any other: probing on from it must not change its share."""
    rules = Rules({('"start"', "1"): [(outcome("start"), 0.6), (outcome("a"), 0.4)]})
    probed = ReplayProber(TableEnv(rules, seed=4, limit=100)).probe('"start"', "1", (), 3000)
    assert np.mean([o.state == '"start"' for o in probed.outcomes]) == pytest.approx(0.6, abs=0.03)
    assert probed.cost.resets < 1400


class Letters:
    """States match by their first letter."""

    name = "letters"

    def state_key(self, state: str) -> Hashable:
        return state[:2]

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        return a.outcome == b.outcome

    def learn(self, experience: Experience) -> None:
        pass


def test_a_matching_rule_widens_the_target(Rules, TableEnv, outcome) -> None:
    rules = Rules({('"start"', "0"): [(outcome("cell-2"), 1.0)], ('"cell-2"', "1"): [(outcome("out"), 1.0)]})
    prober = ReplayProber(TableEnv(rules), attempts=1)
    assert prober.probe('"cell-1"', "1", ("0",), 1).transitions == ()
    prober.bind(Letters())
    probed = prober.probe('"cell-1"', "1", ("0",), 1)
    assert probed.transitions == (Transition('"cell-2"', "1", outcome("out")),), (
        "recorded in the state in which it was made"
    )


def test_attempts_are_checked(corridor, TableEnv) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`attempts` should be a whole number, at least 1. Received 0")):
        ReplayProber(TableEnv(corridor), attempts=0)


def test_the_twin_should_show_text() -> None:
    prober = ReplayProber(gym.make("FrozenLake-v1"))
    with pytest.raises(ArgumentError, match=re.escape("the environment should show text: make it with `text=True`.")):
        prober.probe("0", "1", (), 1)


class State:
    """Where a table environment stands."""

    def __init__(self, env: Any) -> None:
        self.at = (env.state, env.score, env.steps)

    def restore(self, into: Any) -> None:
        into.state, into.score, into.steps = self.at


def test_a_snapshot_goes_back_to_the_state_before_the_last_step(corridor, TableEnv, outcome) -> None:
    env = TableEnv(corridor)
    prober = SnapshotProber(TableEnv(corridor), partial(State, env))
    assert prober.probe('"start"', "0", (), 1)[:2] == ((), ProbeCost()), "no episode yet"
    env.reset()
    prober.begin_episode()
    env.step(0)
    assert prober.probe('"start"', "0", (), 1).outcomes == (outcome("a"),)
    prober.moved()
    env.step(0)
    prober.moved()
    env.step(1)
    probed = prober.probe('"b"', "1", ("0", "0"), 2)
    assert probed.transitions == (Transition('"b"', "1", outcome("hole", ended=True)),) * 2
    assert probed.cost == ProbeCost(steps=2, resets=2, falls=2)
    assert env.state == '"hole"', "the agent's environment is where it was"


def test_a_snapshot_needs_a_function_that_saves(corridor, TableEnv) -> None:
    with pytest.raises(
        ArgumentError, match=re.escape("`save` should be a function that saves the environment's state.")
    ):
        SnapshotProber(TableEnv(corridor), save=TableEnv(corridor))
