"""Which combinations of knob values a schedule can reach, and what is wrong with them.

* `combination_findings` - the broken rules between knobs, on every reachable combination
"""

from __future__ import annotations

from collections.abc import Iterator

from drift_envs.knobs import KnobTable
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.rules import Finding


def combination_findings(schedule: Schedule, table: KnobTable) -> Iterator[Finding]:
    """The broken rules between knobs."""
    yield from ()
