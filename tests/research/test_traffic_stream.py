"""The stream of traffic: its drifts, its similarity, and what policies of memory keep of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from research.experience.traffic import (
    CONTINUOUS,
    INITIAL,
    STREAMS,
    TASKS,
    TrafficPolicy,
    make_stream,
    similarities,
    stream_rows,
    stream_tables,
)

MIDDLE = INITIAL + TASKS // 2
POLICIES = (
    TrafficPolicy("fixed"),
    TrafficPolicy("all"),
    TrafficPolicy("strict"),
    TrafficPolicy("strict", "combined"),
    TrafficPolicy("strict", "combined", capacity=60),
    TrafficPolicy("coarse"),
    TrafficPolicy("all", error_free=True),
    TrafficPolicy("coarse", error_free=True),
    TrafficPolicy("fixed", noise=1.0),
)


@pytest.fixture(name="rows", scope="module")
def _rows() -> list[dict[str, Any]]:
    return list(stream_rows([5], POLICIES))


@pytest.mark.parametrize("kind", ["moved", "exchanged"])
def test_half_of_the_classes_change_in_the_middle_and_nothing_before(kind: str) -> None:
    before, after = make_stream("stationary", 8), make_stream(kind, 8)
    assert (before.labels == after.labels).all()
    differs = (before.features != after.features).any(axis=1)
    assert not differs[:MIDDLE].any()
    assert len(set(after.labels[differs].tolist())) == 17
    assert differs[MIDDLE:].mean() == pytest.approx(0.5, abs=0.1)


def test_tasks_shift_by_groups_of_classes_and_the_initial_records_have_all() -> None:
    labels = make_stream("task shift", 8).labels
    assert (np.diff(labels[INITIAL:] % 3) >= 0).all()
    assert set((labels[:INITIAL] % 3).tolist()) == {0, 1, 2}


def test_a_continuous_feature_counts_by_its_relative_change_and_a_discrete_one_by_equality() -> None:
    one = np.full(46, 2.0)
    others = np.tile(one, (4, 1))
    others[1, 3] = 0.5  # 1.5 / 2
    others[2, CONTINUOUS + 4] = 5.0
    others[3] = 0.0
    assert (46 * (1 - similarities(one, others))).tolist() == pytest.approx([0.0, 0.75, 1.0, 46.0])
    assert similarities(np.zeros(46), np.zeros((1, 46))).tolist() == [1.0], "no division by 0"


def test_policies_keep_what_they_say(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        size = {"fixed": INITIAL, "all": INITIAL + TASKS, "all, error-free": INITIAL + TASKS, "fixed, noise 1": INITIAL}
        assert row["size"] == size.get(row["policy"], row["size"])
        if row["policy"] == "strict":
            assert row["size"] == INITIAL + round(TASKS * row["accuracy"] / 100), "each right answer, and no other"
        if "capacity" in row["policy"]:
            assert row["size"] <= 60


def test_errors_propagate_and_deletion_pays_where_classes_are_exchanged(rows: list[dict[str, Any]]) -> None:
    by = {(row["stream"], row["policy"]): row for row in rows}
    for kind in STREAMS:
        assert by[kind, "fixed, noise 1"]["accuracy"] < by[kind, "fixed"]["accuracy"]
        assert by[kind, "all"]["accuracy"] < by[kind, "strict"]["accuracy"]
        assert by[kind, "all"]["accuracy"] < by[kind, "all, error-free"]["accuracy"]
        assert by[kind, "fixed"]["input"] < by[kind, "all"]["input"]
    assert by["exchanged", "strict, combined"]["late"] > by["exchanged", "strict"]["late"]
    assert by["exchanged", "strict"]["late"] < by["stationary", "strict"]["late"]


def test_a_stream_comes_again_and_differs_by_seed(rows: list[dict[str, Any]]) -> None:
    assert list(stream_rows([5], POLICIES[:1])) == [row for row in rows if row["policy"] == "fixed"]
    assert (make_stream("moved", 1).features != make_stream("moved", 2).features).any()
    tables = stream_tables(rows)
    assert len(tables) == len(STREAMS)
    assert all(len(table.rows) == len(POLICIES) for table in tables)


def test_an_error_free_twin_retrieves_the_same_examples(rows: list[dict[str, Any]]) -> None:
    """Section 4.4: what is added and retrieved is as without, so that inputs and sizes are equal."""
    by = {(row["stream"], row["policy"]): row for row in rows}
    for kind in STREAMS:
        for policy in ("all", "coarse"):
            agent, twin = by[kind, policy], by[kind, f"{policy}, error-free"]
            assert (agent["size"], agent["input"]) == (twin["size"], twin["input"])
            assert agent["accuracy"] < twin["accuracy"]
