"""What every declared environment has to fulfil: the suite walks the registry and plays all that each one declares."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.cli.dry_run import estimate
from drift_agents.envs.base import (
    EXACT,
    GENERIC,
    PLAIN_TEMPLATES,
    AgentEnvironment,
    environment_of,
    environments,
    find_environment,
    named_environment,
)
from drift_agents.envs.matching import Matching, make_matching, matching_names
from drift_agents.errors import ArgumentError, PartError
from drift_agents.experiment.finetuning import export_choices
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.players import make_agent
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.service import Service
from drift_agents.memory.base import make_memory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import Reply, make_policy
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.messages import FORMATS
from drift_agents.policy.planner import Planner
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.lessons import read_view
from drift_agents.prompt.view import PromptView
from drift_agents.registry import parts
from drift_agents.registry.tables import ENVIRONMENTS, MEMORIES
from drift_agents.types import Episode, Transition

from drift_envs.envs.make import make_from_schedule
from drift_envs.errors import MissingDependencyError
from drift_envs.registration import IDS
from drift_envs.schedule.loader import load_schedule
from tests.drift_agents.views import assert_plain

PLAYED = [
    *((one, env_id) for one in environments() for env_id in gym.registry if env_id.startswith(one.ids)),
    *((GENERIC, env_id) for env_id in ("DriftCartPole-v0", "DriftPendulum-v0")),
]
"""Every id that a declaration is for, and some that none is for."""
LIMIT, SHORT = 40, 4
FIRST = [(one, next(env_id for other, env_id in PLAYED if other is one)) for one in (*environments(), GENERIC)]
played = pytest.mark.parametrize(("one", "env_id"), PLAYED, ids=[env_id for _, env_id in PLAYED])
declared = pytest.mark.parametrize("one", [*environments(), GENERIC], ids=lambda one: one.name)


class FirstAction:
    """A model that answers with the first admissible action and keeps what it was sent."""

    name = "first"

    def __init__(self) -> None:
        self.requests: list[str] = []

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        self.requests.append("\n".join(message.content for message in messages))
        assert schema is not None
        return Completion("", {"reasoning": "", "action": schema["properties"]["action"]["enum"][0]})


class Watched:
    """The planner, which keeps the views that it gets."""

    name = "watched"

    def __init__(self) -> None:
        self.planner, self.views = make_policy("planner"), list[PromptView]()

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        self.views.append(view)
        return self.planner.decide(view, rng)


class Honest(LanguageModelPolicy):
    """The language model's policy, which looks at what it gets."""

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        assert_plain(view)
        return super().decide(view, rng)


class Recorded(NamedTuple):
    """An episode by the planner: its views, and the transitions that memory holds of it."""

    episode: Episode
    views: list[PromptView]
    memory: VanillaMemory
    rule: Matching
    transitions: tuple[Transition, ...]


def make_env(env_id: str, limit: int = LIMIT) -> gym.Env[str, Any]:
    try:
        return gym.make(env_id, schedule=None, text=True, max_episode_steps=limit)
    except MissingDependencyError as error:
        pytest.skip(str(error))


@cache
def record(one: AgentEnvironment, env_id: str) -> Recorded:
    env = make_env(env_id)
    rule: Matching = one.make("matching")
    memory = VanillaMemory(matching=rule)
    policy = Watched()
    agent = Agent(policy, memory, matching=rule, recall=Recall(**one.recall), seed=1)
    episode = agent.run_episode(env, seed=0)
    env.close()
    transitions = [Transition(r.state, r.action, outcome) for r in memory.records() for outcome, _ in r.outcomes]
    return Recorded(episode, policy.views, memory, rule, tuple(transitions))


@played
def test_the_id_finds_its_environment(one: AgentEnvironment, env_id: str) -> None:
    assert find_environment(env_id) is environment_of(make_env(env_id)) is named_environment(one.name) is one


@played
def test_the_planner_plays(one: AgentEnvironment, env_id: str) -> None:
    found = record(one, env_id)
    assert 0 < found.episode.steps <= LIMIT
    assert {view.environment for view in found.views} == {one.name}
    for step, view in zip(found.episode.trace, found.views, strict=True):
        assert step.reply.strip() in view.actions
    again = one.make("planner", conflict="newest").decide(found.views[-1], np.random.default_rng(0))
    assert again.text in found.views[-1].actions


@played
def test_views_are_plain_data(one: AgentEnvironment, env_id: str) -> None:
    for view in record(one, env_id).views:
        assert_plain(view)


IMPLICIT = [
    *("frozen_lake", "webshop", "house", "tools", "facts"),
    pytest.param("repository", marks=pytest.mark.integration),
]


@pytest.mark.parametrize("name", IMPLICIT)
def test_views_of_two_phases_are_equal_until_an_outcome_differs(name: str) -> None:
    """The same agent plays the same episode before an implicit drift and after it."""
    schedule = load_schedule(f"{name}/implicit")
    drift = min(one.at for one in schedule.drifts)
    played = []
    for tick in (0, drift):
        env = make_from_schedule(schedule, text=True)
        policy = Watched()
        agent = make_agent(env, policy)
        # by seed 3 a task of the house takes a search of ten seconds
        episode = agent.run_episode(env, seed=4, options={"drift_tick": tick})
        played.append((policy.views, [step.experience.outcome for step in episode.trace]))
        env.close()
    (before, outcomes), (after, others) = played
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(outcomes, others, strict=False)))
    shared = min(same + 1, len(before), len(after))
    assert shared
    assert [*map(pickled, before[:shared])] == [*map(pickled, after[:shared])]


def pickled(view: PromptView) -> bytes:
    """The view in bytes; texts that are one object are written as often as equal ones."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content)
    pickler.fast = True
    pickler.dump(view)
    return content.getvalue()


@played
def test_kept_steps_read_back_as_the_views(one: AgentEnvironment, env_id: str) -> None:
    found = record(one, env_id)
    assert [read_view(step.prompt, one.name) for step in found.episode.trace] == found.views


@played
def test_matching_is_reflexive(one: AgentEnvironment, env_id: str) -> None:
    found = record(one, env_id)
    assert all(found.rule.same_outcome(transition, transition) for transition in found.transitions)
    keys = {found.rule.state_key(transition.state) for transition in found.transitions}
    assert 0 < len(keys) <= len({transition.state for transition in found.transitions})


@played
def test_states_are_put_in_words(one: AgentEnvironment, env_id: str) -> None:
    facts = one.share("facts")
    for transition in record(one, env_id).transitions:
        for state in (transition.state, transition.outcome.state):
            assert facts.describe_state(state)
            assert all(isinstance(text, str) for text in facts.state_fields(state).values())


@pytest.mark.parametrize("name", MEMORIES.names())
@pytest.mark.parametrize(("one", "env_id"), FIRST, ids=[env_id for _, env_id in FIRST])
def test_a_language_model_gets_every_format_with_every_memory(one: AgentEnvironment, env_id: str, name: str) -> None:
    """Two episodes a format; the memory goes on, so that later formats show what earlier ones wrote."""
    rule = one.make("matching")
    memory = make_memory(name, **({"matching": rule} if "matching" in MEMORIES.options(name)[0] else {}))
    env = make_env(env_id, SHORT)
    for form in FORMATS:
        model = FirstAction()
        policy = Honest(model, format=form, examples=True)
        agent = Agent(policy, memory, matching=rule, recall=Recall(**one.recall), seed=1)
        episodes = [agent.run_episode(env, seed=number) for number in range(2)]
        assert all(episode.steps and not episode.invalid_actions for episode in episodes)
        asked = [step for episode in episodes for step in episode.trace if len(read_view(step.prompt).actions) > 1]
        assert len(model.requests) == len(asked) > 0
        task = episodes[0].task.partition(" Actions: ")[0]
        assert task in model.requests[0] or form in ("brief", "paper", "full")
    env.close()


class FirstActions(Service):
    """Models that answer with the first admissible action."""

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> FirstAction:
        return FirstAction()


@pytest.mark.integration
@pytest.mark.parametrize(("one", "env_id"), FIRST, ids=[env_id for _, env_id in FIRST])
def test_runs_estimates_and_exports_have_every_format(
    one: AgentEnvironment, env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_env(env_id).close()  # skips where a package is missing
    monkeypatch.setattr(gym.registry[env_id], "max_episode_steps", SHORT)
    policies = [{"llm": {"model": "first", "format": form}} for form in FORMATS]
    agents = {"memory": "vanilla", "verifier": "glove", "policy": policies}
    data = {"name": "all", "schedules": IDS[env_id].schedule, "agents": agents, "seeds": 1, "episodes": 3}
    experiment = parse_experiment(data)
    (row,) = estimate(experiment)
    assert row.decisions >= len(FORMATS)
    run = run_experiment(experiment, tmp_path / "run", service=FirstActions(), trace="all").parent
    for form in FORMATS:
        assert export_choices(run, tmp_path / f"{form}.jsonl", prompt=form) > 0


@declared
def test_what_is_declared_exists(one: AgentEnvironment) -> None:
    assert tuple(one.templates) == FORMATS == tuple(PLAIN_TEMPLATES)
    assert one.make("planner").name == one.name
    assert one.make("matching").name == ("exact" if one.matching == EXACT else one.name)
    assert (one.name in matching_names()) == (one.matching != EXACT)
    Recall(**one.recall)


def test_an_unknown_id_is_played_by_the_generic_one() -> None:
    assert find_environment("Pond-v0") is GENERIC
    assert named_environment("pond") is GENERIC


def test_an_environment_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pond = AgentEnvironment("pond", "A pond.", ("Pond-",), matching="drift_agents.envs.house.states:HouseMatching")
    points = [EntryPoint("pond", "pond:POND", "drift_envs.environments")]
    monkeypatch.setattr(EntryPoint, "load", lambda point: pond)
    monkeypatch.setattr(parts, "entry_points", lambda group: points if group == "drift_envs.environments" else [])
    assert find_environment("Pond-v0") is named_environment("pond") is pond
    assert make_matching("pond").name == "house"
    assert ENVIRONMENTS.summaries()["pond"] == "A pond."
    assert Planner.option_names()[-1] == "pond"
    monkeypatch.setattr(EntryPoint, "load", lambda point: "a pond")
    others = [EntryPoint("lagoon", "pond:LAGOON", "drift_envs.environments")]
    monkeypatch.setattr(parts, "entry_points", lambda group: others if group == "drift_envs.environments" else [])
    assert "lagoon" not in [one.name for one in environments()]
    with pytest.raises(PartError, match="the environment 'lagoon' of the package pond should be an `AgentEnvironment`"):
        find_environment("Lagoon-v0")
    monkeypatch.setattr(EntryPoint, "load", lambda point: pond)
    others = [EntryPoint("puddle", "pond:PUDDLE", "drift_envs.environments")]
    monkeypatch.setattr(parts, "entry_points", lambda group: others if group == "drift_envs.environments" else [])
    with pytest.raises(PartError, match="the environment 'puddle' should be an `AgentEnvironment` of that name"):
        find_environment("Puddle-v0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"planner": "pond.planner"}, "`planner` should be a reference `module:name`. Received 'pond.planner'"),
        (
            {"templates": {"plain": "pond:plain"}},
            "`templates` should name one for every format. Missing: brief, ranked, raw",
        ),
        (
            {"templates": {**PLAIN_TEMPLATES, "raw": "pond"}},
            "`templates['raw']` should be a reference `module:name`. Received 'pond'",
        ),
    ],
)
def test_wrong_declarations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"the environment 'pond': {message}")):
        AgentEnvironment("pond", "A pond.", **changes)


@pytest.mark.integration
def test_an_episode_on_the_lake_imports_no_other_environment() -> None:
    code = """
import sys
from drift_agents.experiment.config import PartSpec, ScheduleSettings
from drift_agents.experiment.episode import play
from drift_agents.experiment.plan import Cell
parts = [PartSpec(name="vanilla"), PartSpec(name="glove"), PartSpec(name="planner")]
list(play(Cell("frozen_lake/explicit", *parts, 0, ("vanilla", "glove", "planner")), ScheduleSettings(episodes=1)))
print(sorted(name for name in sys.modules if name.startswith("drift_agents.envs.") and name.count(".") > 2))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(["drift_agents.envs.frozen_lake.planner"])
