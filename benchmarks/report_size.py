"""Memory, time and disk of playing a run and of the commands that read it, by its number of episodes.

* `make_run` - a synthetic run: the lines of a small real one, repeated with other seeds and drawn measurements
* `play_run` - a real one, `python -m benchmarks.report_size --play 1e6`
* `measure` - peak memory and seconds of one command, and the bytes that it writes
* `run_benchmark` - prints a table
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
COMMANDS = {
    "report": ("drift_agents", "report", "{run}"),
    "leaderboard": ("drift_agents", "leaderboard", "{run}", "--out", "{run}/../board"),
    "inspect": ("drift_agents", "inspect", "{run}"),
    "Parquet": ("research", "evidence", "{run}", "--out", "{run}/../evidence"),
}
"""What reads a run: a module and its arguments."""


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
        "extra": {"tokens_estimated": draw.randint(100, 10_000)},
    }


class Cost(NamedTuple):
    """What a command takes.

    Args:
        memory: the peak of its largest process, in MB.
        seconds: by the clock.
        used: seconds of a processor, which other work on the machine changes less.
        disk: MB that it writes and leaves.
    """

    memory: float
    seconds: float
    used: float
    disk: float

    def print(self, name: str, episodes: int) -> None:
        """Print a row."""
        times = f"{self.seconds:>8.1f} s, {self.used:>8.1f} s of a processor"
        print(f"{name:<12} {episodes:>9} episodes {self.memory:>6.0f} MB {times}, {self.disk:>7.1f} MB", flush=True)


def play_run(folder: Path, episodes: int, jobs: int) -> tuple[int, Cost]:
    """Play a run of about that many episodes, with instances of `SMALL`.

    Args:
        folder: where to.
        episodes: at least how many.
        jobs: cells at the same time.

    Returns:
        The number of episodes, and what playing took.
    """
    one = run_experiment(parse_experiment(SMALL), folder.parent / "one")
    each = one.read_bytes().count(b"\n")
    seeds = -(-episodes // each)
    file = folder.parent / "small.yaml"
    file.write_text(json.dumps({**SMALL, "seeds": seeds}), encoding="utf-8")
    cost = measure(["drift_agents", "run", str(file), "--out", str(folder), "--jobs", str(jobs), "-q"], folder.parent)
    return seeds * each, cost


def measure(words: Sequence[str], place: Path) -> Cost:
    """Run one command.

    Args:
        words: a module and its arguments.
        place: the folder in which it writes.
    """
    before = _size(place)
    begin = time.perf_counter()
    arguments = [sys.executable, "-m", *words]
    devnull = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, devnull, 1)])
    os.close(devnull)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with status {os.waitstatus_to_exitcode(status)}")
    disk = (_size(place) - before) / 1e6
    return Cost(usage.ru_maxrss / 1024, seconds, usage.ru_utime + usage.ru_stime, disk)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run_benchmark(sizes: Sequence[int] = SIZES, *, is_played: bool = False, jobs: int = 2) -> None:
    """Print what each command takes for each size.

    Args:
        sizes: numbers of episodes.
        is_played: whether runs are played instead of made.
        jobs: cells at the same time, where they are.
    """
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run"
            if is_played:
                count, cost = play_run(folder, size, jobs)
                cost.print("run", count)
            else:
                count = make_run(folder, size)
            for name, words in COMMANDS.items():
                measure([word.format(run=folder) for word in words], folder.parent).print(name, count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report_size")
    parser.add_argument("sizes", nargs="*", type=float, help="numbers of episodes, such as 1e6")
    parser.add_argument("--play", action="store_true", help="play the runs, instead of making them")
    parser.add_argument("--jobs", type=int, default=2, help="cells at the same time")
    given = parser.parse_args()
    run_benchmark([int(size) for size in given.sizes] or SIZES, is_played=given.play, jobs=given.jobs)
