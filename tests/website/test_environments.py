"""The pages of environments."""

from __future__ import annotations

import contextlib

import gymnasium as gym
import pytest

from drift_envs.registration import IDS
from tests.core_ids import CORE_IDS
from website import environments, schedules
from website.shipped import read_table


@pytest.fixture(autouse=True)
def core_schedules(monkeypatch: pytest.MonkeyPatch):
    """Only schedules that need no extra."""
    folders = {entry.schedule.partition("/")[0] for entry in CORE_IDS.values()}
    rows = {name: row for name, row in read_table().items() if name.partition("/")[0] in folders}
    monkeypatch.setattr(schedules, "read_table", lambda: rows)
    schedules.read_shipped.cache_clear()
    yield
    schedules.read_shipped.cache_clear()


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_a_page_has_knobs_arguments_spaces_and_schedules(env_id: str) -> None:
    page, parts = environments.page(env_id), IDS[env_id]
    assert page.startswith(f"# {env_id}\n")
    assert all(f"| `{knob.name}` |" in page for knob in parts.knob_table.knobs)
    assert all(f"| `{name}` |" in page for name in parts.arguments)
    assert f"{{ #{IDS[env_id].schedule.replace('/', '-')} }}" in page
    assert f"at most {parts.limit} steps" in page
    assert ".webp" in page


@pytest.mark.parametrize("env_id", [one for one in CORE_IDS if IDS[one].text_mode is None])
def test_spaces_are_those_of_the_snippet(env_id: str) -> None:
    page = environments.page(env_id)
    rows = dict(line.strip("| ").split(" | ", 1) for line in page.splitlines() if " space | `" in line)
    with contextlib.closing(gym.make(env_id)) as env:
        for name, space in (("action", env.action_space), ("observation", env.observation_space)):
            shown = rows[f"{name} space"].strip(" |").partition(";")[0]
            assert shown.startswith(f"`{str(space).partition('(')[0]}(")
            assert isinstance(space, (gym.spaces.Box, gym.spaces.Dict)) or shown == f"`{space}`"


def test_a_board_without_schedule_has_another_space() -> None:
    assert "`Discrete(36)`; `Discrete(16)` with `schedule=None`" in environments.page("DriftFrozenLake-v0")


def test_spaces_and_rewards_of_the_class_that_is_extended() -> None:
    page = environments.page("DriftMountainCar-v0")
    assert "From the documentation of Gymnasium's `MountainCarEnv`." in page
    assert "### Observation Space" in page
    assert "Truncation" not in page, "this package has another limit"


def test_every_thumbnail_is_a_link_and_every_page_is_in_the_navigation() -> None:
    shown = environments.thumbnails()
    named = str(environments.navigation())
    for env_id in IDS:
        assert f'<a href="environments/{env_id}.html">' in shown
        assert f"'environments/{env_id}.md'" in named
