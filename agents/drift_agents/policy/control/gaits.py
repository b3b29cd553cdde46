"""How to run: gaits that are known beforehand, of which memory decides which one to play, and with which sign.

* `Gait` - what is wanted of the actuators
* `Runner`, `find_runner` - the gaits of a runner, by the fields of its state
* `read_sign` - whether the actuators turn the joints the way they are told, by the records
* `read_direction` - which way of running pays, by the records
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drift_agents.matching.smooth import FieldState, fit_smooth
from drift_agents.policy.control.model import ControlRecords, Floats
from drift_agents.prompt.conflict import settle

GAITS = Path(__file__).with_name("gaits.json")


class Gait(NamedTuple):
    """The torques that are wanted, as a linear function of a state's numbers.

    Args:
        weights: shape `(actuators, fields)`.
        bias: shape `(actuators,)`.
    """

    weights: Floats
    bias: Floats


class Runner(NamedTuple):
    """The gaits of a runner.

    Args:
        gaits: by the way of running: 1 forward, -1 backward.
        speed: the column of the speed along the ground.
        joints: the columns of the joints' velocities, in the order of the actuators.
    """

    gaits: Mapping[float, Gait]
    speed: int
    joints: list[int]

    def choose(self, evidence: ControlRecords, here: FieldState, torques: Floats, conflict: str) -> int:
        """The number of the action whose torques are nearest to those of the gait.

        Args:
            evidence: the records.
            here: the present state.
            torques: the numbers of the actions; shape `(actions, actuators)`.
            conflict: the rule for contradicting records.
        """
        gait = self.gaits[read_direction(evidence, torques, self.speed)]
        wanted = gait.weights @ np.array(here.numbers) + gait.bias
        wanted = read_sign(evidence, torques, self.joints, conflict) * wanted
        return int(np.argmax(torques @ wanted - np.square(torques).sum(axis=1) / 2))


@lru_cache(maxsize=8)
def find_runner(names: tuple[str, ...]) -> Runner | None:
    """The gaits of the runner with these fields; `None` if none is known.

    Args:
        names: the fields of a state.
    """
    known = json.loads(GAITS.read_text(encoding="utf-8"))
    for runner, limbs in _LIMBS.items():
        if {"velocity_x", *(f"velocity_{limb}" for limb in limbs)} <= set(names):
            ways = {1.0: f"{runner}/forward", -1.0: f"{runner}/backward"}
            gaits = {
                way: Gait(np.array(known[name]["weights"]), np.array(known[name]["bias"])) for way, name in ways.items()
            }
            return Runner(gaits, names.index("velocity_x"), [names.index(f"velocity_{limb}") for limb in limbs])
    return None


_LIMBS = {
    "half_cheetah": ("back_thigh", "back_shin", "back_foot", "front_thigh", "front_shin", "front_foot"),
    "hopper": ("thigh", "leg", "foot"),
}
"""The joints with an actuator, in the order of the actuators."""


def read_sign(evidence: ControlRecords, torques: Floats, joints: list[int], conflict: str) -> float:
    """1 where torques turn joints the way they are told, -1 where they are reversed.

    A linear function of state and torques is fitted to the changes of the joints' velocities. Each record then
    votes: the rest of its change without the state's part goes along with its torques or against them. Contradicting
    votes are settled by the rule.

    Args:
        evidence: the records.
        torques: the numbers of the actions; shape `(actions, actuators)`.
        joints: the columns of the joints' velocities, in the order of the actuators.
        conflict: the rule, see `drift_agents.prompt.conflict`.
    """
    given, moved = torques[evidence.actions], evidence.changes[:, joints]
    spread = evidence.states.std(axis=0) + 1e-6
    parts = [np.ones((len(given), 1)), (evidence.states - evidence.states.mean(axis=0)) / spread]
    features = np.concatenate([*parts, given], axis=1)
    fitted = fit_smooth(features, moved, evidence.support)
    count = features.shape[1] - len(joints)
    along = (given * (moved - features[:, :count] @ fitted[:count])).sum(axis=1)
    sightings = []
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(along * sign > 0)
        if rows.size:
            paid, support = float(evidence.changes[rows, -1].mean()), float(evidence.support[rows].sum())
            sightings.append(((sign, paid), support, int(evidence.last[rows].max())))
    if not sightings:
        return 1.0
    chosen = settle(sightings, conflict)
    if conflict == "max":
        return max(chosen, key=lambda one: one[0][1])[0][0]
    return 1.0 if sum(share * sign for (sign, _), share in chosen) >= 0 else -1.0


def read_direction(evidence: ControlRecords, torques: Floats, speed: int) -> float:
    """1 where running forward pays, -1 where running backward does.

    The slope of what steps pay over the speed, and the squares of the torques beside it.

    Args:
        evidence: the records.
        torques: the numbers of the actions; shape `(actions, actuators)`.
        speed: the column of the speed along the ground.
    """
    ran = evidence.states[:, speed] + evidence.changes[:, speed]
    effort = np.square(torques[evidence.actions]).sum(axis=1)
    features = np.stack([np.ones(len(ran)), ran, effort], axis=1)
    slope = fit_smooth(features, evidence.changes[:, -1:] * 1000, evidence.support)[1, 0]
    return 1.0 if slope >= 0 else -1.0
