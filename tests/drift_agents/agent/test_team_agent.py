"""A team in the agent's loop: who plays, what counts, what is charged."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.agent.team_agent import TeamAgent
from drift_agents.controller.adamem import STRATEGY
from drift_agents.controller.base import make_controller
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion, RuleModel
from drift_agents.llm.budget import Meter
from drift_agents.llm.reask import ReaskingModel
from drift_agents.memory.base import make_memory
from drift_agents.memory.consensus import ConsensusMemory
from drift_agents.memory.views import freeze
from drift_agents.policy.base import Reply, make_policy
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.lessons import read_view
from drift_agents.prompt.view import PromptView
from drift_agents.team.base import Member, Solo
from drift_agents.team.edv import EDV
from drift_agents.team.judge import RULES, Judge
from drift_agents.team.router import Router
from drift_agents.types import Usage
from drift_agents.verifier.base import make_verifier

import drift_envs  # noqa: F401 - registers the environments
from tests.drift_agents.llm.scripted import ScriptedModel
from tests.drift_agents.memory.contents import contents

HERE = {"drift_clock": "continue", "drift_tick": 0}


def lake(schedule: str | dict[str, Any] = "frozen_lake/explicit") -> gym.Env[str, Any]:
    env = gym.make("DriftFrozenLake-v0", schedule=schedule, text=True)
    env.reset(seed=0)
    return env


class FixedPolicy:
    """Returns one action and keeps the prompts."""

    name = "always"

    def __init__(self, action: str, cost: int = 0) -> None:
        self.action, self.cost, self.prompts = action, cost, list[str]()

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        self.prompts.append(view.render())
        return Reply(self.action, model_calls=self.cost, tokens_in=10 * self.cost)


def planners(*risks: float) -> list[Member]:
    return [Member(f"risk-{risk}", make_policy("planner", frozen_lake={"risk": risk})) for risk in risks]


@pytest.mark.parametrize("memory", ["vanilla", "consensus"])
def test_a_team_of_one_is_the_agent_to_the_byte(memory: str) -> None:
    episodes = []
    for is_team in (False, True):
        kept, policy, env = make_memory(memory), make_policy("planner"), lake()
        verifier = make_verifier("overwrite")
        agent: Any = (
            TeamAgent(Solo([Member("only", policy)]), kept, verifier, seed=5)
            if is_team
            else Agent(policy, kept, verifier, seed=5)
        )
        episodes.append([agent.run_episode(env) for _ in range(6)] + [contents(kept)])
    assert episodes[0] == episodes[1]


def test_all_trajectories_are_of_one_task_and_count_as_interaction() -> None:
    env = gym.make("DriftWebShop-v0", schedule="webshop/implicit", text=True)
    env.reset(seed=0)
    agent = TeamAgent(Router([Member(name, make_policy("planner")) for name in "abc"]), make_memory("vanilla"))
    tasks = []
    for number in range(3):
        episodes = agent.train_episode(env, seed=number, options=HERE)
        assert len({episode.task for episode in episodes}) == 1
        assert len({episode.trace[0].experience.state for episode in episodes}) == 1
        tasks.append(episodes[0].task)
    assert len(set(tasks)) == 3, "the order of tasks goes on"
    assert agent.clock.episode == 9
    assert agent.clock.step == sum(1 for _ in agent.memory.records())


def test_the_router_plays_with_the_best_member() -> None:
    env = lake()
    lost, wins = FixedPolicy("0"), make_policy("planner")
    agent = TeamAgent(Router([Member("lost", lost), Member("wins", wins)]), make_memory("vanilla"))
    for number in range(6):
        agent.train_episode(env, seed=number, options=HERE)
    asked = len(lost.prompts)
    agent.run_episode(env, seed=9, options=HERE)
    assert agent.member == "wins"
    assert len(lost.prompts) == asked


def test_the_judge_chooses_among_actions_and_all_usage_is_counted() -> None:
    members = [Member("a", FixedPolicy("2", 1)), Member("b", FixedPolicy("1", 1)), Member("c", FixedPolicy("1", 1))]
    episode = TeamAgent(Judge(members)).run_episode(lake())
    assert {step.experience.action for step in episode.trace} == {"1"}
    assert episode.model_calls == 3 * episode.steps
    assert episode.tokens_in == 30 * episode.steps


def test_the_judge_uses_its_model_only_where_members_differ() -> None:
    model = ScriptedModel(['{"reason": "to the right", "choice": 1}'] * 50)
    meter = Meter()
    members = [Member("a", FixedPolicy("2")), Member("b", FixedPolicy("nonsense")), Member("c", FixedPolicy("0"))]
    agent = TeamAgent(Judge(members, model=ReaskingModel(model, meter=meter)), meter=meter)
    episode = agent.run_episode(lake())
    assert {step.experience.action for step in episode.trace} == {"2"}
    assert episode.model_calls == episode.steps
    assert TeamAgent(Judge(members[:1] * 1, model=model)).run_episode(lake()).model_calls == 0


def test_an_invalid_judgement_is_replaced_by_the_majority() -> None:
    members = [Member(name, FixedPolicy(action)) for name, action in zip("abc", "211", strict=True)]
    judge = Judge(members, model=ScriptedModel(['{"choice": 9}']))
    assert judge.propose(PromptView("Go.", "{}", ("1", "2")), ["2", "1", "1"], np.random.default_rng(0)) == "1"


def test_edv_learns_a_lake_and_plays_it() -> None:
    env = lake()
    memory = ConsensusMemory()
    agent = TeamAgent(EDV(planners(0.2, 0.5, 0.9)), memory, seed=1)
    for number in range(8):
        assert len(agent.train_episode(env, seed=number, options=HERE)) == 4
    items = len(memory.items())
    assert items > 0
    scores = [agent.run_episode(env, seed=100 + number, options=HERE).score for number in range(5)]
    assert scores == [1.0] * 5
    assert len(memory.items()) == items, "nothing is distilled in the test"
    trace = agent.run_episode(env, seed=200, options=HERE).trace
    notes = {item.id for item in memory.items()}
    assert any(notes & set(step.retrieved) for step in trace)
    lessons = [lesson for step in trace for lesson in read_view(step.prompt).lessons]
    assert any(lesson.startswith("Way to score 1") for lesson in lessons)


def test_usage_of_distillers_and_voters_is_in_the_last_trajectory() -> None:
    meter = Meter()
    asked = ScriptedModel(['{"items": [{"title": "T", "description": "D", "content": "C", "evidence": ["1.1"]}]}'])
    voting = RuleModel(RULES)
    members = planners(0.2, 0.5, 0.9)
    members = [
        *(member._replace(model=voting) for member in members[:2]),
        members[2]._replace(model=ReaskingModel(asked, meter=meter)),
    ]
    agent = TeamAgent(EDV(members, rotate=False), ConsensusMemory(), meter=meter)
    episodes = agent.train_episode(lake(), seed=1, options=HERE)
    assert [episode.model_calls for episode in episodes] == [0, 0, 0, 1]
    assert agent.run_episode(lake(), seed=2, options=HERE).model_calls == 0


def test_a_member_reads_its_own_private_bank() -> None:
    env = lake()
    memory = ConsensusMemory()
    agent = TeamAgent(EDV(planners(0.2, 0.5, 0.9), banks="private", rotate=False), memory)
    for number in range(4):
        agent.train_episode(env, seed=number, options=HERE)
    owners = {item.id: item.owner for item in memory.items()}
    assert set(owners.values()) == {"risk-0.2", "risk-0.5"}
    for number in range(4):
        trace = agent.run_episode(env, seed=50 + number, options=HERE).trace
        read = {owners[item] for step in trace for item in step.retrieved if item in owners}
        assert read == {agent.member}


def test_an_unknown_member_is_refused() -> None:
    class UnknownMemberTeam(Solo):
        def train(self, task: str, rollout: Any) -> Any:
            return [rollout("missing")]

    with pytest.raises(ArgumentError, match="the team 'solo' has no member 'missing'"):
        TeamAgent(UnknownMemberTeam([Member("only", FixedPolicy("0"))])).train_episode(lake())


@pytest.mark.integration
def test_glove_repairs_what_a_team_agreed_on() -> None:
    """After the drift the shared way ends in a hole: with GLOVE its item is cut or falls, without it stays."""
    from drift_agents.verifier.glove import Glove
    from drift_agents.verifier.prober import ReplayProber

    from drift_envs.wrappers.twin import twin

    left = {}
    for name in ("none", "glove"):
        env = lake()
        verifier = Glove(epsilon=0.5, prober=ReplayProber(twin(env))) if name == "glove" else make_verifier("none")
        memory = ConsensusMemory()
        agent = TeamAgent(EDV(planners(0.2, 0.5, 0.9)), memory, verifier, seed=1)
        for number in range(6):
            agent.train_episode(env, seed=number, options=HERE)
        before = {item.id: item for item in memory.items()}
        after = {"drift_clock": "continue", "drift_tick": 20}
        fell = [agent.run_episode(env, seed=100 + number, options=after) for number in range(6)]
        lost = [item for number, item in before.items() if item not in memory.items()]
        left[name] = (len(lost), sum(episode.realignments for episode in fell))
    assert left["none"] == (0, 0)
    assert left["glove"][0] > 0
    assert left["glove"][1] > 0


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_frozen_memory_is_not_written_by_a_team_that_learns_online(is_frozen: bool) -> None:
    env, memory = lake(), ConsensusMemory()
    team = EDV(planners(0.2, 0.5, 0.9), online=True)
    agent = TeamAgent(team, memory, seed=1)
    agent.train_episode(env, seed=0, options=HERE)
    before = team.tally["proposed"]
    if is_frozen:
        agent.agent.memory = freeze(memory)
    for number in range(4):
        agent.run_episode(env, seed=50 + number, options=HERE)
    assert (team.tally["proposed"] > before) != is_frozen


class StrategyModel:
    """A model that goes one way, says whether it requests a strategy, and makes one in its own name."""

    def __init__(self, name: str, action: str, wants: bool) -> None:
        self.name, self.forms = name, list[str]()
        self.action, self.wants = action, wants

    def complete(self, messages: Any, schema: Any = None, parameters: Any = None, sample_index: int = 0) -> Completion:
        self.forms.append(schema["title"])
        data: dict[str, Any] = {"action": self.action, "refresh": self.wants}
        if schema["title"] == STRATEGY["title"]:
            data = {"reasoning": "So it is.", "strategy": [f"{self.name} says: go on."]}
        answer = {key: value for key, value in data.items() if key in schema["properties"]}
        return Completion(json.dumps(answer), answer, Usage(1, 100, 5))


LINE = {"version": 1, "env": "DriftFrozenLake-v0", "clock": "episode", "base": {"map": ["SFG"]}, "drifts": []}


def model_members(*minds: StrategyModel) -> list[Member]:
    return [Member(mind.name, LanguageModelPolicy(mind)) for mind in minds]


def test_a_member_that_is_a_model_makes_strategies_as_it_does_alone() -> None:
    lives = []
    for is_team in (False, True):
        mind = StrategyModel("ann", "2", wants=True)
        rest: dict[str, Any] = {"memory": make_memory("adamem"), "controller": make_controller("adamem"), "seed": 4}
        agent: Any = (
            TeamAgent(Solo(model_members(mind)), **rest) if is_team else Agent(LanguageModelPolicy(mind), **rest)
        )
        lives.append([agent.run_episode(lake({"name": "line", **LINE})) for _ in range(2)])
    assert lives[0] == lives[1]
    assert lives[1][1].refreshes == 2
    assert mind.forms.count(STRATEGY["title"]) == 4


def test_the_member_that_plays_makes_the_strategies() -> None:
    """A planner's strategies come from declared rules, a model's from the model, in one team."""
    ann = StrategyModel("ann", "2", wants=True)
    router = Router([*model_members(ann), Member("plan", make_policy("planner"))])
    agent = TeamAgent(router, make_memory("adamem", pool="all"), controller=make_controller("adamem"))
    env = lake({"name": "line", **LINE})
    by_model, by_rule = agent.train_episode(env, seed=0)
    assert agent.member == "plan"
    assert "ann says" in by_model.trace[0].prompt
    assert by_rule.refreshes > 0, "of what the model has lived"
    assert all("ann says" not in step.prompt for step in by_rule.trace)
    assert (by_model.model_calls, by_rule.model_calls) == (6, 0)


@pytest.mark.parametrize(
    ("wants", "strategies"), [((True, True, False), 2), ((True, False, False), 0), ((True, False), 0)]
)
def test_a_majority_decides_whether_a_strategy_is_made(wants: tuple[bool, ...], strategies: int) -> None:
    minds = [StrategyModel(name, "2", wants=says) for name, says in zip(("ann", "bob", "cid"), wants, strict=False)]
    doer = Member("plan", FixedPolicy("2"))
    agent = TeamAgent(
        Judge([doer, *model_members(*minds)]), make_memory("adamem"), controller=make_controller("adamem")
    )
    episode = agent.run_episode(lake({"name": "line", **LINE}))
    assert (episode.score, episode.steps, episode.refreshes) == (1.0, 2, strategies)
    assert [mind.forms.count(STRATEGY["title"]) for mind in minds] == [strategies, *[0] * (len(minds) - 1)]
    assert episode.model_calls == len(minds) * (2 + strategies) + strategies, "all answers are paid for"
