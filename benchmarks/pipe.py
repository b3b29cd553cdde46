"""What the pipe of board entries adds to a step, beside the same steps in this process.

* `measure` - seconds of each step, piped and direct
* `run_benchmark` - prints the medians, their difference, and how long a process takes to start

The agent is a program that repeats one action at once, so that the pipe, JSON and the checks are all that is added.
The processor time of both processes does not depend on what else the machine does; the median of the times on the
clock does where all cores are busy.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import gymnasium as gym
from drift_agents.experiment.pipe.player import PipedAgent
from drift_agents.experiment.pipe.process import AgentProcess

import drift_envs  # noqa: F401 (registers the environments)
from drift_envs.wrappers.twin import twin

STEPS = 3000
"""Steps of one measurement."""

PROGRAM = """\
import json, sys
print('{"type": "ready"}', flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "start":
        continue
    over = message.get("terminated") or message.get("truncated")
    print(json.dumps({"type": "end"} if over else {"type": "step", "action": "0"}), flush=True)
"""


class _Timed(gym.Wrapper[str, Any, str, Any]):
    """Notes when each step begins and how long it takes."""

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        self.direct: list[float] = []
        self.between: list[float] = []
        self._last: float | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        self._last = None
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step, and note both times."""
        begin = time.perf_counter()
        if self._last is not None:
            self.between.append(begin - self._last)
        result = self.env.step(action)
        self._last = time.perf_counter()
        self.direct.append(self._last - begin)
        return result


def measure(steps: int) -> tuple[list[float], list[float], float, float]:
    """Play over the pipe.

    Args:
        steps: at least so many steps are played.

    Returns:
        Seconds of each step in the environment, those from one step to the next, those until the agent was ready, and
        the processor time of both processes, the start included.
    """
    lake = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/null", text=True)
    env = _Timed(lake)
    lake.reset(seed=0)
    begin, used = time.perf_counter(), sum(os.times()[:4])
    with AgentProcess([sys.executable, "-I", "-S", "-c", PROGRAM]) as process:
        agent = PipedAgent(process, twin(lake), "DriftFrozenLake-v0", 0)
        ready = time.perf_counter() - begin
        while len(env.direct) < steps:
            agent.run_episode(env)
    return env.direct, env.between, ready, sum(os.times()[:4]) - used


def run_benchmark(steps: int = STEPS) -> None:
    """Print milliseconds.

    Args:
        steps: how many.
    """
    *_, least = measure(1)
    direct, between, ready, used = measure(steps)
    alone, piped = (1000 * statistics.median(seconds) for seconds in (direct, between))
    processor = 1000 * (used - least - sum(direct)) / len(direct)
    print(f"a step of the environment {alone:.3f} ms; ready after {ready:.2f} s")
    print(f"the pipe adds {piped:.3f} ms to a step, {processor:.3f} ms of processor time")


if __name__ == "__main__":
    run_benchmark(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
