"""Language models in an experiment: one service for all cells, also for what memories ask.

* `needs_model` - whether an experiment asks language models
* `make_parts` - the policy, the memory and the meter of a cell
* `make_decider` - a policy with the model that it asks
* `play_in_threads` - cells that wait for servers most of the time, played at the same time
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.members import read_members
from drift_agents.experiment.plan import overlaid
from drift_agents.llm.base import Model
from drift_agents.llm.budget import Meter, MeteredModel
from drift_agents.llm.reask import ReaskingModel, RuleFallbackModel
from drift_agents.llm.service import Service
from drift_agents.memory.base import Memory, make_memory
from drift_agents.policy.base import Policy, make_policy
from drift_agents.registry import MEMORIES, POLICIES, Registry

OF_THE_MODEL = ("base_url", "form", "price")
"""Options of a policy that say where its model is and how it is asked."""

RULES = "rules"
"""The value of a memory's option `model` that keeps its declared rules."""

Task = TypeVar("Task")


def takes_model(registry: Registry, name: str) -> bool:
    """Whether a part asks a model: whether it takes the option `model`.

    Args:
        registry: the memories, or the policies.
        name: the part's name.

    Example:
        >>> takes_model(POLICIES, "llm"), takes_model(POLICIES, "planner")
        (True, False)
    """
    return "model" in registry.options(name)[0]


def needs_model(experiment: Experiment) -> bool:
    """Whether an experiment asks language models.

    Args:
        experiment: a checked experiment.
    """
    worlds = [experiment.world(schedule) for schedule in experiment.schedules]
    stages = [world.construction for world in worlds]
    parts = [part for agents in experiment.agents for part in agents.policy]
    parts += [stage.policy for stage in stages if stage is not None and stage.policy is not None]
    teams = [overlaid(team, world.team) for world in worlds for agents in experiment.agents for team in agents.team]
    parts += [spec.policy for team in teams for spec in read_members(team)]
    return any(takes_model(POLICIES, part.name) for part in parts)


def make_parts(
    policy: PartSpec, memory: PartSpec, service: Service | None, defaults: Mapping[str, Any]
) -> tuple[Policy, Memory, Meter]:
    """The policy, the memory and the meter of a cell.

    A memory that asks a model (for summaries, importance, reflection, critique) asks the policy's, with
    the policy's parameters, and its own rules answer where the model's answer cannot be used. The
    option `model: rules` leaves it its rules.

    Args:
        policy: the policy; its option `model` is the name of a language model, if it takes one.
        memory: the memory.
        service: through which language models are asked.
        defaults: options of the memory that are not the file's, as its matching.

    Raises:
        ExperimentError: if a policy needs a model and none is named, or a memory names another one.
        DriftAgentsError: if a part cannot be made.
    """
    meter, options = Meter(), {**defaults, **memory.options}
    if options.get("model", RULES) != RULES or ("model" in options and not takes_model(MEMORIES, memory.name)):
        raise ExperimentError(
            f"{memory.name}: the option `model` of a memory that asks one should be {RULES!r}, or left out. "
            f"Received {memory.options!r}"
        )
    own_rules = options.pop("model", None) == RULES
    decides, model = make_decider(policy, service)
    if model is None or own_rules or not takes_model(MEMORIES, memory.name):
        return decides, make_memory(memory.name, **options), meter
    rules: Model = getattr(make_memory(memory.name, **options), "model")  # noqa: B009 - not part of the protocol
    asked = MeteredModel(RuleFallbackModel(ReaskingModel(model, getattr(decides, "parameters", None)), rules), meter)
    return decides, make_memory(memory.name, **{**options, "model": asked}), meter


def make_decider(policy: PartSpec, service: Service | None) -> tuple[Policy, Model | None]:
    """A policy, and the language model that it asks, if it asks one.

    Args:
        policy: the policy; its option `model` is the name of a language model, if it takes one.
        service: through which language models are asked.

    Raises:
        ExperimentError: if the policy needs a model and none is named.
        DriftAgentsError: if it cannot be made.
    """
    if service is None or not takes_model(POLICIES, policy.name):
        return make_policy(policy.name, **policy.options), None
    model = _find_model(policy, service)
    rest = {key: value for key, value in policy.options.items() if key not in OF_THE_MODEL}
    return make_policy(policy.name, **{**rest, "model": model}), model


def _find_model(policy: PartSpec, service: Service) -> Model:
    name = policy.options.get("model")
    if not isinstance(name, str) or not name:
        raise ExperimentError(
            f"the policy {policy.name!r} needs the name of a model: `policy: {{{policy.name}: {{model: NAME}}}}`, or "
            f"--model NAME. Received {name!r}"
        )
    return service.model(name, **{key: policy.options[key] for key in OF_THE_MODEL if key in policy.options})


def play_in_threads(tasks: Iterable[Task], jobs: int, service: Service, do: Callable[[Task], None]) -> Iterator[Task]:
    """Play cells at the same time, in this process, so that they share the service.

    When one fails or the run is interrupted nothing more is asked; what is under way is awaited, since
    its replies are paid for and are recorded.

    Args:
        tasks: what is to be done.
        jobs: how many at the same time.
        service: through which they ask.
        do: does one.

    Yields:
        Each task when it is done.
    """
    with ThreadPoolExecutor(jobs, thread_name_prefix="cell") as pool:
        futures = {pool.submit(do, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            service.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
