"""Shortest plans of a task, by search over the facts of a room.

* `Move`, `apply`, `write_move`, `read_move` - commands in numbers, what they do, and their texts
* `RoomPlans`, `solve_task` - all shortest plans of a task
* `replay_plans` - the best score that the plans of one layout reach in another

The rules are those of ALFWorld's domain; a test holds them against the engine. The search is exact: it leaves out
only what no shortest plan contains. The planner of the package, Fast Downward's first search, finds plans that need
not be shortest and takes seconds for each, so that it serves as a check.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from drift_envs.envs.alfworld.game import NOWHERE, RoomFacts
from drift_envs.envs.alfworld.package import load_kinds
from drift_envs.envs.alfworld.room import Layout
from drift_envs.envs.alfworld.tasks import AlfworldTask, is_done
from drift_envs.oracle.recurring import trace_plans

LIMIT = 50
"""The steps of an episode, as in ALFWorld."""

TREATS = {"microwave": "heat with", "fridge": "cool with", "sinkbasin": "clean with"}
"""The command that an appliance takes; what it does is a knob."""


class Move(NamedTuple):
    """A command in numbers.

    Args:
        command: one of `drift_envs.envs.alfworld.knobs.COMMANDS`.
        thing: the thing, or `NOWHERE`.
        place: the receptacle, or `NOWHERE`; for `slice with`, the knife.
    """

    command: str
    thing: int = NOWHERE
    place: int = NOWHERE


def start_of(layout: Layout) -> RoomFacts:
    """The facts before the first command.

    Args:
        layout: the room.
    """
    return RoomFacts(NOWHERE, NOWHERE, layout.starts, frozenset(), frozenset())


def write_move(layout: Layout, move: Move) -> str:
    """The text of a command.

    Args:
        layout: the room, with its names and verbs.
        move: the command.
    """
    words = layout.verbs.get(move.command, move.command)
    thing = layout.things[move.thing].name if move.thing != NOWHERE else ""
    places = layout.names if move.command != "slice with" else [one.name for one in layout.things]
    place = places[move.place] if move.place != NOWHERE else ""
    if not thing or not place:
        return f"{words} {thing or place}"
    first, second = words.split(" ")
    return f"{first} {thing} {second} {place}"


def read_move(layout: Layout, old: Layout, move: Move) -> Move | None:
    """What a command of another layout means here; `None` if it is no command.

    Args:
        layout: the layout in which its text is given.
        old: the layout from which the text comes.
        move: the command.
    """
    words, name = old.verbs.get(move.command, move.command), move.place
    mine = {layout.verbs.get(one, one): one for one in _SHAPES[_shape(move)]}
    if words not in mine:
        return None
    if name != NOWHERE:
        found = [place for place in layout.shown if layout.names[place] == old.names[name]]
        if not found:
            return None
        name = found[0]
    return Move(mine[words], move.thing, name)


_SHAPES = {
    "place": ("go to", "open", "close"),
    "thing": ("use",),
    "both": ("take from", "move to", "heat with", "cool with", "clean with"),
}


def _shape(move: Move) -> str:
    return "thing" if move.place == NOWHERE else "place" if move.thing == NOWHERE else "both"


def apply(layout: Layout, facts: RoomFacts, move: Move | None) -> RoomFacts | None:
    """The facts after a command; `None` if nothing happens.

    Args:
        layout: the room.
        facts: those before.
        move: the command.
    """
    if move is None:
        return None
    command, thing, place = move
    if command == "go to":
        return None if place == facts.at else facts._replace(at=place)
    if command == "use":
        here = facts.at != NOWHERE and facts.places[thing] == facts.at
        return facts._replace(marks=facts.marks | {(thing, "lit")}) if here and _is_lamp(layout, thing) else None
    if place != facts.at:
        return None
    one, is_open = layout.receptacles[place], place in facts.opened
    if command == "open":
        can = one.opens and not is_open and place not in layout.locked
        return facts._replace(opened=facts.opened | {place}) if can else None
    if command == "close":
        return facts._replace(opened=facts.opened - {place}) if is_open else None
    if command == "take from":
        if facts.held != NOWHERE or facts.places[thing] != place or (one.opens and not is_open):
            return None
        return None if _is_lamp(layout, thing) else facts._replace(held=thing, places=_moved(facts, thing, NOWHERE))
    kind = layout.things[thing].kind
    if thing != facts.held:
        return None
    if command == "move to":
        can = kind in load_kinds().holds[one.kind] and (is_open or not one.opens)
        return facts._replace(held=NOWHERE, places=_moved(facts, thing, place)) if can else None
    if TREATS.get(one.kind) != command or kind not in _takers(command):
        return None
    effect = layout.effects[one.kind]
    if effect == "nothing":
        return facts
    marks = set(facts.marks)
    if effect == "clean":
        marks.add((thing, "clean"))
    else:
        marks -= {(thing, "hot"), (thing, "cold")}
        marks.add((thing, "hot" if effect == "heat" else "cold"))
    return facts._replace(marks=frozenset(marks))


def _is_lamp(layout: Layout, thing: int) -> bool:
    return layout.things[thing].kind in load_kinds().lamps


def _moved(facts: RoomFacts, thing: int, place: int) -> tuple[int, ...]:
    return (*facts.places[:thing], place, *facts.places[thing + 1 :])


def _takers(command: str) -> frozenset[str]:
    kinds = load_kinds()
    return {"heat with": kinds.heatable, "cool with": kinds.coolable, "clean with": kinds.cleanable}[command]


class RoomPlans(NamedTuple):
    """All shortest plans of a task from one state.

    Args:
        score: 1.0 if the task can be done within the limit, else 0.0.
        length: the steps of the shortest plans.
        best: by state on a shortest plan, the commands with which one goes on.
        start: the state in which they begin.
    """

    score: float
    length: int
    best: dict[RoomFacts, tuple[Move, ...]]
    start: RoomFacts

    def first(self) -> list[Move]:
        """The best commands in the state in which they begin."""
        return list(self.best.get(self.start, ()))


def solve_task(layout: Layout, task: AlfworldTask, start: RoomFacts | None = None, limit: int = LIMIT) -> RoomPlans:
    """All plans that do a task in the fewest steps; a task whose goal holds at once is none.

    Args:
        layout: the room; equal knob values share one object, see `make_layout`.
        task: the task.
        start: the state in which the plans begin; by default that before the first command.
        limit: the steps that are left.
    """
    return _solve(layout, task, start_of(layout) if start is None else start, limit)


@lru_cache(maxsize=20_000)
def _solve(layout: Layout, task: AlfworldTask, start: RoomFacts, limit: int) -> RoomPlans:
    if is_done(layout, task, start):
        return RoomPlans(0.0, limit, {}, start)
    parents: dict[RoomFacts, list[tuple[RoomFacts, Move]]] = {start: []}
    layer = [start]
    for length in range(1, limit + 1):
        fresh: dict[RoomFacts, list[tuple[RoomFacts, Move]]] = {}
        for facts in layer:
            for move in _choices(layout, task, facts):
                after = apply(layout, facts, move)
                if after is not None and after not in parents:
                    fresh.setdefault(after, []).append((facts, move))
        parents |= fresh
        goals = [facts for facts in fresh if is_done(layout, task, facts)]
        if goals:
            return RoomPlans(1.0, length, trace_plans(parents, goals), start)
        layer = list(fresh)
        if not layer:
            break
    return RoomPlans(0.0, limit, {}, start)


def _choices(layout: Layout, task: AlfworldTask, facts: RoomFacts) -> Iterator[Move]:
    """The commands that a shortest plan may contain in a state."""
    at, held = facts.at, facts.held
    wanted = [index for index, one in enumerate(layout.things) if one.kind == task.thing]
    lamps = [index for index, one in enumerate(layout.things) if task.is_light and one.kind == task.target]
    targets = {place for place in layout.shown if not task.is_light and layout.receptacles[place].kind == task.target}
    ready = held in wanted and (task.mark is None or (held, task.mark) in facts.marks)
    sources = {
        facts.places[one]
        for one in wanted
        if facts.places[one] not in targets or (task.mark is not None and (one, task.mark) not in facts.marks)
    }
    useful: set[int] = {facts.places[lamp] for lamp in lamps}
    if held == NOWHERE:
        useful |= sources
        if task.number > 1 and any(facts.places[one] in targets for one in wanted):
            useful |= {facts.places[one] for one in wanted}  # two that lie in different targets
    elif held not in wanted:
        useful |= set(layout.shown)  # it has to be put down anywhere
    elif not ready:
        useful |= {place for place in layout.shown if TREATS.get(layout.receptacles[place].kind)}
    useful |= targets if ready else set()
    useful.discard(NOWHERE)
    for place in sorted(useful):
        if place != at:
            yield Move("go to", NOWHERE, place)
    if at == NOWHERE:
        return
    if layout.receptacles[at].opens and at not in facts.opened and (at in useful or held != NOWHERE):
        yield Move("open", NOWHERE, at)
    for lamp in lamps:
        if facts.places[lamp] == at and (lamp, "lit") not in facts.marks:
            yield Move("use", lamp)
    if held == NOWHERE:
        for thing in wanted:
            if facts.places[thing] == at:
                yield Move("take from", thing, at)
        return
    if (treat := TREATS.get(layout.receptacles[at].kind)) is not None and not ready:
        yield Move(treat, held, at)
    if at in targets or held not in wanted:
        yield Move("move to", held, at)


def replay_plans(old: Layout, new: Layout, task: AlfworldTask, limit: int = LIMIT) -> float:
    """The best score that the shortest plans of one layout reach in another, command by command.

    Args:
        old: the layout for which the plans are best.
        new: the layout in which their texts are given.
        task: the task.
        limit: the steps of an episode.
    """
    plans = solve_task(old, task, None, limit)
    layer = {(plans.start, start_of(new))}
    while layer:
        following = set()
        for here, there in layer:
            for move in plans.best.get(here, ()):
                after = apply(old, here, move)
                other = apply(new, there, read_move(new, old, move)) or there
                if is_done(new, task, other):
                    return 1.0
                if after is not None:
                    following.add((after, other))
        layer = following
    return 0.0
