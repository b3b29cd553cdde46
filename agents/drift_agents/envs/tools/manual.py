"""The tools on offer and the policy page, parsed from the task.

* `Manual`, `read_manual` - which tool does what, by names and descriptions that resemble; the rules of the page
* `ROLES` - what tools of a service desk are known to do
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from drift_agents.envs.tools.call import read_day

ROLES: dict[str, str] = {
    "find_customer": "find a customer by email address",
    "list_orders": "list the orders of a customer",
    "open_account": "find a customer and list the orders",
    "find_order": "find the order that a customer placed on a day",
    "get_order": "show items payments and shipments of an order",
    "list_cards": "list the saved cards of a customer",
    "find_product": "find a product and its present price",
    "track_shipment": "show where a shipment is",
    "cancel_order": "cancel an order",
    "return_item": "register an item as returned",
    "register_return": "announce the return of an item",
    "complete_return": "complete an announced return",
    "send_item": "send a product at no charge",
    "refund": "refund a payment or a part of it",
    "draft_refund": "prepare a refund",
    "send_refund": "pay out a refund that was prepared",
    "update_address": "change the address of a customer",
    "update_street": "change the street of a customer",
    "update_city": "change the city of a customer",
    "redirect_order": "change where an order is delivered",
    "create_shipment": "add a second empty shipment to an order",
    "move_item": "move an item to another shipment of its order",
    "ship_item": "ship an item of an order separately",
    "report_lost": "report a shipment as lost",
    "decline": "decline a request about an order by a rule of the policy",
    "hand_over": "hand the request over to a person and end",
    "finish": "end the request",
}
"""Common knowledge about service desks: a usual name of a tool, and what it does."""

LIKE = 0.4
"""Tools that resemble no known one as much are not used."""

_TOOL = re.compile(r"^(?P<name>\w+)\(.*\) - (?P<about>.*)$", re.MULTILINE)
_TODAY = re.compile(r"Today is (?P<day>\d+ \w+ \d+)\.")
_NUMBERS = {
    "return_days": re.compile(r"can be returned until (\d+) days"),
    "restocking_fee": re.compile(r"less (\d+) per cent"),
    "match_days": re.compile(r"match_days: until (\d+) days"),
    "lost_days": re.compile(r"is lost (\d+) days"),
    "approval_limit": re.compile(r"refund is above (\d+)"),
}


class Manual(NamedTuple):
    """The tools on offer and the policy page.

    Args:
        names: by what a tool does (`ROLES`), its present name.
        numbers: the rules of the page with a number; those that it does not state are missing.
        packed: whether the page allows to cancel an order that is packed.
        other_card: whether the page allows refunds to another card.
        today: the day of the page.
    """

    names: Mapping[str, str]
    numbers: Mapping[str, int]
    packed: bool
    other_card: bool
    today: date | None

    def role_of(self, tool: str) -> str:
        """What a tool of this name does or did; empty if its name resembles none.

        Args:
            tool: its name, now or earlier.

        Example:
            >>> read_manual("lookup(email: text) - Find a customer by email address.").role_of("lookup")
            'find_customer'
            >>> read_manual("").role_of("cancel_orders")
            'cancel_order'
        """
        role = next((role for role, name in self.names.items() if name == tool), "")
        return role or _role_of_name(tool)

    def follow(self, offered: Iterable[str]) -> Manual:
        """The manual with names of tools that were given to them since the task was written, by resemblance.

        Args:
            offered: the names of all tools that can be called now.
        """
        unknown = [tool for tool in offered if tool not in self.names.values()]
        if not unknown:
            return self
        left = {role for role, name in self.names.items() if name not in offered}
        names = dict(self.names)
        for tool in unknown:
            role = next(iter(difflib.get_close_matches(tool, sorted(left), 1, LIKE)), None)
            if role is not None:
                names[role] = tool
        return self._replace(names=names)


@lru_cache(maxsize=1024)
def _role_of_name(tool: str) -> str:
    return next(iter(difflib.get_close_matches(tool, ROLES, 1)), "")


@lru_cache(maxsize=256)
def read_manual(task: str) -> Manual:
    """Parse the task.

    Args:
        task: the task in words: request, policy page and tools.
    """
    tools = [(found["name"], found["about"]) for found in _TOOL.finditer(task)]
    today = _TODAY.search(task)
    numbers = {rule: int(found[1]) for rule, pattern in _NUMBERS.items() if (found := pattern.search(task))}
    return Manual(
        _assign(tuple(tools)),
        numbers,
        "pending or packed" in task,
        "No refund goes to another card" not in task,
        read_day(today["day"]) if today else None,
    )


@lru_cache(maxsize=256)
def _assign(tools: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The tool for each role, the most alike pairs first."""
    pairs = [
        (_resemblance(role, about, name, words), role, name) for name, words in tools for role, about in ROLES.items()
    ]
    found: dict[str, str] = {}
    for likeness, role, name in sorted(pairs, key=lambda pair: -pair[0]):
        if likeness >= LIKE and role not in found and name not in found.values():
            found[role] = name
    return found


def _resemblance(role: str, about: str, name: str, words: str) -> float:
    """The share of words that two tools have in common; equal names count as one word more."""
    one, other = set(about.split()), set(re.findall(r"[a-z]+", words.lower()))
    return (len(one & other) + (role == name)) / (len(one | other) + 1)
