"""The table of coding agents, from lines by hand."""

from __future__ import annotations

from typing import Any

from drift_agents.analysis.coder_table import describe_coders, group_lines, measure, tabulate_coders
from drift_agents.analysis.table import print_table
from rich.console import Console


def line(seed: int, episode: int, success: bool, **more: Any) -> dict[str, Any]:
    phase = "source" if episode < 2 else "drift-1"
    counts = {"first_try": success, "one_rerun": success, "corrections": 0, "reruns": 0, "seconds": 1.0}
    said = {"memory_size": 4, "present_statements": 3, "still_believed": None}
    return {"seed": seed, "phase": phase, "success": success, "score": float(success), **counts, **said, **more}


MINE = group_lines("mine", [line(seed, at, seed == 0 or at < 2) for seed in (0, 1) for at in range(4)])
CONTROL = group_lines("mine without memory", [line(seed, at, at >= 2) for seed in (0, 1) for at in range(4)])


def test_figures_are_means_over_repositories_with_intervals() -> None:
    found = describe_coders({"mine": MINE})["agents"]["mine"]
    assert found["before"]["success"] == {"mean": 100.0, "low": 100.0, "high": 100.0, "n": 2}
    assert found["after"]["success"]["mean"] == 50.0
    assert found["after"]["success"]["low"] < 50 < found["after"]["success"]["high"]
    assert found["after"]["stale"]["mean"] == 25.0
    assert "tokens_in" not in found["after"]
    assert "still_believed" not in found["after"]


def test_one_repository_has_no_interval() -> None:
    assert measure(group_lines("mine", MINE.rows[0]), "success").n == 1


def test_the_worth_of_memory_is_a_difference_in_pairs() -> None:
    worth = describe_coders({"mine": MINE, "mine without memory": CONTROL})["worth"]
    assert worth["mine"]["before"]["score"]["mean"] == 100.0
    assert worth["mine"]["after"]["score"]["mean"] == -50.0


def test_the_table_fits_a_terminal() -> None:
    console = Console(width=100)
    with console.capture() as capture:
        for table in tabulate_coders({"mine": MINE, "mine without memory": CONTROL}):
            print_table(console, table)
    text = capture.get()
    assert "Before the first drift: 2 episodes" in text
    assert "With memory minus without it" in text
    assert "continued" not in text, "in one part"
    assert "100 (all 2)" in text
    assert "mine, after" in text
