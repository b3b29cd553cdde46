"""What is read from the package `alfworld`: domain, grammar, goals and floor plans. Nothing of it is stored here.

* `find_package` - refuses with one line where a package is missing or has another version
* `load_domain`, `load_grammar`, `load_goal` - the PDDL domain, the text grammar, and goals with their wordings
* `FloorPlan`, `load_plan`, `list_plans` - what stands in a floor plan, and the numbers of the plans
* `Kinds`, `load_kinds` - what can be held by what, and what can be heated, cooled, cleaned, sliced and switched

Source: Shridhar et al., "ALFWorld", 2021, package `alfworld`, MIT; Côté et al., "TextWorld", 2018, MIT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

from drift_envs.envs.alfworld.knobs import SPLITS
from drift_envs.errors import ArgumentError, MissingDependencyError

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
    found = {name: _read_version(name) for name in VERSIONS}
    wrong = [name for name, wanted in VERSIONS.items() if found[name] != wanted]
    if wrong:
        names = " and ".join(f"`{name}` {VERSIONS[name]}" for name in wrong)
        others = ", ".join(f"{name} {found[name]}" for name in wrong if found[name])
        raise MissingDependencyError(
            f"{names} should be installed, run `pip install \"drift-envs[alfworld]\"` and `pip install --no-deps "
            f"alfworld=={VERSIONS['alfworld']}`{f'. Received {others}' if others else ''}",
            wrong,
            ["alfworld"],
        )  # fmt: skip


def _read_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


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
