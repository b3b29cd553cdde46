"""How long the hidden checks of a submission to `DriftRepository-v0` take, process included.

`python -m benchmarks.submissions` prints the median processor time and wall-clock time of a submission that was not
seen before, and of the start of a bare interpreter beside it. The exit status is 1 when processor time exceeds the
target of 100 ms; wall-clock time depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from drift_envs.envs.repository.checks import check
from drift_envs.envs.repository.conventions import Conventions
from drift_envs.envs.repository.issues import apply_change, draw_issue, right_change
from drift_envs.envs.repository.project import start_project

TARGET = 0.1
"""Seconds a submission."""


def measure(run: Callable[[], object]) -> tuple[float, float]:
    """Processor time, that of child processes included, and wall-clock time, in seconds."""
    before, start = _read_processor_time(), time.perf_counter()
    run()
    return _read_processor_time() - before, time.perf_counter() - start


def _read_processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.submissions")
    parser.add_argument("--repeats", type=int, default=40, help="how many submissions (default: %(default)s)")
    found: dict[str, list[tuple[float, float]]] = {"submission": [], "bare interpreter": []}
    for number in range(1, parser.parse_args().repeats + 1):
        project = start_project(number, Conventions())
        issue = draw_issue(project, number % 60)
        files = apply_change(project.files(), right_change(project, issue))
        found["submission"].append(measure(lambda: check(files, project, issue)))  # noqa: B023 - called at once
        found["bare interpreter"].append(
            measure(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True))
        )
    print(f"{'case':<20}{'processor ms':>14}{'wall-clock ms':>15}{'target':>8}")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    for name, (processor, wall) in medians.items():
        goal = f"{TARGET * 1000:.0f}" if name == "submission" else ""
        print(f"{name:<20}{processor * 1000:>14.1f}{wall * 1000:>15.1f}{goal:>8}")
    return int(medians["submission"][0] > TARGET)


if __name__ == "__main__":
    sys.exit(main())
