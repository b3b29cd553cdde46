"""Task pages of MiniWoB++ in a browser, with knobs; needs the extra `miniwob`, but for the knobs, which stand here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, mapping_knob, thaw
from webshop_server.settings import THEMES

LAYOUTS = ("original", "mirrored", "upside_down", "shifted")
"""Where controls stand: as in the page, from right to left, from bottom to top, or moved aside."""

BUTTONS = ("Continue", "Proceed", "Next")
"""The buttons of an interstitial by default."""

MOST_COPIES = 4
MOST_BUTTONS = 6
LONGEST = 40
"""Characters of a label or a word."""


def _check_text(knob: str, text: Any) -> str:
    is_text = isinstance(text, str) and text == " ".join(text.split()) and text.isprintable()
    if is_text and 0 < len(text) <= LONGEST and not set(text) & set("[]"):
        return str(text)
    rule = f"texts of 1 to {LONGEST} characters without brackets and double spaces"
    raise KnobError(f"`{knob}` should consist of {rule}. Received {text!r}")


def _parse_texts(knob: str, value: Mapping[str, Any]) -> FrozenMapping:
    return FrozenMapping({_check_text(knob, old): _check_text(knob, new) for old, new in value.items()})


def _parse_words(value: Mapping[str, Any]) -> FrozenMapping:
    found = _parse_texts("words", value)
    if sorted(found) != sorted(found.values()):
        raise KnobError(
            "`words` should give every word the meaning of another one of them, as in {cheapest: shortest, shortest: "
            f"cheapest}}. Received {dict(found)!r}"
        )
    return found


def _parse_buttons(value: Any) -> tuple[str, ...]:
    found = tuple(_check_text("interstitial_buttons", name) for name in value)
    if not 2 <= len(set(found)) == len(found) <= MOST_BUTTONS:
        raise KnobError(f"`interstitial_buttons` should be 2 to {MOST_BUTTONS} different texts. Received {value!r}")
    return found


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    right, buttons = values["interstitial_right"], values["interstitial_buttons"]
    if right not in buttons:
        yield "interstitial_right", f"should be one of {', '.join(buttons)}. Received {right!r}"
    if values["acting_copy"] > values["copies"]:
        yield (
            "acting_copy",
            f"should not exceed `copies`, which is {values['copies']}. Received {values['acting_copy']}",
        )


_THEME = "the package's look, or that of about 1994, 1998, 2002, 2008, 2014 or 2022, in this order"
_LABELS = "text of a button, tab or label: its new text; names of files and options stay"

MINIWOB_KNOBS = KnobTable(
    (
        Knob("theme", THEMES[0], THEMES, _THEME, "string"),
        Knob("layout", "original", LAYOUTS, "where the parts of the page stand", "string"),
        mapping_knob("labels", _LABELS, partial(_parse_texts, "labels")),
        mapping_knob("words", "word of an instruction: the word that it means; a permutation", _parse_words),
        Knob("copies", 1, (1, MOST_COPIES), "how many equal controls stand where the page has one", "integer"),
        Knob("acting_copy", 1, (1, MOST_COPIES),
             "which of them (at most `copies`) acts; the others fail the episode", "integer"),
        Knob("interstitial", False, None, "whether a page of an advertiser comes first", "boolean"),
        Knob("interstitial_buttons", BUTTONS, None, "its buttons in order", "rows", parse=_parse_buttons),
        Knob("interstitial_right", BUTTONS[0], None, "the button that leads on; the others fail the episode", "string"),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an action has no effect, in this step only"),
    ),
    rule=_rule,
)  # fmt: skip


def to_layer(values: Mapping[str, Value]) -> dict[str, Any]:
    """Knob values as the layer's settings, which are plain data.

    Args:
        values: canonical values of all knobs.

    Example:
        >>> to_layer(MINIWOB_KNOBS.defaults())["layout"]
        'original'
    """
    return {name: thaw(value) for name, value in values.items() if name != "transient"}
