"""How contradicting outcomes of one (state, action) are weighed: one rule for all agents of a table.

* `CONFLICTS` - the names of the rules
* `check_conflict` - refuses any other name
* `settle` - the outcomes that count, with their shares

GLOVE's appendix B.6 does not say how contradicting records are weighed, and results depend on it,
so the rule is a named option of whatever reads a prompt, never of a memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from drift_envs.checks import check_choice

T = TypeVar("T")

CONFLICTS = ("majority", "newest", "frequency", "max")


def check_conflict(conflict: str) -> str:
    """Return the name of a rule.

    Raises:
        ArgumentError: if it is none of `CONFLICTS`.
    """
    return check_choice("conflict", conflict, CONFLICTS)


def settle(sightings: Sequence[tuple[T, float, int]], conflict: str) -> list[tuple[T, float]]:
    """The outcomes that count, with their shares.

    Args:
        sightings: triples of an outcome, its support (the number of responses, weighted as memory
            recalls them), and when it was last seen; not empty.
        conflict: `majority` keeps the outcome with most responses, ties to the newest; `newest`
            the one seen last; `frequency` keeps all, each with its share of the responses; `max`
            keeps all with share 1, and the caller takes the best.

    Returns:
        Pairs of outcome and share. Shares sum to 1, except under `max`.

    Example:
        >>> seen = [("ice", 3.0, 20), ("hole", 1.0, 31)]
        >>> settle(seen, "majority"), settle(seen, "newest")
        ([('ice', 1.0)], [('hole', 1.0)])
        >>> settle(seen, "frequency"), settle(seen, "max")
        ([('ice', 0.75), ('hole', 0.25)], [('ice', 1.0), ('hole', 1.0)])
    """
    if len(sightings) == 1:
        return [(sightings[0][0], 1.0)]
    if conflict == "majority":
        return [(max(sightings, key=lambda s: (s[1], s[2]))[0], 1.0)]
    if conflict == "newest":
        return [(max(sightings, key=lambda s: (s[2], s[1]))[0], 1.0)]
    if conflict == "max":
        return [(outcome, 1.0) for outcome, _, _ in sightings]
    total = sum(n for _, n, _ in sightings)
    return [(outcome, n / total) for outcome, n, _ in sightings]
