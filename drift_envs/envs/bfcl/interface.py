"""BFCL's tools as clients see them: present names, schemas and errors, and calls to and from those of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from drift_envs.checks import is_number
from drift_envs.envs.bfcl.package import FINISH, BfclTask, load_tools
from drift_envs.errors import KnobError
from drift_envs.knobs import Knob, KnobTable, Value, freeze, mapping_knob, parse_choices
from drift_envs.tasks.package_tools import OfferedTool, PackageArgument, PackageCall, PackageInterface, PackageTool
from drift_envs.tasks.tool_calls import (
    ERRORS,
    MOST_CHARACTERS,
    Refusal,
    check_path,
    fits,
    name_type,
    parse_names,
    parse_required,
    unique_names,
)

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


_SMALL = {"precision": 100, "decimal_places": 100, "exponent": 100}
"""Arguments of the calculator with smaller bounds, since its time and memory grow with them."""

_PLACES = 6
"""The decimal places of numbers in the package's units."""


class BfclInterface(PackageInterface):
    """BFCL's tools under knob values, see `PackageInterface`."""

    table: ClassVar[KnobTable] = BFCL_KNOBS
    confirms = "Whether the call is meant."

    def __init__(self, values: str) -> None:
        super().__init__(values)
        units: Mapping[str, str] = self.knobs["units"]
        self._factors = {path: UNITS[name][unit] for name, unit in units.items() for path in QUANTITIES[name]}

    def _own_tools(self) -> Mapping[str, PackageTool]:
        return load_tools()

    def _check_default(self, path: str, argument: PackageArgument | None, value: Any) -> None:
        if argument is None or argument.default is None or argument.required:
            raise KnobError(f"`defaults` should name arguments with a default that can be given. Received {path!r}")
        if not fits(argument.schema, value):
            raise KnobError(f"`defaults` should give {path!r} a value of its schema. Received {value!r}")

    def offers_of(self, task: BfclTask) -> Sequence[OfferedTool]:
        """The tools of a task, `finish` last.

        Args:
            task: the task.
        """
        found = [
            offer
            for offer in self._offers.values()
            if offer.tool.engine in task.engines and offer.tool.name not in task.excluded
        ]
        return [*found, self._by_tool[FINISH.name]]

    def list_calls(self, task: BfclTask) -> list[str]:
        """The calls of a task's tools that need no argument, as text.

        Args:
            task: the task.
        """
        return [
            json.dumps({"tool": offer.name, "arguments": {}})
            for offer in self.offers_of(task)
            if not any(one.required for one in offer.arguments.values())
        ]

    def _read(self, tool: str, one: PackageArgument, shown: str, value: Any) -> Any:
        if one.name in _SMALL and abs(value) > _SMALL[one.name]:
            raise Refusal("invalid_value", f"{shown} should be {name_type(one.schema)}")
        factor = self._factors.get(f"{tool}.{one.name}", 1)
        return value if factor == 1 else round(value / factor, _PLACES)

    def write(self, call: PackageCall) -> str:
        """The text of a call of the package under these knobs: what was meant before a drift, said after it.

        Arguments that are left out and now have another default are given.

        Args:
            call: the call by the package's names and units.

        Raises:
            Refusal: the text would be too long to be read.
        """
        offer = self._by_tool[call.tool]
        shown: dict[str, Any] = {}
        for name, one in offer.arguments.items():
            own = offer.tool.arguments.get(one.name)
            if one.name in call.arguments:
                value, factor = call.arguments[one.name], self._factors.get(f"{call.tool}.{one.name}", 1)
                shown[name] = value if factor == 1 or not is_number(value) else round(value * factor, 2 * _PLACES)
            elif own is None:  # the argument that the tool has come to require
                shown[name] = True
            elif one.default != own.default:
                shown[name] = own.default
        text = json.dumps({"tool": offer.name, "arguments": shown})
        if len(text) > MOST_CHARACTERS:
            raise Refusal("invalid_call", f"a call should have at most {MOST_CHARACTERS} characters")
        return text
