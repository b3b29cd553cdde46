"""The policy page.

* `write_page` - the page in words
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_envs.envs.tools.database import TODAY
from drift_envs.knobs import Value


def write_page(written: Mapping[str, Value]) -> str:
    """The policy page in words.

    Args:
        written: the value of each rule that the page states, which may not be the one in force.

    Example:
        >>> from drift_envs.envs.tools.rules import POLICY
        >>> print(write_page(POLICY).splitlines()[1])
        - cancel_until: an order can be cancelled while it is pending or packed.
    """
    statuses = "pending" if written["cancel_until"] == "pending" else "pending or packed"
    fee = written["restocking_fee"]
    less = f", less {fee} per cent if the customer has changed their mind" if fee else ""
    other = "A refund may go to another saved card." if written["other_card"] else "No refund goes to another card."
    return "\n".join(
        (
            f"Policy of the service desk. Today is {TODAY.day} {TODAY:%B %Y}.",
            f"- cancel_until: an order can be cancelled while it is {statuses}.",
            f"- return_days: an item can be returned until {written['return_days']} days after its delivery, a damaged "
            f"one at any time. Refund its price{less}.",
            "- Exchange: return the item, reason wrong_size, and send the other product at no charge.",
            f"- match_days: until {written['match_days']} days after an order, refund what an item now costs less.",
            f"- lost_days: a shipment is lost {written['lost_days']} days after it was sent. Report it, and refund the "
            "whole payment.",
            "- Charged twice: refund the later payment. Missing item: send it again.",
            f"- other_card: {other}",
            f"- approval_limit: if the refund is above {written['approval_limit']}, do nothing but hand over.",
            "- Send and refund as is usual, unless the customer wants otherwise.",
            "- If a rule forbids what the customer wants, decline by that rule. Then finish.",
        )
    )
