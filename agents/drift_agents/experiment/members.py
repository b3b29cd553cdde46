"""Who belongs to a team, as an experiment file says it.

* `MemberSpec` - one of them: a name, a policy, and how often its judgement errs
* `read_members` - all that a team names
* `is_spec` - whether an entry says more than a policy
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError

from drift_agents.errors import ArgumentError
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.pools import find_pool

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
        team: its option `members` is a list, or the name of a pool (`drift_agents.experiment.pools`);
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
