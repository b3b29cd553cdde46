"""Games of a room: domain, problem and grammar under given knob values, as ALFWorld's engine takes them.

* `write_domain`, `write_grammar`, `write_problem` - the texts of a game, which ALFWorld's own loader plays too
* `AlfworldGame`, `make_game` - a room with its engine, whose facts are numbered receptacles and things
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from drift_envs.envs.alfworld.knobs import COMMANDS
from drift_envs.envs.alfworld.package import find_package, load_domain, load_grammar, load_kinds
from drift_envs.envs.alfworld.room import EFFECTS, Layout

if TYPE_CHECKING:
    from drift_envs.envs.alfworld.engine import AlfworldEngine, State

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


_MARKS = {"ishot": "hot", "iscool": "cold", "isclean": "clean", "issliced": "sliced", "istoggled": "lit"}


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

    def reach(self, commands: tuple[str, ...]) -> State:
        """The state after commands from the start; those that have no effect are left out."""
        return self._engine.reach(commands)

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
                elif name in _MARKS:
                    marks.add((self._things[arguments[0]], _MARKS[name]))
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
    find_package()
    from drift_envs.envs.alfworld.engine import AlfworldEngine

    return AlfworldEngine(domain, grammar, problem, names)


@lru_cache(maxsize=64)
def make_game(layout: Layout) -> AlfworldGame:
    """The game of a layout; it is generated once in a process.

    Args:
        layout: from `make_layout`, so that equal knob values share a game.
    """
    return AlfworldGame(layout)
