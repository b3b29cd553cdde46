"""The members of a team, as experiment files name them.

* `MemberSpec`, `read_members` - the members that a team names
* `POOLS`, `find_pool` - named pools of members
* `DEFAULT_POOL` - the pool of a team that names no members

Without a language model, "heterogeneous" members are planners with different declared options: they take different
risks, resolve contradictions differently, and inspect more or fewer articles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.experiment.config import PartSpec

MEMBERS = "members"
"""The option of a team that names who belongs to it; all its other options are the team's own."""

_KEYS = {"name", "policy", "errs"}


class MemberSpec(NamedTuple):
    """One of a team.

    Args:
        name: how the team calls it.
        policy: who acts.
        errs: how often a judgement of its turns out the wrong way round, where rules judge.
    """

    name: str
    policy: PartSpec
    errs: float = 0.0


def read_members(team: PartSpec) -> tuple[MemberSpec, ...]:
    """All members that a team names; none where the cell's policy is the only one.

    Args:
        team: its option `members` is a list, or the name of a pool (`drift_agents.experiment.members`);
            each entry is a policy (a name, or one name with its
            options), or `{policy: ..., name: ..., errs: ...}`, where `name` and `errs` may be left out.

    Raises:
        ArgumentError: if an entry is neither.
        UnknownNameError: if there is no pool of that name.

    Example:
        >>> members = ["random", {"policy": "planner", "name": "p", "errs": 0.1}]
        >>> team = PartSpec(name="judge", options={"members": members})
        >>> [(spec.name, spec.policy.name, spec.errs) for spec in read_members(team)]
        [('random', 'random', 0.0), ('p', 'planner', 0.1)]
    """
    entries = team.options.get(MEMBERS, [])
    if isinstance(entries, str):
        entries = find_pool(entries)
    if not isinstance(entries, (list, tuple)):
        raise ArgumentError(f"`members` of the team {team.name!r} should be a list. Received {entries!r}")
    plain = [entry if is_spec(entry) else {"policy": entry} for entry in entries]
    try:
        parts = [PartSpec.model_validate(entry["policy"]) for entry in plain]
    except ValidationError as error:
        raise ArgumentError(
            f"`members` of the team {team.name!r} should be policies, or `{{policy: ..., name: ..., errs: ...}}`. "
            f"Received {entries!r}"
        ) from error
    distinct = [part for index, part in enumerate(parts) if part not in parts[:index]]
    return tuple(
        MemberSpec(str(entry.get("name", part.label(distinct))), part, entry.get("errs", 0.0))
        for entry, part in zip(plain, parts, strict=True)
    )


def is_spec(entry: object) -> bool:
    """Whether an entry says more of a member than its policy.

    Args:
        entry: of the option `members`.

    Example:
        >>> is_spec({"policy": "random", "name": "r"}), is_spec({"planner": {"conflict": "newest"}}), is_spec("random")
        (True, False, False)
    """
    return isinstance(entry, Mapping) and "policy" in entry and set(entry) <= _KEYS


ERRS = 0.3
"""How often a judgement of the pool `erring` turns out the wrong way round; declared, not measured."""

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "bold": {
        "frozen_lake": {"risk": 0.9},
        "webshop": {"looks": 1},
        "house": {"explores": False},
        "tools": {"checks": False},
        "tau2": {"checks": False},
    },
    "careful": {"frozen_lake": {"risk": 0.4}, "webshop": {"looks": 6}},
    "newest": {"conflict": "newest"},
    "literal": {"frozen_lake": {"generalise": False}, "webshop": {"looks": 2}, "house": {"common_sense": False}},
}
_BLIND: Mapping[str, Any] = {
    "frozen_lake": {"risk": 0.2, "generalise": False, "aspiration": False},
    "webshop": {"looks": 0},
}


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


DEFAULT_POOL = "planners"
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
