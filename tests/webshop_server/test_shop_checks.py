"""Checks of arguments."""

from __future__ import annotations

import re

import numpy as np
import pytest

from webshop_server.checks import check_choice, check_flag, check_integer, check_number
from webshop_server.errors import ArgumentError, SettingsError


def test_valid_values_are_returned():
    assert check_integer("n", np.int64(3), 0, 3) == 3
    assert type(check_integer("n", np.int64(3), 0)) is int
    assert check_number("x", 0.5, 0, 1) == 0.5
    assert check_flag("f", False) is False
    assert check_choice("c", "a", ("a", "b")) == "a"


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (lambda: check_integer("n", True, 0), "`n` should be a whole number, at least 0. Received True"),
        (lambda: check_integer("n", 1.0, 0), "`n` should be a whole number, at least 0. Received 1.0"),
        (lambda: check_integer("n", 4, 0, 3), "`n` should be a whole number in the interval [0, 3]. Received 4"),
        (lambda: check_number("x", True, 0, 1), "`x` should be a number. Received True"),
        (lambda: check_number("x", float("inf"), 0, 1), "`x` should be a number. Received inf"),
        (lambda: check_number("x", 2, 0, 1), "`x` should be in the interval [0, 1]. Received 2"),
        (lambda: check_flag("f", "no"), "`f` should be true or false. Received 'no'"),
        (lambda: check_choice("c", ["a"], ("a", "b")), "`c` should be one of a, b. Received ['a']"),
    ],
)
def test_invalid_values_are_refused(check, reason):
    with pytest.raises(ArgumentError, match=re.escape(reason)):
        check()


def test_the_class_of_the_error_and_long_values():
    with pytest.raises(SettingsError, match=r"Received 'x{199}\.\.\.$"):
        check_flag("f", "x" * 1000, SettingsError)
