"""Schedules stand on the map where the measures of their drifts put them."""

from __future__ import annotations

import math

import pytest
from drift_agents.analysis.drift_map import DriftPlace, place_schedules

from drift_envs.oracle import measure_drifts
from drift_envs.schedule import load_schedule


def test_places_are_means_over_instances_of_the_measured_drifts() -> None:
    name = "frozen_lake/explicit:family"
    drifts = [drift for seed in range(3) for drift in measure_drifts(load_schedule(name), seed)]
    place = place_schedules({name: {}}, range(3))[name]
    assert place.severity == pytest.approx(100 * math.fsum(one.severity for one in drifts) / 6)
    assert place.visibility == pytest.approx(100 * math.fsum(one.visibility for one in drifts) / 6)


def test_what_changes_nothing_has_no_severity_and_the_unknown_no_place() -> None:
    found = place_schedules({"frozen_lake/null": {}, "frozen_lake/gone": {}}, [0])
    assert found == {"frozen_lake/null": DriftPlace(0, 0)}
