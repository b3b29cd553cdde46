"""Scores against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.envs.frozen_lake.dynamics import transitions
from drift_envs.errors import ArgumentError
from drift_envs.metrics import (
    area_under_curve,
    dynamic_regret,
    first_and_last,
    forgetting,
    forward_transfer,
    percent,
    prequential,
    variation_budget,
)

scores = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(scores)
def test_the_prequential_score_without_fading_is_the_running_mean(values: list[float]) -> None:
    running = np.cumsum(values) / np.arange(1, len(values) + 1)
    assert prequential(values, fading=1.0) == pytest.approx(running)
    assert area_under_curve(values) == pytest.approx(prequential(values, fading=1.0)[-1])


@given(scores, st.floats(0.01, 0.99))
def test_the_prequential_score_is_a_weighted_mean(values: list[float], fading: float) -> None:
    weights = fading ** np.arange(len(values))[::-1]
    assert prequential(values, fading)[-1] == pytest.approx((weights * values).sum() / weights.sum())


def test_first_and_last_rounds() -> None:
    values = [0.0] * 5 + [0.5] * 10 + [1.0] * 5
    assert first_and_last(values) == (0.0, 1.0)
    assert first_and_last(values, rounds=20) == (0.5, 0.5)
    assert first_and_last(values, rounds=1) == (0.0, 1.0)
    with pytest.raises(ArgumentError, match=r"`scores` should hold at least 5 numbers\. Received 3"):
        first_and_last([1, 1, 1])


def test_dynamic_regret_uses_the_optimum_of_each_episode() -> None:
    assert dynamic_regret([1.0, 0.7, 0.7], [1.0, 1.0, 0.0]) == pytest.approx(0.4)
    with pytest.raises(ArgumentError, match=r"equally long\. Received 2 and 1"):
        dynamic_regret([1, 1], [1])


def test_the_variation_budget_of_a_lake() -> None:
    models = [transitions(("SFG",), slip=slip) for slip in (0.0, 0.0, 0.2)]
    rewards = [(model.probability * model.reward).sum(axis=2) for model in models]
    budget_r, budget_p = variation_budget(rewards, [model.matrix() for model in models])
    # Right of the middle tile: the goal's probability falls from 1 to 0.8, the rest goes to the tile itself.
    assert budget_r == pytest.approx(0.2)
    assert budget_p == pytest.approx(0.4)
    assert variation_budget(rewards[:1], [models[0].matrix()]) == (0.0, 0.0)
    with pytest.raises(ArgumentError, match="`rewards` should keep their shape"):
        variation_budget([np.zeros((1, 2)), np.zeros((2, 2))], [])


def test_forgetting_is_negative_if_later_tasks_help() -> None:
    assert forgetting([0.5, 0.5], [1.0, 0.5]) == -0.25
    with pytest.raises(ArgumentError, match="equally long"):
        forgetting([1.0], [1.0, 1.0])


def test_forward_transfer() -> None:
    assert forward_transfer(1.0, 0.4) == 1.0
    assert forward_transfer(0.4, 0.4) == 0.0
    assert forward_transfer(1.0, 1.0) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "`scores` should hold at least 1 number. Received 0"),
        ([[1.0]], "`scores` should have one dimension"),
        ([1.0, float("nan")], "`scores` should hold finite numbers. Received nan at 1"),
        (["a"], "`scores` should be a sequence of numbers"),
    ],
)
def test_invalid_scores_are_refused(values: list, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        percent(values)
