"""The knobs of ALFWorld's rooms, and what is read from the package `alfworld`, of which nothing is stored here.

Source: Shridhar et al., "ALFWorld", 2021, package `alfworld`, MIT; Côté et al., "TextWorld", 2018, MIT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drift_envs.errors import ArgumentError, KnobError, MissingDependencyError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, draw_number, mapping_knob, parse_choices

LAST_PLAN = 430
ROOMS = {"kitchen": 0, "living room": 200, "bedroom": 300, "bathroom": 400}
"""By kind of room, the number before that of its first floor plan; each has 30."""

SPLITS = ("seen", "unseen")
"""`alfworld`'s floor plans for training, the last 24 of each kind of room, and its others."""

_LAST_UNSEEN, _LAST = 6, 30
MOST_ARRANGEMENTS = 1000
EFFECTS = ("heat", "cool", "clean", "nothing")
_APPLIANCES = ("microwave", "fridge", "sinkbasin")
_LONGEST = 24

COMMANDS = {
    "go to": 1,
    "open": 1,
    "close": 1,
    "use": 1,
    "examine": 1,
    "take from": 2,
    "move to": 2,
    "heat with": 2,
    "cool with": 2,
    "clean with": 2,
    "slice with": 2,
}
"""The commands whose words can change, with the number of names in each."""


def _is_word(text: str) -> bool:
    return text.isascii() and text.isalpha() and text.islower() and len(text) <= _LONGEST


def _check_receptacle(knob: str, name: Any) -> str:
    """The name of a receptacle or of a kind; whether ALFWorld has it is found out with the package."""
    if isinstance(name, str):
        kind, _, number = name.rpartition(" ")
        if _is_word(name) or (_is_word(kind) and number.isdecimal() and len(number) <= 2):
            return name
    raise KnobError(f"`{knob}` should name a receptacle such as 'shelf 2' or a kind such as 'shelf'. Received {name!r}")


def _parse_kept(value: Mapping[str, Any]) -> FrozenMapping:
    """Kinds of things, and the receptacle or kind where all things of a kind are kept."""
    for thing, place in value.items():
        if not isinstance(thing, str) or not _is_word(thing):
            raise KnobError(f"`kept` should name kinds of things such as 'mug'. Received {thing!r}")
        _check_receptacle("kept", place)
    return FrozenMapping(value)


def _parse_names(value: Mapping[str, Any]) -> FrozenMapping:
    """Kinds of receptacles, and the words for them."""
    for old, new in value.items():
        for name in (old, new):
            if not isinstance(name, str) or not _is_word(name):
                raise KnobError(f"`names` should map kinds such as 'shelf' to words of lower case. Received {name!r}")
    return FrozenMapping(value)


def _parse_places(knob: str, value: Any) -> tuple[str, ...]:
    return tuple(_check_receptacle(knob, name) for name in value)


def _parse_verbs(value: Mapping[str, Any]) -> FrozenMapping:
    """Commands, and their new words: for two names the words before and between them."""
    for command, words in value.items():
        if command not in COMMANDS:
            raise KnobError(f"`verbs` should name one of {', '.join(COMMANDS)}. Received {command!r}")
        parts = words.split(" ") if isinstance(words, str) else []
        good = len(parts) == 2 if COMMANDS[command] == 2 else len(parts) in (1, 2)
        if not good or not all(_is_word(part.replace("/", "")) for part in parts):
            form = "two words, before and between its names" if COMMANDS[command] == 2 else "one or two words"
            raise KnobError(f"`verbs` should give {command!r} {form}. Received {words!r}")
    return FrozenMapping(value)


def _draw_plan(arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator) -> Value:
    """A floor plan of a kind of room and a split, another one than that below."""
    if unknown := sorted(set(arguments) - {"room", "split"}):
        raise KnobError(f"`plan`: `draw` takes room and split. Received {', '.join(unknown)}")
    room, split = arguments.get("room"), arguments.get("split", SPLITS[0])
    if room not in (None, *ROOMS) or split not in SPLITS:
        raise KnobError(
            f"`plan`: `draw` should have a room of {', '.join(ROOMS)} and a split of {', '.join(SPLITS)}. "
            f"Received {dict(arguments)!r}"
        )
    numbers = range(1, _LAST_UNSEEN + 1) if split == SPLITS[1] else range(_LAST_UNSEEN + 1, _LAST + 1)
    plans = [ROOMS[one] + number for one in ROOMS if room in (None, one) for number in numbers]
    return int(rng.choice([plan for plan in plans if plan != below]))


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """There have to be such floor plans; no two kinds may have one name, and no two commands the same words."""
    plan = int(values["plan"])
    if plan and not any(first < plan <= first + _LAST for first in ROOMS.values()):
        yield "plan", f"should be 0, 1 to 30, 201 to 230, 301 to 330 or 401 to 430. Received {plan}"
    names = values["names"]
    if len(set(names.values())) < len(names):
        yield "names", f"two kinds should not have one name. Received {dict(names)!r}"
    words = [values["verbs"].get(command, command) for command in COMMANDS]
    for number in (1, 2):
        same = [word for word, command in zip(words, COMMANDS, strict=True) if COMMANDS[command] == number]
        if len(set(same)) < len(same):
            yield "verbs", f"two commands should not have the same words. Received {dict(values['verbs'])!r}"


_DRAW_ARRANGEMENT = partial(draw_number, "arrangement", MOST_ARRANGEMENTS)
_PLAN = "number of the floor plan; 0 draws a seen one from the seed"
_ARRANGEMENT = "number of the room's habits; in each one every thing is kept elsewhere"
_EFFECT = "kind of appliance: what it does (`heat`, `cool`, `clean`, `nothing`), whatever the command says"

ALFWORLD_KNOBS = KnobTable(
    (
        Knob("plan", 0, (0, LAST_PLAN), _PLAN, "integer", draw=_draw_plan),
        Knob("arrangement", 0, (0, MOST_ARRANGEMENTS), _ARRANGEMENT, "integer", draw=_DRAW_ARRANGEMENT),
        mapping_knob("kept", "kind of thing: the receptacle where it is kept", _parse_kept),
        mapping_knob("names", "kind of receptacle: its new name", _parse_names),
        Knob("gone", (), None, "receptacles that are not there", "rows", None, partial(_parse_places, "gone")),
        Knob("locked", (), None, "receptacles that cannot be opened", "rows", None, partial(_parse_places, "locked")),
        mapping_knob("effects", _EFFECT, partial(parse_choices, "effects", dict.fromkeys(_APPLIANCES, EFFECTS))),
        mapping_knob("verbs", "command: its new words", _parse_verbs),
        Knob("transient", 0.0, (0.0, 1.0), "probability that `Nothing happens.` is shown, in this step only"),
    ),
    rule=_rule,
)


VERSIONS = {"alfworld": "0.4.2", "textworld": "1.7.0", "fast-downward-textworld": "20.6.4"}
"""The packages, with the versions from which the games are made."""

_FIXTURES = ("Bowl", "Box", "Cup", "Mug", "Plate", "Pan", "Pot")
"""Things that can hold others, which no task here uses so."""


class Kinds(NamedTuple):
    """What can be done with kinds of things, by ALFWorld's names in lower case.

    Args:
        holds: by kind of receptacle, the kinds of things that can be put there.
        heatable: the kinds that a microwave takes.
        coolable: the kinds that a fridge takes.
        cleanable: the kinds that a sink takes.
        sliceable: the kinds that a knife cuts.
        lamps: the kinds that can be switched.
        opens: the kinds of receptacles that have a door.
        spelt: the kinds as ALFWorld spells them.
    """

    holds: Mapping[str, tuple[str, ...]]
    heatable: frozenset[str]
    coolable: frozenset[str]
    cleanable: frozenset[str]
    sliceable: frozenset[str]
    lamps: tuple[str, ...]
    opens: frozenset[str]
    spelt: Mapping[str, str]


@lru_cache(maxsize=1)
def find_package() -> None:
    """Refuse with one line where the packages cannot be used.

    Raises:
        MissingDependencyError: a package is missing or has another version.
    """
    found = {}
    for name in VERSIONS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    wrong = [name for name, wanted in VERSIONS.items() if found.get(name) != wanted]
    if wrong:
        names = " and ".join(f"`{name}` {VERSIONS[name]}" for name in wrong)
        others = ", ".join(f"{name} {found[name]}" for name in wrong if found.get(name))
        raise MissingDependencyError(
            f'{names} should be installed, run `pip install ".[alfworld]"` in a checkout of drift-envs and '
            f"`pip install --no-deps alfworld=={VERSIONS['alfworld']}`{f'. Received {others}' if others else ''}",
            wrong,
            ["alfworld"],
        )


@cache
def _folder() -> Path:
    # Importing `alfworld` itself makes a folder in the user's home.
    find_package()
    spec = find_spec("alfworld")
    return Path((spec.submodule_search_locations or [""])[0] if spec is not None else "")


def load_domain() -> str:
    """The PDDL domain of ALFWorld."""
    return (_folder() / "data" / "alfred.pddl").read_text(encoding="utf-8")


def load_grammar() -> str:
    """The grammar of ALFWorld's texts and commands."""
    return (_folder() / "data" / "alfred.twl2").read_text(encoding="utf-8")


@cache
def _import(name: str) -> Any:
    """A module of `alfworld.gen` that imports nothing of the package."""
    spec = spec_from_file_location(f"alfworld_{name}", _folder() / "gen" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise MissingDependencyError(f"`alfworld` should have `gen/{name}.py`", ["alfworld"], ["alfworld"])
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def load_goal(kind: str) -> tuple[str, tuple[str, ...]]:
    """The goal of a type of tasks in PDDL, with `{obj}`, `{recep}` and `{toggle}`, and the package's wordings.

    Args:
        kind: the type, by ALFWorld's name.
    """
    found = _import("goal_library").gdict[kind]
    goal = found["pddl"].replace("#", "-").rstrip()
    return goal[: goal.rindex(")")], tuple(found["templates"])  # its last bracket ends the problem


@cache
def list_plans(split: str = SPLITS[0]) -> tuple[int, ...]:
    """The numbers of the floor plans of a split.

    Args:
        split: one of `SPLITS`.
    """
    found = _import("constants")
    return tuple(found.TRAIN_SCENE_NUMBERS if split == SPLITS[0] else found.TEST_SCENE_NUMBERS)


@cache
def load_kinds() -> Kinds:
    """What can be done with kinds of things."""
    found = _import("constants")
    holds, acts = found.VAL_RECEPTACLE_OBJECTS, found.VAL_ACTION_OBJECTS
    spelt = {name.lower(): name for name in (*found.OBJECTS, *holds)}

    def lower(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(name.lower() for name in names if not name.endswith("Sliced")))

    return Kinds(
        {name.lower(): lower(things) for name, things in sorted(holds.items()) if name not in _FIXTURES},
        frozenset(lower(acts["Heatable"])),
        frozenset(lower(acts["Coolable"])),
        frozenset(lower(acts["Cleanable"])),
        frozenset(lower(acts["Sliceable"])),
        lower(acts["Toggleable"]),
        frozenset(lower(found.OPENABLE_CLASS_LIST)),
        spelt,
    )


class FloorPlan(NamedTuple):
    """What stands in a floor plan.

    Args:
        number: its number in AI2-THOR.
        receptacles: the identifiers of the receptacles, as `Cabinet|+00.68|+00.50|-02.20`.
        kinds: the kinds of things that it may have, in lower case.
    """

    number: int
    receptacles: tuple[str, ...]
    kinds: tuple[str, ...]


@cache
def load_plan(number: int) -> FloorPlan:
    """What stands in a floor plan.

    Receptacles that the package's list of kinds has, and its list of places lacks, such as the coffee machine, stand
    there once.

    Args:
        number: its number.

    Raises:
        ArgumentError: there is no such floor plan.
    """
    if number not in (*list_plans("seen"), *list_plans("unseen")):
        raise ArgumentError(
            f"`plan` should be a floor plan of ALFWorld: 1 to 30, 201 to 230, 301 to 330 or 401 to 430. "
            f"Received {number}"
        )
    folder = _folder() / "gen" / "layouts"
    placed = sorted(json.loads((folder / f"FloorPlan{number}-openable.json").read_text(encoding="utf-8")))
    kinds = sorted(one.lower() for one in json.loads((folder / f"FloorPlan{number}-objects.json").read_text("utf-8")))
    holds, spelt = load_kinds().holds, load_kinds().spelt
    known = {kind_of_id(one) for one in placed}
    placed = [one for one in placed if kind_of_id(one) in holds]
    placed += [f"{spelt[kind]}|1" for kind in kinds if kind in holds and kind not in known]
    return FloorPlan(number, tuple(placed), tuple(kinds))


def kind_of_id(identifier: str) -> str:
    """The kind of an identifier.

    Args:
        identifier: as in `FloorPlan`.

    Example:
        >>> kind_of_id("Cabinet|+00.68|+00.50|-02.20"), kind_of_id("Sink|-03.12|-00.01|+01.53|SinkBasin")
        ('cabinet', 'sinkbasin')
    """
    first, *_, last = identifier.split("|")
    return (last if last[:1].isalpha() else first).lower()
