"""Shortest plans in a room of ALFWorld, one episode there as texts and as JSON, and the pool of tasks.

The rules of the search are those of ALFWorld's domain; a test holds them against the engine. The search is exact: it
leaves out only what no shortest plan contains. The planner of the package, Fast Downward's first search, finds plans
that need not be shortest and takes seconds for each, so that it serves as a check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.envs.alfworld.knobs import load_kinds
from drift_envs.envs.alfworld.room import (
    NOWHERE,
    AlfworldGame,
    Layout,
    RoomFacts,
    is_done,
    list_tasks,
    say_task,
)
from drift_envs.errors import ArgumentError
from drift_envs.oracle.recurring import Plans, find_plans, replay_all
from drift_envs.tasks.households import LIMIT, HouseholdEpisode, HouseholdTask
from drift_envs.tasks.recurring_tasks import NumberedTasks

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


RoomPlans = Plans[RoomFacts, Move]


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
    shape = "thing" if move.place == NOWHERE else "place" if move.thing == NOWHERE else "both"
    mine = {layout.verbs.get(one, one): one for one in _SHAPES[shape]}
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
    kinds = load_kinds()
    takers = {"heat with": kinds.heatable, "cool with": kinds.coolable, "clean with": kinds.cleanable}
    if TREATS.get(one.kind) != command or kind not in takers[command]:
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


def solve_task(layout: Layout, task: HouseholdTask, start: RoomFacts | None = None, limit: int = LIMIT) -> RoomPlans:
    """All plans that do a task in the fewest steps; a task whose goal holds at once is none.

    Args:
        layout: the room; equal knob values share one object, see `make_layout`.
        task: the task.
        start: the state in which the plans begin; by default that before the first command.
        limit: the steps that are left.
    """
    return _solve(layout, task, start_of(layout) if start is None else start, limit)


@lru_cache(maxsize=20_000)
def _solve(layout: Layout, task: HouseholdTask, start: RoomFacts, limit: int) -> RoomPlans:
    if is_done(layout, task, start):
        return Plans(0.0, limit, {}, start)

    def follow(facts: RoomFacts) -> Iterator[tuple[Move, RoomFacts]]:
        for move in _choices(layout, task, facts):
            after = apply(layout, facts, move)
            if after is not None:
                yield move, after

    return find_plans(start, limit, follow, lambda move, after: float(is_done(layout, task, after)))


def _choices(layout: Layout, task: HouseholdTask, facts: RoomFacts) -> Iterator[Move]:
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


def replay_plans(old: Layout, new: Layout, task: HouseholdTask, limit: int = LIMIT) -> float:
    """The best score that the shortest plans of one layout reach in another, command by command.

    Args:
        old: the layout for which the plans are best.
        new: the layout in which their texts are given.
        task: the task.
        limit: the steps of an episode.
    """

    def follow(here: RoomFacts, there: RoomFacts, move: Move) -> tuple[RoomFacts | None, RoomFacts, float]:
        other = apply(new, there, read_move(new, old, move)) or there
        return apply(old, here, move), other, float(is_done(new, task, other))

    return replay_all(solve_task(old, task, None, limit), start_of(new), follow)


_NAME = r"([a-z]+ \d+)"
_DONE = {
    "take from": re.compile(f"You pick up the {_NAME} from the {_NAME}\\."),
    "move to": re.compile(f"You move the {_NAME} to the {_NAME}\\."),
    "heat with": re.compile(f"You heat the {_NAME} using the {_NAME}\\."),
    "cool with": re.compile(f"You cool the {_NAME} using the {_NAME}\\."),
    "clean with": re.compile(f"You clean the {_NAME} using the {_NAME}\\."),
    "slice with": re.compile(f"You sliced the {_NAME} with the {_NAME}\\."),
    "use": re.compile(f"You turn on the {_NAME}\\."),
}
"""The engine's answers to the commands that `done` lists; they are the same whatever the command's words."""

_SHOWN_BY_STATE = ("You arrive at ", "You open the ", "You close the ", "You are facing ", "You are in the middle ")


class AlfworldEpisode(HouseholdEpisode):
    """The state of an episode, with what was seen and done so far.

    Args:
        game: the game; replaced by `move_to` when knobs change.
        task: the task.
        wording: which of the package's wordings says it.
    """

    def __init__(self, game: AlfworldGame, task: HouseholdTask, wording: int = 0) -> None:
        super().__init__(task, wording)
        self.game = game
        self.state = game.start
        self.done: tuple[Move, ...] = ()
        self.visited: tuple[int, ...] = ()
        self.answer = game.introduce(self.task_text)

    def __copy__(self) -> AlfworldEpisode:
        """A copy shares the game; all else in it is immutable."""
        other = object.__new__(AlfworldEpisode)
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> AlfworldEpisode:
        """The same as a copy."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process finds the state again by what was done."""
        return _rebuild, (self.game, self.save())

    @property
    def task_text(self) -> str:
        """The task in words."""
        return say_task(self.task, self.game.layout, self.wording)

    @property
    def actions(self) -> list[str]:
        """The commands that the engine takes."""
        return [] if self.is_over else self.game.commands(self.state)

    def act(self, text: str) -> str:
        """Execute a command.

        Args:
            text: the command, in the engine's words.

        Returns:
            The answer in words.
        """
        game, before = self.game, self.state
        self.state, self.answer = game.act(before, text.strip())
        move = self._read_done()
        if move is not None:
            self.done = (*self.done, move)
        facts = game.read(self.state)
        is_shown = move is not None or self.state != before or self.answer.startswith(_SHOWN_BY_STATE)
        examined = game.layout.names[facts.at] if facts.at != NOWHERE else ""
        is_shown = is_shown or self.answer.startswith((f"On the {examined}, ", f"The {examined} is "))
        self._says = "" if is_shown else self.answer
        if game.is_accessible(facts) and facts.at not in self.visited:
            self.visited = (*self.visited, facts.at)
        self.score = float(is_done(game.layout, self.task, facts))
        return self.answer

    def _read_done(self) -> Move | None:
        """What the last command has done, if `done` lists it."""
        for command, pattern in _DONE.items():
            if (found := pattern.fullmatch(self.answer)) is not None:
                thing = self.game.thing_by_name[found[1]]
                if command == "use":
                    return Move(command, thing)
                names = self.game.thing_by_name if command == "slice with" else self.game.by_name
                return Move(command, thing, names[found[2]])
        return None

    def list_slices(self) -> list[str]:
        """The commands that slice something and are not in `actions`: none, since the engine's list has them."""
        return []

    def plan(self, limit: int) -> list[str]:
        """The commands of a shortest plan from here; none where the task cannot be done any more. For evaluators.

        Args:
            limit: the steps that are left.
        """
        layout = self.game.layout
        facts: RoomFacts | None = self.game.read(self.state)
        plans, commands = solve_task(layout, self.task, facts, limit), []
        while facts is not None and facts in plans.best:
            move = plans.best[facts][0]
            commands.append(write_move(layout, move))
            facts = apply(layout, facts, move)
        return commands

    def write_state(self) -> str:
        """The state as JSON."""
        game, facts = self.game, self.game.read(self.state)
        layout, at = game.layout, facts.at
        door = "none"
        if at != NOWHERE and layout.receptacles[at].opens:
            door = "open" if at in facts.opened else "closed"
        return json.dumps(
            {
                "house": layout.plan,
                "task": self.task_text,
                "at": "nothing" if at == NOWHERE else layout.names[at],
                "door": door,
                "sees": [layout.things[one].name for one in game.sees(facts)],
                "holds": "nothing" if facts.held == NOWHERE else layout.things[facts.held].name,
                "done": [_write_done(layout, one) for one in self.done],
                "opened": [layout.names[one] for one in sorted(facts.opened)],
                "visited": [layout.names[one] for one in self.visited],
                "says": self._says,
            }
        )

    def move_to(self, game: AlfworldGame) -> None:
        """Go on in another game of the same room: what was carried is carried, all else is as that game has it.

        Args:
            game: the game.
        """
        facts = self.game.read(self.state)
        self.game = game
        self.state = _carry(game, self.done, facts.opened, facts.at)
        self.visited = tuple(one for one in self.visited if one in game.layout.shown)

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        facts = self.game.read(self.state)
        return {
            "task": tuple(self.task),
            "wording": self.wording,
            "done": tuple(map(tuple, self.done)),
            "opened": tuple(sorted(facts.opened)),
            "at": facts.at,
            "visited": self.visited,
            "answer": self.answer,
            "says": self._says,
            "score": self.score,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        self.task, self.wording = HouseholdTask(*saved["task"]), saved["wording"]
        self.done, self.visited = tuple(Move(*one) for one in saved["done"]), saved["visited"]
        self.state = _carry(self.game, self.done, saved["opened"], saved["at"])
        self.answer, self._says, self.score = saved["answer"], saved["says"], saved["score"]


def _rebuild(game: AlfworldGame, saved: Mapping[str, Any]) -> AlfworldEpisode:
    episode = AlfworldEpisode(game, HouseholdTask(*saved["task"]), saved["wording"])
    episode.load(saved)
    return episode


def _write_done(layout: Layout, move: Move) -> str:
    """A command of `done`, in ALFWorld's words whatever the present ones are."""
    if move.command == "use":
        return f"use {layout.things[move.thing].name}"
    first, second = move.command.split(" ")
    other = layout.things[move.place].name if move.command == "slice with" else layout.names[move.place]
    return f"{first} {layout.things[move.thing].name} {second} {other}"


def _carry(game: AlfworldGame, done: Iterable[Move], opened: Iterable[int], at: int) -> Any:
    """The engine's state after what was done, wherever the agent has to go for it in this game."""
    layout, state, kept = game.layout, game.start, set(opened)

    def go(place: int, is_kept: bool = True) -> None:
        nonlocal state
        if place in layout.shown:
            state, _ = game.act(state, write_move(layout, Move("go to", NOWHERE, place)))
            if is_kept and layout.receptacles[place].opens:
                state, _ = game.act(state, write_move(layout, Move("open", NOWHERE, place)))

    for move in done:
        places = game.read(state).places
        # a thing is taken, used and sliced where it is in this game
        place = places[move.thing] if move.command in ("take from", "use", "slice with") else move.place
        text = write_move(layout, move._replace(place=place) if move.command == "take from" else move)
        go(place)
        state, _ = game.act(state, text)
        if place not in kept and place in layout.shown:
            state, _ = game.act(state, write_move(layout, Move("close", NOWHERE, place)))
    for place in sorted(kept):
        go(place)
    if at != NOWHERE:
        go(at, False)
    return state


def restore_episode(
    game: AlfworldGame, task: HouseholdTask, text: str, names: Layout | None = None, wording: int = 0
) -> AlfworldEpisode:
    """An episode at the state that a JSON text shows.

    The commands of `done` count as executed even where this game would refuse them now: what was carried is
    carried, and appliances did what they do in this game.

    Args:
        game: the game.
        task: the task.
        text: the JSON text.
        names: the layout with the names of receptacles that the text has; by default that of the game.
        wording: which of the package's wordings the text has.

    Raises:
        ArgumentError: if it is no state of this room.
    """
    episode, layout = AlfworldEpisode(game, task, wording), game.layout
    names = layout if names is None else names
    places = {names.names[place]: place for place in range(len(names.names))}
    try:
        shown = json.loads(text)
        done = tuple(move for line in shown["done"] if (move := _read_line(game, places, line)) is not None)
        opened = [places[name] for name in shown["opened"] if places.get(name) in layout.shown]
        at = places.get(shown["at"], NOWHERE)
        visited = tuple(places[name] for name in shown["visited"] if places.get(name) in layout.shown)
        says = str(shown["says"])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ArgumentError(
            f"`state` should be a state of ALFWorld's rooms as JSON. Received {str(text)[:200]!r}"
        ) from error
    episode.state = _carry(game, done, opened, at)
    episode.done, episode.visited, episode._says = done, visited, says
    return episode


def _read_line(game: AlfworldGame, places: Mapping[str, int], line: str) -> Move | None:
    words = line.split(" ")
    if words[0] == "use":
        return Move("use", game.thing_by_name[" ".join(words[1:])])
    command, thing, other = f"{words[0]} {words[3]}", game.thing_by_name[" ".join(words[1:3])], " ".join(words[4:])
    place = game.thing_by_name.get(other) if command == "slice with" else places.get(other)
    return None if place is None or command not in _DONE else Move(command, thing, place)


TASKS: NumberedTasks[HouseholdTask] = NumberedTasks("floor plan", list_tasks)
