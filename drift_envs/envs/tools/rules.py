"""What the desk's policy and tools mean: the knobs that no schema shows.

* `DeskRules` - the rules in force
* `POLICY` - the rules of the policy and their defaults
* `DEFAULTS` - what happens by default when an argument is left out
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from drift_envs.envs.tools.catalogue import REASONS
from drift_envs.envs.tools.database import TODAY
from drift_envs.knobs import FrozenMapping, Value

POLICY: dict[str, Value] = {
    "cancel_until": "packed",
    "return_days": 30,
    "restocking_fee": 0,
    "match_days": 20,
    "lost_days": 14,
    "other_card": True,
    "approval_limit": 400,
}
"""The rules of the policy: statuses, days, per cent and euros."""

OPEN = ("pending", "packed")
"""The statuses of an order that was not shipped, in their order."""

DEFAULTS = {"refund": "original", "send_item": "standard"}
"""Where a refund without a card goes, and how fast a product without a speed is sent."""

UNITS = {"euros": 100, "cents": 1, "dollars": 80}
"""The cents that an amount of one stands for."""

ORDERINGS = ("newest", "oldest")

RULE_KNOBS = ("policy", "units", "defaults", "enum", "order", "stale", "silent")
"""The knobs on which the rules depend."""


class DeskRules(NamedTuple):
    """The rules in force.

    Args:
        policy: the value of each rule of `POLICY`.
        unit: the cents that an amount of one stands for.
        defaults: what happens when an argument is left out, as `DEFAULTS`.
        reasons: what each reason code means.
        newest_first: the order of lists.
        stale: how many calls reads lag behind.
        silent: by tool, how many of the first writes of an episode report success and do nothing.
    """

    policy: FrozenMapping
    unit: int
    defaults: FrozenMapping
    reasons: FrozenMapping
    newest_first: bool
    stale: int
    silent: FrozenMapping

    def may_cancel(self, status: str) -> bool:
        """Whether an order of this status may be cancelled."""
        return status in OPEN[: OPEN.index(self.policy["cancel_until"]) + 1]

    def is_within(self, rule: str, since: date) -> bool:
        """Whether a day lies within the days of a rule."""
        return bool((TODAY - since).days <= self.policy[rule])

    def is_lost(self, sent: date) -> bool:
        """Whether a shipment sent that day counts as lost."""
        return bool((TODAY - sent).days >= self.policy["lost_days"])

    def after_fee(self, cents: int) -> int:
        """What is refunded for an item that was returned because the customer changed their mind."""
        return cents * (100 - int(self.policy["restocking_fee"])) // 100

    def needs_person(self, cents: int) -> bool:
        """Whether a refund needs a person's approval."""
        return bool(cents > 100 * self.policy["approval_limit"])


def make_rules(knobs: Mapping[str, Value]) -> DeskRules:
    """The rules for knob values; equal values share one object.

    Args:
        knobs: canonical values of some or all knobs; the others have their default.

    Example:
        >>> make_rules({"units": "cents"}).unit, make_rules({}).may_cancel("shipped")
        (1, False)
    """
    return _rules(tuple((name, knobs[name]) for name in RULE_KNOBS if name in knobs))


@lru_cache(maxsize=512)
def _rules(values: tuple[tuple[str, Value], ...]) -> DeskRules:
    knobs = dict(values)
    return DeskRules(
        FrozenMapping({**POLICY, **knobs.get("policy", {})}),
        UNITS[knobs.get("units", "euros")],
        FrozenMapping({**DEFAULTS, **knobs.get("defaults", {})}),
        FrozenMapping({**{code: code for code in REASONS}, **knobs.get("enum", {})}),
        knobs.get("order", "newest") == "newest",
        knobs.get("stale", 0),
        FrozenMapping(knobs.get("silent", {})),
    )
