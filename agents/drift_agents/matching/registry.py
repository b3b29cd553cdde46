"""Matching rules by name.

* `MATCHINGS` - all of them; other packages add theirs through the entry-point group `drift_envs.matchings`
* `make_matching` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.matching.base import Matching
from drift_agents.registry import Registry

MATCHINGS: Registry[Matching] = Registry(
    "matching",
    "drift_envs.matchings",
    {
        "exact": "drift_agents.matching.base:Exact",
        "grid": "drift_agents.matching.grid:ResidualGrid",
        "page": "drift_agents.matching.page:PageMatching",
    },
)


def make_matching(name: str, **options: Any) -> Matching:
    """Make a matching rule; rules learn, so every agent needs one of its own.

    Args:
        name: one of `MATCHINGS.names()`.
        options: its parameters.

    Raises:
        UnknownNameError: if no rule has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_matching("grid", position=0.05).name
        'grid'
    """
    return MATCHINGS.make(name, **options)
