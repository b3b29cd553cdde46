"""The one table of colours: a family of rules has the same colour in every picture, curve and board.

* `FAMILY_COLOURS`, `family_of` - a family's colour, and the family of a verifier
* `colour_of` - the colour of an agent among those of other memories
* `REFERENCES`, `OTHER` - what belongs to no family

The colours are those of Okabe and Ito (2008), which differ for colour-blind readers too, and are legible on light and
dark pages.
"""

from __future__ import annotations

from collections.abc import Mapping

REFERENCES, OTHER = "references", "other"

FAMILY_COLOURS: Mapping[str, str] = {
    "keep": "#56b4e9",
    "newest": "#0072b2",
    "patience": "#009e73",
    "detectors": "#e69f00",
    "belief": "#cc79a7",
    "probing": "#d55e00",
    REFERENCES: "#8a949e",
    OTHER: "#b8c0c8",
}
"""By family, as `research/verify_map/rules.yaml` names them: what happens to a record that a response contradicts."""

_FAMILIES = {
    "none": "keep",
    "announce_only": "keep",
    "overwrite": "newest",
    "forget": "patience",
    "majority": "patience",
    "adwin": "detectors",
    "page_hinkley": "detectors",
    "window": "detectors",
}
_PROBING = "glove"
_ORACLE = "oracle_"

_MEMORIES = (
    "none",
    "vanilla",
    "memory_bank",
    "voyager",
    "generative_agents",
    "beliefmem",
    "full_transcript",
    "reasoning_bank",
    "adamem",
    "managed",
    "synapse",
    "consensus",
)
_MEMORY_COLOURS = ("#8a949e", "#56b4e9", "#009e73", "#e69f00", "#0072b2", "#cc79a7", "#d55e00")
_OWN = "#8f5aa8"
"""Of memories and loops that are not ours."""


def family_of(verifier: str) -> str:
    """The family of a verifier or a reference.

    Args:
        verifier: its label, with or without options.

    Example:
        >>> family_of("glove(budget=2)"), family_of("none"), family_of("oracle_reset"), family_of("mine")
        ('probing', 'keep', 'references', 'other')
    """
    name = verifier.partition("(")[0]
    if name.startswith(_PROBING):
        return "probing"
    return REFERENCES if name.startswith(_ORACLE) else _FAMILIES.get(name, OTHER)


def colour_of(memory: str) -> str:
    """The colour of a memory where several stand in one picture; the seventh begins anew.

    Args:
        memory: its label, with or without options.

    Example:
        >>> colour_of("vanilla(k=5)") == FAMILY_COLOURS["keep"], colour_of("my loop")
        (True, '#8f5aa8')
    """
    name = memory.partition("(")[0]
    return _MEMORY_COLOURS[_MEMORIES.index(name) % len(_MEMORY_COLOURS)] if name in _MEMORIES else _OWN
