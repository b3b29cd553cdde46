"""What of BFCL's tools works without the package: knobs, and the error that names what to install."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import pytest

from drift_envs.envs.bfcl import package
from drift_envs.envs.bfcl.interface import BFCL_KNOBS, QUANTITIES, UNITS
from drift_envs.envs.tools.interface import TOOLS_KNOBS
from drift_envs.errors import KnobError, MissingDependencyError


def test_knobs_are_called_as_at_the_service_desk() -> None:
    assert set(BFCL_KNOBS) < set(TOOLS_KNOBS)
    assert BFCL_KNOBS["errors"].bounds == TOOLS_KNOBS["errors"].bounds


def test_every_quantity_has_units_of_which_the_first_is_the_packages() -> None:
    assert set(UNITS) == set(QUANTITIES)
    assert all(next(iter(units.values())) == 1 for units in UNITS.values())


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        (
            "names",
            {"cd": "two words"},
            "`names` should give 'cd' a name of letters, digits and `_`. Received 'two words'",
        ),
        ("names", {"a.b.c": "d"}, "`names` should name tools, or arguments as 'cd.folder'. Received 'a.b.c'"),
        ("names", {3: "d"}, "Received 3"),
        ("required", {"cd": "email"}, "`required` should give 'cd' `confirm`. Received 'email'"),
        ("units", {"time": "days"}, "`units` should name one of money, fuel, pedal. Received 'time'"),
        ("units", {"money": "euros"}, "`units` should give 'money' one of dollars, cents. Received 'euros'"),
        ("units", {"money": ["cents"]}, "`units` should give 'money' one of dollars, cents. Received ['cents']"),
        ("defaults", {"tail": 3}, "`defaults` should name arguments such as 'create_ticket.priority'. Received 'tail'"),
        ("defaults", {"tail.lines": {"a": 1}}, "a text, a number, true, false or a list. Received {'a': 1}"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named(knob: str, value: Any, message: str) -> None:
    with pytest.raises(KnobError, match=re.escape(message)):
        BFCL_KNOBS[knob].check(value)


def test_two_new_names_are_not_equal() -> None:
    names = {"names": BFCL_KNOBS["names"].check({"cd": "go", "ls": "go"})}
    assert [knob for knob, _ in BFCL_KNOBS.problems({**BFCL_KNOBS.defaults(), **names})] == ["names"]


@pytest.mark.parametrize("missing", ["bfcl_eval", "mpmath"])
def test_without_the_package_one_line_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None if name == missing else find_spec(name))
    with pytest.raises(MissingDependencyError, match=re.escape('run `pip install ".[bfcl]"` in a checkout')) as found:
        gym.make("DriftBfcl-v0")
    assert f"`{missing}`" in str(found.value)
    assert "\n" not in str(found.value)
