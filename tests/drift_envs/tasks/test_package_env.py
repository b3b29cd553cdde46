"""Environments of tool packages, by a stand-in whose package is two tools: what leaving at once scores."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

import drift_envs
from drift_envs import DriftWrapper, save_progress
from drift_envs.envs.bfcl.interface import BFCL_KNOBS, BfclInterface
from drift_envs.tasks.package_env import PackageEpisode, PackageToolsEnv
from drift_envs.tasks.package_tools import PackageArgument, PackageCall, PackageTool

TOOLS = {
    "write": PackageTool("write", "Write.", {"number": PackageArgument("number", {"type": "integer"})}),
    "finish": PackageTool("finish", "End.", {}),
}
TASKS = {
    number: SimpleNamespace(turns=1 + number % 3, right=number % 4, engines=("",), excluded=()) for number in range(12)
}
"""A task is solved if `right` numbers were written and all turns were ended."""


class Interface(BfclInterface):
    def _own_tools(self) -> Mapping[str, PackageTool]:
        return TOOLS


class Episode(PackageEpisode):
    _saved = ("left", "written", "done")

    def __init__(self, interface: Any, task: Any) -> None:
        super().__init__(interface, task)
        self.left, self.written = task.turns, 0
        self.done: tuple[PackageCall, ...] = ()

    @property
    def request(self) -> str:
        return f"Write {self.task.right} numbers."

    @property
    def is_over(self) -> bool:  # type: ignore[override]
        return not self.left

    @property
    def score(self) -> float:  # type: ignore[override]
        return float(self.is_over and self.written == self.task.right)

    @property
    def history(self) -> tuple[PackageCall, ...]:
        return self.done

    def _note(self, call: PackageCall) -> None:
        self.done = (*self.done, call)

    def _execute(self, call: PackageCall) -> Any:
        if call.tool == "finish":
            self.left -= 1
        else:
            self.written += 1
        return {"ok": True}

    def write_state(self) -> str:
        return "{}"

    def _replay(self, history: Any) -> None:
        pass


class Package(PackageToolsEnv[Episode]):
    knobs = BFCL_KNOBS
    interface_class = Interface
    episode_class = Episode
    find_package = staticmethod(lambda: None)
    load_tasks = staticmethod(lambda: TASKS)
    most_tasks, others = 100, 7

    @staticmethod
    def plan_reference(number: int, interface: Any) -> list[PackageCall]:
        task = TASKS[number]
        return [PackageCall("write", {"number": 1})] * task.right + [PackageCall("finish", {})] * task.turns

    def find_task(self, number: int) -> Any:
        return TASKS[number]


@pytest.mark.parametrize(
    "knobs", [{}, {"names": {"finish": "close"}}, {"required": {"finish": "confirm"}, "errors": "terse"}]
)
def test_the_share_of_tasks_that_are_solved_if_every_request_is_ended_at_once(knobs: dict[str, Any]) -> None:
    env = Package()
    env.set_knobs({name: BFCL_KNOBS[name].check(value) for name, value in knobs.items()})
    env.reset(seed=0)
    assert env.share_left_at_once() == 3 / 12


def test_a_running_episode_goes_on_although_calls_stand_in_two_places() -> None:
    first, second = DriftWrapper(Package(), None), DriftWrapper(Package(), None)
    observation, _ = first.reset(seed=0, options={"goal_index": 2})
    for _ in range(2):
        observation = first.step('{"tool": "write", "arguments": {"number": 1}}')[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restored = drift_envs.restore_progress(second, json.loads(json.dumps(save_progress(first, observation))))
    assert restored == (observation, False, False)
    for env in (first, second):
        for _ in range(3):
            result = env.step('{"tool": "finish", "arguments": {}}')
        assert result[2]
        assert result[4]["score"] == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_with_a_pool_it_is_the_share_of_its_tasks(seed: int) -> None:
    env = Package(pool=5)
    env.reset(seed=seed)
    assert env.task_pool is not None
    assert env.share_left_at_once() == sum(number % 4 == 0 for number in env.task_pool) / 5
    assert any(number % 4 for number in env.task_pool)
