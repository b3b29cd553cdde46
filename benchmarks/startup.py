"""How long imports, the command lines and `gymnasium.make` take, against plain Gymnasium's.

`python -m benchmarks startup` starts every command in fresh processes that take turns, and prints the median of
the processor time of each (user and system, of the process alone) and its ratio to the command that it is
compared with in the same run. `make` compares `gymnasium.make` inside one process, after a first call has loaded
the modules. The exit status is 1 when a ratio exceeds its limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

PLAIN = ("-c", "import gymnasium")
CLASSIC = ("-c", "import gymnasium, gymnasium.envs.classic_control, gymnasium.envs.toy_text")
DRIFT = ("-c", "import drift_envs")
MODULES = {"drift-envs": "drift_envs", "drift-agents": "drift_agents"}


class StartupCase(NamedTuple):
    """A command, the command that it is compared with, and the largest ratio allowed.

    Args:
        name: what the table calls it.
        command: arguments of the Python interpreter.
        reference: arguments of the Python interpreter for the comparison.
        limit: the largest ratio; `None` for a case that is only reported.
    """

    name: str
    command: tuple[str, ...]
    reference: tuple[str, ...]
    limit: float | None


COMMANDS = (
    StartupCase("import drift_envs", DRIFT, CLASSIC, 1.3),
    StartupCase("import drift_envs (to gymnasium alone)", DRIFT, PLAIN, None),
    *(
        StartupCase(f"{program} {argument}", ("-m", module, argument), PLAIN, 2.0)
        for argument in ("list", "--help")
        for program, module in MODULES.items()
    ),
    StartupCase("python -m webshop_server --help", ("-m", "webshop_server", "--help"), PLAIN, 2.0),
)
MAKE_LIMIT = 4.0


def process_seconds(arguments: tuple[str, ...]) -> float:
    """Processor time of one fresh interpreter, in seconds.

    Raises:
        RuntimeError: if the command fails.
    """
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read() if process.stderr is not None else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stderr is not None:
        process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"`python {' '.join(arguments)}` failed: {errors.decode(errors='replace').strip()}")
    return usage.ru_utime + usage.ru_stime


def make_seconds(env_id: str, make: Callable[..., object], calls: int) -> float:
    """Mean processor time of one call of `gymnasium.make`, in seconds."""
    start = time.process_time()
    for _ in range(calls):
        make(env_id)
    return (time.process_time() - start) / calls


def measure_make(repeats: int, calls: int = 20) -> tuple[float, float]:
    """Median time of `gymnasium.make` for the drifting lake, in seconds, and its ratio to Gymnasium's lake."""
    import gymnasium as gym

    import drift_envs  # noqa: F401  registers the ids

    names = ("DriftFrozenLake-v0", "FrozenLake-v1")
    for name in names:
        gym.make(name)
    pairs = [[make_seconds(name, gym.make, calls) for name in names] for _ in range(repeats)]
    return statistics.median(ours for ours, _ in pairs), statistics.median(ours / base for ours, base in pairs)


def measure_commands(repeats: int) -> dict[tuple[str, ...], float]:
    """Median processor time of each command, in seconds; the commands take turns."""
    commands = list(dict.fromkeys(part for case in COMMANDS for part in (case.command, case.reference)))
    times: dict[tuple[str, ...], list[float]] = {command: [] for command in commands}
    for command in commands:
        process_seconds(command)  # writes the byte code
    for _ in range(repeats):
        for command in commands:
            times[command].append(process_seconds(command))
    return {command: statistics.median(found) for command, found in times.items()}


def main() -> int:
    """Measure and print; the exit status is 1 when a ratio exceeds its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.startup --repeats 7"
    )
    parser.add_argument("--repeats", type=int, default=5, help="processes for each command (default: %(default)s)")
    repeats = parser.parse_args().repeats
    times = measure_commands(repeats)
    rows = [
        (case.name, times[case.command], times[case.command] / times[case.reference], case.limit) for case in COMMANDS
    ]
    rows.append(("gym.make: DriftFrozenLake-v0 to FrozenLake-v1", *measure_make(repeats), MAKE_LIMIT))
    print(f"{'case':<48}{'ms':>10}{'ratio':>8}{'limit':>8}")
    for name, seconds, ratio, limit in rows:
        print(f"{name:<48}{seconds * 1e3:>10.2f}{ratio:>8.2f}{'' if limit is None else f'{limit:.1f}':>8}")
    return int(any(limit is not None and ratio > limit for _, _, ratio, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
