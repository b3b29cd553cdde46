"""Attributes as plain data, and back.

* `plain_attribute` - for a snapshot
* `read_attribute` - out of one
"""

from __future__ import annotations

from typing import Any

from drift_agents.memory.beliefmem.belief import BeliefAttribute, Event, HeldConclusion, Version
from drift_agents.memory.ledger import Ledger
from drift_agents.types import AgentClock, Record


def plain_attribute(attribute: BeliefAttribute) -> list[Any]:
    """An attribute as plain data; records are told by their ids."""
    return [
        attribute.id,
        [[event.record.id, event.strength, event.adds] for event in attribute.events],
        [[held.record.id, list(held.evidence), held.p, *held.since] for held in attribute.candidates],
        [[v.record.id, v.p, *v.since, *v.until] for v in attribute.archive],
    ]


def read_attribute(entry: Any, ledger: Ledger) -> BeliefAttribute:
    """An attribute out of a snapshot.

    Args:
        entry: what `plain_attribute` made.
        ledger: the records of the same snapshot.

    Raises:
        TypeError: if something is of another type.
        ValueError: if something is missing or outside its range.
    """
    number, events, candidates, archive = entry
    attribute = BeliefAttribute(
        _whole(number),
        [Event(_record(i, ledger), _share(strength), _truth(adds)) for i, strength, adds in events],
        [
            HeldConclusion(_record(i, ledger), [_whole(j) for j in ids], _p(p), _clock(*t))
            for i, ids, p, *t in candidates
        ],
        [Version(_record(i, ledger), _p(p), _clock(*t[:2]), _clock(*t[2:])) for i, p, *t in archive],
    )
    ids = {event.record.id for event in attribute.events}
    about = {(ledger.matching.state_key(e.record.state), e.record.action) for e in attribute.events}
    if len(about) != 1 or not attribute.candidates:
        raise ValueError(f"attribute {number} should have evidence about one state and action, and a conclusion")
    for held in attribute.candidates:
        if not held.evidence or not ids.issuperset((*held.evidence, held.record.id)):
            raise ValueError(f"a conclusion of attribute {number} should rest on its evidence")
    return attribute


def _record(number: Any, ledger: Ledger) -> Record:
    record = ledger.get(_whole(number))
    if record is None:
        raise ValueError(f"there is no record {number}")
    return record


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} should be a whole number")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} should be true or false")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} should be in the interval [0, 1]")
    return float(value)


def _p(value: Any) -> float:
    if not _share(value) > 0:
        raise ValueError(f"{value!r} should be in the interval (0, 1]")
    return float(value)


def _clock(episode: Any, step: Any) -> AgentClock:
    return AgentClock(_whole(episode), _whole(step))
