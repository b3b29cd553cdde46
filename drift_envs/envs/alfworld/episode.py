"""One episode in a room of ALFWorld: the engine's state with what was seen and done so far, as texts and as JSON.

* `AlfworldEpisode` - executes commands, and writes observations
* `restore_episode` - an episode at the state that a JSON text shows, for the oracle
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from drift_envs.envs.alfworld.game import NOWHERE, AlfworldGame, RoomFacts
from drift_envs.envs.alfworld.room import Layout
from drift_envs.envs.alfworld.search import Move, apply, solve_task, write_move
from drift_envs.envs.alfworld.tasks import AlfworldTask, is_done
from drift_envs.errors import ArgumentError

NOTHING = "Nothing happens."

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


class AlfworldEpisode:
    """The state of an episode, with what was seen and done so far.

    Args:
        game: the game; replaced by `move_to` when knobs change.
        task: the task.
        wording: which of the package's wordings says it.
    """

    def __init__(self, game: AlfworldGame, task: AlfworldTask, wording: int = 0) -> None:
        self.game, self.task, self.wording = game, task, wording
        self.state = game.start
        self.done: tuple[Move, ...] = ()
        self.visited: tuple[int, ...] = ()
        self.answer = game.introduce(self.task_text)
        self._says = ""
        self.score = 0.0

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
        return self.task.text(self.game.layout, self.wording)

    @property
    def is_over(self) -> bool:
        """Whether the task is done."""
        return self.score > 0.0

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

    def lose(self) -> str:
        """Answer as if a command had had no effect."""
        self.answer = self._says = NOTHING
        return NOTHING

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

    def write_answer(self) -> str:
        """The last answer; before the first command, what is seen first."""
        return self.answer

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
        self.task, self.wording = AlfworldTask(*saved["task"]), saved["wording"]
        self.done, self.visited = tuple(Move(*one) for one in saved["done"]), saved["visited"]
        self.state = _carry(self.game, self.done, saved["opened"], saved["at"])
        self.answer, self._says, self.score = saved["answer"], saved["says"], saved["score"]


def _rebuild(game: AlfworldGame, saved: Mapping[str, Any]) -> AlfworldEpisode:
    episode = AlfworldEpisode(game, AlfworldTask(*saved["task"]), saved["wording"])
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
    game: AlfworldGame, task: AlfworldTask, text: str, names: Layout | None = None, wording: int = 0
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
