"""Pools of members that experiment files can name instead of listing them.

* `POOLS` - name -> members, as a file would list them
* `DEFAULT` - the one of a team that names no members
* `find_pool` - one of them

Where there is no language model "heterogeneous" means planners with different declared options: they
take different risks, read contradictions differently, and look at more or fewer articles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_agents.errors import UnknownNameError

ERRS = 0.3
"""How often a judgement of the pool `erring` turns out the wrong way round; declared, not measured."""

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "bold": {"lake": {"risk": 0.9}, "shop": {"looks": 1}},
    "careful": {"lake": {"risk": 0.4}, "shop": {"looks": 6}},
    "newest": {"conflict": "newest"},
    "literal": {"lake": {"generalise": False}, "shop": {"looks": 2}},
}
_BLIND: Mapping[str, Any] = {"lake": {"risk": 0.2, "generalise": False, "aspiration": False}, "shop": {"looks": 0}}


def _planners(errs: float = 0.0) -> list[dict[str, Any]]:
    return [{"name": name, "policy": {"planner": dict(own)}, "errs": errs} for name, own in _OPTIONS.items()]


POOLS: Mapping[str, list[dict[str, Any]]] = {
    "planners": _planners(),
    "erring": _planners(ERRS),
    "alike": [{"name": f"blind-{number}", "policy": {"planner": dict(_BLIND)}} for number in (1, 2, 3, 4)],
    "weak": [*_planners()[:3], {"name": "weak", "policy": "random", "errs": 0.5}],
}
"""`planners`: four different ones whose judgement does not err. `erring`: the same, and each judgement
errs with probability `ERRS`. `alike`: four that share every failure (EDV, appendix G: consensus bias).
`weak`: three and one who acts and votes at random (appendix G: interference from low-quality agents)."""


DEFAULT = "planners"
"""The pool of a team that names no members, where the policy is the planner."""


def find_pool(name: str) -> list[dict[str, Any]]:
    """The members of a pool.

    Args:
        name: one of `POOLS`.

    Raises:
        UnknownNameError: if there is none of that name.

    Example:
        >>> [member["name"] for member in find_pool("weak")]
        ['bold', 'careful', 'newest', 'weak']
    """
    if name not in POOLS:
        raise UnknownNameError("pool of members", name, POOLS)
    return POOLS[name]
