"""What a reader of messages does where they show no score: common sense about each environment.

* `sensible_actions` - the actions that make sense, equally good ones in the order of the messages
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from drift_agents.envs.webshop.instruction import ParsedInstruction, parse_instruction, prior_colors, read_price, stems
from drift_agents.envs.webshop.listing import PRICE, Listing, OptionGroup, find_options, read_results, read_title
from drift_agents.policy.message_reader.text import KnownOutcome, MessageText

_POSITION = re.compile(r"\[(\d+), (\d+)\]")
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
_MOTION = re.compile(rf"[Pp]osition\W*? {_NUMBER}\W+(?:Current )?[Vv]elocity\W*? {_NUMBER}")
_ADVERTISEMENT = re.compile(r'^"Advertisement|/ad/')
_ORDER = re.compile(r"^click\[(?:confirm|place|complete)")
_DIRECTIONS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}

ENDS, BLOCKED, REPEATED = 100.0, 90.0, 4.0
"""Costs, in tiles, of an action that led to an end without score, that changed nothing, and of each repetition."""
STALE = REPEATED
"""The cost of an action that led to an end without score before memory was contradicted: it may have changed."""
OLD_FAILURE, NEW_FAILURE = -0.25, -0.5
"""Values of an action that brought no score, before and after memory was contradicted; 0 for an untried one."""
FEATURES, BACK = "click[features]", "click[< prev]"
ENOUGH = 0.999
"""A score from which on no better one is looked for."""


def sensible_actions(read: MessageText) -> list[str]:
    """The actions that make sense, equally good ones in the order of the messages.

    Args:
        read: the parsed messages.
    """
    return list(_SENSE.get(read.world, _choose_untried)(read))


def _choose_untried(read: MessageText) -> list[str]:
    """Actions with the highest score, then untried ones, then those that brought none; repeated ones last.

    Of actions that brought none, those last seen before memory was contradicted come first: that may have changed.
    """
    scores: dict[str, float] = {}
    fresh = {known.action for known in read.known if not read.is_stale(known)}
    for known in read.known:
        brought = known.score or (NEW_FAILURE if known.action in fresh else OLD_FAILURE)
        scores[known.action] = max(scores.get(known.action, -1.0), brought)
    values = {action: scores.get(action, 0.0) - read.times(action) for action in read.actions}
    return [action for action, value in values.items() if value == max(values.values())]


def _choose_direction(read: MessageText) -> list[str]:
    """Directions towards a destination, away from known holes and from where the episode has been."""
    here, goals, size = _read_lake(read.text)
    dead = _dead_ends(read)
    paying = {place for known in read.elsewhere if known.ended and known.score > 0 for place in _places(known.outcome)}
    targets = [goal for goal in goals if goal not in paying] or goals
    walked = [place for move in read.moves for place in _places(move.before)]
    costs: dict[str, float] = {}
    for action, name in re.findall(r"(\d) (left|down|right|up)\b", read.text):
        if action not in read.actions or action in costs:
            continue
        row, column = here[0] + _DIRECTIONS[name][0], here[1] + _DIRECTIONS[name][1]
        is_inside = 0 <= row < size[0] and 0 <= column < size[1]
        cost = float(min((abs(row - r) + abs(column - c) for r, c in targets), default=0))
        known_costs = [_known_cost(read, known) for known in read.known if known.action == action]
        cost += max([dead.get((row, column), 0.0), 0.0 if is_inside else BLOCKED, *known_costs])
        been = max([walked.count((row, column)), *(known.visits for known in read.known if known.action == action)])
        costs[action] = cost + REPEATED * read.times(action) + 2 * been
    return [action for action, cost in costs.items() if cost == min(costs.values())]


def _known_cost(read: MessageText, known: KnownOutcome) -> float:
    if known.ended and known.score == 0:
        return STALE if read.is_stale(known) else ENDS
    return BLOCKED if "nothing changed" in known.outcome else 0.0


def _dead_ends(read: MessageText) -> dict[tuple[int, int], float]:
    costs: dict[tuple[int, int], float] = {}
    for known in read.elsewhere:
        if known.ended and known.score == 0:
            for place in _places(known.outcome):
                costs[place] = max(costs.get(place, 0.0), _known_cost(read, known))
    return costs


def _places(words: str) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in _POSITION.findall(words)]


def _read_lake(text: str) -> tuple[tuple[int, int], list[tuple[int, int]], tuple[int, int]]:
    """The present position, the destinations, and the number of rows and columns."""
    at = re.search(r"(?:[Cc]urrent [Pp]osition: |current observation is: \{\"cur_pos\": )(\[\d+, \d+\])", text)
    goals = re.search(r"(?:Destinations: |destination\(s\): )((?:\[\d+, \d+\](?:, )?)+)", text)
    size = re.search(r"(\d+) rows x (\d+) columns", text)
    return (
        _places(at[1])[0] if at else (0, 0),
        _places(goals[1]) if goals else [],
        (int(size[1]), int(size[2])) if size else (99, 99),
    )


def _choose_push(read: MessageText) -> list[str]:
    """The push in the direction of the motion, by what pushes did to the velocity in the messages."""
    current = re.search(rf"Current [Pp]osition: {_NUMBER}\W+Current [Vv]elocity: {_NUMBER}", read.text)
    found = current or _MOTION.search(read.text.rpartition("current observation is")[2])
    velocity = float(found[2]) if found else 0.0
    fresh = [known for known in (*read.known, *read.elsewhere) if not read.is_stale(known)]
    direction = _push_direction([*fresh, *read.moves], float(found[1]) if found else 0.0)
    names = dict(re.findall(r"(\d) push (left|right)", read.text))
    wanted = "right" if (velocity >= 0) == (direction >= 0) else "left"
    return [action for action in read.actions if names.get(action) == wanted] or list(read.actions)


def _push_direction(steps: list[KnownOutcome], position: float) -> float:
    """How much a push to the right changes the velocity: a straight line through the steps of the messages."""
    rows, changes = [], []
    for step in steps:
        before, after = _MOTION.search(step.before), _MOTION.search(step.outcome)
        if after and step.action in ("0", "1", "2") and abs(float(after[2])) > 1e-9:
            x, v = (float(before[1]), float(before[2])) if before else (position, np.nan)
            if not np.isnan(v):
                rows.append((np.cos(3 * x), int(step.action) - 1.0))
                changes.append(float(after[2]) - v)
    if not rows:
        return 1.0
    slope, *_ = np.linalg.lstsq(np.array(rows), np.array(changes), rcond=None)
    return float(slope[1]) if abs(slope[1]) > 1e-6 else 1.0


def _choose_click(read: MessageText) -> list[str]:
    """Search, open the listing with most words of the instruction, choose what it names, buy."""
    if len(read.actions) == 1:
        return list(read.actions)
    lines = _page_lines(read.text)
    if any(line.startswith("Advertisement") for line in lines[:3]):
        leaving = [one.action for one in read.known if not _ADVERTISEMENT.search(one.outcome)]
        return [action for action in leaving if not read.times(action)] or _choose_untried(read)
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
    return back or _choose_untried(read)


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
    return buys or _choose_untried(read)


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


_SENSE: Mapping[str, Callable[[MessageText], list[str]]] = {
    "lake": _choose_direction,
    "car": _choose_push,
    "shop": _choose_click,
}
