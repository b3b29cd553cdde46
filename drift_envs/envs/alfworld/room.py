"""A room: what is usually kept in each receptacle of a floor plan, ALFWorld's six types of tasks, and the game.

A game is domain, problem and grammar under given knob values, as ALFWorld's own loader takes them too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift_envs.envs.alfworld.knobs import (
    COMMANDS,
    find_package,
    kind_of_id,
    load_domain,
    load_goal,
    load_grammar,
    load_kinds,
    load_plan,
)
from drift_envs.errors import KnobError
from drift_envs.knobs import Value
from drift_envs.tasks.households import NEEDS, TASK_TYPES, HouseholdTask

if TYPE_CHECKING:
    from drift_envs.envs.alfworld.engine import AlfworldEngine, State

MOST_THINGS = 36
"""A room has no more things, unless it has more kinds of them."""

MOST_OF_A_KIND = 3
"""How many things of one kind a room has at most, as ALFRED's generator places them."""

_STREAM = 0xA1F


class Receptacle(NamedTuple):
    """A receptacle.

    Args:
        id: its identifier in the game.
        name: kind and number, as in `shelf 2`.
        kind: its kind.
        opens: whether it has a door.
    """

    id: str
    name: str
    kind: str
    opens: bool


class RoomThing(NamedTuple):
    """A thing that can be carried, or a lamp.

    Args:
        id: its identifier in the game.
        name: kind and number, as in `mug 1`.
        kind: its kind.
        slots: the receptacles where it may be kept, by arrangement.
    """

    id: str
    name: str
    kind: str
    slots: tuple[int, ...]


class Room(NamedTuple):
    """A room before any knob is applied.

    Args:
        plan: the number of its floor plan.
        receptacles: the receptacles, in the order in which the game lists them.
        things: the things, in that order.
    """

    plan: int
    receptacles: tuple[Receptacle, ...]
    things: tuple[RoomThing, ...]


def _name_all(kinds: list[str]) -> list[str]:
    """Kind and number of each, numbered as ALFWorld does: the last identifier of a kind is its first."""
    left = Counter(kinds)
    names = []
    for kind in kinds:
        names.append(f"{kind} {left[kind]}")
        left[kind] -= 1
    return names


def _mangle(identifier: str) -> str:
    """An identifier of AI2-THOR as one of PDDL, as ALFWorld's games have it."""
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_")):
        identifier = identifier.replace(sign, word)
    return identifier.lower()


@lru_cache(maxsize=128)
def draw_room(plan: int) -> Room:
    """The room of a floor plan; the plan's number decides which things it has and where they are kept.

    The things of a kind are kept in neighbouring places of one list, which is drawn for each kind from the
    receptacles that can hold it: under the next arrangement they are kept in the places behind those.

    Args:
        plan: the number of the floor plan.

    Raises:
        ArgumentError: there is no such floor plan.
    """
    found, kinds = load_plan(plan), load_kinds()
    rng = np.random.default_rng([_STREAM, plan])
    spelt = {_mangle(one): kind_of_id(one) for one in found.receptacles}
    ids = sorted(spelt)
    names = _name_all([spelt[one] for one in ids])
    receptacles = tuple(
        Receptacle(one, name, spelt[one], spelt[one] in kinds.opens) for one, name in zip(ids, names, strict=True)
    )
    stands = {kind: [place for place, one in enumerate(receptacles) if _holds(one, kind)] for kind in found.kinds}
    carried = [kind for kind in found.kinds if stands[kind] and kind not in kinds.lamps]
    counts = dict.fromkeys(carried, 1)
    left = MOST_THINGS - len(carried)
    for kind in rng.permutation(carried):
        added = int(rng.integers(0, MOST_OF_A_KIND))
        counts[str(kind)] += max(0, min(added, left))
        left -= added
    counts |= {lamp: 1 for lamp in kinds.lamps if lamp in found.kinds}
    order: dict[str, list[int]] = {}
    for kind in counts:
        places = list(stands[kind])
        if kind in kinds.lamps:
            flat = [place for place, one in enumerate(receptacles) if not one.opens]
            likely = [place for place in flat if receptacles[place].kind in _BY_LAMPS[kind]]
            places = [int(rng.choice(likely or flat))]
        rng.shuffle(places)
        order[kind] = places
    listed = sorted((f"{kind}_bar_{copy + 1}", kind, copy) for kind in counts for copy in range(counts[kind]))
    names = _name_all([one[1] for one in listed])
    things = []
    for (one, kind, copy), name in zip(listed, names, strict=True):
        places, count = order[kind], counts[kind]
        slots = tuple(places[(step * count + copy) % len(places)] for step in range(len(places)))
        things.append(RoomThing(one, name, kind, slots))
    return Room(plan, receptacles, tuple(things))


_BY_LAMPS = {"desklamp": ("desk", "sidetable", "dresser", "shelf"), "floorlamp": ("sofa", "armchair", "bed")}


def _holds(receptacle: Receptacle, kind: str) -> bool:
    return kind in load_kinds().holds[receptacle.kind]


class Layout:
    """A room under given knob values, before any command.

    Receptacles and things are numbered by their position in the room, whatever they are called.

    Args:
        room: the room.
        knobs: the values of the knobs but `plan` and `transient`.

    Raises:
        KnobError: a knob names what no room of ALFWorld has.
    """

    def __init__(self, room: Room, knobs: Mapping[str, Value]) -> None:
        self.room, self.plan, self.knobs = room, room.plan, dict(knobs)
        self.receptacles, self.things = room.receptacles, room.things
        check_names(knobs)
        names: Mapping[str, str] = knobs.get("names") or {}
        self.kinds: list[str] = [names.get(one.kind, one.kind) for one in self.receptacles]
        """The word for each receptacle's kind, as tasks use it."""
        self.names = [
            f"{kind} {one.name.rpartition(' ')[2]}" for kind, one in zip(self.kinds, self.receptacles, strict=True)
        ]
        gone, locked = knobs.get("gone") or (), knobs.get("locked") or ()
        self.shown = tuple(
            place for place, one in enumerate(self.receptacles) if one.name not in gone and one.kind not in gone
        ) or tuple(range(len(self.receptacles)))
        self.locked = frozenset(
            place
            for place, one in enumerate(self.receptacles)
            if one.opens and (one.name in locked or one.kind in locked)
        )
        self.effects = {**EFFECTS, **(knobs.get("effects") or {})}
        self.verbs: Mapping[str, str] = knobs.get("verbs") or {}
        kept: Mapping[str, str] = knobs.get("kept") or {}
        arrangement = int(knobs.get("arrangement") or 0)
        shown, starts = frozenset(self.shown), []
        for one in self.things:
            lamp = one.kind in load_kinds().lamps
            first = 0 if lamp else arrangement
            slots = [one.slots[(first + step) % len(one.slots)] for step in range(len(one.slots))]
            home = kept.get(one.kind, "")
            wanted = [
                place
                for place, other in enumerate(self.receptacles)
                if home in (other.name, other.kind) and (lamp or _holds(other, one.kind))
            ]
            # Nothing is kept in a receptacle that is gone, nor behind a lock, which nothing opens.
            free = [place for place in (*wanted, *slots) if place in shown and place not in self.locked]
            starts.append(free[0] if free else self.shown[0])
        self.starts = tuple(starts)
        """By thing, the receptacle at the start."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Equal values share one layout, copies too."""
        return make_layout, (self.plan, self.knobs)


EFFECTS = {"microwave": "heat", "fridge": "cool", "sinkbasin": "clean"}
"""What appliances do by default."""


def check_names(knobs: Mapping[str, Value]) -> None:
    """Refuse names that no floor plan of ALFWorld has.

    Args:
        knobs: canonical values.

    Raises:
        KnobError: a knob names another kind.
    """
    kinds = load_kinds()
    things = sorted({thing for held in kinds.holds.values() for thing in held})
    for knob in ("names", "gone", "locked"):
        for name in knobs.get(knob) or ():
            _check_kind(knob, name, kinds.holds, "receptacles such as 'shelf'")
    names = knobs.get("names") or {}
    for old, new in names.items():
        if new in things or new in kinds.lamps or (new in kinds.holds and new not in names):
            raise KnobError(f"`names` should give {old!r} no name of another kind. Received {new!r}")
    for thing, place in (knobs.get("kept") or {}).items():
        _check_kind("kept", thing, things, "things such as 'mug'")
        _check_kind("kept", place, kinds.holds, "receptacles such as 'shelf'")


def _check_kind(knob: str, name: str, known: object, what: str) -> None:
    kind, _, number = name.rpartition(" ")
    if (kind if number.isdecimal() else name) not in known:  # type: ignore[operator]
        raise KnobError(f"`{knob}` should name {what} of ALFWorld's floor plans. Received {name!r}")


MODEL_KNOBS = ("arrangement", "kept", "names", "gone", "locked", "effects", "verbs")
"""The knobs on which a game depends, beside the number of the floor plan."""


def make_layout(plan: int, knobs: Mapping[str, Value]) -> Layout:
    """The layout for a floor plan and knob values; equal values share one layout.

    Args:
        plan: the number of the floor plan.
        knobs: canonical values of some or all knobs; the others have their default.

    Raises:
        ArgumentError: there is no such floor plan.
        KnobError: a knob names what no room of ALFWorld has.
    """
    return _layout(plan, tuple((name, knobs[name]) for name in MODEL_KNOBS if knobs.get(name)))


@lru_cache(maxsize=512)
def _layout(plan: int, knobs: tuple[tuple[str, Value], ...]) -> Layout:
    return Layout(draw_room(plan), dict(knobs))


WORDINGS = 2
"""How many wordings the package has for each type."""


def say_task(task: HouseholdTask, layout: Layout, wording: int = 0) -> str:
    """A task in words.

    Args:
        task: the task.
        layout: the room, which may have new names for its receptacles.
        wording: which of the package's wordings.
    """
    words = dict(zip((one.kind for one in layout.receptacles), layout.kinds, strict=True))
    target = words.get(task.target, task.target)
    return str(load_goal(task.type)[1][wording].format(obj=task.thing, recep=target, toggle=task.target))


def write_goal(task: HouseholdTask) -> str:
    """The goal of a task in PDDL, as the package has it.

    Args:
        task: the task.
    """
    return load_goal(task.type)[0].format(obj=task.thing, recep=task.target, toggle=task.target)


@lru_cache(maxsize=128)
def list_tasks(plan: int) -> tuple[HouseholdTask, ...]:
    """Every task of a floor plan, by type.

    Its things, appliances and lamps are in the room, the target can hold the thing, and none lies there at first.

    Args:
        plan: the number of the floor plan.

    Raises:
        ArgumentError: there is no such floor plan.
    """
    layout, kinds = make_layout(plan, {}), load_kinds()
    counts = Counter(one.kind for one in layout.things)
    stands = {one.kind for one in layout.receptacles}
    takes = {"clean": kinds.cleanable, "heat": kinds.heatable, "cool": kinds.coolable}
    does = {None, *(EFFECTS.get(kind) for kind in stands)}
    found = []
    for name in TASK_TYPES:
        need = NEEDS.get(name)
        if need not in does:
            continue
        for thing, count in sorted(counts.items()):
            if thing in kinds.lamps or (need is not None and thing not in takes[need]):
                continue
            if name == TASK_TYPES[1]:
                targets = [lamp for lamp in kinds.lamps if lamp in counts]
            else:
                targets = [kind for kind in sorted(stands) if thing in kinds.holds[kind]]
            tasks = [HouseholdTask(name, thing, target) for target in targets]
            found += [task for task in tasks if count >= task.number and not lies_there(layout, task)]
    return tuple(found)


def lies_there(layout: Layout, task: HouseholdTask) -> bool:
    """Whether such a thing is at first where it is to be put; ALFWorld has no such tasks.

    Args:
        layout: the room.
        task: the task.
    """
    return any(
        thing.kind == task.thing and layout.receptacles[place].kind == task.target
        for thing, place in zip(layout.things, layout.starts, strict=True)
    )


def is_done(layout: Layout, task: HouseholdTask, facts: RoomFacts) -> bool:
    """Whether the goal of a task holds, by the rule of its goal in PDDL.

    Args:
        layout: the room.
        task: the task.
        facts: a state.
    """
    things = layout.things
    if task.is_light:
        if facts.held == NOWHERE or things[facts.held].kind != task.thing or facts.at == NOWHERE:
            return False
        return any(
            mark == "lit" and facts.places[lamp] == facts.at and things[lamp].kind == task.target
            for lamp, mark in facts.marks
        )
    placed = [
        place
        for thing, place in enumerate(facts.places)
        if place != NOWHERE
        and things[thing].kind == task.thing
        and layout.receptacles[place].kind == task.target
        and (task.mark is None or (thing, task.mark) in facts.marks)
    ]
    return any(placed.count(place) >= task.number for place in placed)


NOWHERE = -1
_AGENT = "agent1"
_ACTIONS = {
    "go to": ("GotoLocation",),
    "open": ("OpenObject",),
    "close": ("CloseObject",),
    "use": ("ToggleObject",),
    "examine": ("examineReceptacle", "examineObject"),
    "take from": ("PickupObject",),
    "move to": ("PutObject",),
    "heat with": ("HeatObject",),
    "cool with": ("CoolObject",),
    "clean with": ("CleanObject",),
    "slice with": ("SliceObject",),
}
"""By command, the actions of the domain."""

_TREATMENTS = {"microwave": "HeatObject", "fridge": "CoolObject", "sinkbasin": "CleanObject"}
_PDDL = {
    "heat": "(isHot ?o) (not (isCool ?o))",
    "cool": "(isCool ?o) (not (isHot ?o))",
    "clean": "(isClean ?o)",
    "nothing": "(checked ?o)",
}


def write_domain(layout: Layout) -> str:
    """ALFWorld's domain, with other effects of appliances and with locks where the layout has some.

    Args:
        layout: the room under its knobs.
    """
    domain = load_domain()
    for kind, effect in layout.effects.items():
        if effect != EFFECTS[kind]:
            head, section = domain.split(f"(:action {_TREATMENTS[kind]}", 1)
            before, after = section.split("(increase (total-cost) 5)", 1)
            _, rest = after.split("(:action", 1) if "(:action" in after else (after, "")
            tail = f"\n(:action{rest}" if rest else "\n)"
            domain = f"{head}(:action {_TREATMENTS[kind]}{before}(increase (total-cost) 5) {_PDDL[effect]}))\n{tail}"
    if layout.locked:
        head, section = domain.split("(:action OpenObject", 1)
        section = section.replace("(openable ?r)", "(openable ?r) (not (locked ?r))", 1)
        head = head.replace("(:predicates", "(:predicates (locked ?r - receptacle)", 1)
        domain = f"{head}(:action OpenObject{section}"
    return domain


def write_grammar(layout: Layout) -> str:
    """ALFWorld's grammar, with other words for commands where the layout has some.

    Args:
        layout: the room under its knobs.
    """
    grammar = load_grammar()
    for command, words in layout.verbs.items():
        for action in _ACTIONS[command]:
            old, new = (f'action {action} {{\n    template :: "{_template(action, one)}' for one in (command, words))
            grammar = grammar.replace(old, new, 1)
        grammar = grammar.replace(f"  {_form(command, command)}:", f"  {_form(command, words)}:")
    return grammar


def _template(action: str, words: str) -> str:
    """The beginning of an action's template in the grammar."""
    if action == "GotoLocation":
        return f"{words} ["
    if action in ("PickupObject", "PutObject", "HeatObject", "CoolObject", "CleanObject", "SliceObject"):
        first, second = words.split(" ")
        one, other = ("{co}", "{ko}") if action == "SliceObject" else ("{o}", "{r}")
        return f"{first} {one} {second} {other}"
    return f"{words} {{o}}" if action in ("ToggleObject", "examineObject") else f"{words} {{r}}"


def _form(command: str, words: str) -> str:
    """A command as the engine's help has it."""
    if COMMANDS[command] == 2:
        first, second = words.split(" ")
        return f"{first} (object) {second} ({'object' if command == 'slice with' else 'receptacle'})"
    slot = {"use": "object", "examine": "something"}.get(command, "receptacle")
    return f"{words} ({slot})"


def write_problem(layout: Layout, goal: str = "(:goal (holdsAny agent1))") -> str:
    """The problem of a room in PDDL, in ALFWorld's predicates.

    Every receptacle has a location of its own.

    Args:
        layout: the room under its knobs.
        goal: the goal.
    """
    kinds = load_kinds()
    shown = [layout.receptacles[place] for place in layout.shown]
    init = [f"(atLocation {_AGENT} loc_bar_0)", "(= (total-cost) 0)"]
    for number, one in zip(layout.shown, shown, strict=True):
        init += [f"(receptacleAtLocation {one.id} loc_bar_{number + 1})", f"(receptacleType {one.id} {one.kind}Type)"]
        init += [f"(openable {one.id})"] * one.opens + [f"(locked {one.id})"] * (number in layout.locked)
    things = sorted({one.kind for one in layout.things})
    for kind in sorted({one.kind for one in shown}):
        init += [f"(canContain {kind}Type {thing}Type)" for thing in things if thing in kinds.holds[kind]]
    takes = {"heatable": kinds.heatable, "coolable": kinds.coolable, "cleanable": kinds.cleanable}
    takes |= {"sliceable": kinds.sliceable, "toggleable": frozenset(kinds.lamps)}
    for index, thing in enumerate(layout.things):
        place = layout.starts[index]
        init += [f"(objectType {thing.id} {thing.kind}Type)"]
        init += [f"(inReceptacle {thing.id} {layout.receptacles[place].id})"]
        init += [f"(objectAtLocation {thing.id} loc_bar_{place + 1})"]
        init += [f"({name} {thing.id})" for name, takers in takes.items() if thing.kind in takers]
        init += [f"(pickupable {thing.id})"] * (thing.kind not in kinds.lamps)
    rtypes = sorted({one.kind for one in shown} | {"microwave", "fridge", "sinkbasin"})
    otypes = sorted({*things, "knife", "butterknife"})
    objects = [f"{_AGENT} - agent", "loc_bar_0 - location"]
    objects += [f"loc_bar_{place + 1} - location" for place in layout.shown]
    objects += [f"{one.id} - receptacle" for one in shown] + [f"{one.id} - object" for one in layout.things]
    objects += [f"{kind}Type - rtype" for kind in rtypes] + [f"{kind}Type - otype" for kind in otypes]
    return "\n".join(
        (
            f"(define (problem plan_{layout.plan})",
            "(:domain alfred)",
            *("(:objects", *objects, ")"),
            *("(:init", *init, ")"),
            goal,
            "(:metric minimize (total-cost))",
            ")",
        )
    )


class RoomFacts(NamedTuple):
    """What holds in a state of a game, in numbers of receptacles and things.

    Args:
        at: where the agent stands, or `NOWHERE`.
        held: the thing in its hand, or `NOWHERE`.
        places: by thing, the receptacle where it is, or `NOWHERE` in the hand.
        opened: the receptacles that are open.
        marks: pairs of a thing and what holds of it: `hot`, `cold`, `clean`, `sliced`, `lit`.
    """

    at: int
    held: int
    places: tuple[int, ...]
    opened: frozenset[int]
    marks: frozenset[tuple[int, str]]


_CONDITIONS = {"ishot": "hot", "iscool": "cold", "isclean": "clean", "issliced": "sliced", "istoggled": "lit"}


class AlfworldGame:
    """A room with its engine, whose facts are numbered receptacles and things.

    Args:
        layout: the room under its knobs.

    Example:
        >>> from drift_envs.envs.alfworld.room import make_layout
        >>> game = make_game(make_layout(301, {}))  # doctest: +SKIP
        >>> state, answer = game.act(game.start, "go to desk 1")  # doctest: +SKIP
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        names = {layout.receptacles[place].id: layout.names[place] for place in layout.shown}
        names |= {one.id: one.name for one in layout.things}
        self._engine: AlfworldEngine = _engine(
            write_domain(layout), write_grammar(layout), write_problem(layout), names
        )
        self._places = {layout.receptacles[place].id: place for place in layout.shown}
        self._things = {one.id: index for index, one in enumerate(layout.things)}
        self._facts: dict[State, RoomFacts] = {}
        self.by_name = {layout.names[place]: place for place in layout.shown}
        self.thing_by_name = {one.name: index for index, one in enumerate(layout.things)}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy shares the engine; another process makes it anew."""
        return make_game, (self.layout,)

    @property
    def start(self) -> State:
        """The state before the first command."""
        return self._engine.start

    def introduce(self, task: str) -> str:
        """The first observation.

        Args:
            task: the task in words.
        """
        return self._engine.introduction.replace("UNKNOWN GOAL", task)

    def act(self, state: State, command: str) -> tuple[State, str]:
        """The state after a command, and the answer.

        Args:
            state: the state before.
            command: the command.
        """
        return self._engine.act(state, command)

    def commands(self, state: State) -> list[str]:
        """The commands that the engine takes; those that open a lock are listed too, which nothing tells from others.

        Args:
            state: the state.
        """
        found, facts, layout = self._engine.commands(state), self.read(state), self.layout
        if facts.at in layout.locked:
            found = sorted({*found, f"{layout.verbs.get('open', 'open')} {layout.names[facts.at]}"})
        return found

    def read(self, state: State) -> RoomFacts:
        """The facts of a state in numbers.

        Args:
            state: the state.
        """
        found = self._facts.get(state)
        if found is None:
            places, opened, marks = [NOWHERE] * len(self.layout.things), set(), set()
            at = held = NOWHERE
            for name, *arguments in state:
                if name == "inreceptacle":
                    places[self._things[arguments[0]]] = self._places[arguments[1]]
                elif name == "opened":
                    opened.add(self._places[arguments[0]])
                elif name == "atlocation":
                    at = int(arguments[1].rpartition("_")[2]) - 1
                elif name == "holds":
                    held = self._things[arguments[1]]
                elif name in _CONDITIONS:
                    marks.add((self._things[arguments[0]], _CONDITIONS[name]))
            if len(self._facts) > _MOST_FACTS:
                self._facts.clear()
            found = self._facts[state] = RoomFacts(at, held, tuple(places), frozenset(opened), frozenset(marks))
        return found

    def is_accessible(self, facts: RoomFacts) -> bool:
        """Whether the agent sees into or onto the receptacle where it stands."""
        return facts.at != NOWHERE and (not self.layout.receptacles[facts.at].opens or facts.at in facts.opened)

    def sees(self, facts: RoomFacts) -> list[int]:
        """The things that the agent sees where it stands, in the order in which they are told."""
        if not self.is_accessible(facts):
            return []
        return [thing for thing, place in enumerate(facts.places) if place == facts.at]


_MOST_FACTS = 20_000


def _engine(domain: str, grammar: str, problem: str, names: dict[str, str]) -> AlfworldEngine:
    find_package()  # before the engine's imports, which need it
    from drift_envs.envs.alfworld.engine import AlfworldEngine

    return AlfworldEngine(domain, grammar, problem, names)


@lru_cache(maxsize=64)
def make_game(layout: Layout) -> AlfworldGame:
    """The game of a layout; it is generated once in a process.

    Args:
        layout: from `make_layout`, so that equal knob values share a game.
    """
    return AlfworldGame(layout)
