"""The option `--dry-run` of `drift-agents run`: what an experiment with language models would cost.

One without is `drift_agents.cli.playing_time`'s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from drift_agents.analysis.table import Table, print_table
from drift_agents.cli.playing_time import print_playing_time
from drift_agents.errors import ContextLengthError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import make_setup, play
from drift_agents.experiment.plan import NO_PART, Cell, plan_cells, read_members
from drift_agents.experiment.players import needs_model, prices_of, takes_model
from drift_agents.experiment.runner import name_failures
from drift_agents.interruption import one_process
from drift_agents.llm.base import Completion, Message, Model, count_tokens
from drift_agents.llm.budget import check_price
from drift_agents.llm.service import Service
from drift_agents.policy.base import LanguagePolicy, Policy, Reply, SideQuestion, history_length, make_policy
from drift_agents.policy.llm import MAX_TOKENS
from drift_agents.prompt.view import PromptView
from drift_agents.registry.tables import POLICIES
from drift_envs.utils.command_line import Verbosity

SAMPLE, SAMPLE_STEPS = 4, 150
"""Episodes that every agent plays on every schedule, for the number of requests and their lengths; it stops earlier
after so many steps."""

ANSWER_TOKENS = 30
"""Tokens of an answer without thoughts."""

SECONDS = 1.0
"""Assumed duration of a request."""

DECISION = "action"
"""The title of the schema of a decision."""


class CostEstimate(NamedTuple):
    """What the language models of one memory on one schedule would be sent.

    Args:
        schedule: its name.
        memory: the memory.
        cells: cells with a language model.
        episodes: of all these cells.
        decisions: requests for an action, where episodes are as long as the planner's, and equal
            requests are sent once: verifiers change no prompt before the first drift.
        most: decisions where every episode lasts as long as it may, and no requests are equal.
        others: requests of memories, controllers and teams: importance, reflection, critique, votes and the like.
        tokens_in: of the prompts of `decisions` and `others`.
    """

    schedule: str
    memory: str
    cells: int
    episodes: int
    decisions: int
    most: int
    others: int
    tokens_in: int


class CountingService(Service):
    """Language models that count their requests and send none.

    Their actions are the planner's; all other requests are answered by the declared rules of the memory, controller
    or team that makes them.

    Example:
        >>> service = CountingService()
        >>> _ = service.model("any").complete([Message("user", "How important?")], {"title": "importance"})
        Traceback (most recent call last):
        drift_agents.errors.ContextLengthError: counted, not sent
        >>> service.others
        1
    """

    default_model = "any"

    def __init__(self) -> None:
        super().__init__()
        self.decisions = self.others = self.tokens = 0
        self.action = ""
        """What the planner has chosen for the present decision."""

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
        """Return a model that counts; the arguments are checked."""
        super().model(name, base_url, form, price)
        return _CountingModel(self)

    def adapt(self, policy: Policy) -> Policy:
        """Return the policy with the planner's decisions; called for every policy with a model."""
        return _PlannedPolicy(policy, self) if isinstance(policy, LanguagePolicy) else policy


class _CountingModel:
    name = "counted"

    def __init__(self, service: CountingService) -> None:
        self._service = service

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Count the request; answer with the planner's action, or leave the answer to rules."""
        self._service.tokens += count_tokens(message.content for message in messages)
        if schema is not None and schema.get("title") == DECISION:
            self._service.decisions += 1
            data = {name: "" if kind["type"] == "string" else False for name, kind in schema["properties"].items()}
            data["action"] = self._service.action
            return Completion(json.dumps(data), data)
        self._service.others += 1
        raise ContextLengthError("counted, not sent")  # the error after which rules answer


class _PlannedPolicy:
    """A policy with a model of `CountingService`: the planner reads its views and chooses the model's answers."""

    def __init__(self, policy: Any, service: CountingService) -> None:
        self.name, self.needs_history = policy.name, history_length(policy)
        self.parameters = getattr(policy, "parameters", None)
        self._policy, self._service, self._planner = policy, service, make_policy("planner")

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        self._plan(view, rng)
        reply: Reply = self._policy.decide(view, rng)
        return reply

    def decide_and_say(self, view: PromptView, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        self._plan(view, rng)
        told: tuple[Reply, bool] = self._policy.decide_and_say(view, aside, rng)
        return told

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        completion: Completion = self._policy.answer(messages, schema, rules, rng)
        return completion

    def _plan(self, view: PromptView, rng: np.random.Generator) -> None:
        self._service.action = self._planner.decide(view, rng).text


def estimate(experiment: Experiment) -> list[CostEstimate]:
    """What an experiment would send to language models; no request is sent.

    On every schedule every agent plays a few episodes without a verifier, with the planner's decisions in the place of
    its models'. A model that succeeds needs about as many steps; one that fails needs the step limit. Repeated
    requests are not included, equal ones, which are sent once, are not left out.

    Args:
        experiment: the experiment; models need no names.

    Raises:
        DriftAgentsError: if a part cannot be made.
    """
    agents: dict[tuple[str, str, str], dict[str, list[Cell]]] = {}
    for cell in plan_cells(experiment):
        if cell.reference is None and _has_model(cell, experiment):
            agent = repr((cell.memory, cell.policy, cell.decision))
            agents.setdefault((cell.place, cell.labels[0], cell.memory.name), {}).setdefault(agent, []).append(cell)
    return [
        _estimate_agents(experiment, place, memory, list(alike.values()))
        for (place, memory, _), alike in agents.items()
    ]


def _has_model(cell: Cell, experiment: Experiment) -> bool:
    """Whether a cell's policy, a member of its team or the policy of its training phase takes a model."""
    training = experiment.settings_of(cell.schedule).training
    parts = [cell.policy, *(spec.policy for spec in read_members(cell.decision.team))]
    parts += [training.policy] if training is not None and training.policy is not None else []
    return any(takes_model(POLICIES, part.name) for part in parts)


def _estimate_agents(experiment: Experiment, place: str, memory: str, agents: Sequence[Sequence[Cell]]) -> CostEstimate:
    counts: list[tuple[int, ...]] = []
    for cells in agents:
        service = CountingService()
        player, settings = replace(cells[0], verifier=NO_PART), experiment.settings_of(cells[0].schedule)
        setup = make_setup(player, settings, service)
        spec = setup.env.env.spec
        training = 0 if setup.training_phase is None else len(setup.training_phase.tasks)
        played: list[int] = []
        with one_process(), name_failures(player):
            for row in islice(play(player, settings, service=service), SAMPLE):
                played.append(row["steps"])
                if sum(played) >= SAMPLE_STEPS:
                    break
        service.close()
        steps = sum(played) / len(played)
        limit = steps if spec is None or spec.max_episode_steps is None else spec.max_episode_steps
        first = setup.episodes[0].phase
        source = sum(one.phase == first for one in setup.episodes) if first is not None else 0
        count = (len(setup.episodes) + training) * len(cells)
        sent = count - (source + training) * (len(cells) - len({cell.seed for cell in cells}))
        decisions, others, tokens = (
            value / len(played) for value in (service.decisions, service.others, service.tokens)
        )
        most = round(count * decisions * max(1.0, limit / max(steps, 1)))
        expected = (round(sent * decisions), most, round(sent * others), round(sent * tokens))
        counts.append((len(cells), count, *expected))
    return CostEstimate(place, memory, *map(sum, zip(*counts, strict=True)))


def print_cost(experiment: Experiment, jobs: int | None, console: Console, verbosity: Verbosity) -> None:
    """Print what a run would cost, before anything is spent.

    Args:
        jobs: how many cells are played at the same time; `None` for one a core.
        console: where the table is printed.
        verbosity: quiet ones print no progress.
    """
    if needs_model(experiment):
        _print_estimate(experiment, console)
    else:
        print_playing_time(experiment, jobs, console, verbosity)


def _print_estimate(experiment: Experiment, console: Console) -> None:
    """Print cells, decisions, tokens, price and hours: what is expected, and the worst case."""
    rows = estimate(experiment)
    table = Table(
        experiment.name,
        ("schedule: memory", "cells", "episodes", "decisions", "at most", "others", "prompt tokens"),
    )
    for row in rows:
        table.add(f"{row.schedule}: {row.memory}", *(f"{value:,}" for value in row[2:]))
    sums: list[int] = [sum(map(int, column)) for column in zip(*(row[2:] for row in rows), strict=True)] or [0] * 6
    table.add("all", *(f"{value:,}" for value in sums))
    print_table(console, table)
    cells, _, decisions, most, others, tokens_in = sums
    if without := len(plan_cells(experiment)) - cells:
        console.print(f"other cells    {without:,}, played without a language model; {cells + without:,} in all")
    requests = decisions + others
    factor = most / max(decisions, 1)  # longer episodes have more requests of memories, too
    longest = _longest_answer(experiment)
    tokens_out, most_in, most_out = requests * ANSWER_TOKENS, tokens_in * factor, requests * factor * longest
    prices = [check_price(price) for price in prices_of(experiment)]
    cost = "unknown: policies have several prices" if prices else "unknown without --set policy.price=[IN,OUT]"
    if len(prices) == 1:
        (price,) = prices
        cost = f"{price.of(tokens_in, tokens_out):,.2f}, at most {price.of(round(most_in), round(most_out)):,.2f}"
    at_once = experiment.models.concurrency
    hours = requests * SECONDS / at_once / 3600
    console.print(f"prompt tokens  {tokens_in:,}, at most {most_in:,.0f}")
    console.print(
        f"answer tokens  {tokens_out:,} ({ANSWER_TOKENS} an answer), at most {most_out:,.0f} ({longest:,} an answer, "
        "thoughts included)"
    )
    console.print(f"price          {cost}", markup=False)
    console.print(
        f"hours          {hours:,.1f}, at most {hours * factor:,.1f} ({SECONDS:g} s a request, {at_once} at a time)"
    )
    console.print(
        "Each agent played a few episodes in which the planner decided; a model's decisions may differ. `decisions` "
        "are requests for an action, `others` those of memories, controllers and teams. Equal requests are sent once, "
        "so the first phase is counted once for all verifiers; `at most` is where none are equal and every episode "
        "lasts as long as it may. Repeated requests after invalid answers come on top. Nothing was sent."
    )


def _longest_answer(experiment: Experiment) -> int:
    """The most tokens of an answer that the experiment's policies request; where none limits them, the default."""
    options = [part.options for block in experiment.agents for part in block.policy if takes_model(POLICIES, part.name)]
    return max((one.get("max_tokens") or MAX_TOKENS for one in options), default=MAX_TOKENS)
