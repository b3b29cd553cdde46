"""The tasks of a house, how they are solved, and one episode of them.

There are six types of tasks, as in ALFWorld. The search for shortest plans is exact: it leaves out only what no
shortest plan contains, namely things that are neither wanted nor keys, furniture without a use for the task, and
commands that change nothing. A task that cannot be done is not searched for, since that would visit every state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from drift_envs.envs.house.commands import HouseModel
from drift_envs.envs.house.knobs import EFFECTS, FURNITURE, LAMPS, THINGS, draw_house
from drift_envs.envs.house.rules import NOWHERE, TREATMENTS, Command, HouseState, Verb, mark_thing, move_thing
from drift_envs.errors import ArgumentError
from drift_envs.oracle.recurring import Plans, find_plans, replay_all
from drift_envs.tasks.households import LIMIT, NEEDS, TASK_TYPES, HouseholdEpisode, HouseholdTask
from drift_envs.tasks.recurring_tasks import NumberedTasks

HousePlans = Plans[HouseState, Command]

UNTIDY = 0.6
"""The score of a task if a thing is not where the household wants it, among furniture of the right kind."""

WORDINGS = {
    TASK_TYPES[0]: ("put a {0} in {1}", "put some {0} on {1}", "find a {0} and put it in {1}"),
    TASK_TYPES[1]: (
        "look at {0} under the {1}",
        "examine the {0} with the {1}",
        "find a {0} and look at it under the {1}",
    ),
    TASK_TYPES[2]: (
        "put a clean {0} in {1}",
        "clean some {0} and put it in {1}",
        "find and clean a {0} and put it in {1}",
    ),
    TASK_TYPES[3]: ("put a hot {0} in {1}", "heat some {0} and put it in {1}", "find and heat a {0} and put it in {1}"),
    TASK_TYPES[4]: (
        "put a cool {0} in {1}",
        "cool some {0} and put it in {1}",
        "find and cool a {0} and put it in {1}",
    ),
    TASK_TYPES[5]: ("put two {0} in {1}", "find two {0} and put them in {1}", "take two {0} and put both in {1}"),
}
"""By type, three wordings: ALFWorld's two templates (the first is the default here), and one of this project."""

_NO_TARGETS = ("stoveburner", "coffeemachine", "microwave", "bathtubbasin")


def say_task(task: HouseholdTask, model: HouseModel, wording: int = 0) -> str:
    """A task in words.

    Args:
        task: the task; its word for things is the kind of that name, unless the knob `words` says otherwise.
        model: the house, which may have new names for its furniture.
        wording: which of `WORDINGS`.

    Example:
        >>> from drift_envs.envs.house.commands import make_model
        >>> say_task(HouseholdTask(TASK_TYPES[3], "mug", "shelf"), make_model(7, {}))
        'put a hot mug in shelf'
    """
    target = task.target
    if not task.is_light:
        words = zip(model.furniture, model.kinds, strict=True)
        target = next((word for one, word in words if one.kind == target), "")
    return WORDINGS[task.type][wording].format(task.thing, target)


@lru_cache(maxsize=64)
def list_tasks(number: int) -> tuple[HouseholdTask, ...]:
    """Every task of a house, by type.

    The appliances and lamps of a task are in the house. Nothing has to be put where things of its kind are kept
    anyway, so that no task is done before it begins.

    Args:
        number: the number of the house.
    """
    blueprint = draw_house(number)
    counts: dict[str, int] = {}
    for one in blueprint.things:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    kinds = {one.kind for one in blueprint.furniture}
    effects = {None, *(EFFECTS.get(kind) for kind in kinds)}
    found = []
    for name in TASK_TYPES:
        need = NEEDS.get(name)
        if need not in effects:
            continue
        for kind, thing in THINGS.items():
            if kind == "keychain" or (need is not None and need not in thing.takes):
                continue
            for target in LAMPS if name == TASK_TYPES[1] else FURNITURE:
                task = HouseholdTask(name, kind, target)
                is_free = target in kinds and target not in thing.kept and target not in _NO_TARGETS
                if counts.get(kind, 0) >= task.number and (target in counts or is_free):
                    found.append(task)
    return tuple(found)


def score_task(model: HouseModel, task: HouseholdTask, state: HouseState) -> float:
    """The score of a state: 0 while the task is not done.

    Only what was put down in this episode counts.

    Args:
        model: the house.
        task: the task.
        state: the state after a command.
    """
    kind = model.words.get(task.thing, task.thing)
    things = model.things
    if task.is_light:
        if state.held == NOWHERE or things[state.held].kind != kind or state.at == NOWHERE:
            return 0.0
        lit = any(things[one].kind == task.target for one in state.lit if model.starts[one] == state.at)
        return 1.0 if lit else 0.0
    placed = [
        (thing, place)
        for thing, place in state.moved
        if place != NOWHERE
        and things[thing].kind == kind
        and model.furniture[place].kind == task.target
        and (task.mark is None or task.mark in state.marks_of(thing))
    ]
    if len(placed) < task.number:
        return 0.0
    tidy = sum(model.is_tidy(thing, place) for thing, place in placed)
    return 1.0 if tidy >= task.number else UNTIDY


START = HouseState()
"""Before the first command."""


@lru_cache(maxsize=20_000)
def solve_task(model: HouseModel, task: HouseholdTask, start: HouseState = START, limit: int = LIMIT) -> HousePlans:
    """All plans that reach the highest score in the fewest steps.

    Args:
        model: the house; equal knob values share one object, see `make_model`.
        task: the task.
        start: the state in which the plans begin.
        limit: the steps that are left.

    Example:
        >>> from drift_envs.envs.house.commands import make_model
        >>> house = make_model(7, {})
        >>> plans = solve_task(house, HouseholdTask("pick_heat_then_place_in_recep", "mug", "bed"))
        >>> plans.score, plans.length, len(plans.best[plans.start]) >= 1
        (1.0, 6, True)
    """
    choices = _Choices(model, task, start)

    def follow(state: HouseState) -> Iterator[tuple[Command, HouseState]]:
        for command in choices.of(state):
            after = model.apply(state, command)
            if after is not None:
                yield command, after

    def rate(command: Command, after: HouseState) -> float | None:
        return score_task(model, task, after) if command.verb in (Verb.PUT, Verb.USE) else None

    for wanted in (1.0, UNTIDY):
        if may_score(model, task, start, wanted):
            plans = find_plans(start, limit, follow, rate, wanted)
            if plans.score:
                return plans
        if task.is_light or all(model.is_tidy(0, place) for place in model.shown):
            break
    return Plans(0.0, limit, {}, start)


def may_score(model: HouseModel, task: HouseholdTask, start: HouseState, wanted: float) -> bool:
    """Whether a task could be done if nothing had to be put down or left first; if not, no plan does it.

    Args:
        model: the house.
        task: the task.
        start: the state in which plans begin.
        wanted: the least score that counts.

    Example:
        >>> from drift_envs.envs.house.commands import make_model
        >>> from drift_envs.knobs import freeze
        >>> reversed_house = make_model(7, freeze({"effects": {"microwave": "cool", "fridge": "heat"}}))
        >>> cool = HouseholdTask("pick_cool_then_place_in_recep", "lettuce", "drawer")
        >>> [may_score(house, cool, START, 1.0) for house in (make_model(7, {}), reversed_house)]
        [True, False]
    """
    kind = model.words.get(task.thing, task.thing)
    reached = {place for place in model.shown if model.furniture[place].room not in model.shut_rooms} | {start.at}
    got = {NOWHERE, start.held}

    def is_open(place: int) -> bool:
        has_key = model.keys.get(place, NOWHERE) in got
        return model.is_accessible(start, place) or (has_key and place not in model.locked)

    def is_target(thing: int, place: int) -> bool:
        is_kind = place != NOWHERE and model.furniture[place].kind == task.target
        return is_kind and (wanted < 1.0 or model.is_tidy(thing, place))

    useful = {thing for thing, one in enumerate(model.things) if one.kind == kind} | set(model.keys.values())
    while found := {
        thing for thing in useful - got if (place := model.place_of(start, thing)) in reached and is_open(place)
    }:
        got |= found
    things = [thing for thing in useful if model.things[thing].kind == kind]
    if task.is_light:
        lamps = [model.starts[lamp] for lamp, one in enumerate(model.things) if one.kind == task.target]
        return not got.isdisjoint(things) and not reached.isdisjoint(lamps)
    placed = {thing for thing, place in start.moved if is_target(thing, place)}
    ready = [
        thing
        for thing in things
        if thing in placed or (thing in got and any(is_target(thing, place) and is_open(place) for place in reached))
    ]
    if task.mark is None:
        return len(ready) >= task.number
    useful_verbs = {TREATMENTS[model.verbs[place]] for place in reached if model.effects.get(place) == task.need}
    return any(task.mark in start.marks_of(thing) or useful_verbs & model.takes[thing] for thing in ready)


class _Choices:
    """The commands that a shortest plan may contain.

    Args:
        model: the house.
        task: the task.
        start: the state in which the plan begins.
    """

    def __init__(self, model: HouseModel, task: HouseholdTask, start: HouseState) -> None:
        self._model, self._task = model, task
        kind = model.words.get(task.thing, task.thing)
        self._wanted = {index for index, one in enumerate(model.things) if one.kind == kind}
        places = {model.place_of(start, thing) for thing in self._wanted} - {NOWHERE}
        self._targets: set[int] = set()
        self._treating: set[int] = set()
        if task.is_light:
            places |= {model.starts[index] for index, one in enumerate(model.things) if one.kind == task.target}
        else:
            self._targets = {place for place in model.shown if model.furniture[place].kind == task.target}
            self._treating = {place for place, effect in model.effects.items() if effect == task.need}
        locked = places | self._targets
        self._keys = {key for place, key in model.keys.items() if key != NOWHERE and place in locked}
        places |= {model.place_of(start, key) for key in self._keys} - {NOWHERE}
        shown = set(model.shown)
        self._places = sorted((places | self._targets | self._treating) & shown)
        self._gos = [Command(Verb.GO, NOWHERE, place) for place in self._places]

    def of(self, state: HouseState) -> Iterator[Command]:
        """The commands in a state."""
        model, at, held = self._model, state.at, state.held
        if at != NOWHERE:
            if at in model.opens and at not in state.opened:
                yield Command(Verb.OPEN, NOWHERE, at)
            for thing in model.visible(state):
                if held == NOWHERE and (thing in self._wanted or thing in self._keys):
                    yield Command(Verb.TAKE, thing, at)
                elif self._task.is_light and model.things[thing].kind == self._task.target:
                    yield Command(Verb.USE, thing)
            if held != NOWHERE:
                # A key, or whatever is in the hand by mistake, is put down anywhere.
                if at in self._targets or held in self._keys or held not in self._wanted or self._task.is_light:
                    yield Command(Verb.PUT, held, at)
                verb = model.verbs.get(at)
                if at in self._treating and verb is not None and TREATMENTS[verb] in model.takes[held]:
                    yield Command(verb, held, at)
        yield from self._gos


@lru_cache(maxsize=50_000)
def replay_plans(old: HouseModel, new: HouseModel, task: HouseholdTask, limit: int = LIMIT) -> float:
    """The best score that the shortest plans of one house reach in another, command by command.

    Args:
        old: the house whose plans are replayed.
        new: the house in which they are replayed.
        task: the task.
        limit: the steps of an episode.
    """

    def follow(here: HouseState, there: HouseState, command: Command) -> tuple[HouseState | None, HouseState, float]:
        other = new.apply(there, new.parse(old.write(command))) or there
        return old.apply(here, command), other, score_task(new, task, other) if other != there else 0.0

    return replay_all(solve_task(old, task, limit=limit), START, follow)


TITLE = "-= Welcome to TextWorld, ALFRED! =-"
"""The first line of every episode, by which clients of ALFWorld separate the texts."""

_LASTING = frozenset({Verb.TAKE, Verb.PUT, Verb.USE, Verb.SLICE, *TREATMENTS})
"""The commands that `done` lists."""

_SHOWN = frozenset({Verb.EXAMINE, Verb.INVENTORY, Verb.HELP})
"""The commands whose answer a JSON state repeats, since nothing else in it shows it."""


class HouseEpisode(HouseholdEpisode):
    """The state of an episode, with what was seen and done so far.

    Args:
        model: the house; replaced from outside when knobs change.
        task: the task.
        wording: which of `WORDINGS` says it.

    Example:
        >>> from drift_envs.envs.house.commands import make_model
        >>> episode = HouseEpisode(make_model(7, {}), HouseholdTask("pick_and_place_simple", "mug", "bed"))
        >>> episode.act("go to bed 1"), episode.score
        ('You arrive at bed 1. On the bed 1, you see a pillow 3, and a basketball 1.', 0.0)
    """

    def __init__(self, model: HouseModel, task: HouseholdTask, wording: int = 0) -> None:
        super().__init__(task, wording)
        self.model = model
        self.state = HouseState()
        self.done: tuple[Command, ...] = ()
        self.seen: dict[int, tuple[int, ...]] = {}
        """What was seen in or on furniture when the agent last looked, in the order of the first looks."""

    @property
    def task_text(self) -> str:
        """The task in words."""
        return say_task(self.task, self.model, self.wording)

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
        self.task, self.wording = HouseholdTask(*saved["task"]), saved["wording"]
        self.state = HouseState(*saved["state"])
        self.done, self.seen = saved["done"], dict(saved["seen"])
        self.answer, self._says, self.score = saved["answer"], saved["says"], saved["score"]


def restore_episode(
    model: HouseModel, task: HouseholdTask, text: str, names: HouseModel | None = None, wording: int = 0
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
    if verb in (Verb.TAKE, Verb.PUT):
        return move_thing(state, thing, NOWHERE if verb is Verb.TAKE else place)
    if verb is Verb.USE:
        return state._replace(lit=state.lit ^ {thing})
    if verb is Verb.SLICE:
        return mark_thing(state, thing, state.marks_of(thing) | {"sliced"})
    return model.apply(state._replace(at=place, held=thing), command) or state


TASKS: NumberedTasks[HouseholdTask] = NumberedTasks("house", list_tasks)
