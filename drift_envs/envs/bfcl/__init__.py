"""The tools of BFCL's multi-turn tasks with knobs; needs the extra `bfcl`, but for the knobs, which stand here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, freeze
from drift_envs.package_tools import ERRORS, check_path, parse_names, unique_names

CONFIRM = "confirm"

UNITS: dict[str, dict[str, float]] = {
    "money": {"dollars": 1, "cents": 100},
    "fuel": {"gallons": 1, "litres": 3.785411784},
    "pedal": {"fraction": 1, "percent": 100},
}
"""By quantity, its units, each with its number in one of the first unit, which is the package's."""

QUANTITIES: dict[str, tuple[str, ...]] = {
    "money": (
        "fund_account.amount",
        "withdraw_funds.amount",
        "place_order.price",
        "filter_stocks_by_price.min_price",
        "filter_stocks_by_price.max_price",
        "set_budget_limit.budget_limit",
        "purchase_insurance.insurance_cost",
    ),
    "fuel": ("fillFuelTank.fuelAmount",),
    "pedal": ("pressBrakePedal.pedalPosition",),
}
"""By quantity, the arguments that are counted in it."""


def _parse_required(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools, and the argument that each has come to require."""
    for tool, extra in value.items():
        check_path("required", tool, is_argument=False)
        if extra != CONFIRM:
            raise KnobError(f"`required` should give {tool!r} `{CONFIRM}`. Received {extra!r}")
    return FrozenMapping(value)


def _parse_units(value: Mapping[str, Any]) -> FrozenMapping:
    """Quantities and their units."""
    for quantity, unit in value.items():
        if quantity not in UNITS:
            raise KnobError(f"`units` should name one of {', '.join(UNITS)}. Received {quantity!r}")
        if unit not in list(UNITS[quantity]):  # a list, since a wrong unit may not be hashable
            raise KnobError(f"`units` should give {quantity!r} one of {', '.join(UNITS[quantity])}. Received {unit!r}")
    return FrozenMapping(value)


def _parse_defaults(value: Mapping[str, Any]) -> Value:
    """Arguments, and what a tool takes where they are left out."""
    for path, one in value.items():
        check_path("defaults", path, is_argument=True)
        if not all(
            isinstance(part, (str, bool, int, float)) for part in (one if isinstance(one, (list, tuple)) else [one])
        ):
            raise KnobError(
                f"`defaults` should give {path!r} a text, a number, true, false or a list. Received {one!r}"
            )
    return freeze(dict(value))


_NONE = FrozenMapping()


def _mapping(name: str, doc: str, parse: Callable[[Any], Value]) -> Knob:
    return Knob(name, _NONE, None, doc, "mapping", None, parse)


BFCL_KNOBS = KnobTable(
    (
        _mapping("names", "tool, or tool.argument: its new name", parse_names),
        _mapping("required", "tool: the argument that it comes to require, confirm", _parse_required),
        Knob("errors", "words", ERRORS, "errors have a code and a message, a number, or no reason", "string"),
        _mapping("units", "money, fuel and pedal: what an argument is counted in", _parse_units),
        _mapping("defaults", "tool.argument: the value that is taken where it is left out", _parse_defaults),
    ),
    rule=unique_names,
)
