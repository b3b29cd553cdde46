"""The tools of BFCL's multi-turn tasks with knobs; needs the extra `bfcl`, but for the knobs, which stand here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from drift_envs.errors import KnobError
from drift_envs.knobs import Knob, KnobTable, Value, freeze, mapping_knob, parse_choices
from drift_envs.tool_calls import ERRORS, check_path, parse_names, parse_required, unique_names

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


_CHOICES = {quantity: tuple(units) for quantity, units in UNITS.items()}

BFCL_KNOBS = KnobTable(
    (
        mapping_knob("names", "tool, or tool.argument: its new name", parse_names),
        mapping_knob("required", "tool: the argument that it comes to require, confirm", parse_required),
        Knob("errors", "words", ERRORS, "errors have a code and a message, a number, or no reason", "string"),
        mapping_knob(
            "units", "money, fuel and pedal: what an argument is counted in", partial(parse_choices, "units", _CHOICES)
        ),
        mapping_knob("defaults", "tool.argument: the value that is taken where it is left out", _parse_defaults),
    ),
    rule=unique_names,
)
