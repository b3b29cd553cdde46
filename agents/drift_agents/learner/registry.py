"""Learners by name.

* `LEARNERS` - all of them; other packages add theirs through the entry-point group `drift_envs.learners`
* `make_learner` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.learner.base import Learner
from drift_agents.registry import Registry

LEARNERS: Registry[Learner] = Registry(
    "learner",
    "drift_envs.learners",
    {
        "dyna_q_plus": "drift_agents.learner.dyna:DynaQPlus",
        "windowed_q": "drift_agents.learner.windowed:WindowedQ",
    },
)


def make_learner(name: str, **options: Any) -> Learner:
    """Make a learner.

    Args:
        name: one of `LEARNERS.names()`.
        options: its parameters; all take `matching` and `seed`.

    Raises:
        UnknownNameError: if no learner has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_learner("windowed_q").name
        'windowed_q'
    """
    return LEARNERS.make(name, **options)
