"""Reference agents for drifting environments: pluggable memories, GLOVE, and the experiments that compare them.

* `Agent` - memory, verifier and policy in one loop
* `TeamAgent`, `Member`, `make_team` - several members with one memory, in the same loop
* `Glove`, `ReplayProber` - verification by repeating an action
* `ReplayLiveProber`, `SnapshotProber` - without a second instance of the environment; with saved states (privileged)
* `Memory`, `Verifier`, `Policy`, `Matching` - the protocols to implement
* `make_agent` - an agent for an environment, in one call
* `make_memory`, `make_verifier`, `make_policy` - parts by name
* `load_run`, `Run` - a finished run: a frame for pandas, a report for notebooks
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift_agents.agent.agent import Agent
    from drift_agents.agent.team_agent import TeamAgent
    from drift_agents.analysis.run import Run, load_run
    from drift_agents.controller.base import make_controller
    from drift_agents.envs.base import AgentEnvironment
    from drift_agents.envs.matching import Exact, Matching
    from drift_agents.experiment.players import make_agent
    from drift_agents.memory.base import Memory, make_memory
    from drift_agents.policy.base import Policy, Reply, make_policy
    from drift_agents.prompt.builder import Recall
    from drift_agents.prompt.view import PromptView
    from drift_agents.team.base import Member, make_team
    from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, Retrieved
    from drift_agents.verifier.base import Probed, Prober, Verifier, make_verifier
    from drift_agents.verifier.glove import Glove
    from drift_agents.verifier.prober import ReplayLiveProber, ReplayProber, SnapshotProber
else:
    _HOMES = {
        "agent.agent": ["Agent"],
        "analysis.run": ["Run", "load_run"],
        "controller.base": ["make_controller"],
        "envs.base": ["AgentEnvironment"],
        "envs.matching": ["Exact", "Matching"],
        "experiment.players": ["make_agent"],
        "memory.base": ["Memory", "make_memory"],
        "policy.base": ["Policy", "Reply", "make_policy"],
        "prompt.builder": ["Recall"],
        "prompt.view": ["PromptView"],
        "team.base": ["Member", "make_team"],
        "agent.team_agent": ["TeamAgent"],
        "types": ["AgentClock", "Episode", "Experience", "Outcome", "Record", "Retrieved"],
        "verifier.base": ["Probed", "Prober", "Verifier", "make_verifier"],
        "verifier.glove": ["Glove"],
        "verifier.prober": ["ReplayLiveProber", "ReplayProber", "SnapshotProber"],
    }

    def __getattr__(name: str) -> Any:
        from drift_envs.utils.lazy import lazy_names  # imports Gymnasium, which `drift-agents --help` does without

        find, _ = lazy_names(__name__, _HOMES)
        return find(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__version__ = "0.1.0"  # that of `drift_envs`: both are parts of one distribution

__all__ = [
    "Agent",
    "AgentClock",
    "AgentEnvironment",
    "Episode",
    "Exact",
    "Experience",
    "Glove",
    "Matching",
    "Member",
    "Memory",
    "Outcome",
    "Policy",
    "Probed",
    "Prober",
    "PromptView",
    "Recall",
    "Record",
    "ReplayLiveProber",
    "ReplayProber",
    "Reply",
    "Retrieved",
    "Run",
    "SnapshotProber",
    "TeamAgent",
    "Verifier",
    "load_run",
    "make_agent",
    "make_controller",
    "make_memory",
    "make_policy",
    "make_team",
    "make_verifier",
]
