"""A script that shops by bid, as a policy for agents of BrowserGym and AgentLab.

* `choose` - the next action of an accessibility tree
"""

from __future__ import annotations

import re


def choose(tree: str, advertised: str = "A") -> str:
    """An action by bid: search the words of the task, open the first result, buy it."""

    def bid(pattern: str) -> str | None:
        found = re.search(rf"\[(\w+)\] {pattern}", tree)
        return found and found[1]

    bar = re.search(r"\[(\w+)\] searchbox 'Search words'(.*)", tree)
    if bar is not None:
        if "value=" not in bar[2]:
            words = re.search(r"Find me (.*?)(?: with|,|')", tree)
            return f"fill('{bar[1]}', {words[1] if words else 'lamp'!r})"
        return f"click('{bid('button .Search.')}')"
    result = r"link '.*\((?i:b0\w+)\)'"
    for pattern in ("button 'Buy Now'", f"button '{advertised}'", r"button '(?!Buy)[^']{4,}'", result):
        if bid(pattern) is not None:
            return f"click('{bid(pattern)}')"
    return "noop(0)"
