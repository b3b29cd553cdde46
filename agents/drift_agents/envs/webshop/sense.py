"""Common sense in the shop, for rule-based message policies.

* `WebShopSense` - searches, opens the listing with most words of the instruction, chooses what it names, buys
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from drift_agents.envs.webshop.instruction import ParsedInstruction, parse_instruction, prior_colors, read_price, stems
from drift_agents.envs.webshop.listing import PRICE, Listing, OptionGroup, find_options, read_results, read_title
from drift_agents.policy.message_reader.common_sense import ENOUGH, CommonSense, choose_untried
from drift_agents.policy.message_reader.text import MessageText

_ADVERTISEMENT = re.compile(r'^"Advertisement|/ad/')
_ORDER = re.compile(r"^click\[(?:confirm|place|complete)")
FEATURES, BACK = "click[features]", "click[< prev]"


class WebShopSense(CommonSense):
    """Searches, opens the listing with most words of the instruction, chooses what it names, buys."""

    def choose(self, read: MessageText) -> list[str]:
        """The actions that make sense on this page, equally good ones in the order of the messages.

        Args:
            read: the parsed messages.
        """
        if len(read.actions) == 1:
            return list(read.actions)
        lines = _page_lines(read.text)
        if any(line.startswith("Advertisement") for line in lines[:3]):
            leaving = [one.action for one in read.known if not _ADVERTISEMENT.search(one.outcome)]
            return [action for action in leaving if not read.times(action)] or choose_untried(read)
        if orders := [action for action in read.actions if _ORDER.search(action)]:
            return orders
        title, _, shown = read_title(lines)
        instruction = _instruction(read.text)
        if title:
            return _choose_on_listing(read, title, shown, instruction)
        listings = [one for one in read_results(lines).listings if one.action in read.actions]
        if listings:
            return _choose_listing(read, listings, instruction)
        back = [action for action in read.actions if action == BACK]
        return back or choose_untried(read)


def _page_lines(text: str) -> tuple[str, ...]:
    body = re.search(r"(?:The page shows|Your current observation is):\n(.*?)\n\n", text, re.DOTALL)
    lines = body[1].split("\n") if body else []
    if lines and "Instruction:" in lines[:2]:  # other formats show the instruction on the page
        at = lines.index("Instruction:")
        lines = lines[:at] + lines[at + 2 :]
    return tuple(" ".join(line.split()) for line in lines)


def _instruction(text: str) -> str:
    found = re.search(r"(?:^Instruction: |Your task is to: )(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def _score_of(read: MessageText, action: str) -> float | None:
    """The highest score that the messages show for an action; `None` for an untried one."""
    return max((known.score for known in read.known if known.action == action), default=None)


def _choose_listing(read: MessageText, listings: list[Listing], instruction: str) -> list[str]:
    wanted = parse_instruction(instruction)
    values = {}
    for listing in listings:
        known = _score_of(read, listing.action)
        price = read_price(listing.price)
        value = len(wanted.words & stems(listing.title)) / max(1, len(wanted.words))
        value -= 1.0 if price is not None and price > wanted.limit else 0.0
        # What was bought and scored less than wanted comes after what was not bought yet.
        value -= 0.0 if not known else 1.0 - known / 2
        values[listing.action] = value - read.times(listing.action) * 0.5
    best = max(values.values())
    if best < 0 and "click[next >]" in read.actions and read.times("click[next >]") == 0:
        return ["click[next >]"]
    return [action for action, value in values.items() if value == best]


def _choose_on_listing(read: MessageText, title: str, shown: tuple[str, ...], instruction: str) -> list[str]:
    chosen = re.search(r"^Chosen options: (.*)$", read.text, re.MULTILINE)
    has = dict(pair.split(": ", 1) for pair in chosen[1].split(", ") if ": " in pair) if chosen else {}
    wanted = parse_instruction(instruction)
    groups = _option_groups(read, shown)
    if not has and (look := _look_closer(read, title, wanted, groups)):
        return [look]
    colors = prior_colors(wanted.color_class)
    for group in groups:
        found = find_options(wanted, [group]).get(group.name)
        if found is None and colors and any(stems(value) & colors for value, _ in group.values):
            found = _choose_color(read, group, colors, has)
        if found is not None and has.get(group.name, "").lower() != found[0].lower() and not read.times(found[1]):
            return [found[1]]
    buys = [action for action in read.actions if action == "click[buy now]"]
    return buys or choose_untried(read)


def _look_closer(read: MessageText, title: str, wanted: ParsedInstruction, groups: Sequence[OptionGroup]) -> str | None:
    """The way back where an option of the instruction is missing; its features, where the title lacks words of it.

    The way back again, where the features lack the words too; a listing that the episode comes back to is bought.
    """
    if BACK not in read.actions or read.times(BACK):
        return None
    if any(f"{group.name}: ".lower() in wanted.text and not find_options(wanted, [group]) for group in groups):
        return BACK
    missing = wanted.words - stems(title)
    if not missing or FEATURES not in read.actions:
        return None
    seen = [one.outcome for one in (*read.moves, *read.known) if one.action == FEATURES]
    if not seen:
        return None if read.times(FEATURES) else FEATURES
    return BACK if missing - stems(seen[-1]) else None


def _choose_color(
    read: MessageText, group: OptionGroup, colors: frozenset[str], has: Mapping[str, str]
) -> tuple[str, str] | None:
    """A colour of the class that did not score too little yet, where none is chosen."""
    if group.name in has:
        return None
    likely = [(value, action) for value, action in group.values if stems(value) & colors]
    scores = {action: _score_of(read, action) or ENOUGH for _, action in likely}
    return max(likely, key=lambda pair: scores[pair[1]])


def _option_groups(read: MessageText, shown: tuple[str, ...]) -> list[OptionGroup]:
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for line in shown:
        if line.startswith(PRICE):
            break
        action = f"click[{line.lower()}]"
        if groups and f"click[{groups[-1][0]}: {line}]".lower() in read.actions:
            action = f"click[{groups[-1][0]}: {line}]".lower()
        if action not in read.actions:
            groups.append((line, []))
        elif groups:
            groups[-1][1].append((line, action))
    return [OptionGroup(name, tuple(values)) for name, values in groups]
