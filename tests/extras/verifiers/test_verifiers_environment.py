"""The environment for verifiers, in verifiers' own loop, with a tiny policy behind a server on this machine."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from drift_envs.errors import ArgumentError

pytest.importorskip("verifiers", reason="needs the extra `verifiers`")

import verifiers as vf

from drift_envs.integrations import verifiers as face
from drift_envs.integrations.verifiers import load_environment
from tests.drift_agents.llm.chat_server import said, serve
from tests.extras.offline import offline  # noqa: F401
from tests.extras.turn import TURN

# verifiers' own: sockets of its clients and loops that are left to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
ROOT = Path(__file__).resolve().parents[3]


def along(*paths):
    """A policy that goes along the first path until it has ended with the score 0, and then along the next one."""

    def answer(request):
        shown = [message["content"] for message in request["messages"] if message["role"] == "user"]
        failures = sum("score is 0" in text for text in shown)
        step = next(index for index, text in enumerate(reversed(shown)) if "Episode " in text)
        return said(f"Action: {paths[min(failures, len(paths) - 1)][step]}")

    return answer


def evaluate(env, answer, monkeypatch, **arguments):
    monkeypatch.setenv("NO_KEY", "none")
    with serve(answer) as server:
        client = vf.ClientConfig(api_key_var="NO_KEY", api_base_url=server.url, max_retries=0)
        found = asyncio.run(env.evaluate(client, "tiny", state_columns=["episodes", "trajectory"], **arguments))
    return found, server


def test_a_rollout_is_a_lifetime(monkeypatch):
    env = load_environment("lake", TURN, rounds=3, num_train=1, num_eval=2)
    found, server = evaluate(env, along((2, 2, 1), (1, 2, 2)), monkeypatch)
    assert len(found["outputs"]) == 2
    for output in found["outputs"]:
        assert output["error"] is None
        assert output["reward"] == pytest.approx(5 / 6)
        metrics = output["metrics"]
        assert (metrics["score_source"], metrics["score_moved"]) == (1.0, pytest.approx(2 / 3))
        assert metrics["recovered"] == 0.0  # the mean of all three episodes is below nine tenths
        assert [line["phase"] for line in output["episodes"]] == ["source"] * 3 + ["moved"] * 3
    assert server.requests[0]["messages"][0]["role"] == "system"


def test_the_score_of_an_episode_is_the_reward_of_its_last_step(monkeypatch):
    env = load_environment("lake", TURN, rounds=1, num_train=1, num_eval=1)
    found, _ = evaluate(env, along((2, 2, 1)), monkeypatch)
    (output,) = found["outputs"]
    assert [step["reward"] for step in output["trajectory"]] == [0.0, 0.0, 1.0, 0.0]


def test_a_rollout_that_is_cut_scores_zero_for_the_rest(monkeypatch):
    env = load_environment("lake", TURN, rounds=2, num_train=1, num_eval=1, max_turns=4)
    found, _ = evaluate(env, along((2, 2, 1)), monkeypatch)
    assert found["outputs"][0]["reward"] == pytest.approx(1 / 4)


def test_what_the_model_sees_names_no_drift(monkeypatch):
    env = load_environment("lake", TURN, rounds=2, num_train=1, num_eval=1)
    _, server = evaluate(env, along((2, 2, 1), (1, 2, 2)), monkeypatch)
    assert not re.search(r"phase|source|moved|tick|drift", json.dumps(server.requests[-1]["messages"]))


def test_training_and_evaluation_have_different_seeds():
    env = load_environment("house", rounds=1, num_train=2, num_eval=2, first_seed=5)
    assert [row["info"]["seed"] for row in env.get_dataset()] == [5, 6]
    assert [row["info"]["seed"] for row in env.get_eval_dataset()] == [7, 8]


def test_mistakes_name_the_rule():
    with pytest.raises(ArgumentError, match="`env` should be one of"):
        load_environment("moon")
    with pytest.raises(ArgumentError, match="exclude each other"):
        load_environment(rounds=1, episodes=1)


def test_the_command_of_the_page_evaluates(tmp_path):
    page = (ROOT / "docs" / "verifiers.md").read_text(encoding="utf-8")
    line = r"^vf-eval drift_envs.integrations.verifiers (.*) --model MODEL --api-base-url URL$"
    (command,) = re.findall(line, page, re.MULTILINE)
    options = re.findall(r"'[^']*'|\S+", command)
    with serve(lambda request: said("Action: 1")) as server:
        done = subprocess.run(
            [Path(sys.executable).with_name("vf-eval"), "drift_envs.integrations.verifiers",
             *(o.strip("'") for o in options), "--model", "tiny", "--api-base-url", server.url,
             "--api-key-var", "NO_KEY"],
            capture_output=True, text=True, timeout=400, check=False, cwd=tmp_path,
            env={**os.environ, "NO_KEY": "none", "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1"},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.requests
    assert "score_source" in done.stdout + done.stderr


def test_the_examples_of_the_module_run():
    assert doctest.testmod(face).failed == 0
