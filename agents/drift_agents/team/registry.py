"""Teams by name.

* `TEAMS` - all of them; other packages add theirs through the entry-point group `drift_envs.teams`
* `make_team` - one of them, ready to use
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drift_agents.registry import Registry
from drift_agents.team.base import Member, Team

TEAMS: Registry[Team] = Registry(
    "team",
    "drift_envs.teams",
    {
        "solo": "drift_agents.team.solo:Solo",
        "edv": "drift_agents.team.edv:EDV",
        "judge": "drift_agents.team.judge:Judge",
        "router": "drift_agents.team.router:Router",
    },
)


def make_team(name: str, members: Iterable[Member], **options: Any) -> Team:
    """Make a team.

    Args:
        name: one of `TEAMS.names()`.
        members: who belongs to it.
        options: its parameters.

    Raises:
        UnknownNameError: if no team has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> from drift_agents.policy.random_policy import RandomPolicy
        >>> make_team("solo", [Member("only", RandomPolicy())]).solver("Any task.")
        'only'
    """
    return TEAMS.make(name, members=members, **options)
