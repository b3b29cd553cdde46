"""Policies by name.

* `POLICIES` - all of them; other packages add theirs through the entry-point group `drift_envs.policies`
* `make_policy` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.policy.base import Policy
from drift_agents.registry import Registry

POLICIES: Registry[Policy] = Registry(
    "policy",
    "drift_envs.policies",
    {
        "planner": "drift_agents.policy.planner:Planner",
        "reader": "drift_agents.policy.reader:Reader",
        "energy_pumping": "drift_agents.policy.car.energy:EnergyPumping",
        "llm": "drift_agents.policy.llm:LanguageModelPolicy",
        "random": "drift_agents.policy.random_policy:RandomPolicy",
    },
)


def make_policy(name: str, **options: Any) -> Policy:
    """Make a policy.

    Args:
        name: one of `POLICIES.names()`.
        options: its parameters.

    Raises:
        UnknownNameError: if no policy has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_policy("random").name
        'random'
    """
    return POLICIES.make(name, **options)
