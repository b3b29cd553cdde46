"""Many motions at once: counted as one by one, whatever has become of the records in between."""

from __future__ import annotations

import random

import numpy as np
import pytest
from drift_agents.envs.mountain_car.states import FEW, MotionTable, MountainCarMatching
from drift_agents.types import AgentClock, Outcome, Record, Transition
from drift_agents.verifier.evidence import share


class OneByOne:
    """The same rule, asked about one pair after the other."""

    def __init__(self, rule):
        self.name, self.state_key, self.same_outcome, self.learn = "one", rule.state_key, rule.same_outcome, rule.learn


def text(x, v):
    return f'{{"position": {x:.6f}, "velocity": {v:.6f}}}'


def response(rng, force):
    """From anywhere, the walls, the limit of speed and the goal included; at times the car is lifted ahead."""
    x, v = rng.choice((-1.2, -1.15, -0.5, 0.3, 0.55)) + rng.uniform(0, 0.05), rng.uniform(-0.07, 0.07)
    v2 = float(np.clip(v + force - 0.0025 * np.cos(3 * x), -0.07, 0.07))
    x2 = float(np.clip(x + v2 + rng.choice((0, 0, 0.01)), -1.2, 0.6))
    v2 = 0.0 if x2 == -1.2 else v2
    ended = x2 >= 0.5 and rng.random() < 0.8
    return text(x, v), Outcome(text(x2, v2), rng.choice((0.0, 0.4)) if ended else 0.0, ended)


def record(rng, number):
    state, first = response(rng, rng.choice((0.001, 0.00095, -0.001)))
    if rng.random() < 0.8:
        return Record(number, state, "2", ((first, 1.0),), 1, AgentClock(0, number))
    second = first._replace(score=0.7)
    return Record(number, state, "2", ((first, 2 / 3), (second, 1 / 3)), 3, AgentClock(0, number), True)


@pytest.mark.parametrize("taught_steps", [0, 200])
@pytest.mark.parametrize("seed", range(5))
def test_columns_count_what_one_by_one_counts(TextCar, drive_car, taught_steps, seed):
    rng, rule = random.Random(seed), MountainCarMatching(position=5.0)
    for experience in drive_car(TextCar(), taught_steps, hold=10):
        rule.learn(experience)
    assert (rule.gravity is None) == (taught_steps == 0)
    records, shares = [], set()
    for number in range(6 * FEW):
        records.append(record(rng, number))
        if rng.random() < 0.05:  # a realignment
            records = [one for one in records if rng.random() < 0.7]
        state, outcome = response(rng, 0.001)
        asked = Transition(state, "2", outcome)
        found = share(asked, records, rule)
        assert found == share(asked, records, OneByOne(rule))
        shares.add(found[0])
    assert len(records) > FEW, "most of this should have been counted in columns"
    assert len(shares) > FEW, "some responses should agree and some not"


def test_a_table_follows_whatever_becomes_of_the_records():
    rng, read = random.Random(1), []

    def numbers(one):
        read.append(one.id)
        return [(float(one.id), p) for _, p in one.outcomes]

    table, records = MotionTable(numbers, 2), []
    for number in range(400):
        if rng.random() < 0.02 and records:
            del records[rng.randrange(len(records))]
        records.append(record(rng, number))
        wanted = [(float(one.id), p) for one in records for _, p in one.outcomes]
        assert table.columns(records).T.tolist() == [list(pair) for pair in wanted]
    assert len(read) < 400 * 10, "records that stayed should not be read again"
    replaced = [*records[:-1], records[-1]._replace(outcomes=((records[-1].outcome, 0.25),))]
    assert table.columns(replaced)[1, -1] == 0.25
    assert table.columns([]).shape == (2, 0)
