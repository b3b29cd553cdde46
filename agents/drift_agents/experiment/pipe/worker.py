"""The far side of the pipe for agents made of this package's parts and of plug-ins.

It runs in a process of its own, which an evaluator starts (`drift_agents.experiment.pipe.player`), builds the agent
from the plan in its only argument, and speaks the protocol on standard input and output.

* `main` - plays until the evaluator closes the pipe
* `PipeEnv`, `PipeCopy`, `PipeModel` - environment, simulator copy and language model, as seen through the pipe
* `make_agent` - the agent of a plan
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import gymnasium as gym

from drift_agents.agent import Agent
from drift_agents.controller.base import make_controller
from drift_agents.environment import find_environment
from drift_agents.errors import ArgumentError, ContextLengthError, DriftAgentsError
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.players import make_player, make_policy_and_memory
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.matching.base import make_matching
from drift_agents.prompt.builder import Recall
from drift_agents.registry import MEMORIES, PROBERS, VERIFIERS
from drift_agents.team_agent import TeamAgent
from drift_agents.types import Episode, Usage, strongest_supervision
from drift_agents.verifier.base import Verifier, make_verifier

_REPORTED = (
    *("surprises", "realignments", "invalid_actions", "refreshes", "tokens_estimated"),
    *("reasks", "fallbacks", "dropped_records"),
)

ANY_TEXT = gym.spaces.Text(1_000_000)
"""The spaces of environments behind the pipe: actions and observations are texts, the evaluator checks them."""


class Pipe:
    """Requests to the evaluator, and its answers.

    Args:
        source: where lines are read.
        target: where they are written.
    """

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target

    def request(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer.

        Raises:
            EOFError: if the evaluator has closed the pipe.
        """
        self._target.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        self._target.flush()
        return self.read()

    def read(self) -> dict[str, Any]:
        """The next message of the evaluator."""
        line = self._source.readline()
        if not line:
            raise EOFError
        message: dict[str, Any] = json.loads(line)
        return message


class PipeEnv(gym.Env[str, str]):
    """The environment of the evaluator: `reset` returns the episode that it has begun.

    Args:
        pipe: to the evaluator.
    """

    action_space = observation_space = ANY_TEXT

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.begun: dict[str, Any] | None = None
        """The message that began the episode, until it is taken."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Take the episode that the evaluator has begun; seed and options are its own."""
        if self.begun is None:
            raise ArgumentError("an agent behind the pipe should reset its environment once an episode")
        begun, self.begun = self.begun, None
        return begun["observation"], begun["info"]

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step in the evaluator's environment."""
        return _read_step(self._pipe.request({"type": "step", "action": action}))


class PipeCopy(gym.Env[str, str]):
    """The simulator copy of the evaluator, in which every step and reset is charged.

    Args:
        pipe: to the evaluator.
    """

    action_space = observation_space = ANY_TEXT

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode in the copy."""
        (begun,) = self._pipe.request({"type": "probe", "reset": True})["results"]
        return begun["observation"], begun["info"]

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step in the copy."""
        (result,) = self._pipe.request({"type": "probe", "actions": [action]})["results"]
        return _read_step(result)


def _read_step(message: Mapping[str, Any]) -> tuple[str, Any, bool, bool, dict[str, Any]]:
    observation, reward, terminated, truncated, info = (
        message[key] for key in ("observation", "reward", "terminated", "truncated", "info")
    )
    return observation, reward, terminated, truncated, info


class PipeModel:
    """A language model of the evaluator, which sends the requests and records the replies.

    Args:
        pipe: to the evaluator.
        name: the model's name, one that the entry names.
    """

    def __init__(self, pipe: Pipe, name: str) -> None:
        self._pipe, self.name = pipe, name

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer.

        Raises:
            ContextLengthError: if the prompt is too long for the model.
        """
        request = {"messages": [list(one) for one in messages], "schema": schema, "parameters": parameters}
        reply = self._pipe.request({"type": "ask", "model": self.name, **request, "sample_index": sample_index})
        if "error" in reply:
            raise ContextLengthError(reply["error"])
        usage = Usage(*reply["usage"])
        return Completion(reply["text"], reply["data"], usage, reply["finish"], reply["tokens_cached"])


class PipeService:
    """The evaluator's language models, where `drift_agents.llm.service.Service` stands otherwise.

    Args:
        pipe: to the evaluator.
    """

    default_model: str | None = None

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def model(self, name: str, **_: Any) -> Model:
        """The model of that name; address, form and price are the evaluator's."""
        return PipeModel(self._pipe, name)


def make_agent(plan: Mapping[str, Any], pipe: Pipe, environment: str, seed: int) -> Agent | TeamAgent:
    """The agent of a plan.

    Args:
        plan: its parts, and `matching` and `recall` where they differ from the environment's.
        pipe: to the evaluator.
        environment: the id of the environment.
        seed: of the agent's random numbers.

    Raises:
        DriftAgentsError: if a part cannot be made.
    """
    parts = {
        axis: PartSpec.model_validate(plan[axis]) for axis in ("memory", "verifier", "controller", "team", "policy")
    }
    declared = find_environment(environment)
    rule = plan["matching"]
    matching = declared.make("matching") if rule is None else make_matching(rule["name"], **rule["options"])
    takes = inspect.signature(MEMORIES.load(parts["memory"].name)).parameters
    if "teacher" in takes and any(parts["memory"].options.get(name) for name in ("initial", "error_free")):
        raise ArgumentError(f"{parts['memory'].name}: correct executions are not available over the pipe")
    defaults = {"matching": matching, **({"seed": seed} if "seed" in takes else {})}
    service: Any = PipeService(pipe)
    policy, memory, meter = make_policy_and_memory(parts["policy"], parts["memory"], service, defaults)
    return make_player(
        parts["team"],
        policy,
        memory,
        _make_verifier(parts["verifier"], pipe),
        service,
        meter=meter,
        controller=make_controller(parts["controller"].name, **parts["controller"].options),
        matching=matching,
        recall=Recall(**{**declared.recall, **plan["recall"]}),
        seed=seed,
    )


def _make_verifier(part: PartSpec, pipe: Pipe) -> Verifier:
    """A verifier, with a prober in the evaluator's copy if it takes one."""
    options = dict(part.options)
    if "prober" in inspect.signature(VERIFIERS.load(part.name)).parameters:
        prober = PartSpec.model_validate(options.get("prober", "replay"))
        if prober.name in ("replay_live", "snapshot"):
            raise ArgumentError(f"{part.name}: the prober {prober.name!r} is not available over the pipe")
        options["prober"] = PROBERS.make(prober.name, twin=PipeCopy(pipe), **prober.options)
    elif part.name == "base+extra":
        raise ArgumentError(f"the verifier {part.name!r} is not available over the pipe")
    return make_verifier(part.name, **options)


def _report(agent: Agent | TeamAgent, episode: Episode) -> dict[str, int]:
    """What the agent reports of itself."""
    return {name: getattr(episode, name) for name in _REPORTED} | {
        "memory_size": sum(1 for _ in agent.memory.records())
    }


def play(plan: Mapping[str, Any], pipe: Pipe) -> None:
    """Play until the evaluator closes the pipe.

    Args:
        plan: the agent's parts.
        pipe: to the evaluator.
    """
    start = pipe.read()
    agent, env = make_agent(plan, pipe, start["environment"], start["seed"]), PipeEnv(pipe)
    supervision = strongest_supervision(agent.memory.supervision, agent.verifier.supervision)
    message: dict[str, Any] = {"type": "ready", "supervision": supervision}
    while True:
        env.begun = pipe.request(message)
        message = {"type": "end", "report": _report(agent, agent.run_episode(env))}


def main(plan: str) -> None:
    """Speak the protocol on standard input and output; what is printed goes to standard error.

    Args:
        plan: the agent's parts, as JSON.
    """
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        play(json.loads(plan), Pipe(sys.stdin.buffer, target))
    except EOFError:
        return
    except DriftAgentsError as error:
        sys.exit(" ".join(str(error).split()))
