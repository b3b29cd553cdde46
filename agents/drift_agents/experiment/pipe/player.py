"""The evaluator's side of the pipe: plays the episodes of a cell with an agent in a process of its own.

* `PipedAgent` - stands where an `Agent` would
* `make_piped_agent` - the agent of a cell: a program of an entry, or this package's parts
* `SELF_REPORTED` - the fields of a line that such an agent reports of itself

What counts for a rank is counted here: score, steps, probes, and what language models cost, whose requests pass through
this process. `docs/joining.md` documents the messages.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import gymnasium as gym

from drift_agents.agent import count_loops
from drift_agents.checks import is_integer
from drift_agents.errors import AgentProcessError, ContextLengthError
from drift_agents.experiment.config import MODEL_OPTIONS, ScheduleSettings
from drift_agents.experiment.mistakes import COMMAND
from drift_agents.experiment.packages import find_parts
from drift_agents.experiment.pipe.process import START_SECONDS, AgentProcess, Code
from drift_agents.experiment.plan import Cell
from drift_agents.llm.base import Message, Model
from drift_agents.llm.service import Service
from drift_agents.registry import REGISTRIES
from drift_agents.text_env import read_outcome, reset_text_env, to_env
from drift_agents.types import (
    NO_COST,
    NO_USAGE,
    SUPERVISION,
    AgentClock,
    Episode,
    Experience,
    ProbeCost,
)
from drift_agents.verifier.prober.replay import episode_end_cost

PROTOCOL = 1
"""The number of the protocol."""

SELF_REPORTED = (
    "surprises",
    "realignments",
    "memory_size",
    "invalid_actions",
    "reasks",
    "fallbacks",
    "dropped_records",
    "refreshes",
    "tokens_estimated",
)
"""Fields of a line that an agent in a process of its own reports of itself; each is a whole number, 0 if left out."""

MOST_PROBES = 100_000
"""The most steps and resets of probes in an episode."""

_OURS = ("drift_agents", "drift_envs", "drift_schedules")
_WORKER = """\
import os, sys
sys.path.insert(0, os.path.abspath("../code"))
from drift_agents.experiment.pipe.worker import main
main(sys.argv[1])
"""
_USAGE = ("reasks", "fallbacks", "dropped_records")
_MOST = 2**53


class _Probes(NamedTuple):
    """What probing cost in an episode, and whether the copy can step."""

    cost: ProbeCost = NO_COST
    can_step: bool = False


class PipedAgent:
    """An agent in a process of its own; it stands where an `Agent` would.

    Args:
        process: the agent's process, which is started.
        copy: the simulator copy in which it may probe; `drift_envs.wrappers.twin.twin` of its environment.
        environment: the id of the environment.
        seed: of the agent's own random numbers.
        models: the language models that it may ask, by name.

    Raises:
        AgentProcessError: if the process does not fulfil the protocol.
    """

    def __init__(
        self,
        process: AgentProcess,
        copy: gym.Env[str, Any],
        environment: str,
        seed: int,
        models: Mapping[str, Model] | None = None,
    ) -> None:
        self._process, self._copy, self._models = process, copy, models or {}
        self.memory_size = 0
        """Of the last episode, as the agent reports it."""
        process.send({"type": "start", "protocol": PROTOCOL, "environment": environment, "seed": seed})
        ready = self._receive("ready", seconds=START_SECONDS)
        self.supervision: str = ready.get("supervision", "none")
        if self.supervision not in SUPERVISION[:-1]:
            self._refuse(f"`supervision` should be one of {', '.join(SUPERVISION[:-1])}", self.supervision)

    @property
    def process(self) -> AgentProcess:
        """The agent's process."""
        return self._process

    def close(self) -> None:
        """End the agent's process."""
        self._process.close()

    def run_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end.

        Args:
            env: the environment; it is reset first.
            seed: passed to `reset`; it does not reach the agent.
            options: passed to `reset`; they do not reach it either.

        Raises:
            AgentProcessError: if the agent does not fulfil the protocol.
        """
        state, info = reset_text_env(env, seed, options)
        task, over, terminated = str(info["task"]), False, False
        experiences: list[Experience] = []
        probes, usage = _Probes(), NO_USAGE
        self._process.send({"type": "reset", "observation": state, "info": info})
        while True:
            message = self._receive("step", "probe", "ask", "end")
            if message["type"] == "end":
                if not over:
                    self._refuse("`end` should follow the end of the episode", message)
                return self._sum_up(message, task, experiences, float(info["score"]), terminated, probes.cost, usage)
            if message["type"] == "probe":
                probes = self._probe(message, probes)
            elif message["type"] == "ask":
                usage += self._ask(message)
            elif over:
                self._refuse("after its last step an episode takes `probe`, `ask` and `end`", message)
            else:
                action = self._check_action(message.get("action"), info["actions"])
                observation, reward, terminated, truncated, info = env.step(to_env(env.action_space, action))
                outcome = read_outcome(observation, terminated, info)
                experiences.append(Experience(state, action, outcome, float(reward), AgentClock()))
                state, over = outcome.state, bool(terminated or truncated)
                self._process.send(_step(observation, reward, terminated, truncated, info))

    def _receive(self, *kinds: str, seconds: float | None = None) -> dict[str, Any]:
        message = self._process.receive(seconds)
        if message.get("type") not in kinds:
            self._refuse(f"`type` should be one of {', '.join(kinds)}", message.get("type"))
        return message

    def _refuse(self, rule: str, value: object) -> NoReturn:
        self.close()
        raise AgentProcessError(f"the agent's message: {rule}. Received {json.dumps(value)[:200]}")

    def _check_action(self, action: object, actions: list[str]) -> str:
        if not isinstance(action, str) or action not in actions:
            self._refuse(f"`action` should be one of the {len(actions)} admissible actions", action)
        return action

    def _probe(self, message: Mapping[str, Any], probes: _Probes) -> _Probes:
        """Step in the copy, and charge it.

        Args:
            message: `reset`, whether the copy is reset first, and `actions`, those that are executed then, up to the
                end of the copy's episode.
            probes: before.
        """
        is_reset, actions = message.get("reset", False), message.get("actions", [])
        if not isinstance(is_reset, bool) or not isinstance(actions, list):
            self._refuse("`reset` should be true or false, and `actions` a list", message)
        cost, can_step = probes
        if cost.steps + cost.resets + len(actions) + is_reset > MOST_PROBES:
            self._refuse(f"an episode should have at most {MOST_PROBES:,} steps and resets of probes", len(actions))
        results: list[dict[str, Any]] = []
        if is_reset:
            observation, info = self._copy.reset()
            self._admissible = info["actions"]
            results.append({"observation": observation, "info": info})
            cost, can_step = cost + ProbeCost(resets=1), True
        for action in actions:
            if not can_step and not results:
                self._refuse("a copy whose episode is over or has not begun should be reset first", action)
            if not can_step:
                break
            self._check_action(action, self._admissible)
            observation, reward, terminated, truncated, info = self._copy.step(to_env(self._copy.action_space, action))
            self._admissible = info["actions"]
            results.append(_step(observation, reward, terminated, truncated, info))
            can_step = not (terminated or truncated)
            cost += ProbeCost(steps=1)
            if not can_step:
                cost += episode_end_cost(read_outcome(observation, terminated, info))
        self._process.send({"type": "probe", "results": results})
        return _Probes(cost, can_step)

    def _ask(self, message: Mapping[str, Any]) -> Any:
        """Request an answer of a language model; its cost."""
        model = self._models.get(str(message.get("model")))
        if model is None:
            self._refuse(f"`model` should be one of the entry's: {', '.join(self._models) or 'none'}", message)
        try:
            messages = [Message(str(role), str(content)) for role, content in message["messages"]]
            request = (message.get("schema"), message.get("parameters"), int(message.get("sample_index", 0)))
        except (KeyError, TypeError, ValueError):
            self._refuse("`messages` should be pairs of role and content, `sample_index` a whole number", message)
        try:
            answer = model.complete(messages, *request)
        except ContextLengthError as error:  # which the agent may answer with a shorter prompt
            self._process.send({"type": "reply", "error": str(error)})
            return NO_USAGE
        reply = {"text": answer.text, "data": answer.data, "finish": answer.finish, "usage": answer.usage}
        self._process.send({"type": "reply", **reply, "tokens_cached": answer.tokens_cached})
        return answer.usage

    def _sum_up(
        self,
        message: Mapping[str, Any],
        task: str,
        experiences: list[Experience],
        score: float,
        terminated: bool,
        probes: ProbeCost,
        usage: Any,
    ) -> Episode:
        """The episode, with what the agent reports of itself."""
        report = message.get("report", {})
        if not isinstance(report, dict) or not set(report) <= set(SELF_REPORTED):
            self._refuse(f"`report` should have no other keys than {', '.join(SELF_REPORTED)}", report)
        for value in report.values():
            if not is_integer(value) or not 0 <= value < _MOST:
                self._refuse("values of `report` should be whole numbers, at least 0", report)
        self.memory_size = report.pop("memory_size", 0)
        loops, loop_steps = count_loops(experiences)
        return Episode(
            task,
            score,
            len(experiences),
            bool(terminated),
            probes=probes,
            usage=usage._replace(**{name: report.pop(name, 0) for name in _USAGE}),
            loops=loops,
            loop_steps=loop_steps,
            **report,
        )


def _step(observation: str, reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "step",
        "observation": observation,
        "reward": float(reward),
        "terminated": bool(terminated),
        "truncated": bool(truncated),
        "info": info,
    }


def make_piped_agent(
    cell: Cell, settings: ScheduleSettings, environment: str, copy: gym.Env[str, Any], service: Service | None
) -> PipedAgent:
    """The agent of a cell in a process of its own, which has to be closed.

    Args:
        cell: the cell. A policy with the option `command` is a program, with its `files`; other agents are made of
            this package's parts and of plug-ins, which are imported on the far side alone.
        settings: the experiment's settings for the cell's schedule.
        environment: the id of the environment.
        copy: the simulator copy in which it may probe.
        service: access to language models, if there are any.

    Raises:
        AgentProcessError: if the process cannot be started, or does not fulfil the protocol.
        DriftAgentsError: if a language model cannot be made.
    """
    command = cell.policy.options.get(COMMAND)
    if command is not None:
        process = AgentProcess(command, cell.policy.options.get("files", {}))
    else:
        process = _start_worker(cell, settings)
    try:
        return PipedAgent(process, copy, environment, _agent_seed(cell), _models(cell, service))
    except BaseException:
        process.close()
        raise


def _agent_seed(cell: Cell) -> int:
    """The seed of an agent's own random numbers: a hash, from which the cell's seed cannot be computed."""
    words = ",".join(map(str, cell.agent_entropy))
    return int.from_bytes(hashlib.sha256(f"drift-agents agent 1\0{words}".encode()).digest()[:6], "big")


def _start_worker(cell: Cell, settings: ScheduleSettings) -> AgentProcess:
    """Start the far side for an agent made of parts."""
    parts = {
        "memory": cell.memory,
        "verifier": cell.verifier,
        "controller": cell.decision.controller,
        "team": cell.decision.team,
        "policy": cell.policy,
    }
    plan: dict[str, Any] = {name: part.model_dump(mode="json") for name, part in parts.items()}
    plan["matching"] = None if settings.matching is None else settings.matching.model_dump(mode="json")
    plan["recall"] = {} if settings.recall is None else settings.recall.model_dump(exclude_none=True)
    packages = find_parts(plan)
    points = [REGISTRIES[kind].entry_point(name) for package in packages for kind, name in package.named]
    listed = "".join(f"[{point.group}]\n{point.name} = {point.value}\n" for point in points if point is not None)
    metadata = {
        "entry-0.dist-info/METADATA": "Metadata-Version: 2.1\nName: entry\nVersion: 0\n",
        "entry-0.dist-info/entry_points.txt": listed,
    }
    modules = (*_OURS, *(module for package in packages for module in package.modules))
    command = [sys.executable, "-I", "-c", _WORKER, json.dumps(plan)]
    return AgentProcess(command, code=Code(modules, metadata if listed else {}))


def _models(cell: Cell, service: Service | None) -> dict[str, Model]:
    """The language models that a cell's agent may ask: those that its policy names."""
    name = cell.policy.options.get("model")
    if service is None or not isinstance(name, str):
        return {}
    options = {key: cell.policy.options[key] for key in MODEL_OPTIONS if key in cell.policy.options}
    return {name: service.model(name, **options)}
