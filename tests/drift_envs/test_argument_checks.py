"""The argument checks: what passes comes back as a plain Python value, what fails names the rule and the value."""

import re

import numpy as np
import pytest

from drift_envs.checks import check_choice, check_count, check_flag, check_integer, check_interval, check_number
from drift_envs.errors import ArgumentError, KnobError


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        (lambda: check_integer("n", np.uint64(3)), int),
        (lambda: check_count("n", np.int32(1)), int),
        (lambda: check_number("n", np.float32(0.5), 0, 1), float),
        (lambda: check_interval("n", np.int8(0), "[0, 1]"), float),
        (lambda: check_flag("n", np.True_), bool),
        (lambda: check_choice("n", "a", {"a": 1}), str),
        (lambda: check_integer("n", None, 1, 4, optional=True), type(None)),
        (lambda: check_count("n", None, optional=True), type(None)),
        (lambda: check_interval("n", None, "[0, 1]", optional=True), type(None)),
        (lambda: check_choice("n", None, ("a",), optional=True), type(None)),
    ],
)
def test_what_passes_becomes_plain(check, kind):
    assert type(check()) is kind


@pytest.mark.parametrize(
    ("check", "values", "rule"),
    [
        (lambda v: check_integer("n", v), [True, np.True_, 1.0, "1", None, -1], "a whole number, at least 0"),
        (
            lambda v: check_integer("n", v, 1, 4, optional=True),
            [0, 5],
            "a whole number in the interval [1, 4], or None",
        ),
        (lambda v: check_count("n", v), [0, True, 1.0, None], "a whole number, at least 1"),
        (lambda v: check_count("n", v), [10**6 + 1], "a whole number in the interval [1, 1000000]"),
        (lambda v: check_count("n", v, optional=True), ["1"], "a whole number, at least 1, or None"),
        (lambda v: check_number("n", v), [True, "0.5", float("nan"), None], "a number"),
        (lambda v: check_number("n", v, 0), [-1, float("nan")], "a number, at least 0"),
        (lambda v: check_number("n", v, high=3), [4], "a number, at most 3"),
        (lambda v: check_number("n", v, 0, 1), [2, "1"], "a number in the interval [0, 1]"),
        (lambda v: check_interval("n", v, "(0, 1]"), [0, True, "1", float("nan")], "in the interval (0, 1]"),
        (lambda v: check_interval("n", v, "[0, inf)"), [float("inf")], "in the interval [0, inf)"),
        (lambda v: check_interval("n", v, "[-1, 1]", optional=True), [2], "in the interval [-1, 1], or None"),
        (lambda v: check_flag("n", v), [1, "no"], "true or false"),
        (lambda v: check_choice("n", v, ("a", "b")), ["c", ["a"]], "one of a, b"),
        (lambda v: check_choice("n", v, ("a", "b"), optional=True), ["c"], "one of a, b, or None"),
    ],
)
def test_a_refusal_names_argument_rule_and_value(check, values, rule):
    for value in values:
        with pytest.raises(ArgumentError, match=f"^{re.escape(f'`n` should be {rule}. Received {value!r}')}$"):
            check(value)


def test_the_caller_chooses_the_error_and_writes_intervals():
    with pytest.raises(KnobError, match="`n` should be true or false"):
        check_flag("n", 1, error=KnobError)
    with pytest.raises(ArgumentError, match="`interval` should be written as in"):
        check_interval("n", 1, "0 to 1")
