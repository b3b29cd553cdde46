"""Controllers by name.

* `CONTROLLERS` - all of them; other packages add theirs through the entry-point group `drift_envs.controllers`
* `make_controller` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.controller.base import Controller
from drift_agents.registry import Registry

CONTROLLERS: Registry[Controller] = Registry(
    "controller",
    "drift_envs.controllers",
    {
        "direct": "drift_agents.controller.direct:Direct",
        "adamem": "drift_agents.controller.adamem:AdaMem",
    },
)


def make_controller(name: str, **options: Any) -> Controller:
    """Make a controller.

    Args:
        name: one of `CONTROLLERS.names()`.
        options: its parameters.

    Raises:
        UnknownNameError: if no controller has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_controller("direct").name
        'direct'
    """
    return CONTROLLERS.make(name, **options)
