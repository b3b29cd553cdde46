"""The option `--dry-run` of `drift-agents run`: what an experiment with language models would cost.

* `estimate` - cells, episodes, decisions and tokens of every schedule
* `print_estimate` - a table with price and duration
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from rich.console import Console

from drift_agents.analysis.table import Table, print_table
from drift_agents.cli.models import ModelOptions
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.episode import CellSetup, make_setup, play
from drift_agents.experiment.plan import DEFAULT_DECISION, NO_PART, Cell, plan_cells
from drift_agents.experiment.players import takes_model
from drift_agents.llm.budget import check_price
from drift_agents.registry import POLICIES
from drift_agents.types import Episode

SAMPLE = 6
"""Episodes that are played by the planner on every schedule, for steps and lengths of prompts."""

ANSWER_TOKENS = 30
"""Tokens of an answer without thoughts."""

SECONDS = 1.0
"""Assumed duration of a request."""


class CostEstimate(NamedTuple):
    """What the language models of one schedule would be sent.

    Args:
        schedule: its name.
        cells: cells with a language model.
        episodes: of all these cells.
        decisions: where an episode is as long as the planner's.
        most: where every episode lasts as long as it may.
        tokens_in: of the prompts of `decisions`.
    """

    schedule: str
    cells: int
    episodes: int
    decisions: int
    most: int
    tokens_in: int


def estimate(experiment: Experiment) -> list[CostEstimate]:
    """CostEstimate what an experiment would send to language models; no request is sent.

    On every schedule the planner plays the first episodes of the first agent. A model that succeeds needs about as
    many steps; one that fails needs the step limit. Requests of memories and repeated ones are not included, equal
    ones, which are sent once, are not left out.

    Args:
        experiment: the experiment; models need no names.

    Raises:
        DriftAgentsError: if a part cannot be made.
    """
    found: dict[str, list[Cell]] = {}
    for cell in plan_cells(experiment):
        if cell.reference is None and takes_model(POLICIES, cell.policy.name):
            found.setdefault(cell.place, []).append(cell)
    return [_estimate_place(experiment, place, cells) for place, cells in found.items()]


def _estimate_place(experiment: Experiment, place: str, cells: Sequence[Cell]) -> CostEstimate:
    sample = min(cells, key=lambda cell: (cell.memory.name == NO_PART.name, cell.verifier.name != NO_PART.name))
    player = replace(sample, policy=PartSpec(name="planner"), verifier=NO_PART, decision=DEFAULT_DECISION)
    settings = experiment.world(sample.schedule)
    setup = make_setup(player, settings)
    spec = setup.world.env.spec
    episodes = len(setup.episodes) + (0 if setup.construction is None else len(setup.construction.tasks))
    played: list[Episode] = []

    def keep(_: CellSetup, __: int, episode: Episode) -> None:
        played.append(episode)

    list(islice(play(player, settings, keep), SAMPLE))
    steps = sum(episode.steps for episode in played)
    tokens = sum(episode.tokens_estimated for episode in played)
    count = episodes * len(cells)
    decisions = round(count * steps / len(played))
    limit = None if spec is None else spec.max_episode_steps
    return CostEstimate(
        place, len(cells), count, decisions, count * (limit or steps), round(decisions * tokens / max(steps, 1))
    )


def print_estimate(experiment: Experiment, options: ModelOptions, console: Console) -> None:
    """Print cells, decisions, tokens, price and hours, before anything is spent.

    Args:
        experiment: the experiment.
        options: price and concurrency.
        console: where the table is printed.
    """
    rows = estimate(experiment)
    table = Table(experiment.name, ("schedule", "cells", "episodes", "decisions", "at most", "prompt tokens"))
    for row in rows:
        table.add(row.schedule, *(f"{value:,}" for value in row[1:]))
    sums: list[int] = [sum(map(int, column)) for column in zip(*(row[1:] for row in rows), strict=True)] or [0] * 5
    table.add("all", *(f"{value:,}" for value in sums))
    print_table(console, table)
    _, _, decisions, most, tokens_in = sums
    tokens_out = decisions * ANSWER_TOKENS
    factor = most / max(decisions, 1)
    price = None if options.price is None else check_price(options.price)
    cost = "unknown without --price IN,OUT"
    if price is not None:
        expected = price.of(tokens_in, tokens_out)
        cost = f"{expected:,.2f}, at most {expected * factor:,.2f}"
    hours = decisions * SECONDS / options.concurrency / 3600
    console.print(f"answer tokens  {tokens_out:,} ({ANSWER_TOKENS} an answer; thoughts come on top)")
    console.print(f"price          {cost}")
    console.print(
        f"hours          {hours:,.1f}, at most {hours * factor:,.1f} ({SECONDS:g} s a request, --concurrency "
        f"{options.concurrency})"
    )
    console.print(
        "Decisions are counted as if every episode were as long as the planner's; `at most` is the step limit. "
        "Memories' own requests and repeated ones come on top; equal ones are sent once. Nothing was sent."
    )
