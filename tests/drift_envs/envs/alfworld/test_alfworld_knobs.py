"""What of ALFWorld's rooms works without the packages: knobs, the page, and the error that names what to install."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs.alfworld import knobs as package
from drift_envs.envs.alfworld.knobs import ALFWORLD_KNOBS
from drift_envs.errors import KnobError, MissingDependencyError


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("kept", {"Mug": "shelf"}, "`kept` should name kinds of things such as 'mug'. Received 'Mug'"),
        (
            "kept",
            {"mug": "shelf 123"},
            "a receptacle such as 'shelf 2' or a kind such as 'shelf'. Received 'shelf 123'",
        ),
        ("names", {"shelf": "rack 1"}, "words of lower case. Received 'rack 1'"),
        ("gone", ["Shelf"], "`gone` should name a receptacle such as 'shelf 2' or a kind such as 'shelf'."),
        ("effects", {"oven": "heat"}, "`effects` should name one of microwave, fridge, sinkbasin. Received 'oven'"),
        ("effects", {"fridge": "freeze"}, "one of heat, cool, clean, nothing. Received 'freeze'"),
        ("verbs", {"sing": "hum"}, "`verbs` should name one of go to, open"),
        ("verbs", {"move to": "put"}, "`verbs` should give 'move to' two words, before and between its names"),
        ("verbs", {"open": "pull it open"}, "`verbs` should give 'open' one or two words. Received 'pull it open'"),
        ("verbs", {"heat with": 'x" y'}, "should give 'heat with' two words"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named(knob: str, value: Any, message: str) -> None:
    with pytest.raises(KnobError, match=re.escape(message)):
        ALFWORLD_KNOBS[knob].check(value)


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("plan", 31),
        ("plan", 107),
        ("plan", 200),
        ("names", {"shelf": "rack", "desk": "rack"}),
        ("verbs", {"take from": "move to"}),
        ("verbs", {"open": "go to"}),
    ],
)
def test_a_rule_between_values_is_named(knob: str, value: Any) -> None:
    values = {**ALFWORLD_KNOBS.defaults(), knob: ALFWORLD_KNOBS[knob].check(value)}
    assert {name for name, _ in ALFWORLD_KNOBS.problems(values)} == {knob}


def test_a_plan_is_drawn_by_room_and_split() -> None:
    draw = ALFWORLD_KNOBS["plan"].draw
    assert draw is not None
    rng = np.random.default_rng(0)
    assert {draw({"room": "bedroom", "split": "unseen"}, 302, rng) for _ in range(60)} == {301, 303, 304, 305, 306}
    assert {draw({}, None, rng) // 100 for _ in range(60)} == {0, 2, 3, 4}
    assert all(draw({"room": "kitchen"}, None, rng) in range(7, 31) for _ in range(60))
    for wrong in ({"room": "cellar"}, {"split": "test"}, {"floor": 1}):
        with pytest.raises(KnobError, match="`plan`: `draw`"):
            draw(wrong, None, rng)


@pytest.mark.parametrize("found", ["9.9", ""])
def test_another_version_or_none_is_refused_with_one_line(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name != "alfworld":
            return package.VERSIONS[name]
        if not found:
            raise package.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(package, "version", version)
    package.find_package.cache_clear()
    try:
        with pytest.raises(MissingDependencyError, match=re.escape('pip install ".[alfworld]"')) as caught:
            gym.make("DriftAlfworld-v0")
        assert str(caught.value).startswith("`alfworld` 0.4.2 should be installed")
        assert ("Received alfworld 9.9" in str(caught.value)) == bool(found)
        assert "\n" not in str(caught.value)
    finally:
        package.find_package.cache_clear()
