"""Whether the values of a submission's lines are within their limits, and add up to what it states.

* `check_values` - limits of single values, and the optimum, which is the same for all agents
* `check_counts`, `count_lines` - the sums over all lines
* `same_digits` - equal numbers but for rounding
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from drift_agents.experiment.folder import EPISODES
from drift_agents.experiment.logs import TEST, read_rows
from drift_agents.llm.budget import check_price
from drift_agents.submission.bundle import STATEMENT, CountStatement
from drift_agents.submission.checked import Checked, Row, who_of

_TOLERANCE = 1e-9
_SUMS = ("steps", "probe_steps", "model_calls", "tokens_in", "tokens_out")
_NOT_NEGATIVE = (
    "steps",
    "probe_steps",
    "probe_resets",
    "probe_falls",
    "probe_purchases",
    "surprises",
    "realignments",
    "memory_size",
    "model_calls",
    "tokens_in",
    "tokens_out",
    "cost",
    "tokens_estimated",
)
_SHARES = ("score", "memory_truth_rate", "item_truth_rate")


def check_values(found: Checked) -> Iterator[str]:
    """Limits of single values, and what must be equal for all agents.

    Args:
        found: the submission, with its rows.

    Yields:
        What is wrong, in words.
    """
    optimum: dict[tuple[Any, ...], tuple[float, int]] = {}
    limits = {name: _step_limit(about["env"]) for name, about in found.manifest["schedules"].items()}
    clocks = {name: about["clock"] for name, about in found.manifest["schedules"].items()}
    after: Counter[tuple[Any, ...]] = Counter()
    for number, row in enumerate(found.rows, 1):
        where = f"{EPISODES}:{number}"
        for name in _NOT_NEGATIVE:
            if row[name] < 0:
                yield f"{where}: `{name}` should not be negative. Received {row[name]}"
        for name in _SHARES:
            if row[name] is not None and not 0 <= row[name] <= 1:
                yield f"{where}: `{name}` should be in the interval [0, 1]. Received {row[name]}"
        if row["success"] != (row["score"] >= 1):
            yield f"{where}: `success` should say whether the score is 1. Received {row['success']}, {row['score']}"
        if row["steps"] > limits[row["schedule"]]:
            yield f"{where}: `steps` should be at most {limits[row['schedule']]}. Received {row['steps']}"
        if row["verifier"] == "none" and row["probe_steps"]:
            yield f"{where}: `probe_steps` should be 0 without a verifier. Received {row['probe_steps']}"
        if not row["model_calls"] and (row["tokens_in"] or row["tokens_out"] or row["cost"]):
            yield f"{where}: has tokens or a cost of language models, but no request"
        if row["stage"] != TEST or row["regret"] is None or clocks[row["schedule"]] != "episode":
            continue
        who = who_of(row)
        instance = (row["schedule"], row["seed"], after[who])
        after[who] += 1
        best = row["score"] + row["regret"]
        other, line = optimum.setdefault(instance, (best, number))
        if not same_digits(best, other):
            yield (
                f"{where}: score plus regret, the optimum, should be the same for all agents of the instance. "
                f"Received {best}, and {other} in line {line}"
            )


def same_digits(one: float, other: float) -> bool:
    """Whether two numbers are equal but for rounding.

    Example:
        >>> same_digits(0.1 + 0.2, 0.3), same_digits(0.3, 0.3001)
        (True, False)
    """
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _step_limit(env_id: str) -> float:
    """The step limit of an environment; without end where it is not registered here."""
    spec = gym.registry.get(env_id)
    return math.inf if spec is None or spec.max_episode_steps is None else spec.max_episode_steps


def count_lines(path: Path, cells: int) -> CountStatement:
    """The sums over all lines of a file.

    Args:
        path: the file.
        cells: how many cells it holds.

    Raises:
        ExperimentError: if the file cannot be read, or a line is not one of a run.
    """
    return _sum(read_rows(path), cells)


def _sum(rows: Sequence[Row], cells: int) -> CountStatement:
    sums = {name: sum(row[name] for row in rows) for name in _SUMS}
    return CountStatement(cells=cells, episodes=len(rows), cost=math.fsum(row["cost"] for row in rows), **sums)


def _prices(data: Any) -> Iterator[Any]:
    """Every option `price` of an experiment that has the form of a language model's price."""
    if isinstance(data, Mapping):
        yield from (value for key, value in data.items() if key == "price" and isinstance(value, list))
    if isinstance(data, (Mapping, list)):
        for value in data.values() if isinstance(data, Mapping) else data:
            yield from _prices(value)


def check_counts(found: Checked) -> Iterator[str]:
    """Compare the stated counts and costs with the lines.

    Args:
        found: the submission, with its rows.

    Yields:
        What is wrong, in words.
    """
    real, stated = _sum(found.rows, len(found.cells)), found.statement and found.statement.counts
    rates = [rate for price in _prices(found.manifest["experiment"]) for rate in check_price(price) if rate]
    dearest = max(rates, default=0.0) * (real.tokens_in + real.tokens_out) / 1e6
    if real.cost > dearest and not same_digits(real.cost, dearest):
        yield f"{EPISODES}: the cost, {real.cost}, should be at most {dearest}, all tokens at the highest price"
    for name in CountStatement.model_fields:
        here, there = getattr(real, name), getattr(stated, name)
        if not same_digits(here, there):
            yield f"{STATEMENT}: counts.{name} should be the sum over the lines, {here}. Received {there}"
