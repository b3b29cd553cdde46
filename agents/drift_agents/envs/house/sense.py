"""Common sense in a house, for rule-based message policies.

* `HouseSense` - takes the thing that is wanted, treats it, and brings it to its place
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from drift_agents.envs.house.errand import WAYS, Errand, kind_of, likely_rank, parse_errand
from drift_agents.policy.alternatives import unfold_alternatives
from drift_agents.policy.message_reader.common_sense import CommonSense, choose_untried
from drift_agents.policy.message_reader.text import MessageText

_HERE = re.compile(
    r"^You are at (?P<at>.*?)(?:, (?:seeing|which is) .*?)?\. In your hand: (?P<holds>.*?)\. "
    r"Done so far: (?P<done>.*?)\. Open: .*?\. Visited: (?P<visited>.*?)\.$",
    re.MULTILINE,
)
_TASK = re.compile(r"^Task: (.*)$", re.MULTILINE)
_SEEN = re.compile(r"^(?P<place>[a-z]+ \d+), seeing (?P<things>.*?)(?:, holding |$)")
_SEEN_AT_END = re.compile(r"\b(?P<place>[a-z]+ \d+) \(seeing (?P<things>.*?)\)$")
_TOOK = re.compile(r"\btake (?P<thing>[a-z]+ \d+) from (?P<place>[a-z]+ \d+)")


class _Place(NamedTuple):
    """Where the agent is, and what it has done."""

    at: str
    holds: str
    done: tuple[str, ...]
    visited: tuple[str, ...]


class HouseSense(CommonSense):
    """Takes the thing that is wanted, treats it, and brings it to its place; looks first where it was seen last."""

    def choose(self, read: MessageText) -> list[str]:
        """The commands that make sense, equally good ones in the order of the messages.

        Args:
            read: the parsed messages.
        """
        here, task = _HERE.search(read.text), _TASK.search(read.text)
        errand = parse_errand(task[1]) if task else None
        if here is None or errand is None:
            return choose_untried(read)
        visited = [place for places in here["visited"].split(", ") for place in unfold_alternatives(places)]
        place = _Place(here["at"], here["holds"], tuple(here["done"].split(", ")), tuple(visited))
        carries = kind_of(place.holds) == errand.thing
        steps = _bring(read, place, errand) if carries else _find(read, place, errand)
        return next(([step] for step in steps if step in read.actions), None) or choose_untried(read)


def _bring(read: MessageText, place: _Place, errand: Errand) -> Iterator[str]:
    """Commands with the thing in the hand, the best ones first."""
    if errand.mark and not any(re.match(rf"(?:heat|cool|clean) {place.holds} ", step) for step in place.done):
        for verb, kind in WAYS[errand.mark]:
            yield f"{verb} {place.holds} with {place.at}"
            yield from _go(read, kind)
    if errand.is_light:
        yield from (action for action in read.actions if action.startswith(f"use {errand.target} "))
        yield from _search(read, place, errand.target)
    if kind_of(place.at) == errand.target:
        yield f"move {place.holds} to {place.at}"
        yield f"open {place.at}"
    yield from _go(read, errand.target, place.visited)
    yield from _go(read, errand.target)


def _find(read: MessageText, place: _Place, errand: Errand) -> Iterator[str]:
    """Commands with an empty hand, or another thing in it, the best ones first."""
    moved = {step.split(" to ")[0].removeprefix("move ") for step in place.done if step.startswith("move ")}
    for action in read.actions:
        took = _TOOK.fullmatch(action)
        if took and kind_of(took["thing"]) == errand.thing and took["thing"] not in moved:
            yield action
    yield from _search(read, place, errand.thing)
    yield from (action for action in read.actions if action.startswith(f"move {place.holds} to "))


def _search(read: MessageText, place: _Place, kind: str) -> Iterator[str]:
    """Opens what is closed here, goes where the kind was seen, newest first, then where such things are kept."""
    if not any(move.action == f"open {place.at}" for move in read.moves):
        yield f"open {place.at}"
    seen = sorted(((last, where) for last, where in _sightings(read, kind) if where not in place.visited), reverse=True)
    yield from (f"go to {where}" for _, where in seen)
    unseen = [action for action in read.actions if action.startswith("go to ") and action[6:] not in place.visited]
    yield from sorted(unseen, key=lambda action: likely_rank(kind, kind_of(action[6:])))


def _sightings(read: MessageText, kind: str) -> Iterator[tuple[int, str]]:
    """When and where things of a kind were seen or taken, but for what may not hold any more."""
    for known in (*read.known, *read.elsewhere):
        if read.is_stale(known):
            continue
        found = _SEEN.match(known.outcome) or _SEEN_AT_END.search(known.outcome)
        if found and any(kind_of(thing) == kind for thing in found["things"].split(", ")):
            yield known.last, found["place"]
        yield from (
            (known.last, took["place"]) for took in _TOOK.finditer(known.outcome) if kind_of(took["thing"]) == kind
        )


def _go(read: MessageText, kind: str, visited: tuple[str, ...] = ()) -> Iterator[str]:
    """Ways to furniture of a kind that was not visited."""
    for action in read.actions:
        if action.startswith("go to ") and kind_of(action[6:]) == kind and action[6:] not in visited:
            yield action
