"""The tasks for Inspect, evaluated by Inspect itself with its mock model."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from drift_envs.errors import ArgumentError, ScheduleError

pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")

from inspect_ai import eval as evaluate
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from drift_envs.integrations import inspect as face
from drift_envs.integrations.inspect import car, drift_task, house, lake, shop
from tests.documents import read_code
from tests.drift_agents.llm.chat_server import said, serve
from tests.extras.offline import offline  # noqa: F401
from tests.extras.turn import TURN

# Inspect's own: an argument of tenacity, and streams of anyio that are left to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*MemoryObject:pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).resolve().parents[3]


def model_of(choose):
    """A mock model whose replies are `choose(messages)`."""

    def output(messages, tools, tool_choice, config):
        # without a usage Inspect would download an encoding to count the tokens
        made = ModelOutput.from_content("mockllm/model", choose(messages))
        made.usage = ModelUsage()
        return made

    return get_model("mockllm/model", custom_outputs=output)


def path_of(*actions):
    """A model that takes these actions, one in each step of an episode."""

    def choose(messages):
        step = 0
        for message in messages:
            if message.role == "user":
                step = 0 if "Episode " in message.text else step + 1
        return f"I go on.\nAction: {actions[min(step, len(actions) - 1)]}"

    return model_of(choose)


def run(task, model, tmp_path, **arguments):
    (log,) = evaluate(task, model=model, log_dir=str(tmp_path), display="none", **arguments)
    assert log.status == "success", log.error
    return log


def metrics_of(log):
    return {score.name: score.metrics["mean"].value for score in log.results.scores}


def test_a_sample_is_a_lifetime_scored_by_phase(tmp_path):
    log = run(drift_task("DriftFrozenLake-v0", TURN, rounds=4), path_of(2, 2, 1), tmp_path)
    found = metrics_of(log)
    assert (found["score_source"], found["score_moved"], found["score"]) == (1.0, 0.0, 0.5)
    assert (found["recovered"], found["recovery_episodes"]) == (0.0, 4.0)
    (sample,) = log.samples
    lines = sample.scores["lifetime_scorer"].metadata["episodes"]
    assert [(line["phase"], line["tick"], line["steps"]) for line in lines] == [
        *(("source", tick, 3) for tick in range(4)),
        *(("moved", tick, 1) for tick in range(4, 8)),
    ]


def test_a_model_that_notices_recovers(tmp_path):
    def choose(messages):
        """The old path, until it has ended in a hole; then the new one."""
        said = [message.text for message in messages if message.role == "user"]
        path = (1, 2, 2) if any("ended" in text and "score is 0" in text for text in said) else (2, 2, 1)
        step = next(index for index, text in enumerate(reversed(said)) if "Episode " in text)
        return f"Action: {path[step]}"

    found = metrics_of(run(drift_task("DriftFrozenLake-v0", TURN, rounds=4), model_of(choose), tmp_path))
    assert (found["score_source"], found["score_moved"]) == (1.0, 0.75)
    assert (found["recovered"], found["recovery_episodes"]) == (1.0, 1.0)


def test_nothing_that_the_model_sees_names_the_drift(tmp_path):
    seen = []

    def choose(messages):
        seen.append(" ".join(message.text for message in messages))
        return "Action: 2"

    run(drift_task("DriftFrozenLake-v0", TURN, rounds=2), model_of(choose), tmp_path)
    assert not re.search(r"phase|source|moved|tick|drift", seen[-1])


def test_the_model_sees_as_much_history_as_it_is_given(tmp_path):
    seen = []

    def choose(messages):
        seen.append([message.role for message in messages])
        return "Action: 0"

    task = drift_task("DriftFrozenLake-v0", {**TURN, "drifts": []}, episodes=1, history=3)
    log = run(task, model_of(choose), tmp_path)
    assert seen[0] == ["system", "user"]
    assert seen[-1] == ["system", "user", "assistant", "user"]
    assert len(log.samples[0].messages) == 201  # the log has all: a hundred steps of two messages


def test_a_lifetime_that_a_limit_cuts_is_scored_with_zeros(tmp_path):
    task = drift_task("DriftFrozenLake-v0", TURN, rounds=4)
    log = run(task, path_of(2, 2, 1), tmp_path, message_limit=9)  # ends in the second episode
    assert metrics_of(log) == {
        "score": 0.125, "score_source": 0.25, "score_moved": 0.0, "recovered": 0.0, "recovery_episodes": 4.0,
    }  # fmt: skip


def test_messages_without_an_action_abandon_the_episode(tmp_path):
    log = run(drift_task("DriftFrozenLake-v0", TURN, rounds=1), model_of(lambda messages: "I refuse."), tmp_path)
    lines = log.samples[0].scores["lifetime_scorer"].metadata["episodes"]
    assert [(line["ended"], line["steps"]) for line in lines] == [("abandoned", 0), ("abandoned", 0)]


@pytest.mark.parametrize(
    ("make", "name", "schedule", "action"),
    [
        (lake, "lake", "frozen_lake/explicit", "2"),
        (car, "car", "mountain_car/explicit", "1"),
        (shop, "shop", "webshop/explicit", "search[mug]"),
        (house, "house", "house/explicit", "inventory"),
    ],
    ids=["lake", "car", "shop", "house"],
)
def test_every_environment_is_played_under_its_name(make, name, schedule, action, tmp_path):
    log = run(make(episodes=1), model_of(lambda messages: f"Action: {action}"), tmp_path)
    assert log.eval.task.rpartition("/")[2] == name
    assert log.eval.metadata["schedule"] == schedule
    assert f"_{name}_" in log.location
    assert metrics_of(log)["score"] == 0.0
    assert log.samples[0].scores["lifetime_scorer"].metadata["episodes"][0]["steps"] > 0


def test_samples_have_seeds_of_their_own(tmp_path):
    log = run(lake(schedule="frozen_lake/slippery", rounds=1, samples=2, first_seed=7), path_of(1, 2), tmp_path)
    assert [sample.id for sample in log.samples] == ["seed 7", "seed 8"]


def test_mistakes_are_refused_before_a_model_is_asked():
    with pytest.raises(ArgumentError, match=re.escape("`rounds` should be at most the episodes of the shortest phase")):
        lake(rounds=1000)
    with pytest.raises(ArgumentError, match="exclude each other"):
        lake(rounds=1, episodes=1)
    with pytest.raises(ArgumentError, match="give `episodes` instead"):
        lake(schedule="frozen_lake/explicit:mid-episode", rounds=1)
    with pytest.raises(ScheduleError):
        lake(schedule="nowhere")


def test_the_command_of_the_page_plays_with_a_provider_and_writes_a_log(tmp_path):
    page = (ROOT / "docs" / "inspect.md").read_text(encoding="utf-8")
    (options,) = re.findall(r"^inspect eval drift_envs/lake --model openai/MODEL (.*)$", page, re.MULTILINE)
    options = options.replace("rounds=5", "rounds=1").replace("samples=10", "samples=2").split()
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # as it is installed
    with serve(lambda request: said("Action: 1")) as server:
        done = subprocess.run(
            [Path(sys.executable).with_name("inspect"), "eval", "drift_envs/lake", "--model", "openai-api/local/tiny",
             *options, "--display", "plain", "--message-limit", "20"],
            capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
            env={**variables, "LOCAL_API_KEY": "none", "LOCAL_BASE_URL": server.url, "NO_PROXY": "127.0.0.1"},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.requests[0]["messages"][0]["role"] == "system"
    (path,) = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(path))
    assert len(log.samples) == 2
    assert {"score", "score_source", "recovered"} <= set(metrics_of(log))


def test_the_code_of_the_page_runs(tmp_path):
    (code,) = read_code("docs/inspect.md")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "score_source" in done.stdout


def test_the_examples_of_the_module_run():
    assert doctest.testmod(face).failed == 0
