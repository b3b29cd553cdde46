"""Detection delays and false alarms."""

from __future__ import annotations

import pytest

from drift_envs.errors import ArgumentError
from drift_envs.metrics import Realignment, detect


def test_a_detection_belongs_to_the_last_drift_before_it() -> None:
    found = detect([100, 200], [Realignment(250, True)], interactions=300)
    assert found.delays == (None, 50)
    assert found.recall == 0.5
    assert found.precision == 1.0


def test_a_realignment_of_no_changed_pair_is_a_false_alarm() -> None:
    found = detect([100], [Realignment(101, False), Realignment(150, True)], interactions=1000)
    assert found.delays == (50,)
    assert found.false_alarms == 1
    assert found.false_alarm_rate == 1.0
    assert found.precision == 0.5


def test_exposures_include_the_detection() -> None:
    detection = [Realignment(150, True)]
    assert detect([100], detection, 300, exposures=[50, 100, 120, 150, 151]).exposures == (3,)
    assert detect([100], [], 300, exposures=[50, 100, 120, 150, 299]).exposures == (4,)


def test_exposures_of_the_next_drift_do_not_count() -> None:
    assert detect([100, 200], [], 300, exposures=[150, 200, 250]).exposures == (1, 2)


def test_shares_are_none_without_drifts_or_realignments() -> None:
    found = detect([], [], 100)
    assert found.recall is None
    assert found.precision is None
    assert found.false_alarm_rate == 0.0


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="`drifts` should be ascending"):
        detect([2, 1], [], 10)
    with pytest.raises(ArgumentError, match="`realignments` should be ascending"):
        detect([], [Realignment(2, True), Realignment(1, True)], 10)
    with pytest.raises(ArgumentError, match="`interactions` should be a whole number, at least 1"):
        detect([], [], 0)
