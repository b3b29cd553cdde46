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

FIRST_CONFIRMATION = 20
"""The first claim that was committed with its rule before any of its instances was played."""


class Claim(NamedTuple):
    """A claim.

    Args:
        number: as in `docs/claims.md`.
        about: what it says, in a few words; `docs/claims.md` has all of it.
        experiments: where it is tested; it has to hold in all of them.
        checks: a run of one of them to the checks that the claim consists of; all of them have to hold.
    """

    number: int
    about: str
    experiments: tuple[str, ...]
    checks: Callable[[ClaimRun], Iterator[Check]]

    @property
    def post_hoc(self) -> bool:
        """Whether the rule that decides it was committed after its first run."""
        return self.number < FIRST_CONFIRMATION

    @property
    def reading(self) -> str:
        """How it is read, in one paragraph."""
        return " ".join((inspect.getdoc(self.checks) or "").split())


_EXPLICIT, _IMPLICIT, _FAMILIES = "glove-explicit", "glove-implicit", "families"

CLAIMS = {
    claim.number: claim
    for claim in (
        Claim(1, "GLOVE is ahead of the plain memories after every drift", (_EXPLICIT,), paper_tables.ahead_of_plain),
        Claim(
            2, "GLOVE reaches 95 % of oracle reset and 90 % of oracle realign", (_EXPLICIT,), paper_tables.near_oracles
        ),
        Claim(
            3, "on the reversed car GLOVE reaches 90 % of oracle reset", (_EXPLICIT,), paper_tables.near_reset_on_cars
        ),
        Claim(
            4,
            "GLOVE is back after the reversal on lakes, and near oracle reset in the shop",
            (_IMPLICIT,),
            paper_tables.back_after_reversal,
        ),
        Claim(
            5,
            "where no response is false GLOVE plays the episodes of `overwrite`",
            (_EXPLICIT, _IMPLICIT),
            paper_tables.same_as_overwrite,
        ),
        Claim(
            6, "where responses are false GLOVE is ahead of `overwrite`", ("transient-noise",), noise.ahead_of_overwrite
        ),
        Claim(
            7,
            "GLOVE's probes win more than as many probes or episodes elsewhere",
            ("transient-noise",),
            noise.ahead_of_blind_probes,
        ),
        Claim(
            8,
            "few false alarms on slippery lakes where nothing changes",
            ("false-alarms",),
            detection.few_alarms_when_calm,
        ),
        Claim(9, "every drift of a slippery lake is noticed soon", ("false-alarms",), detection.every_drift_noticed),
        Claim(10, "probes are at most 5 % of all interactions", (_EXPLICIT, _IMPLICIT), paper_tables.probes_are_few),
        Claim(
            11,
            "GLOVE's gain needs aspiration, and no rule of the planner replaces GLOVE",
            ("planner-rules",),
            policies.gain_is_not_the_rules,
        ),
        Claim(
            12,
            "GLOVE depends less on `k`, order and `conflict` than the plain agent",
            ("aggregation",),
            policies.depends_less,
        ),
        Claim(
            13,
            "GLOVE is 50 points ahead at every size of the drift",
            ("drift-size",),
            adaptation.far_below_at_every_size,
        ),
        Claim(
            14,
            "with GLOVE conflicts end after a drift, without it they do not",
            ("adaptation",),
            adaptation.conflicts_end,
        ),
        Claim(
            15,
            "a probe is worth a price against `overwrite` where responses are false, and only there",
            ("probe-price",),
            noise.probes_and_their_price,
        ),
        Claim(
            16,
            "with live probes GLOVE is ahead where drifts come within an episode",
            ("clocks",),
            adaptation.ahead_within_episodes,
        ),
        Claim(17, "GLOVE's gain grows with how well a policy reads", ("backbones",), policies.grows_with_reading),
        Claim(18, "9 in 10 drifts of long phases are noticed soon", ("false-alarms",), detection.most_drifts_noticed),
        Claim(19, "few false alarms with delta = .01", ("false-alarms",), detection.few_alarms_when_careful),
        Claim(
            20, "GLOVE is ahead of plain memories on six families", (_FAMILIES,), families.ahead_of_plain_in_families
        ),
        Claim(
            21,
            "where responses are false GLOVE is ahead of `overwrite`, its probes paid",
            (_FAMILIES,),
            families.probes_pay_where_responses_lie,
        ),
        Claim(
            22,
            "where no response is false `overwrite` is ahead of GLOVE, whose probes cost",
            (_FAMILIES,),
            families.probes_cost_where_none_lies,
        ),
        Claim(23, "GLOVE is ahead of wiping memory every ten episodes", (_FAMILIES,), families.ahead_of_wiping),
        Claim(
            24, "BeliefMem alone loses at most 5 points to BeliefMem with GLOVE", (_FAMILIES,), families.beliefs_suffice
        ),
        Claim(
            25,
            "GLOVE costs at most 2 points where most ways stay good",
            (_FAMILIES,),
            families.little_lost_without_need,
        ),
        Claim(26, "GLOVE is ahead of plain memories on the hard car", (_FAMILIES,), families.ahead_on_the_hard_car),
    )
}
"""The claims, by number."""
