"""Lifetimes for verifiers, in verifiers' own loop and command, with a tiny policy behind a server on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("verifiers", reason="needs the extra `verifiers`")

import verifiers.v1 as vf
from verifiers.v1.cli.eval.main import main

from tests.drift_agents.llm.chat_server import refused, said, serve
from tests.extras.offline import offline  # noqa: F401
from tests.extras.turn import TURN

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]
NAME = "drift-lifetimes"  # the package of examples/, which requirements.txt installs


@pytest.fixture
def turn(tmp_path):
    """The schedule of the tests, as a file."""
    path = tmp_path / "turn.yaml"
    path.write_text(yaml.safe_dump(TURN), encoding="utf-8")
    return str(path)


def along(*paths):
    """A policy that goes along the first path until it has ended with the score 0, and then along the next one."""

    def answer(request):
        shown = [message["content"] for message in request["messages"] if message["role"] == "user"]
        failures = sum("score is 0" in text for text in shown)
        step = next(index for index, text in enumerate(reversed(shown)) if "Episode " in text)
        return said(f"Action: {paths[min(failures, len(paths) - 1)][step]}")

    return answer


def play(answer, agent=None, **taskset):
    """Play every lifetime of a taskset; their traces, and the server that was asked."""
    config = vf.resolve_env_config({"taskset": {"id": NAME, **taskset}, "agent": agent or {}})

    async def all_tasks(client):
        env = vf.load_environment(config)
        async with env.serving():
            return [await env.run_episode(task, vf.ModelContext(model="tiny", client=client)) for task in env.taskset]

    with serve(answer) as server:
        client = vf.EvalClientConfig(base_url=server.url, api_key_var="NO_KEY")
        episodes = asyncio.run(all_tasks(client))
    return episodes, server


def test_a_rollout_is_a_lifetime(turn):
    episodes, server = play(along((2, 2, 1), (1, 2, 2)), schedules=[turn], rounds=3, lifetimes=2)
    assert len(episodes) == 2
    for episode in episodes:
        assert episode.ok, episode.errors
        (trace,) = episode.traces
        assert trace.reward == pytest.approx(5 / 6)
        assert (trace.metrics["score_source"], trace.metrics["score_moved"]) == (1.0, pytest.approx(2 / 3))
        assert trace.metrics["recovered"] == 0.0  # the mean of all three episodes is below nine tenths
        assert [line["phase"] for line in trace.info["episodes"]] == ["source"] * 3 + ["moved"] * 3
        # One branch: what the model said is in its next prompt as it was said, which trainers on tokens need.
        assert trace.num_branches == 1
        assert trace.num_turns == 16
    assert server.requests[0]["messages"][0]["role"] == "system"


def test_a_rollout_that_is_cut_scores_zero_for_the_rest(turn):
    episodes, server = play(along((2, 2, 1)), {"max_turns": 4}, schedules=[turn], rounds=2, lifetimes=1)
    assert episodes[0].traces[0].reward == pytest.approx(1 / 4)
    assert len(server.requests) == 4


def test_a_rollout_that_is_cut_scores_zero_for_the_rest_where_the_clock_counts_steps(tmp_path):
    path = tmp_path / "steps.yaml"
    path.write_text(yaml.safe_dump({**TURN, "name": "steps", "clock": "step"}), encoding="utf-8")
    episodes, _ = play(along((2, 2, 1)), {"max_turns": 3}, schedules=[str(path)], episodes=4, lifetimes=1)
    assert episodes[0].traces[0].reward == pytest.approx(1 / 4)


def test_what_the_model_sees_names_no_drift(turn):
    _, server = play(along((2, 2, 1), (1, 2, 2)), schedules=[turn], rounds=2, lifetimes=1)
    assert not re.search(r"phase|source|moved|tick|drift|turn\.yaml|seed", json.dumps(server.requests[-1]["messages"]))


def test_a_server_that_refuses_is_the_error_of_the_rollout(turn):
    episodes, _ = play(lambda request: refused(400, "no such model"), schedules=[turn], rounds=1, lifetimes=1)
    assert not episodes[0].ok
    assert "no such model" in episodes[0].traces[0].last_error.message


def test_schedules_take_turns_and_seeds_grow():
    config = vf.resolve_env_config(
        {"taskset": {"id": NAME, "schedules": ["house/explicit", "webshop/explicit"], "lifetimes": 3, "first_seed": 5}}
    )
    rows = [task.data for task in vf.load_taskset(config.taskset)]
    assert [(row.schedule, row.seed) for row in rows] == [
        ("house/explicit", 5), ("webshop/explicit", 5), ("house/explicit", 6),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("taskset", "rule"),
    [
        ({"schedules": ["frozen_lake/explict"]}, "Did you mean"),
        ({"schedules": ["frozen_lake/explicit"], "rounds": 1, "episodes": 1}, "exclude each other"),
        ({"schedules": ["frozen_lake/explicit"], "rounds": 0}, "`rounds` should be"),
        ({"schedules": []}, "schedules"),
    ],
)
def test_mistakes_name_the_rule_before_a_model_is_asked(taskset, rule):
    with pytest.raises(ValueError, match=rule):
        vf.resolve_env_config({"taskset": {"id": NAME, **taskset}})


@pytest.mark.parametrize("page", ["docs/training_agents.md", "examples/drift_lifetimes/README.md"])
def test_the_command_of_the_page_evaluates(tmp_path, page):
    text = (ROOT / page).read_text(encoding="utf-8")
    line = r"^vf-eval (drift-lifetimes .*) --model MODEL --client.base-url URL --client.api-key-var KEY --no-push$"
    (options,) = re.findall(line, text, re.MULTILINE)
    with serve(lambda request: said("Action: 1")) as server:
        done = subprocess.run(
            [Path(sys.executable).with_name("vf-eval"), *shlex.split(options), "--model", "tiny", "--client.base-url",
             server.url, "--client.api-key-var", "NO_KEY", "--no-push"],
            capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path,
            env={**os.environ, "NO_KEY": "none", "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1"},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (traces,) = tmp_path.glob("outputs/*/traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text("utf-8").splitlines()]
    assert len(episodes) == 2
    assert "score_source" in json.dumps(episodes)
    assert len(server.requests) > 4


def test_a_mistake_on_the_command_line_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["drift-lifetimes", "--env.taskset.schedules", '["lake"]', "--no-push"])
    shown = capsys.readouterr()
    assert ended.value.code
    assert "no shipped schedule 'lake'" in " ".join(f"{shown.out} {shown.err} {ended.value}".split())
