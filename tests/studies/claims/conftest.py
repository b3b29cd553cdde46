"""Lines of a run, written by hand: who reached what in which phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from drift_agents.experiment.logs import FIELDS

ROUNDS = 20
FIRST_SEED = 1000

Course = float | Sequence[float]
"""Scores of a phase: one for every round, or so many of the rounds that are successes (a whole number)."""


def scores_of(course: Course) -> list[float]:
    if isinstance(course, int):
        return [1.0] * course + [0.0] * (ROUNDS - course)
    return [course] * ROUNDS if isinstance(course, float) else list(course)


class Log:
    """A run of an experiment, as far as a test needs it.

    Args:
        name: the experiment's.
        instances: how many.
    """

    def __init__(self, name: str, instances: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self.seeds = range(FIRST_SEED, FIRST_SEED + instances)
        self.manifest: dict[str, Any] = {
            "name": name,
            "config_hash": "abc",
            "versions": {"drift-envs": "0"},
            "experiment": {
                "name": name,
                "schedules": ["a"],
                "agents": {"memory": "none", "policy": "random"},
                "seeds": 1,
            },
            "schedules": {},
            "players": [],
        }

    def play(
        self,
        schedule: str,
        who: str,
        courses: Mapping[str, Course],
        more: Callable[[int, str, int], Mapping[str, Any]] = lambda seed, phase, number: {},
        value: float | None = None,
    ) -> None:
        """An agent plays a schedule.

        Args:
            schedule: its name.
            who: memory, verifier and policy, as in `vanilla/glove/planner`; the planner if no policy is given.
            courses: phase -> scores.
            more: further fields by seed, phase and round (from 1).
            value: what a sweep gives the schedule.
        """
        place = schedule if value is None else f"{schedule}/value-{value}"
        known = self.manifest["schedules"].setdefault(
            place, {"env": "DriftFrozenLake-v0", "visibility": "implicit" if "implicit" in schedule else "explicit"}
        )
        if value is not None:
            known["sweep"] = {"of": schedule, "path": "base.x", "value": value}
        memory, verifier, *policy = who.split("/", 2)
        parts = {"memory": memory, "verifier": verifier, "policy": policy[0] if policy else "planner"}
        parts |= {"controller": "direct", "team": "solo"}
        if verifier.startswith("oracle"):
            self.manifest["players"].append({"schedule": place, **parts, "reference": verifier})
        for seed in self.seeds:
            episode = 0
            for phase, course in courses.items():
                for number, score in enumerate(scores_of(course), 1):
                    row: dict[str, Any] = dict.fromkeys(FIELDS, 0)
                    row |= {"env": "x", "schedule": place, "schedule_hash": "0", **parts, "seed": seed, "stage": "test"}
                    row |= {"phase": phase, "round": number, "tick": episode, "episode": episode}
                    # No two instances are the same run, so that there is something to test.
                    row |= {"score": float(score), "success": score == 1, "steps": 10, "milliseconds": seed}
                    row |= {"detected": None, "detection_delay": None, "exposures": 0, "cost": 0.0, "regret": 0.0}
                    row |= {"memory_truth_rate": None, "item_truth_rate": None, "items": None}
                    self.rows.append({**row, **more(seed, phase, number)})
                    episode += 1

    def play_all(self, schedules: Iterable[str], who: Iterable[str], *args: Any, **options: Any) -> None:
        """Several play several schedules alike."""
        for schedule in schedules:
            for one in who:
                self.play(schedule, one, *args, **options)


@pytest.fixture
def make_log() -> Callable[[str, int], Log]:
    return Log
