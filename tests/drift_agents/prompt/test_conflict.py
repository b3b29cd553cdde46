"""How several outcomes of one (state, action) are weighed."""

from __future__ import annotations

import re

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import check_conflict, settle

SEEN = [("old", 3.0, 10), ("new", 1.0, 20), ("mid", 3.0, 15)]


@pytest.mark.parametrize(
    ("conflict", "expected"),
    [
        ("majority", [("mid", 1.0)]),  # as often as "old", and later
        ("newest", [("new", 1.0)]),
        ("frequency", [("old", 3 / 7), ("new", 1 / 7), ("mid", 3 / 7)]),
        ("max", [("old", 1.0), ("new", 1.0), ("mid", 1.0)]),
    ],
)
def test_each_rule(conflict: str, expected: list[tuple[str, float]]) -> None:
    assert settle(SEEN, conflict) == expected


@pytest.mark.parametrize("wrong", ["mean", "", None, 1])
def test_other_rules_are_refused(wrong: str) -> None:
    message = f"`conflict` should be one of majority, newest, frequency, max. Received {wrong!r}"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        check_conflict(wrong)
