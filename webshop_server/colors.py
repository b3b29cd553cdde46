"""Colour words, and how a seller's colour name is brought down to one of them.

* `COLORS` - the words that are looked for, in the order in which they win
* `normalize_color` - the first of these words that a name contains

The list and the rule are WebShop's (Yao et al., 2022, the option score): "Navy Blue Melange" counts
as `blue`, because `blue` comes first in the list.
"""

from __future__ import annotations

from functools import lru_cache

_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
    caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal
    dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo
    ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor
    mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand
    sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut
    wheat white wine yellow
"""
COLORS = tuple(_WORDS.split())
"""The colour words, in alphabetical order, which is also the order in which they win."""


@lru_cache(maxsize=65536)
def normalize_color(value: str) -> str:
    """Bring a colour name down to the first colour word that it contains.

    Args:
        value: an option's value, in lower case.

    Returns:
        The first entry of `COLORS` that is a substring of `value`, else `value` itself.

    Example:
        >>> normalize_color("navy blue"), normalize_color("10.5 wide")
        ('blue', '10.5 wide')
    """
    for color in COLORS:
        if color in value:
            return color
    return value
