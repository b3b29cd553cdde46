"""Who plays a cell: one agent, or a team.

* `make_player` - an agent, or a team in an agent's loop
"""

from __future__ import annotations

from typing import Any

from drift_agents.agent import Agent
from drift_agents.experiment.config import SOLO, PartSpec
from drift_agents.experiment.members import MEMBERS, read_members
from drift_agents.experiment.models import make_decider
from drift_agents.experiment.pools import DEFAULT
from drift_agents.llm.budget import Meter, MeteredModel
from drift_agents.llm.reask import ReaskingModel, RuleFallbackModel
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.service import Service
from drift_agents.memory.base import Memory
from drift_agents.policy.base import Policy
from drift_agents.team.base import Member, make_team
from drift_agents.team.rules import RULES
from drift_agents.team_agent import TeamAgent
from drift_agents.verifier.base import Verifier


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
        policy: who decides, where the team names no members.
        memory: what is remembered, by all members together.
        verifier: what becomes of an experience.
        service: through which language models are asked, if there are any.
        meter: what the models of memory and team cost.
        rest: what an agent takes beside these.

    Raises:
        DriftAgentsError: if a part cannot be made.
    """
    if team.name == SOLO.name and not team.options:
        return Agent(policy, memory, verifier, meter=meter, **rest)
    members = []
    if MEMBERS not in team.options and team.name != SOLO.name and policy.name == "planner":
        team = PartSpec(name=team.name, options={**team.options, MEMBERS: DEFAULT})
    for spec in read_members(team):
        decides, model = make_decider(spec.policy, service)
        if model is not None:
            # Who distils, votes and judges in a member's name costs like its policy; rules answer where it cannot.
            asked = RuleFallbackModel(ReaskingModel(model, getattr(decides, "parameters", None)), RuleModel(RULES))
            model = MeteredModel(asked, meter)
        members.append(Member(spec.name, decides, model, spec.errs))
    options = {key: value for key, value in team.options.items() if key != MEMBERS}
    made = make_team(team.name, members or [Member("solo", policy)], **options)
    return TeamAgent(made, memory, verifier, meter=meter, **rest)
