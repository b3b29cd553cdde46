"""Memory and time of the commands that read a finished run, by its number of episodes.

* `make_run` - a synthetic run: the lines of a small real one, repeated with other seeds and drawn measurements
* `measure` - peak memory and seconds of one command
* `run_benchmark` - prints a table
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drift_agents.experiment.folder import EPISODES, MANIFEST, read_manifest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment

SIZES = (10_000, 100_000, 1_000_000)
SMALL = {
    "name": "small",
    "schedules": ["frozen_lake/explicit"],
    "agents": {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"},
    "seeds": 1,
    "rounds": 5,
}
COMMANDS = ("report", "leaderboard", "inspect")


def make_run(folder: Path, episodes: int) -> int:
    """Write a run of about that many episodes.

    Args:
        folder: where to.
        episodes: at least how many.

    Returns:
        The number of episodes.
    """
    small = folder.parent / "small"
    if not small.exists():
        run_experiment(parse_experiment(SMALL), small)
    lines = [json.loads(line) for line in (small / EPISODES).read_text("utf-8").splitlines()]
    copies = -(-episodes // len(lines))
    folder.mkdir()
    (folder / MANIFEST).write_text(json.dumps(read_manifest(small)), encoding="utf-8")
    with open(folder / EPISODES, "w", encoding="utf-8") as file:
        for seed in range(copies):
            draw = random.Random(seed)
            file.writelines(json.dumps(_vary(line, seed, draw), ensure_ascii=False) + "\n" for line in lines)
    return copies * len(lines)


def _vary(line: dict[str, Any], seed: int, draw: random.Random) -> dict[str, Any]:
    """The line of another instance, with measurements that few other lines share."""
    optimum, score = line["score"] + line["regret"], round(draw.random(), 6)
    known = line["memory_truth_rate"] is not None
    return line | {
        "seed": seed,
        "success": score > 0.5,
        "score": score,
        "regret": optimum - score,
        "steps": draw.randint(1, 100),
        "probe_steps": draw.randint(0, 20) if line["verifier"] == "glove" else 0,
        "memory_truth_rate": draw.random() if known else None,
        "tokens_estimated": draw.randint(100, 10_000),
    }


def measure(command: str, folder: Path) -> tuple[float, float, float]:
    """Run one command on a run.

    Args:
        command: one of `COMMANDS`.
        folder: the run.

    Returns:
        Peak memory in MB, seconds, and seconds of processor time, which other work on the machine changes less.
    """
    begin = time.perf_counter()
    arguments = [sys.executable, "-m", "drift_agents", command, str(folder)]
    arguments += ["--out", str(folder.parent / "board")] if command == "leaderboard" else []
    devnull = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, devnull, 1)])
    os.close(devnull)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"drift-agents {command} ended with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1024, time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def run_benchmark(sizes: Sequence[int] = SIZES) -> None:
    """Print peak memory and seconds of each command for each size.

    Args:
        sizes: numbers of episodes.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            folder = Path(scratch) / f"run-{size}"
            count = make_run(folder, size)
            for command in COMMANDS:
                memory, seconds, used = measure(command, folder)
                times = f"{seconds:>7.1f} s, {used:>6.1f} s of a processor"
                print(f"{command:<12} {count:>9} episodes {memory:>7.0f} MB {times}", flush=True)


if __name__ == "__main__":
    run_benchmark([int(float(text)) for text in sys.argv[1:]] or SIZES)
