"""OpenEnv's server and its own client on one machine; a session is a lifetime."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import httpx
import pytest
import yaml

from drift_envs.errors import ArgumentError, StateError

pytest.importorskip("openenv", reason="needs the extra `openenv`")

from openenv.cli._validation import validate_running_environment
from openenv.core import GenericEnvClient

from drift_envs.integrations import openenv as face
from drift_envs.integrations.openenv import LifetimeAction, LifetimeEnvironment, make_app
from tests.documents import read_code, run_code
from tests.extras.offline import offline  # noqa: F401
from tests.extras.turn import TURN

ROOT = Path(__file__).resolve().parents[3]


class Walker:
    """Goes along the first path until it has failed, then along the second."""

    def __init__(self):
        self.failed, self.step, self.seen = False, 0, []

    def __call__(self, message):
        self.seen.append(message)
        self.failed |= "score is 0" in message
        self.step = 0 if "Episode " in message else self.step + 1
        return f"Action: {((1, 2, 2) if self.failed else (2, 2, 1))[self.step]}"


@contextmanager
def served(*arguments):
    """The command, and the address that it prints."""
    with subprocess.Popen(
        [sys.executable, "-m", "drift_envs", "openenv", *arguments], stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            yield re.search(r"http://127\.0\.0\.1:\d+", next(line for line in server.stderr if "serving" in line))[0]
        finally:
            server.terminate()
            server.wait(timeout=30)


@pytest.fixture
def schedule(tmp_path):
    path = tmp_path / "turn.json"
    path.write_text(json.dumps(TURN), encoding="utf-8")
    return str(path.rename(tmp_path / "turn.yaml"))


@pytest.fixture(scope="module")
def play():
    (code,) = read_code("docs/openenv.md")
    return run_code(code)["play"]


def test_the_client_of_the_page_plays_lifetimes(play, schedule):
    with served("DriftFrozenLake-v0", "--schedule", schedule, "--rounds", "3") as address:
        for _ in range(2):  # a session is a lifetime: the second client begins at the first tick again
            walker = Walker()
            rewards, scores = play(address, walker)
            assert sum(rewards) == 5.0
            assert (scores["score_source"], scores["score_moved"]) == (1.0, pytest.approx(2 / 3))
            assert not re.search(r"phase|source|moved|tick|drift", " ".join(walker.seen))
        with GenericEnvClient(base_url=address).sync() as client:
            result = client.reset(seed=3, episode_id="mine")
            assert result.observation["instructions"].startswith("You act in an environment of text")
            assert result.observation["scores"] == {}
            result = client.step({"message": "what?"})
            assert result.observation["message"].startswith("No action was taken")
            state = client.state()
            assert (state["episode_id"], state["step_count"]) == ("mine", 1)


def test_sessions_at_one_time_do_not_share_a_clock(schedule):
    with (
        served("DriftFrozenLake-v0", "--schedule", schedule, "--episodes", "6") as address,
        GenericEnvClient(base_url=address).sync() as first,
        GenericEnvClient(base_url=address).sync() as second,
    ):
        first.reset(seed=0)
        second.reset(seed=0)
        for _ in range(4):
            for action in (2, 2, 1):
                result = first.step({"message": f"Action: {action}"})
        assert (result.reward, result.observation["episodes"]) == (1.0, 4)
        for action in (2, 2, 1):  # the drift has come for the first session alone
            last = second.step({"message": f"Action: {action}"})
        assert (last.reward, last.observation["episodes"]) == (1.0, 1)
        result = first.step({"message": "Action: 2"})
        assert (result.reward, result.observation["episodes"]) == (0.0, 5)


def test_openenv_itself_finds_the_server_valid_and_a_step_without_a_session_is_refused(schedule):
    with served("DriftFrozenLake-v0", "--schedule", schedule) as address:
        report = validate_running_environment(address, timeout_s=30)
        assert httpx.post(f"{address}/reset", json={}).status_code == 200
        answer = httpx.post(f"{address}/step", json={"action": {"message": "Action: 1"}})
    assert report["passed"], report["summary"]["failed_criteria"]
    assert (answer.status_code, "WebSocket /ws" in answer.json()["detail"]) == (409, True)


def test_the_folder_of_the_example_is_one_of_openenv(monkeypatch):
    folder = ROOT / "examples" / "openenv"
    manifest = yaml.safe_load((folder / "openenv.yaml").read_text(encoding="utf-8"))
    assert (manifest["spec_version"], manifest["type"], manifest["runtime"]) == (1, "space", "fastapi")
    module, name = manifest["app"].split(":")
    monkeypatch.syspath_prepend(str(folder))
    paths = {route.path for route in getattr(import_module(module), name).routes}
    assert {"/ws", "/health"} <= paths


def test_a_seed_gives_the_same_lifetime():
    def messages():
        environment = LifetimeEnvironment("DriftFrozenLake-v0", "frozen_lake/slippery", rounds=1)
        observation = environment.reset(seed=5)
        while not observation.done:
            yield observation.message
            observation = environment.step(LifetimeAction(message="Action: 2"))

    assert list(messages()) == list(messages())


def test_mistakes_name_the_rule(schedule):
    environment = LifetimeEnvironment("DriftFrozenLake-v0", TURN)
    with pytest.raises(StateError, match="call `reset`"):
        environment.step(LifetimeAction(message="Action: 0"))
    with pytest.raises(ArgumentError, match="`rounds` should be at most"):
        make_app("DriftFrozenLake-v0", TURN, rounds=9)
    done = subprocess.run(
        [sys.executable, "-m", "drift_envs", "openenv", "DriftFrozenLake-v0", "--schedule", schedule, "--rounds", "9"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, "`rounds` should be at most" in done.stderr) == (1, True)
    assert "Traceback" not in done.stderr


def test_the_examples_of_the_module_run():
    assert doctest.testmod(face).failed == 0
