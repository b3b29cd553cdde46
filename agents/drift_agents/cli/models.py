"""The options of `drift-agents run` about language models.

* `ModelOptions` - the options
* `name_models` - the values of an experiment that they replace: policies, members of teams, policy of the training
  phase
* `with_models`, `with_members` - the policies of a block, and a team, with the models of the options
* `make_service` - the service that sends the requests
* `describe_totals` - requests, tokens and cost so far, for the progress bar
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from drift_agents.errors import ArgumentError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.members import MEMBERS, is_spec
from drift_agents.experiment.players import has_prices, needs_model, takes_model
from drift_agents.llm.budget import Budget
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.connection import import_openai
from drift_agents.llm.reask import AnswerMonitor
from drift_agents.llm.service import Service, Totals
from drift_agents.registry import POLICIES


@dataclass(frozen=True)
class ModelOptions:
    """The options of `run` about language models.

    Args:
        names: of the models; `None` if none is given.
        base_url: address of their server; `None` for `OPENAI_BASE_URL`, or OpenAI's.
        key_file: the file with the key; `None` for the environment variable.
        price: of a million tokens of prompts and of answers, and of prompts from the server's cache.
        temperature: of the models; `None` for the policy's.
        max_tokens: of an answer; `None` for the policy's.
        parameters: further fields of every request.
        answer: the form of answers; `None` for the policy's.
        keep_going: whether the run continues when more than a fifth of the answers is invalid.
        budget_tokens: tokens after which the run stops.
        budget: cost at which the run stops.
        concurrency: cells at the same time, each of which sends one request at a time.
        timeout: seconds until a request fails.
        replies: file of recorded replies; `None` for the run's own.
        replay: whether all replies come from that file.
    """

    names: tuple[str, ...] | None
    base_url: str | None
    key_file: Path | None
    price: tuple[float, ...] | None
    temperature: float | None
    max_tokens: int | None
    parameters: Mapping[str, Any]
    answer: str | None
    keep_going: bool
    budget_tokens: int | None
    budget: float | None
    concurrency: int
    timeout: float
    replies: Path | None
    replay: bool

    def server(self) -> dict[str, Any]:
        """The options of a policy about server and requests, as far as they are given."""
        given = {
            "base_url": self.base_url,
            "price": None if self.price is None else list(self.price),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "parameters": dict(self.parameters) or None,
            "form": self.answer,
        }
        return {key: value for key, value in given.items() if value is not None}


def with_models(parts: Sequence[Mapping[str, Any]], options: ModelOptions) -> list[dict[str, Any]]:
    """The policies of a block: each policy that takes a model once with each model of the options.

    Args:
        parts: names with options.
        options: those of the command.
    """
    named: list[dict[str, Any]] = []
    for part in parts:
        if not takes_model(POLICIES, part["name"]):
            named.append(dict(part))
            continue
        own = {**part.get("options", {}), **options.server()}
        models = [{}] if options.names is None else [{"model": model} for model in options.names]
        named += [{"name": part["name"], "options": {**own, **model}} for model in models]
    return named


def with_members(team: Mapping[str, Any], options: ModelOptions) -> dict[str, Any]:
    """A team: its members that need a model and name none get those of the options in turn.

    A member's own options take precedence; server and price that it leaves out are those of the options.

    Args:
        team: a name with options.
        options: those of the command.
    """
    members = team.get("options", {}).get(MEMBERS)
    if not isinstance(members, (list, tuple)):  # a pool, which has no language models, or no members
        return dict(team)
    turn = cycle(options.names or [None])
    named = []
    for entry in members:
        spec = dict(entry) if is_spec(entry) else {"policy": entry}
        named.append({**spec, "policy": _fill_policy(spec["policy"], options, turn)})
    return {**team, "options": {**team["options"], MEMBERS: named}}


def _fill_policy(policy: Any, options: ModelOptions, turn: Iterator[str | None]) -> dict[str, Any]:
    """A policy with model and server of the options, where it has none of its own."""
    part = PartSpec.model_validate(policy)
    if not takes_model(POLICIES, part.name):
        return {"name": part.name, "options": part.options}
    given = options.server()
    if "model" not in part.options and (model := next(turn)) is not None:
        given["model"] = model
    return {"name": part.name, "options": {**given, **part.options}}


def name_models(data: Mapping[str, Any], options: ModelOptions) -> dict[str, Any]:
    """The values of an experiment that the options replace: policies, members of teams, policy of the training phase.

    A policy of the training phase that names no model gets the first one of the options.

    Args:
        data: the experiment as plain data, after the other options.
        options: those of the command.

    Returns:
        The keys that are replaced.
    """
    replaced: dict[str, Any] = {
        "agents": [
            {**block, "policy": with_models(block["policy"], options)}
            | ({"team": [with_members(team, options) for team in block["team"]]} if "team" in block else {})
            for block in data["agents"]
        ]
    }
    if "train" in data:
        replaced["train"] = _fill_training(data["train"], options)
    if "environments" in data:
        replaced["environments"] = {
            name: _fill_settings(settings, options) for name, settings in data["environments"].items()
        }
    return replaced


def _fill_training(training: Any, options: ModelOptions) -> Any:
    policy = None if training is None else training.get("policy")
    if policy is None:
        return training
    return {**training, "policy": _fill_policy(policy, options, cycle(options.names or [None]))}


def _fill_settings(settings: Mapping[str, Any], options: ModelOptions) -> dict[str, Any]:
    """The settings of one schedule, with the models of the options."""
    named = dict(settings)
    if "train" in settings:
        named["train"] = _fill_training(settings["train"], options)
    if "team" in settings:
        teams = {name: with_members({"name": name, "options": own}, options) for name, own in settings["team"].items()}
        named["team"] = {name: team["options"] for name, team in teams.items()}
    return named


def make_service(
    experiment: Experiment, options: ModelOptions, note: Callable[[str], None] | None = None
) -> Service | None:
    """Make the service that sends the requests; `None` if the experiment has no language model.

    Args:
        experiment: the experiment.
        options: those of the command.
        note: called with a sentence about what a server refuses.

    Raises:
        ArgumentError: if options have no effect, or exclude each other.
        MissingDependencyError: if the client is not installed and no reply is recorded.
    """
    if not needs_model(experiment):
        given = {"--model": options.names, "--base-url": options.base_url, "--replay": options.replay}
        for name, value in given.items():
            if value:
                raise ArgumentError(f"`{name}` should stand with `--policy llm`: no policy of this run has a model")
        return None
    if options.replay and options.replies is None:
        raise ArgumentError("`--replay` should stand with `--replies FILE`. Received it alone")
    if options.budget is not None and not has_prices(experiment):
        raise ArgumentError("`--budget` should stand with `--price IN,OUT`: without prices nothing costs anything")
    if options.replies is None:  # otherwise all replies may be recorded
        import_openai()
    return Service(
        replies=None if options.replies is None else ReplyStore(options.replies, read_only=options.replay),
        key_file=options.key_file,
        timeout=options.timeout,
        budget=Budget(options.budget_tokens, options.budget),
        monitor=None if options.keep_going or options.replay else AnswerMonitor(),
        note=note,
    )


def describe_totals(totals: Totals) -> str:
    """Requests, tokens and cost in one line.

    Args:
        totals: those of the service.

    Example:
        >>> describe_totals(Totals(120, 30, 45_000, 0.0123))
        '120 requests, 30 from records, 45,000 tokens, cost 0.0123'
    """
    cost = f", cost {totals.cost:.4f}" if totals.cost else ""
    return f"{totals.answered} requests, {totals.recorded} from records, {totals.tokens:,} tokens{cost}"
