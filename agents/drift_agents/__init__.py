"""Reference agents for drifting environments: pluggable memories, GLOVE, and the experiments that compare them.

* `Agent` - memory, verifier and policy in one loop
* `TeamAgent`, `Member`, `make_team` - several members with one memory, in the same loop
* `Glove`, `ReplayProber` - verification by repeating an action
* `ReplayLiveProber`, `SnapshotProber` - without a second instance of the environment; with saved states (privileged)
* `Memory`, `Verifier`, `Policy`, `Matching` - the protocols to implement
* `make_memory`, `make_verifier`, `make_policy` - parts by name
* `load_run`, `Run` - a finished run: a frame for pandas, a report for notebooks
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift_agents.agent import Agent
    from drift_agents.analysis.run import Run, load_run
    from drift_agents.controller.base import make_controller
    from drift_agents.matching.base import Exact, Matching
    from drift_agents.memory.base import Memory, make_memory
    from drift_agents.policy.base import Policy, Reply, make_policy
    from drift_agents.prompt.builder import Recall
    from drift_agents.prompt.view import PromptView, parse_prompt
    from drift_agents.team.base import Member, make_team
    from drift_agents.team_agent import TeamAgent
    from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, Retrieved
    from drift_agents.verifier.base import Probed, Prober, Verifier, make_verifier
    from drift_agents.verifier.glove.glove import Glove
    from drift_agents.verifier.prober.replay import ReplayLiveProber, ReplayProber
    from drift_agents.verifier.prober.snapshot import SnapshotProber

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
    "make_controller",
    "make_memory",
    "make_policy",
    "make_team",
    "make_verifier",
    "parse_prompt",
]

_HOMES = {
    name: module
    for module, names in {
        "drift_agents.agent": ("Agent",),
        "drift_agents.analysis.run": ("Run", "load_run"),
        "drift_agents.controller.base": ("make_controller",),
        "drift_agents.environment": ("AgentEnvironment",),
        "drift_agents.matching.base": ("Exact", "Matching"),
        "drift_agents.memory.base": ("Memory", "make_memory"),
        "drift_agents.policy.base": ("Policy", "Reply", "make_policy"),
        "drift_agents.prompt.builder": ("Recall",),
        "drift_agents.prompt.view": ("PromptView", "parse_prompt"),
        "drift_agents.team.base": ("Member", "make_team"),
        "drift_agents.team_agent": ("TeamAgent",),
        "drift_agents.types": ("AgentClock", "Episode", "Experience", "Outcome", "Record", "Retrieved"),
        "drift_agents.verifier.base": ("Probed", "Prober", "Verifier", "make_verifier"),
        "drift_agents.verifier.glove.glove": ("Glove",),
        "drift_agents.verifier.prober.replay": ("ReplayLiveProber", "ReplayProber"),
        "drift_agents.verifier.prober.snapshot": ("SnapshotProber",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that the command line starts fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
