"""The drifting shop in BrowserGym: its loop, its observations, its actions by bid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from browsergym.experiments import AbstractAgentArgs, Agent, EnvArgs, ExpArgs
from browsergym.utils.obs import flatten_axtree_to_str

import drift_envs.integrations.browsergym
from drift_envs.errors import ArgumentError
from drift_envs.integrations.browsergym import SHOP, DriftShopTask
from drift_envs.registration import IDS
from tests.documents import read_code, run_code
from tests.extras.browsergym.bids import choose

# BrowserGym's loop leaves the file of its log open
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NOTHING = {"version": 1, "name": "calm", "env": SHOP, "tasks": {"pool": 2}}
BUTTON = {
    "version": 1,
    "name": "button",
    "env": SHOP,
    "tasks": {"pool": 1},
    "base": {"ad_page": True, "ad_right_button": "A"},
    "drifts": [{"at": 1, "set": {"ad_right_button": "C"}}],
}


class BidAgent(Agent):
    """Reads the accessibility tree and acts by bid, as agents of AgentLab do."""

    def get_action(self, obs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return choose(obs["axtree_txt"]), {}


@dataclass
class BidAgentArgs(AbstractAgentArgs):
    agent_name: str = "bids"

    def make_agent(self) -> BidAgent:
        return BidAgent()


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    opened = []

    def make_env(**task: Any) -> Any:
        env = gym.make("browsergym/drift_webshop", task_kwargs=task, pre_observation_delay=0.0)
        opened.append(env)
        return env

    yield make_env
    for env in opened:
        env.close()


def read(observation: dict[str, Any]) -> str:
    return flatten_axtree_to_str(observation["axtree_object"])


def play(
    env: Any, observation: dict[str, Any], advertised: str = "A"
) -> tuple[float, bool, dict[str, Any], dict[str, Any]]:
    """Act until an errand has ended."""
    ended_before = None
    for _ in range(29):
        observation, reward, ended, _, info = env.step(choose(read(observation), advertised))
        # BrowserGym waits half a second for a click to be done, which a busy machine exceeds; the click is done then
        assert not observation["last_action_error"] or "Timeout 500ms" in observation["last_action_error"]
        task = info["task_info"]
        if ended_before is not None and task["episode"] != ended_before:
            return reward, ended, task, observation
        ended_before = task["episode"]
    raise AssertionError(read(observation))


def test_an_agent_runs_in_the_loop_of_browsergym(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the loop counts tokens by a table that it downloads
    monkeypatch.setattr("browsergym.experiments.loop.count_tokens", lambda text, *rest, **more: len(text.split()))
    task = {"schedule": NOTHING, "episodes": 2}
    env_args = EnvArgs("drift_webshop", task_seed=3, max_steps=40, task_kwargs=task)
    run = ExpArgs(BidAgentArgs(), env_args)
    run.prepare(tmp_path)
    run.run()
    summary = json.loads((Path(run.exp_dir) / "summary_info.json").read_text())
    assert summary["err_msg"] is None, summary["stack_trace"]
    assert summary["terminated"]
    assert not summary["truncated"]
    assert 0.0 < summary["cum_reward"] <= 2.0


def test_a_lifetime_follows_the_schedule(make: Any) -> None:
    env = make(schedule=BUTTON, episodes=2)
    observation, info = env.reset(seed=0)
    assert info["task_info"] == {"episode": 0, "episodes": 2, "score": 0.0}
    assert "2 errands" in observation["goal"]
    inner = env.unwrapped.task.env
    reward, ended, task, observation = play(env, observation)
    assert (reward > 0.0, ended, task["episode"]) == (True, False, 1)
    assert inner.get_wrapper_attr("drift_state").knobs["ad_right_button"] == "C"
    assert observation["chat_messages"][-1]["message"].startswith("Errand 2 of 2: Find me")
    assert "searchbox" in read(observation), "the start page of the next errand"
    late, ended, task, observation = play(env, observation, advertised="C")
    assert (late, ended, task["episode"]) == (reward, True, 2), "the same goal, bought through the other button"


def test_equal_seeds_show_equal_pages(make: Any) -> None:
    trees = []
    for _ in range(2):
        env = make(schedule="webshop/explicit", episodes=1)
        observation, _ = env.reset(seed=5)
        tree = read(env.step(choose(read(observation)))[0])
        trees.append(re.sub(r"127\.0\.0\.1:\d+", "host", tree))
    assert trees[0] == trees[1]


def test_pixels_and_trees_show_a_theme_and_buttons_stay(make: Any) -> None:
    seen = []
    for theme in ("standard", "dark"):
        env = make(schedule={**NOTHING, "base": {"theme": theme}}, episodes=1)
        observation, _ = env.reset(seed=5)
        assert observation["screenshot"].shape == (900, 1280, 3)
        tree = read(observation)
        buttons = re.findall(r"(?:button|link|searchbox) '([^']*)'", tree)
        seen.append((buttons, "Manage cookies" in tree, observation["screenshot"].mean()))
    assert seen[0][0] == seen[1][0] != []
    assert [shown for _, shown, _ in seen] == [False, True]
    assert seen[0][2] > 200 > 60 > seen[1][2]


def test_an_errand_without_a_purchase_ends(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(IDS, SHOP, IDS[SHOP]._replace(limit=2))
    env = make(schedule=NOTHING, episodes=2)
    env.reset(seed=0)
    steps = [env.step("noop(0)") for _ in range(4)]
    assert [(reward, ended, info["task_info"]["episode"]) for _, reward, ended, _, info in steps] == [
        (0.0, False, 0),
        (0.0, False, 1),
        (0.0, False, 1),
        (0.0, True, 2),
    ]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"episodes": 0}, "`episodes` should be a whole number in the interval [1, 100000]. Received 0"),
        ({"schedule": {**NOTHING, "clock": "step"}}, "`schedule` should have the clock `episode`. Received 'step'"),
        (
            {"schedule": {**NOTHING, "base": {"transient": 0.5}}},
            "`schedule` should set knobs that pages show. Received 'calm', which sets transient",
        ),
    ],
)
def test_refusals(arguments: dict[str, Any], rule: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(rule)):
        DriftShopTask(seed=0, **arguments)


def test_importing_registers_the_task() -> None:
    assert drift_envs.integrations.browsergym.DriftShopTask.get_task_id() == "drift_webshop"
    assert "browsergym/drift_webshop" in gym.registry


def test_the_example_of_its_page_runs() -> None:
    (code,) = read_code("docs/browsergym.md")
    names = run_code(code)
    assert names["info"]["task_info"]["episodes"] == 60
    assert not names["terminated"]
