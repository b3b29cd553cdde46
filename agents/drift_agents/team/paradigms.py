"""What is whole and what is left of EDV: the roles of a team, by the rows of the paper's tables.

* `PARADIGMS` - the whole, and what tables 4 and 5 leave of it
* `FULL` - the roles of the whole
* `DISTILLERS`, `VERIFIERS`, `BANKS`, `SOLVERS` - who distils, who votes, where items go, who plays
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DISTILLERS = ("third", "executor")
"""`third`: a member outside the execution group. `executor`: the first executor, of its own trajectories."""
VERIFIERS = ("executors", "distiller", "external", "none")
"""`executors`: all of them. `distiller`: the member that distilled. `external`: a member outside the execution
group that did not distil, if there is one. `none`: no vote, all items are accepted."""
BANKS = ("both", "shared", "private")
"""Where items go: as the vote says; all into the shared bank; all into the private banks of those who approved."""
SOLVERS = ("ability", "best", "first")
"""Who plays: by the ability matrix; the best single solver of all kinds of tasks; the first member."""

FULL: Mapping[str, Any] = {
    "executors": 2,
    "trajectories": 4,
    "distil": "third",
    "verify": "executors",
    "banks": "both",
    "solver": "ability",
    "rotate": True,
}
_SINGLE: Mapping[str, Any] = {
    "executors": 1,
    "trajectories": 1,
    "distil": "executor",
    "rotate": False,
    "solver": "first",
}
PARADIGMS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "basic": {**_SINGLE, "verify": "none"},
    "self-verify": _SINGLE,
    "independent": {**_SINGLE, "verify": "external"},
    "self-distil": {"distil": "executor"},
    "third-party": {"verify": "distiller"},
    "fixed-solver": {"solver": "best"},
    "only-shared": {"banks": "shared"},
    "only-private": {"banks": "private"},
    "no-vote": {"verify": "none"},
}
"""The rows of table 4 (`basic`, `self-verify` and `independent` are a single agent: one executor, the first
of the pool, one trajectory a task) and of table 5, and one of ours: without a vote."""
