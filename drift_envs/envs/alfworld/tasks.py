"""ALFWorld's six types of tasks, in its own words and as a rule.

* `TASK_TYPES` - the types, by ALFWorld's names
* `AlfworldTask`, `list_tasks` - a task, and every task of a floor plan
* `lies_there`, `is_done` - whether a thing is at its goal at first, and whether the goal holds
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from drift_envs.envs.alfworld.game import NOWHERE, RoomFacts
from drift_envs.envs.alfworld.package import load_goal, load_kinds
from drift_envs.envs.alfworld.room import EFFECTS, Layout, make_layout

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
WORDINGS = 2
"""How many wordings the package has for each type."""

_LIGHT, _TWO = TASK_TYPES[1], TASK_TYPES[5]
_NEEDS = {TASK_TYPES[2]: "clean", TASK_TYPES[3]: "heat", TASK_TYPES[4]: "cool"}
_MARKS = {"clean": "clean", "heat": "hot", "cool": "cold"}


class AlfworldTask(NamedTuple):
    """One task.

    Args:
        type: one of `TASK_TYPES`.
        thing: the kind of things that are wanted.
        target: the kind of receptacle where they are to be put, or the kind of lamp under which they are looked at.
    """

    type: str
    thing: str
    target: str

    @property
    def need(self) -> str | None:
        """What an appliance has to do to it: `heat`, `cool`, `clean` or nothing."""
        return _NEEDS.get(self.type)

    @property
    def mark(self) -> str | None:
        """What has to hold of the thing: `hot`, `cold`, `clean` or nothing."""
        return _MARKS[self.need] if self.need is not None else None

    @property
    def is_light(self) -> bool:
        """Whether the thing is to be looked at under a lamp."""
        return self.type == _LIGHT

    @property
    def number(self) -> int:
        """How many things are wanted."""
        return 2 if self.type == _TWO else 1

    def text(self, layout: Layout, wording: int = 0) -> str:
        """The task in words.

        Args:
            layout: the room, which may have new names for its receptacles.
            wording: which of the package's wordings.
        """
        words = dict(zip((one.kind for one in layout.receptacles), layout.kinds, strict=True))
        target = words.get(self.target, self.target)
        return str(load_goal(self.type)[1][wording].format(obj=self.thing, recep=target, toggle=self.target))

    def goal(self) -> str:
        """The goal in PDDL, as the package has it."""
        return load_goal(self.type)[0].format(obj=self.thing, recep=self.target, toggle=self.target)


@lru_cache(maxsize=128)
def list_tasks(plan: int) -> tuple[AlfworldTask, ...]:
    """Every task of a floor plan, by type.

    Its things, appliances and lamps are in the room, the target can hold the thing, and none lies there at first.

    Args:
        plan: the number of the floor plan.

    Raises:
        ArgumentError: there is no such floor plan.
    """
    layout, kinds = make_layout(plan, {}), load_kinds()
    counts: dict[str, int] = {}
    for one in layout.things:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    stands = {one.kind for one in layout.receptacles}
    takes = {"clean": kinds.cleanable, "heat": kinds.heatable, "cool": kinds.coolable}
    does = {EFFECTS[kind] for kind in stands if kind in EFFECTS}
    found = []
    for name in TASK_TYPES:
        need = _NEEDS.get(name)
        if need is not None and need not in does:
            continue
        for thing, count in sorted(counts.items()):
            if thing in kinds.lamps or (need is not None and thing not in takes[need]) or (name == _TWO and count < 2):
                continue
            if name == _LIGHT:
                targets = [lamp for lamp in kinds.lamps if lamp in counts]
            else:
                targets = [kind for kind in sorted(stands) if thing in kinds.holds[kind]]
            found += [AlfworldTask(name, thing, target) for target in targets]
    return tuple(task for task in found if not lies_there(layout, task))


def lies_there(layout: Layout, task: AlfworldTask) -> bool:
    """Whether such a thing is at first where it is to be put; ALFWorld has no such tasks.

    Args:
        layout: the room.
        task: the task.
    """
    return any(
        thing.kind == task.thing and layout.receptacles[place].kind == task.target
        for thing, place in zip(layout.things, layout.starts, strict=True)
    )


def is_done(layout: Layout, task: AlfworldTask, facts: RoomFacts) -> bool:
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
