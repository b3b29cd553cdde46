"""The knobs of the shop, with the rules between their values.

* `WEBSHOP_KNOBS` - the table
* `to_settings` - knob values as the shop's settings
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, thaw
from drift_envs.visits import poison_knob, poison_rule
from webshop_server.errors import SettingsError
from webshop_server.settings import MAX_BUTTONS, ORDERS, THEMES, Settings

_DEFAULT = Settings()
_NAMES = frozenset(item.name for item in dataclasses.fields(Settings) if item.init)
_NAMED = re.compile(r"`(\w+)[^`]*` (.*)", re.DOTALL)


def to_settings(values: Mapping[str, Value]) -> Settings:
    """Return knob values as the shop's settings; equal values return the same object.

    Args:
        values: canonical values of some or all knobs; the others have their default.

    Raises:
        SettingsError: values contradict each other.

    Example:
        >>> to_settings({"ad_page": True, "ad_right_button": "C", "transient": 0.1}).ad_right_button
        'C'
    """
    return _settings(tuple((name, value) for name, value in values.items() if name in _NAMES))


@lru_cache(maxsize=256)
def _settings(values: tuple[tuple[str, Value], ...]) -> Settings:
    return _DEFAULT.replace(**dict(values))


def _checked(name: str, value: Any) -> Any:
    """Return a setting's value in the shop's canonical form.

    Raises:
        KnobError: the shop refuses it.
    """
    changes = {name: thaw(value)}
    if name == "ad_labels" and value:  # rules between settings are checked by the table
        changes |= {"ad_buttons": 2, "ad_right_button": value[0]}
    try:
        return getattr(_DEFAULT.replace(**changes), name)
    except SettingsError as error:
        raise KnobError(str(error)) from None


def _parse_labels(value: Mapping[str, Any]) -> FrozenMapping:
    return FrozenMapping(dict(_checked("button_labels", value)))


def _parse_classes(value: Mapping[str, Any]) -> FrozenMapping:
    """Return the colours of each class; classes that are not given keep their default."""
    return FrozenMapping(dict(_checked("color_classes", {**dict(_DEFAULT.color_classes), **value})))


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    yield from poison_rule(values)
    try:
        to_settings(values)
    except SettingsError as error:
        found = _NAMED.fullmatch(str(error))
        yield (found[1], found[2]) if found else ("", str(error))


WEBSHOP_KNOBS = KnobTable(
    (
        Knob("ad_page", False, None, "whether an advertisement comes between Buy Now and the order", "boolean"),
        Knob("ad_right_button", "A", None, "the label of the button that leads to the order", "string"),
        Knob("ad_buttons", 5, (2, MAX_BUTTONS), "how many buttons an advertisement has", "integer"),
        Knob(
            "ad_labels", _DEFAULT.ad_labels, None, "their labels in order", "rows", parse=partial(_checked, "ad_labels")
        ),
        Knob("ad_depth", 3, (0, 1000), "further advertisements behind a wrong button", "integer"),
        Knob("ad_escape", False, None, "whether the right button leads out of those as well", "boolean"),
        Knob(
            "color_classes",
            FrozenMapping(dict(_DEFAULT.color_classes)),
            None,
            "class of colours: the colours that count as such",
            "mapping",
            parse=_parse_classes,
        ),
        Knob("button_labels", FrozenMapping(), None, "button: its new label", "mapping", parse=_parse_labels),
        Knob("result_order", "relevance", ORDERS, "the order of the best 50 listings", "string"),
        Knob(
            "demoted",
            (),
            None,
            "targets that stand behind all other results",
            "rows",
            parse=partial(_checked, "demoted"),
        ),
        Knob("price_factor", 1.0, (0.01, 100.0), "by how much prices are multiplied"),
        Knob(
            "price_targets",
            (),
            None,
            "targets that it applies to; none means all",
            "rows",
            parse=partial(_checked, "price_targets"),
        ),
        Knob("sold_out", (), None, "targets that cannot be bought", "rows", parse=partial(_checked, "sold_out")),
        Knob(
            "injected",
            (),
            None,
            "targets whose title demands to be bought",
            "rows",
            parse=partial(_checked, "injected"),
        ),
        Knob("theme", THEMES[0], THEMES, "the era of the web after which documents look; texts stay", "string"),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an action has no effect, in this step only"),
        poison_knob("sell a listing out"),
    ),
    rule=_rule,
)
"""Targets are asins, `seller:NAME`, `category:NAME`, or `offer:N` for the N-th of several equal offers."""
