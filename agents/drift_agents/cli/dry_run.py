"""The option `--dry-run` of `drift-agents run`: what an experiment with language models would cost.

One without is `drift_agents.cli.playing_time`'s.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from rich.console import Console

from drift_agents.analysis.table import Table, print_table
from drift_agents.cli.playing_time import TimeIsUp, make_limited_env, print_playing_time
from drift_agents.cli.run import ProgressBars
from drift_agents.errors import ContextLengthError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import play
from drift_agents.experiment.plan import NO_PART, Cell, plan_cells, plan_episodes, read_members
from drift_agents.experiment.players import needs_model, prices_of, takes_model
from drift_agents.experiment.runner import Progress, count_training, name_failures
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

MOST_SECONDS = 60.0
"""How long all agents play in all."""

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
        agents: the agents with this memory.
        played: those of which an episode was played to its end.
        seconds: a step of the slowest of them took.
    """

    schedule: str
    memory: str
    cells: int
    episodes: int
    decisions: int
    most: int
    others: int
    tokens_in: int
    agents: int
    played: int
    seconds: float


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

    @property
    def counts(self) -> tuple[int, int, int]:
        """Decisions, other requests and tokens so far."""
        return self.decisions, self.others, self.tokens

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


class _Sample(NamedTuple):
    """What an agent sends, in the mean of some episodes.

    Args:
        steps: of an episode.
        counts: decisions, other requests and tokens of an episode.
        seconds: of a step; 0 where none was played.
        is_whole: whether an episode was played to its end.
    """

    steps: float
    counts: tuple[float, ...]
    seconds: float = 0.0
    is_whole: bool = False


class _Samples:
    """Plays some episodes of one agent after another, in about `MOST_SECONDS`.

    Args:
        experiment: the experiment.
        agents: how many will be played.
    """

    def __init__(self, experiment: Experiment, agents: int) -> None:
        self._experiment, self._left = experiment, agents
        self._end = time.monotonic() + MOST_SECONDS
        self._played: dict[str, list[_Sample]] = {}

    def take(self, agent: str, cell: Cell) -> _Sample:
        """A sample of an agent on a schedule.

        One that is not reached has the counts of the same agent on other schedules, or of all agents.

        Args:
            agent: what is equal on all schedules.
            cell: one of its cells.
        """
        left, self._left = self._end - time.monotonic(), self._left - 1
        if left > 0 or not self._played:
            found = self._play(cell, left / (self._left + 1))
            self._played.setdefault(agent, []).append(found)
            return found
        alike = self._played.get(agent) or [one for played in self._played.values() for one in played]
        columns = zip(*((one.steps, *one.counts) for one in alike), strict=True)
        steps, *counts = (sum(column) / len(alike) for column in columns)
        return _Sample(steps, tuple(counts))

    def _play(self, cell: Cell, limit: float) -> _Sample:
        """Play the episodes that begin within a limit of seconds."""
        settings, begin = self._experiment.settings_of(cell.schedule), time.monotonic()
        player = replace(cell, verifier=NO_PART)
        with one_process(), name_failures(player), closing(CountingService()) as service:
            env = make_limited_env(player)
            env.end = self._end
            played, steps, counts = 0, 0, service.counts
            try:
                with closing(play(player, settings, service=service, env=env)) as rows:
                    for row in islice(rows, SAMPLE):
                        played, steps, counts = played + 1, steps + row["steps"], service.counts
                        if steps >= SAMPLE_STEPS or time.monotonic() - begin >= limit:
                            break
            except TimeIsUp:
                pass
        seconds = (time.monotonic() - begin) / max(1, env.steps)
        if played:
            return _Sample(steps / played, tuple(count / played for count in counts), seconds, True)
        factor = (_step_limit(env) or 1) / max(1, env.steps)
        return _Sample(env.steps * factor, tuple(count * factor for count in service.counts), seconds)


def _step_limit(env: gym.Env[Any, Any]) -> int | None:
    return None if env.spec is None else env.spec.max_episode_steps


def estimate(experiment: Experiment, progress: Progress | None = None) -> list[CostEstimate]:
    """What an experiment would send to language models; no request is sent.

    On every schedule every agent plays a few episodes without a verifier, with the planner's decisions in the place of
    its models'. A model that succeeds needs about as many steps; one that fails needs the step limit. Repeated
    requests are not included, equal ones, which are sent once, are not left out.

    All of it takes about `MOST_SECONDS`. Agents that are not reached are counted by the episodes of the same agent on
    other schedules, or by those of all agents; an episode that is cut as if it lasted as long as it may.

    Args:
        experiment: the experiment; models need no names.
        progress: callbacks for each schedule, which count the agents.

    Raises:
        DriftAgentsError: if a part cannot be made, or something goes wrong in a cell, with its name.
    """
    agents: dict[tuple[str, str, str], dict[str, list[Cell]]] = {}
    for cell in plan_cells(experiment):
        if cell.reference is None and _has_model(cell, experiment):
            agent = repr((cell.memory, cell.policy, cell.decision))
            agents.setdefault((cell.place, cell.labels[0], cell.memory.name), {}).setdefault(agent, []).append(cell)
    bars = Progress() if progress is None else progress
    places = Counter(place for (place, _, _), alike in agents.items() for _ in alike)
    for place, count in places.items():
        bars.begin(place, count)
    samples = _Samples(experiment, places.total())
    rows = []
    for (place, memory, _), alike in agents.items():
        rows.append(_estimate_agents(experiment, place, memory, alike, samples))
        bars.advance(place, len(alike))
    return rows


def _has_model(cell: Cell, experiment: Experiment) -> bool:
    """Whether a cell's policy, a member of its team or the policy of its training phase takes a model."""
    training = experiment.settings_of(cell.schedule).training
    parts = [cell.policy, *(spec.policy for spec in read_members(cell.decision.team))]
    parts += [training.policy] if training is not None and training.policy is not None else []
    return any(takes_model(POLICIES, part.name) for part in parts)


def _estimate_agents(
    experiment: Experiment, place: str, memory: str, agents: Mapping[str, Sequence[Cell]], samples: _Samples
) -> CostEstimate:
    first = next(iter(agents.values()))[0]
    with closing(make_limited_env(first)) as env:
        limit = _step_limit(env)
        episodes = plan_episodes(env.timeline, experiment.settings_of(first.schedule))
    phase = episodes[0].phase
    source = sum(one.phase == phase for one in episodes) if phase is not None else 0
    counts: list[tuple[int, ...]] = []
    taken: list[_Sample] = []
    for agent, cells in agents.items():
        sample = samples.take(agent, cells[0])
        training = count_training(experiment, cells[0])
        count = (len(episodes) + training) * len(cells)
        sent = count - (source + training) * (len(cells) - len({cell.seed for cell in cells}))
        decisions, others, tokens = sample.counts
        most = round(count * decisions * max(1.0, (limit or sample.steps) / max(sample.steps, 1)))
        expected = (round(sent * decisions), most, round(sent * others), round(sent * tokens))
        counts.append((len(cells), count, *expected))
        taken.append(sample)
    played, seconds = sum(one.is_whole for one in taken), max(one.seconds for one in taken)
    sums = map(sum, zip(*counts, strict=True))
    return CostEstimate._make((place, memory, *sums, len(agents), played, seconds))


def print_cost(experiment: Experiment, jobs: int | None, console: Console, verbosity: Verbosity) -> None:
    """Print what a run would cost, before anything is spent.

    Args:
        jobs: how many cells are played at the same time; `None` for one a core.
        console: where the table is printed.
        verbosity: quiet ones print no progress.
    """
    if needs_model(experiment):
        _print_estimate(experiment, console, verbosity)
    else:
        print_playing_time(experiment, jobs, console, verbosity)


def _print_estimate(experiment: Experiment, console: Console, verbosity: Verbosity) -> None:
    """Print cells, decisions, tokens, price and hours: what is expected, and the worst case."""
    with ProgressBars(None, verbosity) as bars:
        rows = estimate(experiment, bars)
    table = Table(
        experiment.name,
        ("schedule: memory", "cells", "episodes", "decisions", "at most", "others", "prompt tokens"),
    )
    for row in rows:
        table.add(f"{row.schedule}: {row.memory}", *(f"{value:,}" for value in row[2:8]))
    sums: list[int] = [sum(map(int, column)) for column in zip(*(row[2:8] for row in rows), strict=True)] or [0] * 6
    table.add("all", *(f"{value:,}" for value in sums))
    print_table(console, table)
    cells, _, decisions, most, others, tokens_in = sums
    if without := len(plan_cells(experiment)) - cells:
        console.print(f"other cells    {without:,}, played without a language model; {cells + without:,} in all")
    requests = decisions + others
    factor = most / max(decisions, 1)  # longer episodes have more requests of memories, too
    # The most tokens of an answer that a policy requests; the default where none limits them.
    options = [part.options for block in experiment.agents for part in block.policy if takes_model(POLICIES, part.name)]
    longest = max((one.get("max_tokens") or MAX_TOKENS for one in options), default=MAX_TOKENS)
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
    agents, whole = sum(row.agents for row in rows), sum(row.played for row in rows)
    if whole < agents:
        slowest = max(rows, key=lambda row: row.seconds)
        console.print(
            f"After {MOST_SECONDS:g} s {whole} of {agents} agents had played an episode; the others are counted by the "
            "episodes of these, an episode that was cut as if it lasted as long as it may. The slowest: "
            f"{slowest.schedule}, memory {slowest.memory}, {slowest.seconds:.2g} s a step.",
            markup=False,
        )
    console.print(
        "Each agent played a few episodes in which the planner decided; a model's decisions may differ. `decisions` "
        "are requests for an action, `others` those of memories, controllers and teams. Equal requests are sent once, "
        "so the first phase is counted once for all verifiers; `at most` is where none are equal and every episode "
        "lasts as long as it may. Repeated requests after invalid answers come on top. Nothing was sent."
    )
