"""Checks of arguments."""

from __future__ import annotations

import pytest

from webshop_server.checks import check_flag
from webshop_server.errors import SettingsError


def test_the_class_of_the_error_and_long_values():
    with pytest.raises(SettingsError, match=r"Received 'x{199}\.\.\.$"):
        check_flag("f", "x" * 1000, SettingsError)
