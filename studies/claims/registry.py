"""Which function decides which claim.

* `Claim` - a number, its experiments and its function
* `CLAIMS` - all of them, by number

The function's docstring says how the claim is read where its text leaves room: always as what refutes it more easily.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import NamedTuple

from studies.claims import adaptation, detection, families, noise, paper_tables, policies
from studies.claims.evidence import Check, ClaimRun


class Claim(NamedTuple):
    """A claim.

    Args:
        number: as in `docs/claims.md`.
        experiments: where it is tested; it has to hold in all of them.
        checks: a run of one of them to the checks that the claim consists of; all of them have to hold.
    """

    number: int
    experiments: tuple[str, ...]
    checks: Callable[[ClaimRun], Iterator[Check]]

    @property
    def reading(self) -> str:
        """How it is read, in one paragraph."""
        return " ".join((inspect.getdoc(self.checks) or "").split())


_EXPLICIT, _IMPLICIT, _FAMILIES = "glove-explicit", "glove-implicit", "families"

CLAIMS = {
    claim.number: claim
    for claim in (
        Claim(1, (_EXPLICIT,), paper_tables.ahead_of_plain),
        Claim(2, (_EXPLICIT,), paper_tables.near_oracles),
        Claim(3, (_EXPLICIT,), paper_tables.near_reset_on_cars),
        Claim(4, (_IMPLICIT,), paper_tables.back_after_reversal),
        Claim(5, (_EXPLICIT, _IMPLICIT), paper_tables.same_as_overwrite),
        Claim(6, ("transient-noise",), noise.ahead_of_overwrite),
        Claim(7, ("transient-noise",), noise.ahead_of_blind_probes),
        Claim(8, ("false-alarms",), detection.few_alarms_when_calm),
        Claim(9, ("false-alarms",), detection.every_drift_noticed),
        Claim(10, (_EXPLICIT, _IMPLICIT), paper_tables.probes_are_few),
        Claim(11, ("planner-rules",), policies.gain_is_not_the_rules),
        Claim(12, ("aggregation",), policies.depends_less),
        Claim(13, ("drift-size",), adaptation.far_below_at_every_size),
        Claim(14, ("adaptation",), adaptation.conflicts_end),
        Claim(15, ("probe-price",), noise.probes_and_their_price),
        Claim(16, ("clocks",), adaptation.ahead_within_episodes),
        Claim(17, ("backbones",), policies.grows_with_reading),
        Claim(18, ("false-alarms",), detection.most_drifts_noticed),
        Claim(19, ("false-alarms",), detection.few_alarms_when_careful),
        Claim(20, (_FAMILIES,), families.ahead_of_plain_in_families),
        Claim(21, (_FAMILIES,), families.probes_pay_where_responses_lie),
        Claim(22, (_FAMILIES,), families.probes_cost_where_none_lies),
        Claim(23, (_FAMILIES,), families.ahead_of_wiping),
        Claim(24, (_FAMILIES,), families.beliefs_suffice),
        Claim(25, (_FAMILIES,), families.little_lost_without_need),
        Claim(26, (_FAMILIES,), families.ahead_on_the_hard_car),
    )
}
"""The claims, by number."""
