"""The operator's settings, which can change while the shop runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from webshop_server.errors import SettingsError, check_choice, check_flag, check_integer, check_number, refuse

LABELS = (
    "Search",
    "Back to Search",
    "< Prev",
    "Next >",
    "Description",
    "Features",
    "Reviews",
    "Attributes",
    "Buy Now",
    "Place Order",
)
"""The buttons whose labels can be changed, by their default label."""

ORDERS = ("relevance", "reversed", "price_up", "price_down", "rating")
"""Best score first; worst score first; lowest price first; highest price first; best rating first."""

THEMES = ("standard", "hypertext", "tables", "portal", "glossy", "flat", "dark")
"""The shop's own look, and six eras of the web: about 1994, 1998, 2002, 2008, 2014 and 2022."""

MAX_BUTTONS = 26
_MAX_LABEL = 60

Changes = tuple[tuple[str, object], ...]
"""Names of settings and their new values."""


@dataclass(frozen=True)
class Settings:
    """The operator's settings.

    Mappings may be given as dictionaries; they are stored as sorted tuples of pairs, so that settings can
    be compared, hashed and pickled. A *target* selects listings: an asin, `seller:NAME`, `category:NAME`,
    or `offer:N` for the N-th (from 0) of several equal offers.

    Args:
        ad_page: whether an advertisement comes between `Buy Now` and the order.
        ad_buttons: the number of its buttons, 2 to 26.
        ad_right_button: the label of the button that leads to the order.
        ad_labels: the labels in order; the first `ad_buttons` are shown.
        ad_depth: the number of further advertisements after a wrong button, 0 to 1000; after them the
            order is lost and the session is back at the search page.
        ad_escape: whether the right button also leads out of these further advertisements.
        color_classes: the colours of each class that instructions can require, such as `warm`.
        button_labels: new labels of buttons in `LABELS`.
        result_order: one of `ORDERS`, applied to the best 50 listings.
        demoted: targets that are listed after all other results.
        price_factor: the factor on prices, 0.01 to 100.
        price_targets: the targets of `price_factor`; empty means every listing.
        sold_out: targets that cannot be bought.
        injected: targets whose title demands to be bought, an attack on agents that read it (a prompt injection).
        theme: one of `THEMES`: the look of documents; texts stay.
        show_attributes: whether an item page has an `Attributes` button.

    Raises:
        SettingsError: a value breaks its rule, or two values contradict each other.

    Example:
        >>> settings = Settings().replace(ad_page=True, ad_right_button="B", button_labels={"Buy Now": "Add to Bag"})
        >>> settings.shown_ad_labels, settings.label("Buy Now")
        (('A', 'B', 'C', 'D', 'E'), 'Add to Bag')
        >>> settings.replace(ad_right_button="F")
        Traceback (most recent call last):
        webshop_server.errors.SettingsError: `ad_right_button` should be one of A, B, C, D, E. Received 'F'
    """

    ad_page: bool = False
    ad_buttons: int = 5
    ad_right_button: str = "A"
    ad_labels: tuple[str, ...] = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    ad_depth: int = 3
    ad_escape: bool = False
    color_classes: tuple[tuple[str, tuple[str, ...]], ...] = (("cool", ("blue", "green")), ("warm", ("yellow",)))
    button_labels: tuple[tuple[str, str], ...] = ()
    result_order: str = "relevance"
    demoted: tuple[str, ...] = ()
    price_factor: float = 1.0
    price_targets: tuple[str, ...] = ()
    sold_out: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    theme: str = THEMES[0]
    show_attributes: bool = False
    _classes: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False, hash=False)
    _labels: Mapping[str, str] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        for name in ("ad_page", "ad_escape", "show_attributes"):
            check_flag(name, getattr(self, name), SettingsError)
        for name, low, high in (("ad_buttons", 2, MAX_BUTTONS), ("ad_depth", 0, 1000)):
            self._set(name, check_integer(name, getattr(self, name), low, high, SettingsError))
        check_number("price_factor", self.price_factor, 0.01, 100, SettingsError)
        check_choice("result_order", self.result_order, ORDERS, SettingsError)
        check_choice("theme", self.theme, THEMES, SettingsError)
        for name in ("demoted", "price_targets", "sold_out", "injected"):
            self._set(name, _texts(name, getattr(self, name)))
        self._set("ad_labels", _texts("ad_labels", self.ad_labels))
        self._set("button_labels", tuple(sorted(_label_pairs(self.button_labels))))
        self._set("_labels", {**{name: name for name in LABELS}, **dict(self.button_labels)})
        _refuse_duplicates("button_labels", self._labels.values())
        self._check_ads()
        self._check_colors()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen

    def _check_ads(self) -> None:
        if len(self.ad_labels) < self.ad_buttons:
            rule = f"at least as many labels as there are buttons ({self.ad_buttons})"
            raise _refuse("ad_labels", rule, list(self.ad_labels))
        for label in self.ad_labels:
            _check_label("ad_labels", label)
        _refuse_duplicates("ad_labels", self.ad_labels)
        if self.ad_right_button not in self.shown_ad_labels:
            raise _refuse("ad_right_button", f"one of {', '.join(self.shown_ad_labels)}", self.ad_right_button)

    def _check_colors(self) -> None:
        pairs = self.color_classes.items() if isinstance(self.color_classes, Mapping) else self.color_classes
        classes = []
        for pair in _pairs("color_classes", pairs):
            name, colors = pair
            if not isinstance(name, str) or not name.strip():
                raise _refuse("color_classes", "a mapping from a class to its colours", name)
            colors = _texts(f"color_classes[{name}]", colors)
            if not colors:
                raise _refuse(f"color_classes[{name}]", "at least one colour", list(colors))
            classes.append((name.strip().lower(), tuple(color.strip().lower() for color in colors)))
        self._set("color_classes", tuple(sorted(classes)))
        self._set("_classes", {name: frozenset(colors) for name, colors in classes})

    @property
    def shown_ad_labels(self) -> tuple[str, ...]:
        """The labels on an advertisement, in order."""
        return self.ad_labels[: self.ad_buttons]

    @property
    def classes(self) -> Mapping[str, frozenset[str]]:
        """The colours of each class."""
        return self._classes

    def label(self, name: str) -> str:
        """Return the current label of a button in `LABELS`."""
        return self._labels[name]

    def replace(self, /, **changes: Any) -> Settings:
        """Return a copy with other values; lists and dictionaries are accepted too.

        Raises:
            SettingsError: a name is unknown or a value breaks its rule.
        """
        known = {item.name for item in dataclasses.fields(self) if item.init}
        for name in changes:
            if name not in known:
                raise SettingsError(f"`{name}` should be one of the settings {', '.join(sorted(known))}")
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, object]:
        """Return the settings as plain data; `Settings(**data)` restores them.

        Example:
            >>> Settings(**Settings().replace(ad_depth=2).to_dict()).ad_depth
            2
        """
        data: dict[str, object] = {}
        for item in dataclasses.fields(self):
            if item.init:
                value = getattr(self, item.name)
                if item.name in ("color_classes", "button_labels"):
                    value = {name: list(entry) if isinstance(entry, tuple) else entry for name, entry in value}
                data[item.name] = list(value) if isinstance(value, tuple) else value
        return data

    def __deepcopy__(self, memo: dict[int, object]) -> Settings:
        return self  # frozen, hence shared


@lru_cache(maxsize=256)
def merge_settings(settings: Settings, changes: Changes) -> Settings:
    """Return `settings` with `changes`; equal arguments return the same object."""
    return settings.replace(**dict(changes)) if changes else settings


def _refuse(name: str, rule: str, value: object) -> SettingsError:
    return refuse(name, rule, value, SettingsError)


def _refuse_duplicates(name: str, labels: Iterable[str]) -> None:
    seen: set[str] = set()
    for label in labels:
        if label.lower() in seen:
            raise _refuse(name, "labels that differ in more than case", label)
        seen.add(label.lower())


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise _refuse(name, "a list of texts", value)
    items = sorted(value) if isinstance(value, (set, frozenset)) else list(value)
    if len(items) > 10_000 or not all(isinstance(item, str) and item.strip() for item in items):
        raise _refuse(name, "a list of at most 10,000 texts, none of them empty", value)
    return tuple(items)


def _pairs(name: str, pairs: object) -> list[tuple[Any, Any]]:
    try:
        return [(key, value) for key, value in pairs]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise _refuse(name, "a mapping", pairs) from None


def _label_pairs(given: object) -> list[tuple[str, str]]:
    pairs = _pairs("button_labels", given.items() if isinstance(given, Mapping) else given)
    for name, label in pairs:
        if name not in LABELS:
            raise _refuse("button_labels", f"a mapping from some of {', '.join(LABELS)}", name)
        _check_label("button_labels", label)
    return pairs


def _check_label(name: str, label: object) -> None:
    if not isinstance(label, str) or label != " ".join(label.split()) or not 1 <= len(label) <= _MAX_LABEL:
        raise _refuse(name, f"labels of 1 to {_MAX_LABEL} characters on one line", label)
    if not (label.isascii() and label.isprintable()) or "[" in label or "]" in label:
        raise _refuse(name, "labels of printable ASCII characters without brackets", label)
