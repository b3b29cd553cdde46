"""The rules between the keys of a schedule, on plain data, to report all broken ones at once.

The models in `model.py` check each key for itself. These functions check rules between keys. They
skip values of the wrong type, which the models report.

* `drift_findings` - the rules inside one drift
* `schedule_findings` - the rules of the whole schedule
* `named_drifts` - the drifts, each with the name that it has when the file gives none
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drift_envs.checks import is_integer, is_number
from drift_envs.schedule.findings import Finding

OPERATIONS = ("set", "add", "scale", "swap", "choice", "walk")
"""What a drift can do to a knob, in the order of the documentation."""

SOURCE = "source"
"""The id of the phase before the first drift."""

MOST_RAMPS = 100
"""How many occurrences of one drift may, on average, be on their ramp at once; each costs at every tick."""

_RAMPS = ("incremental", "gradual")


def drift_findings(drift: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong between the keys of one drift.

    Args:
        drift: the drift as plain data.

    Yields:
        Pairs of a path inside the drift and the broken rule.

    Example:
        >>> list(drift_findings({"at": 3, "for": 4, "kind": "gradual", "over": 3, "set": {"slip": 1}}))
        [(('over',), '`over` should be at most half of `for` (4), so that the ramp is up before it falls. Received 3')]
    """
    drift = {key: value for key, value in drift.items() if value is not None}
    yield from _when(drift)
    yield from _how(drift)
    yield from _what(drift)


def schedule_findings(schedule: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong between the parts of a schedule, the inside of its drifts left out.

    Args:
        schedule: the schedule as plain data, with the drifts named.

    Yields:
        Pairs of a path and the broken rule.

    Example:
        >>> list(schedule_findings({"drifts": [{"name": "a"}, {"name": "a"}]}))
        [(('drifts', 1, 'name'), 'a name should stand for one drift only, drifts[0] has it too. Received `a`')]
    """
    first: dict[str, int] = {}
    for index, drift in enumerate(_list(schedule, "drifts")):
        name = drift.get("name") if isinstance(drift, Mapping) else None
        if not isinstance(name, str):
            continue
        path = ("drifts", index, "name")
        if name == SOURCE:
            yield path, f"`{SOURCE}` is the id of the phase before the first drift, choose another name"
        elif name in first:
            yield path, f"a name should stand for one drift only, drifts[{first[name]}] has it too. Received `{name}`"
        first.setdefault(name, index)
    knobs = schedule.get("knobs")
    for name, spec in knobs.items() if isinstance(knobs, Mapping) else ():
        if name == "derived" or not isinstance(spec, Mapping):
            continue
        bounds = spec.get("bounds")
        if bounds is None and spec.get("kind") in ("float", "integer", "factor"):
            yield ("knobs", name), "a number needs `bounds: [low, high]`: values beyond them are reflected"
        elif isinstance(bounds, (list, tuple)) and len(bounds) == 2 and all(map(is_number, bounds)):
            low, high = bounds
            if low >= high:
                yield ("knobs", name, "bounds"), f"the lower bound should be below the upper. Received [{low}, {high}]"


def named_drifts(drifts: Any) -> Any:
    """The drifts, each with a name: `drift-1` and so on where the file gives none.

    Args:
        drifts: the list of drifts as plain data; anything else comes back as it is.

    Example:
        >>> named_drifts([{"at": 20}, {"name": "thaw"}])
        [{'name': 'drift-1', 'at': 20}, {'name': 'thaw'}]
    """
    if not isinstance(drifts, (list, tuple)):
        return drifts
    return [
        {"name": f"drift-{number}", **drift} if isinstance(drift, Mapping) and "name" not in drift else drift
        for number, drift in enumerate(drifts, start=1)
    ]


def _when(drift: Mapping[str, Any]) -> Iterator[Finding]:
    if "every" in drift and "rate" in drift:
        yield ("rate",), "`every` and `rate` exclude each other: a drift recurs regularly or at random"
    elif not any(key in drift for key in ("at", "every", "rate")):
        yield (), "says nowhere when it happens: needs `at`, `every` or `rate`"
    span, period = _whole(drift, "for"), _whole(drift, "every")
    if span is not None and period is not None and span >= period:
        yield ("for",), f"`for` should be less than `every` ({period}). Received {span}"
    yield from _jitter(drift)


def _jitter(drift: Mapping[str, Any]) -> Iterator[Finding]:
    jitter, first, period = _whole(drift, "jitter"), _whole(drift, "at"), _whole(drift, "every")
    if not jitter:
        return
    if "rate" in drift:
        yield ("jitter",), "`jitter` and `rate` exclude each other: random times have no place to move from"
    elif first is not None and jitter > first:
        yield (
            ("jitter",),
            f"`jitter` should be at most `at` ({first}), so that no start lies before 0. Received {jitter}",
        )
    elif period is not None and 2 * jitter + (_whole(drift, "for") or 0) >= period:
        yield (
            ("jitter",),
            f"twice `jitter` and `for` should be less than `every` ({period}), so that occurrences keep their order. "
            f"Received {jitter}",
        )


def _how(drift: Mapping[str, Any]) -> Iterator[Finding]:
    kind = drift.get("kind", "sudden")
    if kind in _RAMPS and "over" not in drift:
        yield ("kind",), f"`kind: {kind}` needs `over`: the number of ticks that the change takes"
    if kind == "sudden":
        for key in ("over", "curve"):
            if key in drift:
                yield (key,), f"`{key}` is for `kind: incremental` and `kind: gradual`; this drift is sudden"
    span, over = _whole(drift, "for"), _whole(drift, "over")
    if span is not None and over is not None and 2 * over > span:
        yield (
            ("over",),
            f"`over` should be at most half of `for` ({span}), so that the ramp is up before it falls. Received {over}",
        )
    if span is None and over is not None:
        period, rate = _whole(drift, "every"), drift.get("rate", 0)
        at_once = over / period if period else over * rate if is_number(rate) else 0
        if at_once > MOST_RAMPS:
            yield ("over",), f"at most {MOST_RAMPS} ramps of a drift should overlap on average. Received {at_once:g}"


def _what(drift: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for operation in OPERATIONS:
        knobs = drift.get(operation)
        for knob, value in knobs.items() if isinstance(knobs, Mapping) else ():
            if knob in seen:
                yield (
                    (operation, knob),
                    f"a knob should stand once in a drift, `{knob}` stands under `{seen[knob]}` too",
                )
            seen.setdefault(knob, operation)
            if operation == "swap" and isinstance(value, (list, tuple)) and len(value) == 2 and value[0] == value[1]:
                yield (operation, knob), f"the two keys should differ. Received {value[0]!r} twice"
            if operation == "swap" and drift.get("kind") == "incremental":
                yield (operation, knob), "a swap can't be interpolated: use `kind: sudden` or `kind: gradual`"
    if not seen and not any(drift.get(operation) for operation in OPERATIONS):
        yield (), f"says nowhere what it changes: needs one of {', '.join(f'`{name}`' for name in OPERATIONS)}"


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return list(value) if isinstance(value, (list, tuple)) else []


def _whole(data: Mapping[str, Any], key: str) -> int | None:
    value = data.get(key)
    return value if is_integer(value) else None
