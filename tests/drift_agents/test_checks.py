from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drift_agents.checks import check_choice, check_flag, check_integer, check_number, is_integer, is_number
from drift_agents.errors import ArgumentError


@pytest.mark.parametrize(
    ("check", "value", "rule"),
    [
        (lambda v: check_integer("n", v), 0, "a whole number, at least 1"),
        (lambda v: check_integer("n", v), True, "a whole number, at least 1"),
        (lambda v: check_integer("n", v), 1.0, "a whole number, at least 1"),
        (lambda v: check_integer("n", v), np.int64(1), "a whole number, at least 1"),
        (lambda v: check_integer("n", v), None, "a whole number, at least 1"),
        (lambda v: check_integer("n", v, 0), -1, "a whole number, at least 0"),
        (lambda v: check_integer("n", v, 2), 1, "a whole number, at least 2"),
        (lambda v: check_integer("n", v, 1, 20), 21, "a whole number in the interval [1, 20]"),
        (lambda v: check_integer("n", v, optional=True), "1", "a whole number, at least 1, or None"),
        (lambda v: check_number("n", v, "(0, 1]"), 0, "in the interval (0, 1]"),
        (lambda v: check_number("n", v, "[0, 1)"), 1, "in the interval [0, 1)"),
        (lambda v: check_number("n", v, "[0, 1]"), float("nan"), "in the interval [0, 1]"),
        (lambda v: check_number("n", v, "[0, 1]"), True, "in the interval [0, 1]"),
        (lambda v: check_number("n", v, "[0, 1]"), "1", "in the interval [0, 1]"),
        (lambda v: check_number("n", v, "[0, inf)"), float("inf"), "in the interval [0, inf)"),
        (lambda v: check_number("n", v, "[-1, 1]", optional=True), 2, "in the interval [-1, 1], or None"),
        (lambda v: check_flag("n", v), 1, "true or false"),
        (lambda v: check_choice("n", v, ("a", "b")), "c", "one of a, b"),
        (lambda v: check_choice("n", v, ("a", "b")), ["a"], "one of a, b"),
        (lambda v: check_choice("n", v, ("a", "b"), optional=True), "c", "one of a, b, or None"),
    ],
)
def test_a_refusal_names_argument_rule_and_value(check: Callable[[Any], object], value: object, rule: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(f'`n` should be {rule}. Received {value!r}')}$"):
        check(value)


def test_a_check_returns_what_it_accepts() -> None:
    assert check_integer("n", 1) == 1
    assert check_integer("n", 5, 5, 5) == 5
    assert check_integer("n", None, optional=True) is None
    assert check_number("n", 0, "[0, 1]") == 0.0
    assert isinstance(check_number("n", 0, "[0, 1]"), float)
    assert check_number("n", None, "[0, 1]", optional=True) is None
    assert check_flag("n", False) is False
    assert check_choice("n", "a", {"a": 1}) == "a"
    assert check_choice("n", None, ("a",), optional=True) is None


def test_an_interval_that_cannot_be_read() -> None:
    with pytest.raises(ArgumentError, match="`interval` should be written as in"):
        check_number("n", 1, "0 to 1")


def test_booleans_are_no_numbers() -> None:
    assert not is_integer(True)
    assert not is_number(False)
    assert is_number(float("nan"))
