"""One episode in a house: the state with what was seen and done so far, as texts and as JSON.

* `HouseEpisode` - executes commands, and writes observations
* `restore_episode` - an episode at the state that a JSON text shows, for the oracle
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drift_envs.envs.house.model import NOTHING, HouseModel
from drift_envs.envs.house.rules import mark_thing
from drift_envs.envs.house.search import solve_task
from drift_envs.envs.house.state import NOWHERE, TREATMENTS, Command, HouseState, Verb
from drift_envs.envs.house.tasks import HouseTask, score_task
from drift_envs.errors import ArgumentError

TITLE = "-= Welcome to TextWorld, ALFRED! =-"
"""The first line of every episode, by which clients of ALFWorld separate the texts."""

_LASTING = frozenset({Verb.TAKE, Verb.PUT, Verb.USE, Verb.SLICE, *TREATMENTS})
"""The commands that `done` lists."""

_SHOWN = frozenset({Verb.EXAMINE, Verb.INVENTORY, Verb.HELP})
"""The commands whose answer a JSON state repeats, since nothing else in it shows it."""


class HouseEpisode:
    """The state of an episode, with what was seen and done so far.

    Args:
        model: the house; replaced from outside when knobs change.
        task: the task.
        wording: which of `WORDINGS` says it.

    Example:
        >>> from drift_envs.envs.house.model import make_model
        >>> episode = HouseEpisode(make_model(7, {}), HouseTask("pick_and_place_simple", "mug", "bed"))
        >>> episode.act("go to bed 1"), episode.score
        ('You arrive at bed 1. On the bed 1, you see a pillow 3, and a basketball 1.', 0.0)
    """

    def __init__(self, model: HouseModel, task: HouseTask, wording: int = 0) -> None:
        self.model, self.task, self.wording = model, task, wording
        self.state = HouseState()
        self.done: tuple[Command, ...] = ()
        self.seen: dict[int, tuple[int, ...]] = {}
        """What was seen in or on furniture when the agent last looked, in the order of the first looks."""
        self.answer = ""
        self._says = ""
        self.score = 0.0

    @property
    def task_text(self) -> str:
        """The task in words."""
        return self.task.text(self.model, self.wording)

    @property
    def is_over(self) -> bool:
        """Whether the task is done."""
        return self.score > 0.0

    def introduce(self) -> str:
        """The first observation, with the task."""
        return f"{TITLE}\n\n{self.model.introduce()}\n\nYour task is to: {self.task_text}."

    def act(self, text: str) -> str:
        """Execute a command.

        Args:
            text: the command.

        Returns:
            The answer in words.
        """
        model, before = self.model, self.state
        command = model.parse(text)
        after = model.apply(before, command)
        answer = model.describe(before, command, after)
        self._says = answer if after is None or command is None or command.verb in _SHOWN else ""
        if after is not None and command is not None and after is not before:
            self.state = after
            if command.verb in _LASTING:
                self.done = (*self.done, command)
                self.score = score_task(model, self.task, after)
            if model.is_accessible(after, after.at):
                self.seen[after.at] = model.contents(after, after.at)
        self.answer = answer
        return answer

    def lose(self) -> str:
        """Answer as if a command had had no effect."""
        self.answer = self._says = NOTHING
        return NOTHING

    def list_slices(self) -> list[str]:
        """The commands that slice something, which the admissible ones leave out."""
        return self.model.slices(self.state)

    def plan(self, limit: int) -> list[str]:
        """The commands of a shortest plan from here; none where the task cannot be done any more. For evaluators.

        Args:
            limit: the steps that are left.
        """
        state: HouseState | None = self.state
        plans, commands = solve_task(self.model, self.task, self.state, limit), []
        while state is not None and state in plans.best:
            command = plans.best[state][0]
            commands.append(self.model.write(command))
            state = self.model.apply(state, command)
        return commands

    def write_answer(self) -> str:
        """The last answer; before the first command, what is seen first."""
        return self.answer

    def write_state(self) -> str:
        """The state as JSON."""
        model, state = self.model, self.state
        at = state.at
        door = "none"
        if at in model.opens:
            door = "open" if at in state.opened else "locked" if at in model.locked else "closed"
        things, names = model.things, model.names
        return json.dumps(
            {
                "house": model.number,
                "task": self.task_text,
                "at": "nothing" if at == NOWHERE else names[at],
                "door": door,
                "sees": [things[one].name for one in model.visible(state)],
                "holds": "nothing" if state.held == NOWHERE else things[state.held].name,
                "done": [model.write(one) for one in self.done],
                "opened": [names[one] for one in sorted(state.opened)],
                "visited": [names[one] for one in self.seen],
                "says": self._says,
            }
        )

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "task": tuple(self.task),
            "wording": self.wording,
            "state": tuple(self.state),
            "done": self.done,
            "seen": dict(self.seen),
            "answer": self.answer,
            "says": self._says,
            "score": self.score,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        self.task, self.wording = HouseTask(*saved["task"]), saved["wording"]
        self.state = HouseState(*saved["state"])
        self.done, self.seen = saved["done"], dict(saved["seen"])
        self.answer, self._says, self.score = saved["answer"], saved["says"], saved["score"]


def restore_episode(
    model: HouseModel, task: HouseTask, text: str, names: HouseModel | None = None, wording: int = 0
) -> HouseEpisode:
    """An episode at the state that a JSON text shows.

    The commands of `done` count as executed even where this house would refuse them now: what was carried is
    carried, and appliances did what they do in this house.

    Args:
        model: the house.
        task: the task.
        text: the JSON text.
        names: the same house with the names of furniture that the text has; by default those of `model`.
        wording: which of `WORDINGS` the text has.

    Raises:
        ArgumentError: if it is no state of this house.
    """
    episode = HouseEpisode(model, task, wording)
    names = model if names is None else names
    try:
        shown = json.loads(text)
        state = HouseState(opened=frozenset(names.by_name[name] for name in shown["opened"] if name in names.by_name))
        done = []
        for line in shown["done"]:
            command = names.parse(line)
            if command is None:  # the furniture is gone, or has another name
                continue
            done.append(command)
            state = _force(model, state, command)
        at = names.by_name.get(shown["at"], NOWHERE)
        visited = [names.by_name[name] for name in shown["visited"] if name in names.by_name]
        says = str(shown["says"])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ArgumentError(f"`state` should be a state of a house as JSON. Received {str(text)[:200]!r}") from error
    episode.state = state._replace(at=at)
    episode.done, episode._says = tuple(done), says
    episode.seen = {place: model.contents(episode.state, place) for place in visited}
    return episode


def _force(model: HouseModel, state: HouseState, command: Command) -> HouseState:
    """The state after a command that was executed, wherever the agent would have to be for it."""
    verb, thing, place = command
    if verb is Verb.TAKE:
        others = tuple(pair for pair in state.moved if pair[0] != thing)
        return state._replace(held=thing, moved=tuple(sorted((*others, (thing, NOWHERE)))))
    if verb is Verb.PUT:
        others = tuple(pair for pair in state.moved if pair[0] != thing)
        return state._replace(held=NOWHERE, moved=tuple(sorted((*others, (thing, place)))))
    if verb is Verb.USE:
        return state._replace(lit=state.lit ^ {thing})
    if verb is Verb.SLICE:
        return mark_thing(state, thing, state.marks_of(thing) | {"sliced"})
    return model.apply(state._replace(at=place, held=thing), command) or state
