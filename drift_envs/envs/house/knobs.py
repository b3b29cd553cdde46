"""The knobs of the house, with the rules between their values.

* `HOUSE_KNOBS` - the table
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from drift_envs.envs.house.blueprint import HOUSES
from drift_envs.envs.house.vocabulary import EFFECTS, FURNITURE, LAMPS, ROOMS, THINGS
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value

MOST_ARRANGEMENTS = 1000
MOST_HABITS = 1000
MOST_WANDER = 1000.0
_EFFECTS = ("heat", "cool", "clean", "nothing")
_LONGEST = 24


def _is_numbered(name: str, kinds: Iterable[str]) -> bool:
    kind, _, number = name.rpartition(" ")
    # Python refuses to read an integer of thousands of digits.
    is_short = number.isdecimal() and len(number) <= 2
    return kind in kinds and is_short and number == str(int(number)) and int(number) >= 1


def _check_furniture(knob: str, name: Any, or_kinds: bool = False) -> str:
    """The name of a receptacle, or of a kind of receptacles.

    Raises:
        KnobError: if it is neither.
    """
    if isinstance(name, str) and (_is_numbered(name, FURNITURE) or (or_kinds and name in FURNITURE)):
        return name
    rule = "furniture such as 'shelf 2'" + (" or a kind such as 'shelf'" if or_kinds else "")
    raise KnobError(f"`{knob}` should name {rule}. Received {name!r}")


def _parse_kept(value: Mapping[str, Any]) -> FrozenMapping:
    """Kinds of things, and the receptacle where all things of a kind are kept."""
    for thing, place in value.items():
        if thing not in THINGS:
            raise KnobError(f"`kept` should name kinds of things such as 'mug'. Received {thing!r}")
        _check_furniture("kept", place)
    return FrozenMapping(value)


def _parse_names(value: Mapping[str, Any]) -> FrozenMapping:
    """Receptacles or kinds, and their new names."""
    for old, new in value.items():
        is_single = " " in _check_furniture("names", old, or_kinds=True)
        words = new.rpartition(" ")[0] if is_single and isinstance(new, str) else new
        good = isinstance(words, str) and words.isascii() and words.isalpha() and words.islower()
        if not good or len(words) > _LONGEST or (is_single and not _is_numbered(new, [words])):
            form = "a word of lower-case letters and a number" if is_single else "a word of lower-case letters"
            raise KnobError(f"`names` should give {old!r} {form}. Received {new!r}")
    return FrozenMapping(value)


def _parse_places(knob: str, more: tuple[str, ...], value: Any) -> tuple[str, ...]:
    """Receptacles, kinds, or one of some other names."""
    return tuple(name if name in more else _check_furniture(knob, name, or_kinds=True) for name in value)


def _parse_gone(value: Any) -> tuple[str, ...]:
    return _parse_places("gone", (), value)


def _parse_locked(value: Any) -> tuple[str, ...]:
    return _parse_places("locked", ROOMS, value)


def _parse_keys(value: Mapping[str, Any]) -> FrozenMapping:
    """Receptacles that open, and the keychain that opens each."""
    for place, key in value.items():
        kind = _check_furniture("keys", place).rpartition(" ")[0]
        if not FURNITURE[kind].opens:
            raise KnobError(f"`keys` should name furniture that opens. Received {place!r}")
        if not isinstance(key, str) or not _is_numbered(key, ["keychain"]):
            raise KnobError(f"`keys` should give {place!r} a keychain such as 'keychain 1'. Received {key!r}")
    return FrozenMapping(value)


def _parse_effects(value: Mapping[str, Any]) -> FrozenMapping:
    """Appliances or kinds of them, and what they do."""
    for place, effect in value.items():
        kind = _check_furniture("effects", place, or_kinds=True).partition(" ")[0]
        if kind not in EFFECTS:
            raise KnobError(f"`effects` should name one of {', '.join(EFFECTS)}. Received {place!r}")
        if effect not in _EFFECTS:
            raise KnobError(f"`effects` should give {place!r} one of {', '.join(_EFFECTS)}. Received {effect!r}")
    return FrozenMapping(value)


def _parse_words(value: Mapping[str, Any]) -> FrozenMapping:
    """Words of tasks, and the kinds that they refer to."""
    for word, kind in value.items():
        for name in (word, kind):
            if name not in THINGS:
                raise KnobError(f"`words` should map kinds of things such as 'mug'. Received {name!r}")
    return FrozenMapping(value)


def _draw_number(
    name: str, most: int, arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator
) -> Value:
    """A number drawn from the seed, another one than that below."""
    if arguments:
        raise KnobError(f"`{name}`: `draw` takes no arguments here. Received {dict(arguments)!r}")
    found = int(rng.integers(1, most))
    return found + (below is not None and found == below)


def _draw_house(arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator) -> Value:
    return _draw_number("house", HOUSES, arguments, below, rng)


def _draw_arrangement(arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator) -> Value:
    return _draw_number("arrangement", MOST_ARRANGEMENTS, arguments, below, rng)


def _draw_habit(arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator) -> Value:
    return _draw_number("tidy", MOST_HABITS, arguments, below, rng)


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """No two receptacles may have one name, and what locks with a key has to be reachable."""
    names = values["names"]
    new = [name for old, name in names.items() if " " in old]
    for name in new:
        if new.count(name) > 1:
            yield "names", f"two receptacles should not have one name, {name!r} is given twice"
            return
    kinds = {old: name for old, name in names.items() if " " not in old}
    if len(set(kinds.values())) < len(kinds) or any(name in FURNITURE and name not in kinds for name in kinds.values()):
        yield "names", f"two kinds should not have one name. Received {dict(kinds)!r}"
    if any(name in THINGS or name in LAMPS for name in kinds.values()):
        yield "names", f"a receptacle should not be called like a thing. Received {dict(kinds)!r}"
    for old, name in names.items():
        if " " in old and name not in names and _is_numbered(name, FURNITURE) and name != old:
            yield "names", f"{name!r} is the name of other furniture; give that another name too"


_NONE = FrozenMapping()

HOUSE_KNOBS = KnobTable(
    (
        Knob(
            "house",
            0,
            (0, HOUSES),
            "number of the house; 0 draws one from the seed",
            "integer",
            draw=_draw_house,
        ),
        Knob(
            "arrangement",
            0,
            (0, MOST_ARRANGEMENTS),
            "number of the arrangement; in each one every thing is kept elsewhere",
            "integer",
            draw=_draw_arrangement,
        ),
        Knob(
            "kept",
            _NONE,
            None,
            "kind of thing: the furniture where it is kept",
            "mapping",
            None,
            _parse_kept,
        ),
        Knob(
            "wander",
            0.0,
            (0.0, MOST_WANDER),
            "how far things have wandered; at 0.5 about half are kept in another place, at 1 all",
        ),
        Knob("names", _NONE, None, "furniture or kind: its new name", "mapping", None, _parse_names),
        Knob("gone", (), None, "furniture that is not there", "rows", None, _parse_gone),
        Knob("locked", (), None, "rooms and furniture that cannot be entered or opened", "rows", None, _parse_locked),
        Knob("keys", _NONE, None, "furniture: the keychain in the hand that opens it", "mapping", None, _parse_keys),
        Knob(
            "effects",
            _NONE,
            None,
            "appliance or kind: what it does (`heat`, `cool`, `clean`, `nothing`), whatever the command says",
            "mapping",
            None,
            _parse_effects,
        ),
        Knob("words", _NONE, None, "word of a task: the kind that it refers to", "mapping", None, _parse_words),
        Knob(
            "tidy",
            0,
            (0, MOST_HABITS),
            "the household's habit, which decides the tidy places; 0 has none",
            "integer",
            draw=_draw_habit,
        ),
        Knob("transient", 0.0, (0.0, 1.0), "probability that a command has no effect, in this step only"),
    ),
    rule=_rule,
)
