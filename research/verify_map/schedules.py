"""The generator of the map's schedules: an environment, how often it drifts, and how often a response is false.

* `Place` - an environment of the map
* `PLACES` - all of them, by the names of their schedules
* `RATES` - the drift rates of the map
* `EPISODES` - how long each environment is played
* `make_schedule` - the content of one point, for any rate and share
* `make_file` - the content of a shipped file: one point, and the others of its environment as variants
* `write_files` - writes the shipped files
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from drift_agents.experiment.folder import write_text

from drift_envs.checks import check_choice, check_count

RATES: Mapping[str, int | None] = {"none": None, "rare": 60, "often": 20, "rush": 8}
"""The mean number of episodes between two changes."""

EPISODES: Mapping[str, int] = {"frozen_lake": 100, "webshop": 50, "house": 45}
"""How many episodes of a point are played, by environment."""

FALSE_PERCENT = (0, 3, 10)
"""The shares of false responses, in percent."""

DEVELOPMENT_SUFFIX = "development"
DEVELOPMENT = (14, 5)
"""Episodes between two changes, and percent of false responses, of the point on which options are chosen: none of the
map's own."""

JITTER = 0.3
"""How much earlier or later a change comes, as a share of the time between two: an agent cannot count episodes."""


class Place(NamedTuple):
    """An environment of the map.

    Args:
        env: its id.
        about: the sentence of the schedule.
        base: the knobs before any drift.
        change: what one drift does.
        recurs: whether one drift recurs for ever; otherwise each change is a drift of its own, so that a map is drawn
            from the one before it.
        points: its points on the map: drift rate and percent of false responses.
        visibility: the schedule's label.
        tasks: the schedule's tasks, if it has any.
    """

    env: str
    about: str
    base: Mapping[str, Any]
    change: Mapping[str, Any]
    points: tuple[tuple[str, int], ...]
    recurs: bool = True
    visibility: str = "explicit"
    tasks: Mapping[str, Any] | None = None


def _lake(size: int, holes: int, move: int, rates: Sequence[str]) -> Place:
    return Place(
        "DriftFrozenLake-v0",
        f"{move} of {holes} holes of a lake of {size} x {size} tiles move",
        {"map": {"draw": {"size": size, "holes": holes}}},
        {"set": {"map": {"draw": {"move": move, "break_shortest_paths": True}}}},
        tuple((rate, percent) for rate in rates for percent in FALSE_PERCENT),
        recurs=False,
    )


_FOUR = tuple((rate, percent) for rate in ("often", "rush") for percent in (0, 10))
_TWO = (("often", 0), ("often", 10))

PLACES: Mapping[str, Place] = {
    "frozen_lake/verify-6x6": _lake(6, 9, 4, tuple(RATES)),
    "frozen_lake/verify-8x8": _lake(8, 14, 5, ("often", "rush")),
    "webshop/verify": Place(
        "DriftWebShop-v0",
        "Another button of the advertisement becomes the right one",
        {"ad_page": True, "ad_right_button": "A", "ad_depth": 30},
        {"choice": {"ad_right_button": ["A", "B", "C", "D", "E"]}},
        _FOUR,
        tasks={"pool": 5, "order": "shuffled", "goals": "synthetic", "held_out": True},
    ),
    "house/verify-locked": Place(
        "DriftHouse-v0",
        "Another room is locked",
        {"locked": ["bathroom"]},
        {"choice": {"locked": [["bathroom"], ["kitchen"], ["living room"]]}},
        _TWO,
        tasks={"pool": 6, "order": "shuffled"},
    ),
    "house/verify-keys": Place(
        "DriftHouse-v0",
        "The keychains of two locked drawers change places",
        {
            "kept": {"pen": "drawer 1", "mug": "drawer 1", "pencil": "drawer 2", "cup": "drawer 2"},
            "keys": {"drawer 1": "keychain 1", "drawer 2": "keychain 2"},
        },
        {"swap": {"keys": ["drawer 1", "drawer 2"]}},
        _TWO,
        visibility="implicit",
        tasks={"pool": 6, "order": "shuffled"},
    ),
}
"""The environments of the map, by the names of their schedules."""


def make_schedule(place: str, every: int | None, percent: int) -> dict[str, Any]:
    """The content of one point of the map, for any rate and share.

    Args:
        place: one of `PLACES`.
        every: the mean number of episodes between two changes, at least 4; `None` for no change.
        percent: the share of false responses in percent, 0 to 50.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> made = make_schedule("webshop/verify", 12, 5)
        >>> made["base"]["transient"], made["drifts"][0]["every"], made["drifts"][0]["jitter"]
        (0.05, 12, 3)
    """
    one = PLACES[check_choice("place", place, tuple(PLACES))]
    false = check_count("percent", percent, 0, 50)
    shown = f"{false} % of the responses are false" if false else "every response is true"
    content: dict[str, Any] = {"base": {**one.base, **({"transient": false / 100} if false else {})}}
    if every is None:
        nothing = {"name": "nothing", "at": RATES["often"], "set": {"transient": false / 100}}
        return {"description": f"Nothing drifts, and {shown}.", "control": True, **content, "drifts": [nothing]}
    period, jitter = check_count("every", every, 4), int(JITTER * every)
    if one.recurs:
        drifts = [{"name": "change", "every": period, "jitter": jitter, **one.change}]
    else:
        drifts = [
            {"name": f"change-{number}", "at": number * period, "jitter": jitter, **one.change}
            for number in range(1, math.ceil(episodes_of(place) / period))
        ]
    about = f"{one.about} about every {period} episodes, and {shown}."
    return {"description": about, **content, "drifts": drifts}


def episodes_of(place: str) -> int:
    """How many episodes of a place are played.

    Example:
        >>> episodes_of("house/verify-keys")
        45
    """
    return EPISODES[place.partition("/")[0]]


def suffix_of(rate: str, percent: int) -> str:
    """The suffix of a point.

    Example:
        >>> suffix_of("often", 3)
        'often-3'
    """
    return f"{rate}-{percent}"


def make_file(name: str) -> dict[str, Any]:
    """The content of a shipped file: `often-0` is the file itself, and all points are variants.

    Args:
        name: one of `PLACES`.
    """
    place = PLACES[check_choice("place", name, tuple(PLACES))]
    head: dict[str, Any] = {"version": 1, "name": name}
    own = make_schedule(name, RATES["often"], 0)
    head |= {"description": own["description"], "env": place.env, "clock": "episode", "visibility": place.visibility}
    if place.tasks is not None:
        head["tasks"] = dict(place.tasks)
    variants = {suffix_of(rate, percent): make_schedule(name, RATES[rate], percent) for rate, percent in place.points}
    variants[DEVELOPMENT_SUFFIX] = make_schedule(name, *DEVELOPMENT)
    return {**head, "base": own["base"], "drifts": own["drifts"], "variants": variants}


HEAD = """\
# Points of the map "when must an agent verify": {about}
# about every 60 (`rare`), 20 (`often`) or 8 episodes (`rush`), earlier or later by up to 30 %. The number in a
# suffix is the share of false responses in percent; options are chosen on `development`, which is no point of the
# map. Made by `python -m research map-schedules`; do not edit.
"""


def write_files(folder: Path) -> list[Path]:
    """Write the shipped files.

    Args:
        folder: the folder of schedules.

    Returns:
        Their paths.
    """
    paths = []
    for name, place in PLACES.items():
        paths.append(folder / f"{name}.yaml")
        write_text(paths[-1], to_yaml(name, place))
    return paths


def print_schedule(place: str, every: int | None, percent: int) -> str:
    """The YAML of one point of the map; arguments and errors as for `make_schedule`."""
    made = make_schedule(place, every, percent)
    one = PLACES[place]
    head = {"version": 1, "description": made.pop("description"), "env": one.env, "clock": "episode"}
    tasks = {} if one.tasks is None else {"tasks": dict(one.tasks)}
    return yaml.dump({**head, **tasks, **made}, Dumper=Plain, sort_keys=False, default_flow_style=None, width=110)


def to_yaml(name: str, place: Place) -> str:
    """The text of a shipped file.

    Args:
        place: its environment.
    """
    body = yaml.dump(make_file(name), Dumper=Plain, sort_keys=False, default_flow_style=None, width=110)
    return HEAD.format(about=place.about[0].lower() + place.about[1:]) + body


class Plain(yaml.SafeDumper):
    """Writes equal parts out, instead of anchors."""

    ignore_aliases: Callable[..., bool] = staticmethod(lambda data: True)
