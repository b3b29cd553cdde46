"""Every environment's declaration: what it names exists and plays, and what it lacks is refused with one line."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.cli.app import main
from drift_envs.envs.make import EntryPoint
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.registration import IDS, EnvParts, parts_of
from drift_envs.schedule.yaml import shipped_schedules
from drift_envs.wrappers.text import find_describer


def require(env_id: str) -> EnvParts:
    """The declaration; skips where the environment's extra is not installed."""
    parts = IDS[env_id]
    packages = {"bfcl": "bfcl_eval", "box2d": "Box2D"}
    if parts.extra is not None and find_spec(packages.get(parts.extra, parts.extra)) is None:
        pytest.skip(f"needs the extra `{parts.extra}`")
    return parts


@pytest.mark.parametrize("env_id", IDS)
def test_a_row_is_registered(env_id: str) -> None:
    parts = IDS[env_id]
    assert parts.limit == gym.spec(env_id).max_episode_steps
    assert parts.schedule in shipped_schedules()
    assert list(parts.knob_table), "knobs can be listed without the extra"


@pytest.mark.parametrize("env_id", IDS)
def test_its_knobs_are_listed_without_its_extra(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--env", env_id]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in IDS[env_id].knob_table)


@pytest.mark.parametrize("env_id", IDS)
def test_an_environment_knows_its_declaration(env_id: str) -> None:
    parts = require(env_id)
    found = parts_of(parts.env_class(**parts.fixed))  # type: ignore[call-arg]
    assert found is not None
    assert (found.env, found.oracle, found.text) == (parts.env, parts.oracle, parts.text)
    assert parts.env_class.knobs is parts.knob_table  # type: ignore[attr-defined]


@pytest.mark.parametrize("env_id", IDS)
def test_every_reference_leads_somewhere(env_id: str) -> None:
    parts = require(env_id)
    for name in ("env", "knobs", "build", "text", "oracle", "vector", "marks"):
        if getattr(parts, name) is not None:
            assert parts.load(name) is not None
        else:
            with pytest.raises(ArgumentError, match=f"`{name}` should be a part of"):
                parts.load(name)


def describable(env_id: str) -> str | None:
    """Why an environment cannot be shown as text; `None` if it can."""
    env = gym.make(env_id)
    try:
        find_describer(env)
    except ArgumentError as error:
        return str(error)
    return None


@pytest.mark.parametrize("env_id", IDS)
def test_texts_and_their_actions_go_round(env_id: str) -> None:
    parts = require(env_id)
    if parts.text_mode is None and (reason := describable(env_id)):
        pytest.skip(reason)
    if parts.extra == "miniwob":
        pytest.skip("a browser a page: tests/extras/miniwob plays them")
    env = gym.make(env_id, text=True)
    state, info = env.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert env.observation_space.contains(state)
        assert isinstance(json.loads(state), dict)
        assert info["actions"]
        assert isinstance(info["task"], str)
        state, _, terminated, truncated, info = env.step(info["actions"][int(rng.integers(len(info["actions"])))])
        if terminated or truncated:
            state, info = env.reset()
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_the_oracle_answers_or_refuses(env_id: str) -> None:
    parts = require(env_id)
    if parts.extra == "miniwob":
        pytest.skip("a browser a page: tests/extras/miniwob asks its oracle")
    if parts.oracle is None:
        pytest.skip("no optimum is known")
    is_textual = parts.text_mode is not None or parts.text is not None
    env = gym.make(env_id, text=is_textual)
    state, info = env.reset(seed=1)
    oracle = env.get_wrapper_attr("oracle")
    action: Any = info["actions"][0] if is_textual else env.action_space.sample()
    assert oracle.response(state, action, 0)
    assert oracle.changed(state, action, 0, 0) is False
    if parts.knows_optimum:
        assert 0 <= oracle.value(0) <= 1
    else:
        with pytest.raises(NoOracleError):
            oracle.effect(0, 1)
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_keys_are_actions(env_id: str) -> None:
    parts = require(env_id)
    if parts.controls is None:
        pytest.skip("no keys")
    space = gym.make(env_id).action_space
    actions = [*parts.controls.keys.values(), *([] if parts.controls.idle is None else [parts.controls.idle])]
    for action in actions:
        assert space.contains(np.array(action, np.float32) if isinstance(action, tuple) else action)


@pytest.mark.parametrize("env_id", [name for name, entry in IDS.items() if entry.extra is None])
def test_every_environment_is_recorded(env_id: str, tmp_path: Any) -> None:
    out = tmp_path / "sheet.png"
    assert main(["record", env_id, "--out", str(out), "--phases", "1", "--policy", "random", "--steps", "3"]) == 0
    assert out.stat().st_size > 500


def test_what_an_environment_lacks_is_refused_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["play", "DriftHopper-v0"], ["record", "DriftHouse-v0", "--out", "film.xyz"]):
        assert main(words) != 0
        shown = capsys.readouterr().err
        assert len(shown.strip().splitlines()) == 1
        assert "Traceback" not in shown
    house = EntryPoint("DriftHouse-v0")
    with pytest.raises(ArgumentError, match="should have a native vector environment"):
        house.make_vector(2)


def test_a_row_imports_nothing() -> None:
    lake = IDS["DriftFrozenLake-v0"]
    assert lake.env == ".env:FrozenLake"
    assert all(isinstance(getattr(lake, name), str) for name in ("env", "knobs", "text", "oracle", "vector"))
