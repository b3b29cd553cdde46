"""The ability matrix: kinds of tasks, rates, and who is best."""

from __future__ import annotations

import pytest
from drift_agents.team.router import AbilityMatrix, kind_of_task

LAKE = "You walk over a frozen lake of 6 rows x 6 columns, from [0, 0]. There is a destination: [5, 5]."
SHOP = "Find me rain jackets with zip closure with color: red, and pack: single, and price lower than 30.00 dollars"
WARM = "Find me hand wash scarves in a warm color, and price lower than 20.00 dollars"


def test_kinds_leave_out_what_tells_tasks_of_one_kind_apart() -> None:
    assert kind_of_task(LAKE) == kind_of_task(LAKE.replace("[5, 5]", "[1, 3]").replace("6", "4"))
    assert kind_of_task(SHOP) == "find me # with color: #, and pack: #, and price lower than # dollars"
    assert kind_of_task(WARM) == "find me # in a warm color, and price lower than # dollars"
    assert len({kind_of_task(task) for task in (LAKE, SHOP, WARM, WARM.replace("warm", "cool"))}) == 4


def test_each_kind_has_its_own_best_and_an_unknown_one_goes_by_all_of_them() -> None:
    matrix = AbilityMatrix(["a", "b"])
    for task, wins in ((LAKE, {"a": 3, "b": 0}), (WARM, {"a": 0, "b": 2})):
        for member in "ab":
            for number in range(4):
                matrix.note(task, member, float(number < wins[member]))
    assert [matrix.best(task) for task in (LAKE, WARM)] == ["a", "b"]
    assert matrix.rate(LAKE, "a") == pytest.approx((3 + 1) / (4 + 2))
    assert matrix.rate(SHOP, "b") == pytest.approx((2 + 1) / (8 + 2)), "without attempts: all kinds together"
    assert matrix.overall() == "a"
    matrix.note(WARM, "b", 1.0)
    matrix.note(WARM, "b", 1.0)
    assert matrix.best(SHOP) == "b"


def test_of_equals_the_first_and_one_lucky_attempt_is_not_everything() -> None:
    matrix = AbilityMatrix(["a", "b"])
    assert matrix.best(LAKE) == "a"
    for _ in range(10):
        matrix.note(LAKE, "a", 1.0)
    matrix.note(LAKE, "b", 1.0)
    assert matrix.best(LAKE) == "a"


def test_a_success_reaches_the_highest_score_that_the_task_names() -> None:
    matrix = AbilityMatrix(["a", "b"])
    matrix.note(f"{LAKE} The highest score is 0.5.", "b", 0.5)
    matrix.note(LAKE, "b", 0.5)
    assert [(row["attempts"], row["wins"]) for row in matrix.rows()] == [(1, 1), (1, 0)]
