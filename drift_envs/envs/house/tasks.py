"""The tasks of a house: six types, as in ALFWorld, in words and as a rule.

* `TASK_TYPES`, `WORDINGS` - the names of the types, and how each is said
* `HouseTask` - one task
* `list_tasks` - every task of a house
* `score_task` - the score of a state
* `UNTIDY` - what a task is worth when a thing is put down where the household does not want it
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from drift_envs.envs.house.blueprint import draw_house
from drift_envs.envs.house.model import HouseModel
from drift_envs.envs.house.state import NOWHERE, HouseState
from drift_envs.envs.house.vocabulary import EFFECTS, FURNITURE, LAMPS, THINGS

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six types, by ALFWorld's names."""

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

_MARKS = {TASK_TYPES[2]: "clean", TASK_TYPES[3]: "hot", TASK_TYPES[4]: "cold"}
_NEEDS = {TASK_TYPES[2]: "clean", TASK_TYPES[3]: "heat", TASK_TYPES[4]: "cool"}
_NO_TARGETS = ("stoveburner", "coffeemachine", "microwave", "bathtubbasin")


class HouseTask(NamedTuple):
    """One task.

    Args:
        type: one of `TASK_TYPES`.
        thing: the word for the things that are wanted; the kind of that name, unless the knob `words` says otherwise.
        target: the kind of furniture where they are to be put, or the kind of lamp under which they are looked at.
    """

    type: str
    thing: str
    target: str

    @property
    def mark(self) -> str | None:
        """What has to hold of the thing: `hot`, `cold`, `clean` or nothing."""
        return _MARKS.get(self.type)

    @property
    def need(self) -> str | None:
        """What an appliance has to do to it."""
        return _NEEDS.get(self.type)

    @property
    def number(self) -> int:
        """How many things are wanted."""
        return 2 if self.type == TASK_TYPES[5] else 1

    @property
    def is_light(self) -> bool:
        """Whether the thing is to be looked at under a lamp."""
        return self.type == TASK_TYPES[1]

    def text(self, model: HouseModel, wording: int = 0) -> str:
        """The task in words.

        Args:
            model: the house, which may have new names for its furniture.
            wording: which of `WORDINGS`.

        Example:
            >>> from drift_envs.envs.house.model import make_model
            >>> HouseTask(TASK_TYPES[3], "mug", "shelf").text(make_model(7, {}))
            'put a hot mug in shelf'
        """
        target = self.target
        if not self.is_light:
            words = zip(model.furniture, model.kinds, strict=True)
            target = next((word for one, word in words if one.kind == self.target), "")
        return WORDINGS[self.type][wording].format(self.thing, target)


@lru_cache(maxsize=64)
def list_tasks(number: int) -> tuple[HouseTask, ...]:
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
        if _NEEDS.get(name) not in effects:
            continue
        for kind, thing in THINGS.items():
            if kind not in counts or kind == "keychain" or not _suits(name, kind, counts[kind]):
                continue
            targets = LAMPS if name == TASK_TYPES[1] else FURNITURE
            for target in targets:
                fits = target in counts or (target in kinds and target not in thing.kept and target not in _NO_TARGETS)
                if fits:
                    found.append(HouseTask(name, kind, target))
    return tuple(found)


def _suits(name: str, kind: str, count: int) -> bool:
    need = _NEEDS.get(name)
    return (need is None or need in THINGS[kind].takes) and (name != TASK_TYPES[5] or count >= 2)


def score_task(model: HouseModel, task: HouseTask, state: HouseState) -> float:
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
