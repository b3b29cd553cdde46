"""The player of a cell: policy, memory, language models, and the agent, team or reference made of them.

The references are in every table and have access to the oracle: they separate "failed to adapt" from "the task became
harder".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from pydantic import ValidationError

from drift_agents.agent.agent import Agent
from drift_agents.agent.team_agent import TeamAgent
from drift_agents.controller.base import Controller, make_controller
from drift_agents.envs.base import environment_of
from drift_agents.envs.matching import Matching, make_matching
from drift_agents.errors import ArgumentError, ExperimentError, ModelNameError
from drift_agents.experiment.cell_environment import EvaluationWrapper, make_prober
from drift_agents.experiment.config import MODEL_OPTIONS, SOLO, Experiment, PartSpec
from drift_agents.experiment.plan import DEFAULT_POOL, MEMBERS, parts_of, read_members, with_overrides
from drift_agents.llm.base import Model, RuleModel
from drift_agents.llm.budget import Meter
from drift_agents.llm.reask import ReaskingModel
from drift_agents.llm.service import Service
from drift_agents.memory.base import Memory, make_memory
from drift_agents.policy.base import Policy, make_policy
from drift_agents.prompt.builder import Recall
from drift_agents.registry.parts import Registry, read_named
from drift_agents.registry.tables import MEMORIES, POLICIES, VERIFIERS
from drift_agents.team.base import Member, make_team
from drift_agents.team.judge import RULES as TEAM_RULES
from drift_agents.types import AgentClock, Episode, Experience, RecordId, Removed, Verdict
from drift_agents.verifier.base import BaseVerifier, NoVerifier, Verifier, make_verifier
from drift_envs.schedule.timeline import Timeline

Spec = str | Mapping[str, Any]
"""A part's name, or a mapping of the name to its options."""
RULES = "rules"
"""The value of a memory's option `model` that keeps its declared rules."""


def make_agent(
    env: gym.Env[str, Any],
    policy: Policy | Spec = "planner",
    memory: Memory | Spec = "vanilla",
    verifier: Verifier | Spec = "none",
    *,
    controller: Controller | Spec = "direct",
    matching: Matching | Spec | None = None,
    recall: Recall | None = None,
    seed: int | np.random.SeedSequence = 0,
    keep_trace: bool = True,
) -> Agent:
    """An agent for an environment: memory and verifier compare states by the environment's rule.

    Parts are named as in experiment files: a name, or a mapping of the name to its options.

    Args:
        policy: a name, a name with options, or a policy.
        memory: a name, a name with options, or a memory; a memory of one's own is made with the agent's `matching`.
        verifier: a name, a name with options, or a verifier; one by name gets its prober, `replay` by default.
        controller: a name, a name with options, or a controller.
        matching: the rule; that of the environment if not given.
        recall: which records go into a view; what the environment declares if not given.
        seed: of the agent's generators.
        keep_trace: whether episodes contain their steps.

    Raises:
        DriftAgentsError: if a part cannot be made.

    Example:
        >>> import drift_envs
        >>> env = gym.make("DriftMountainCar-v0", text=True)
        >>> agent = make_agent(env, memory={"vanilla": {"k": 5}}, verifier={"glove": {"epsilon": 0.5}})
        >>> agent.matching.name, agent.environment.name
        ('mountain_car', 'mountain_car')
    """
    known = environment_of(env)
    rule = known.make("matching") if matching is None else _made("matching", matching, make_matching)

    def make_with_rule(name: str, **options: Any) -> Memory:
        names, is_open = MEMORIES.options(name)
        return make_memory(name, **({"matching": rule, **options} if "matching" in names or is_open else options))

    def make_with_prober(name: str, **options: Any) -> Verifier:
        return make_verifier(name, **with_prober(PartSpec(name=name, options=options), env))

    return Agent(
        _made("policy", policy, make_policy),
        _made("memory", memory, make_with_rule),
        _made("verifier", verifier, make_with_prober),
        controller=_made("controller", controller, make_controller),
        matching=rule,
        recall=Recall(**known.recall) if recall is None else recall,
        environment=known,
        seed=seed,
        keep_trace=keep_trace,
    )


def _made(part: str, given: Any, make: Callable[..., Any]) -> Any:
    """A part: as it is given, or by its name."""
    if not isinstance(given, (str, Mapping)):
        return given
    try:
        spec = PartSpec.model_validate(given)
    except ValidationError as error:
        raise ArgumentError(
            f"`{part}` should be a name, a mapping of one name to its options, or a {part}. Received {given!r}"
        ) from error
    return make(spec.name, **spec.options)


def with_prober(part: PartSpec, env: gym.Env[Any, Any]) -> dict[str, Any]:
    """The options of a verifier, with the prober itself where the verifier takes one.

    Args:
        part: the verifier; its option `prober` is a name, or a name with options.
        env: where the agent plays.

    Raises:
        ArgumentError: if that option is neither.
    """
    options = dict(part.options)
    prober = options.get("prober", "replay")
    if "prober" in inspect.signature(VERIFIERS.load(part.name)).parameters and isinstance(prober, (str, Mapping)):
        options["prober"] = make_prober(*read_named("prober", prober), env)
    return options


def takes_model(registry: Registry, name: str) -> bool:
    """Whether a part uses a model: whether it takes the option `model`.

    Args:
        registry: the memories, or the policies.
        name: the part's name.

    Example:
        >>> takes_model(POLICIES, "llm"), takes_model(POLICIES, "planner")
        (True, False)
    """
    return "model" in registry.options(name)[0]


def needs_model(experiment: Experiment) -> bool:
    """Whether an experiment uses language models."""
    parts = _policies_of(experiment)
    return any(takes_model(POLICIES, part.name) for part in parts)


def prices_of(experiment: Experiment) -> list[Any]:
    """What the tokens of an experiment's models cost, each price once; empty where no policy has one."""
    prices = [part.options["price"] for part in _policies_of(experiment) if "price" in part.options]
    return [price for place, price in enumerate(prices) if price not in prices[:place]]


def _policies_of(experiment: Experiment) -> list[PartSpec]:
    """All policies: those of agents with the options of each schedule, of training and of the members of teams."""
    all_settings = [experiment.settings_of(schedule) for schedule in experiment.schedules]
    policies, teams = parts_of(experiment.agents, "policy"), parts_of(experiment.agents, "team")
    parts = [with_overrides(one, settings.policy, one.label(policies)) for settings in all_settings for one in policies]
    stages = [settings.training for settings in all_settings]
    parts += [stage.policy for stage in stages if stage is not None and stage.policy is not None]
    teams = [with_overrides(team, settings.team, team.label(teams)) for settings in all_settings for team in teams]
    return parts + [spec.policy for team in teams for spec in read_members(team)]


def make_policy_and_memory(
    policy: PartSpec, memory: PartSpec, service: Service | None, defaults: Mapping[str, Any]
) -> tuple[Policy, Memory, Meter]:
    """The policy, the memory and the meter of a cell.

    A memory with the option `model` (for summaries, importance, reflection, critique) uses the policy's model
    with the policy's parameters; its own rules replace invalid answers. The option `model: rules` keeps its rules.

    Args:
        policy: the policy; its option `model` is the name of a language model, if it takes one.
        defaults: options of the memory that are not the file's, as its matching; it gets those that it takes.

    Raises:
        ExperimentError: if a policy needs a model and none is named, or a memory names another one.
        DriftAgentsError: if a part cannot be made.
    """
    known, is_open = MEMORIES.options(memory.name)
    taken = {key: value for key, value in defaults.items() if key in known or is_open}
    meter, options = Meter(), {**taken, **memory.options}
    if options.get("model", RULES) != RULES or ("model" in options and not takes_model(MEMORIES, memory.name)):
        raise ExperimentError(
            f"{memory.name}: the option `model` of a memory that uses one should be {RULES!r}, or left out. "
            f"Received {memory.options!r}"
        )
    own_rules = options.pop("model", None) == RULES
    decides, model = make_policy_and_model(policy, service)
    if model is None or own_rules or not takes_model(MEMORIES, memory.name):
        return decides, make_memory(memory.name, **options), meter
    own = make_memory(memory.name, **options)  # neither attribute is part of the protocol
    rules: Model = getattr(own, "rules", None) or getattr(own, "model")  # noqa: B009
    metered = ReaskingModel(model, getattr(decides, "parameters", None), rules=rules, meter=meter)
    return decides, make_memory(memory.name, **{**options, "model": metered}), meter


def make_policy_and_model(policy: PartSpec, service: Service | None) -> tuple[Policy, Model | None]:
    """A policy, and its language model, if it uses one.

    Args:
        policy: the policy; its option `model` is the name of a language model, if it takes one.

    Raises:
        ModelNameError: if the policy needs a model and none is named.
        DriftAgentsError: if it cannot be made.
    """
    if service is None or not takes_model(POLICIES, policy.name):
        return make_policy(policy.name, **policy.options), None
    name = policy.options.get("model", service.default_model)
    if not isinstance(name, str) or not name:
        raise ModelNameError(
            f"the policy {policy.name!r} needs the name of a model: --model NAME, or "
            f"`policy: {{{policy.name}: {{model: NAME}}}}` in the file"
        )
    model = service.model(name, **{key: policy.options[key] for key in MODEL_OPTIONS if key in policy.options})
    rest = {key: value for key, value in policy.options.items() if key not in MODEL_OPTIONS}
    made = make_policy(policy.name, **{**rest, "model": model})
    adapt = getattr(service, "adapt", None)  # of a service that sends nothing: a dry run
    return (made if adapt is None else adapt(made)), model


def make_player(
    team: PartSpec,
    policy: Policy,
    memory: Memory,
    verifier: Verifier,
    service: Service | None,
    *,
    meter: Meter,
    **rest: Any,
) -> Agent | TeamAgent:
    """An agent, or a team in an agent's loop.

    Args:
        team: the team; its option `members` says who belongs to it, the others are its own. Where it names
            none and the policy is the planner, the pool `planners` plays.
        policy: the policy of a team that names no members.
        memory: the memory, shared by all members.
        meter: what the models of memory and team cost.
        rest: what an agent takes beside these.

    Raises:
        DriftAgentsError: if a part cannot be made.
    """
    if team.name == SOLO.name and not team.options:
        return Agent(policy, memory, verifier, meter=meter, **rest)
    members = []
    if MEMBERS not in team.options and team.name != SOLO.name and policy.name == "planner":
        team = PartSpec(name=team.name, options={**team.options, MEMBERS: DEFAULT_POOL})
    for spec in read_members(team):
        decides, model = make_policy_and_model(spec.policy, service)
        if model is not None:
            # Distilling, voting and judging use the member's model; rules replace invalid answers.
            parameters = getattr(decides, "parameters", None)
            model = ReaskingModel(model, parameters, rules=RuleModel(TEAM_RULES), meter=meter)
        members.append(Member(spec.name, decides, model, spec.errs))
    options = {key: value for key, value in team.options.items() if key != MEMBERS}
    made = make_team(team.name, members or [Member("solo", policy)], **options)
    return TeamAgent(made, memory, verifier, meter=meter, **rest)


class OracleVerifier(BaseVerifier):
    """Repairs memory at the tick at which the environment changes, or after every step; writes every experience.

    *Oracle realign* removes exactly the records whose response is another one now than when they were
    written: the upper reference for everything that repairs a memory where all responses are true. *Oracle reset*
    removes all of them; it can be beaten, since it throws away what is still true. *Oracle truth* removes every record
    that holds no possible true response at the present tick, as soon as it is written: the upper reference where
    responses are false, which the other two leave in memory.

    Args:
        name: `oracle_realign`, `oracle_reset` or `oracle_truth`.
        env: where the agent plays.
        memory: the agent's memory.
    """

    supervision = "privileged"

    def __init__(self, name: str, env: EvaluationWrapper, memory: Memory) -> None:
        super().__init__()
        self.name = name
        self._env, self._memory = env, memory
        self._plain = NoVerifier()
        self._values: Mapping[str, Any] | None = None
        self._timeline: Timeline | None = None
        self._true: set[RecordId] = set()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule, to say what was a surprise."""
        self._plain.bind(matching, rng)

    def begin_episode(self) -> None:
        """Repair memory before the first decision, if the environment has changed."""
        self._follow()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience; repair memory before the next decision, if the environment changes in between."""
        verdict = self._plain.verify(experience, memory, prefix, now)
        # What it leaves in memory is not in doubt.
        return verdict._replace(removed=self._follow(), contradicted=False)

    def _follow(self) -> Removed:
        """Repair memory at the present tick; returns what fell."""
        tick = self._env.tick
        values = self._env.knobs(tick)
        # Another environment, as the test is one after training, is no drift.
        same = self._env.timeline is self._timeline
        removed = Removed()
        if self.name == "oracle_truth":
            removed = self._remove_false(tick, same and values == self._values)
        elif same and values != self._values:
            removed = self._memory.remove(
                [
                    record.id
                    for record in self._memory.records()
                    if self.name == "oracle_reset" or self._env.changed(record, tick)
                ]
            )
        self._values, self._timeline = values, self._env.timeline
        return removed

    def _remove_false(self, tick: int, is_same: bool) -> Removed:
        if not is_same:
            self._true.clear()
        records = [record for record in self._memory.records() if record.id not in self._true]
        false = [record.id for record in records if not self._env.holds(record, tick)]
        self._true.update(record.id for record in records)
        self._true.difference_update(false)
        return self._memory.remove(false)


class Clairvoyant:
    """Plays the optimal policy of every tick, where the exact model is known, else the best known policy.

    It has no memory and reads no prompt; it stands where an `Agent` would.

    Args:
        env: where it plays.
    """

    def __init__(self, env: EvaluationWrapper) -> None:
        self._watched = env

    def run_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end.

        Args:
            seed: handed to `reset`.
            options: handed to `reset`.
        """
        state, info = env.reset(seed=seed, options=None if options is None else dict(options))
        steps, terminated, truncated = 0, False, False
        limit = None if env.spec is None else env.spec.max_episode_steps
        while not (terminated or truncated):
            # The optimum depends on the remaining steps: a policy for an infinite horizon may wait for ever.
            left = None if limit is None else limit - steps
            action = self._watched.oracle.action(state, self._watched.tick, left)
            state, _, terminated, truncated, info = env.step(action)
            steps += 1
        return Episode(str(info["task"]), float(info["score"]), steps, bool(terminated))
