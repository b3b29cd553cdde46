"""Scores of drift detectors, against a count that is made step by step."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.cli import main
from drift_envs.errors import ArgumentError
from drift_envs.metrics import Cusum, Stream, find_alarms, score_alarms, score_detector

LENGTH = 60
STEPS = st.lists(st.integers(1, LENGTH), unique=True, max_size=12).map(sorted)
DRIFTS = st.lists(st.integers(1, LENGTH - 1), unique=True, max_size=5).map(sorted)


def make_stream(drifts, values=None, length=LENGTH):
    values = np.zeros(length) if values is None else np.asarray(values, float)
    return Stream(values, np.arange(1, length + 1), tuple(drifts), length)


@settings(deadline=None)
@given(alarms=STEPS, drifts=DRIFTS, window=st.one_of(st.none(), st.integers(1, LENGTH)))
def test_each_drift_is_detected_once_and_every_other_alarm_is_false(alarms, drifts, window):
    present, is_open, delays, false = None, False, [], 0
    for step in range(LENGTH):  # the step that is seen; an alarm follows it
        if step in drifts:
            present, is_open = step, True
        if step + 1 in alarms:
            delay = step + 1 - present if present is not None else 0
            if is_open and (window is None or delay <= window):
                delays.append(delay)
                is_open = False
            else:
                false += 1
    found = score_alarms(alarms, make_stream(drifts), window)
    assert found.delay == (pytest.approx(np.mean(delays)) if delays else None)
    assert found.false_alarm_rate == pytest.approx(1000 * false / LENGTH)
    if not drifts:
        assert (found.missed, found.f1) == (None, None)
        return
    assert found.missed == pytest.approx(1 - len(delays) / len(drifts))
    precision = len(delays) / len(alarms) if alarms else 0
    recall = len(delays) / len(drifts)
    both = precision + recall
    assert found.f1 == pytest.approx(2 * precision * recall / both if both else 0)


class Every:
    """Fires at every value above a half."""

    drift_detected = False

    def update(self, x):
        self.drift_detected = x > 0.5


def test_a_fresh_detector_is_made_for_each_stream_and_intervals_are_over_streams():
    made = []

    def make():
        made.append(Every())
        return made[-1]

    streams = [make_stream([20], np.arange(LENGTH) == first) for first in (21, 25, 33, 40)]
    found = score_detector(make, streams)
    assert len(made) == len(set(map(id, made))) == 4
    assert found.delay.mean == np.mean([2, 6, 14, 21])
    assert found.delay.low < found.delay.mean < found.delay.high
    assert (found.f1.mean, found.missed.mean, found.streams) == (1.0, 0.0, 4)


def test_what_is_no_detector_is_refused():
    with pytest.raises(ArgumentError, match=re.escape("`detector` should have `update(x)` and `drift_detected`")):
        score_detector(lambda: object(), [make_stream([])])


@pytest.mark.parametrize("sign", [1, -1])
def test_cusum_fires_soon_after_a_change_in_either_direction_and_seldom_before(sign):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 400))
    values[:, 200:] += 2 * sign
    alarms = [find_alarms(Cusum(), make_stream([200], row, 400)) for row in values]
    assert all(any(200 < alarm <= 215 for alarm in each) for each in alarms)
    assert sum(alarm <= 200 for each in alarms for alarm in each) <= 1


@pytest.mark.integration
def test_the_command_scores_a_detector_on_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "falling.py").write_text(
        "class Falls:\n"
        "    drift_detected, last = False, 0.0\n"
        "    def update(self, x):\n"
        "        self.drift_detected, self.last = x < self.last, x\n"
    )
    monkeypatch.chdir(tmp_path)
    schedule = "frozen_lake/implicit:all-or-nothing"
    options = ["--schedule", schedule, "--policy", "initial", "--episodes", "60", "--lifetimes", "2"]
    assert main(["dataset", "DriftFrozenLake-v0", *options, "--out", "lake", "-q"]) == 0
    capsys.readouterr()
    assert main(["score-detector", "falling:Falls", "--data", "lake", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # two drifts, of which the first one is a fall of returns and the second one a rise
    assert (found["missed"]["mean"], found["false_alarm_rate"]["mean"], found["streams"]) == (0.5, 0.0, 2)
    assert found["f1"]["mean"] == pytest.approx(2 / 3)
    assert main(["score-detector", "falling:Falls", "--data", "lake", "--stream", "scores"]) == 1
    assert main(["score-detector", "falling:Rises", "--data", "lake"]) == 2
    assert "'module:name' of a function or a class. Received 'falling:Rises'" in capsys.readouterr().err
    assert main(["score-detector", "falling:Falls", "--data", "."]) == 1
    next((tmp_path / "lake" / "steps").iterdir()).unlink()
    assert main(["score-detector", "falling:Falls", "--data", "lake"]) == 1
    assert "1 of 1 parts of lifetime" in capsys.readouterr().err
