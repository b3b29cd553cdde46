"""What the command `drift-agents run` says about language models.

* `add_model_options` - the options
* `name_models` - what they replace in an experiment: policies, members of teams, who constructs
* `with_models`, `with_members` - the policies of a block, and a team, with the models that were named
* `make_service` - the service that the options ask for
* `describe_totals` - what was asked so far, for the progress
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from drift_agents.errors import ArgumentError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.members import MEMBERS, is_spec
from drift_agents.experiment.players import needs_model, takes_model
from drift_agents.llm.budget import Budget
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.openai_compatible import KeySource
from drift_agents.llm.service import Service, Totals
from drift_agents.registry import POLICIES

CONCURRENCY = 8
"""Requests at a time, and cells at a time: they wait for the server, not for a core."""


def add_model_options(run: argparse.ArgumentParser, whole: Callable[[str], int], names: Callable[[str], Any]) -> None:
    """Add the options about language models.

    Args:
        run: the parser of `run`.
        whole: reads a positive whole number.
        names: reads names with commas between them.
    """
    group = run.add_argument_group("language models", "with `--policy llm`; the key is read from OPENAI_API_KEY")
    group.add_argument("--model", type=names, metavar="M", help="the model's name (or several: M,N)")
    group.add_argument("--base-url", metavar="U", help="its server, as in http://127.0.0.1:8000/v1 (default: OpenAI's)")
    group.add_argument("--key-file", type=Path, metavar="FILE", help="read the key from a file instead")
    group.add_argument(
        "--price", type=_price, metavar="IN,OUT", help="what a million tokens of prompts and of answers cost"
    )
    group.add_argument("--budget-tokens", type=whole, metavar="N", help="stop when so many tokens are spent")
    group.add_argument("--budget", type=_positive, metavar="X", help="stop when so much money is spent, by --price")
    group.add_argument("--requests-per-minute", type=whole, metavar="N", help="ask no faster")
    group.add_argument("--tokens-per-minute", type=whole, metavar="N", help="ask no faster")
    group.add_argument(
        "--concurrency", type=whole, metavar="N", default=CONCURRENCY, help="requests at a time (default: %(default)s)"
    )
    group.add_argument(
        "--timeout",
        type=_positive,
        metavar="S",
        default=120.0,
        help="seconds to wait for an answer (default: %(default)g)",
    )
    group.add_argument(
        "--replies",
        type=Path,
        metavar="FILE",
        help="record replies there (default: replies.sqlite in the run's folder)",
    )
    group.add_argument("--replay", action="store_true", help="ask nobody: all replies come from --replies")


def _price(text: str) -> list[float]:
    try:
        prompts, answers = map(float, text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"should be two numbers, as in 0.15,0.60. Received {text!r}") from error
    return [prompts, answers]


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"should be a positive number. Received {text!r}")
    return value


def with_models(parts: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The policies of a block with the models that were named: each policy that takes one, with each of them.

    Args:
        parts: names with options.
        options: of the command line.
    """
    named: list[dict[str, Any]] = []
    said = {key: getattr(options, key) for key in ("base_url", "price") if getattr(options, key) is not None}
    for part in parts:
        if not takes_model(POLICIES, part["name"]):
            named.append(dict(part))
            continue
        own = {**part.get("options", {}), **said}
        models = [{"model": model} for model in options.model] if options.model is not None else [{}]
        named += [{"name": part["name"], "options": {**own, **model}} for model in models]
    return named


def with_members(team: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """A team with the models that were named: its members that ask one and name none take them in turn.

    What a member says itself stays; server and price that it leaves out are those of the command line.

    Args:
        team: a name with options.
        options: of the command line.
    """
    members = team.get("options", {}).get(MEMBERS)
    if not isinstance(members, (list, tuple)):  # a pool, which has no language models, or none
        return dict(team)
    turn = cycle(options.model or [None])
    named = []
    for entry in members:
        spec = dict(entry) if is_spec(entry) else {"policy": entry}
        named.append({**spec, "policy": _filled(spec["policy"], options, turn)})
    return {**team, "options": {**team["options"], MEMBERS: named}}


def _filled(policy: Any, options: argparse.Namespace, turn: Iterator[str | None]) -> dict[str, Any]:
    """A policy with what it does not say itself about its model."""
    part = PartSpec.model_validate(policy)
    if not takes_model(POLICIES, part.name):
        return {"name": part.name, "options": part.options}
    said = {key: getattr(options, key) for key in ("base_url", "price")}
    if "model" not in part.options:
        said["model"] = next(turn)
    return {
        "name": part.name,
        "options": {**{key: one for key, one in said.items() if one is not None}, **part.options},
    }


def name_models(data: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """What the models that were named replace in an experiment: its policies, members of teams, who constructs.

    Whoever constructs and names no model takes the first one that was named.

    Args:
        data: the experiment as plain data, with what other options replaced in it.
        options: of the command line.

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
    if "construct" in data:
        replaced["construct"] = _constructing(data["construct"], options)
    if "worlds" in data:
        replaced["worlds"] = {name: _named_there(world, options) for name, world in data["worlds"].items()}
    return replaced


def _constructing(construct: Any, options: argparse.Namespace) -> Any:
    policy = None if construct is None else construct.get("policy")
    return (
        construct
        if policy is None
        else {**construct, "policy": _filled(policy, options, cycle(options.model or [None]))}
    )


def _named_there(world: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """What is different on one schedule, with the models that were named."""
    named = dict(world)
    if "construct" in world:
        named["construct"] = _constructing(world["construct"], options)
    if "team" in world:
        told = {name: with_members({"name": name, "options": own}, options) for name, own in world["team"].items()}
        named["team"] = {name: team["options"] for name, team in told.items()}
    return named


def make_service(experiment: Experiment, options: argparse.Namespace) -> Service | None:
    """The service that the options ask for; `None` if the experiment asks no language model.

    Args:
        experiment: what is played.
        options: of the command line.

    Raises:
        ArgumentError: if options are given that nobody would heed, or do not go together.
    """
    if not needs_model(experiment):
        given = [f"--{name}" for name in ("model", "base-url", "replay") if getattr(options, name.replace("-", "_"))]
        if given:
            raise ArgumentError(
                f"`{given[0]}` should stand with `--policy llm`: no policy of this run asks a language model"
            )
        return None
    if options.replay and options.replies is None:
        raise ArgumentError("`--replay` should stand with `--replies FILE`. Received it alone")
    return Service(
        replies=None if options.replies is None else ReplyStore(options.replies, read_only=options.replay),
        key=KeySource(file=options.key_file),
        timeout=options.timeout,
        concurrency=options.concurrency,
        requests=options.requests_per_minute,
        tokens=options.tokens_per_minute,
        budget=Budget(options.budget_tokens, options.budget),
    )


def describe_totals(totals: Totals) -> str:
    """What was asked so far, in a line.

    Args:
        totals: of the service.

    Example:
        >>> describe_totals(Totals(120, 30, 45_000, 0.0123))
        '120 asked, 30 from records, 45,000 tokens, cost 0.0123'
    """
    cost = f", cost {totals.cost:.4f}" if totals.cost else ""
    return f"{totals.answered} asked, {totals.recorded} from records, {totals.tokens:,} tokens{cost}"
