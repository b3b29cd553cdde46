"""The argument checks: what passes comes back as a plain Python value, what fails names the rule and the value."""

import re

import numpy as np
import pytest

from drift_envs.checks import check_choice, check_flag, check_integer, check_number
from drift_envs.errors import ArgumentError, KnobError


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint64(3)])
def test_integers_become_plain(value):
    assert type(check_integer("n", value)) is int


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, -1, float("nan")])
def test_other_values_are_no_integers(value):
    with pytest.raises(ArgumentError, match=re.escape(f"`n` should be a whole number, at least 0. Received {value!r}")):
        check_integer("n", value)


@pytest.mark.parametrize("value", [0, 5])
def test_both_bounds_of_an_integer_are_named(value):
    with pytest.raises(KnobError, match=re.escape(f"a whole number in the interval [1, 4], or None. Received {value}")):
        check_integer("n", value, 1, 4, optional=True, error=KnobError)
    assert check_integer("n", None, 1, 4, optional=True) is None


@pytest.mark.parametrize("value", [1, np.float32(0.5), np.int8(0)])
def test_numbers_become_plain(value):
    assert type(check_number("x", value, 0, 1)) is float


@pytest.mark.parametrize(
    ("bounds", "rule"),
    [((), "a number."), ((0,), "a number, at least 0."), ((0, 1), "a number in the interval [0, 1].")],
)
@pytest.mark.parametrize("value", [True, "0.5", float("nan"), None])
def test_other_values_are_no_numbers(bounds, rule, value):
    with pytest.raises(ArgumentError, match=re.escape(f"`x` should be {rule} Received {value!r}")):
        check_number("x", value, *bounds)
    with pytest.raises(ArgumentError, match="at most 3"):
        check_number("x", 4, high=3)


def test_flags_and_choices():
    assert check_flag("f", np.True_) is True
    with pytest.raises(ArgumentError, match=re.escape("`f` should be true or false. Received 1")):
        check_flag("f", 1)
    assert check_choice("c", "a", ("a", "b")) == "a"
    with pytest.raises(ArgumentError, match=re.escape("`c` should be one of a, b. Received ['a']")):
        check_choice("c", ["a"], ("a", "b"))
