"""The score of a purchase, as pure functions.

The formula is WebShop's (Yao et al., 2022, section 3 and its published code):
`r = r_type * (attributes met + options met + r_price) / (attributes + options + 1)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

from webshop_server.goals import Goal
from webshop_server.product import Product

MATCH = 85
"""Two texts match when their token-set ratio is above this, in percent."""

_NOT_WORDS = re.compile(r"[\W_]+")
_TITLE_WORD = re.compile(r"[^\W\d_]{3,}")

_FUNCTION_WORDS_TEXT = """
and are but for from has have her his into its not off our out over per she than that the their them then these
they this those through under upon very was were what when which while who will with without you your all any
both each more most other some such can may must does did been being plus via size sizes color colors pack packs
pcs set sets inch inches count ounce ounces
"""
_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS_TEXT.split())
_ADJECTIVES_TEXT = """
adult beautiful best big black bold bright casual cheap classic clean clear cold compact comfortable comfy cool
cotton cute dark deep deluxe digital dry easy elegant extra fashion fast fine flat flexible formal free fresh
full fun genuine gentle gift good gourmet great green hard heavy hidden high hot huge ideal improved large light
little long loose low lovely luxury mens modern natural new nice old organic original outdoor perfect personal
plain plus portable premium pretty pro professional pure quick quiet raw real regular rich romantic round rustic
safe sexy sharp short simple slim small smart smooth soft solid special square standard strong stylish super
sweet thick thin tight tiny top traditional ultra unique unisex universal vintage warm wet white wide wild
winter summer spring autumn fall women men kids girls boys womens ladies
"""
_ADJECTIVES = frozenset(_ADJECTIVES_TEXT.split())
_ADJECTIVE_ENDINGS = ("able", "ible", "ful", "less", "ous", "ive", "proof", "ly", "ed", "ish")


_COLOR_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
    caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal
    dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo
    ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor
    mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand
    sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut
    wheat white wine yellow
"""
COLORS = tuple(_COLOR_WORDS.split())
"""WebShop's colour words; the first one that occurs in a name counts (`navy blue melange` is `blue`)."""


class Score(NamedTuple):
    """The score of a purchase and its parts.

    Args:
        reward: the score, 0 to 1.
        r_type: the match of the product type: 0, 0.1, 0.5 or 1.
        r_att: the share of the attributes that are met, 0 to 1.
        r_option: the share of the options that are met; `None` if the goal has none.
        r_price: whether the price is within the limit.
        title_score: the share of the nouns in the goal's title that the bought title has.
        query_match: whether listing and goal have the same query.
        category_match: whether their category paths share two or more parts.
        w_att: the weight of the attributes in the sum.
        w_option: the weight of the options.
        w_price: the weight of the price.
    """

    reward: float
    r_type: float
    r_att: float
    r_option: float | None
    r_price: bool
    title_score: float
    query_match: bool
    category_match: bool
    w_att: float
    w_option: float
    w_price: float

    def to_dict(self) -> dict[str, object]:
        """Return the parts as plain data, for logs."""
        return self._asdict()


@lru_cache(maxsize=65536)
def normalize_color(value: str) -> str:
    """Return the first colour word in a seller's colour name, as WebShop's option score does.

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


@lru_cache(maxsize=65536)
def extract_nouns(title: str) -> frozenset[str]:
    """Return the set of nouns in a title, by rule.

    The original uses a language model. Here a noun is a word of three letters or more that is neither a
    function word, a colour, nor a common adjective, and does not end like an adjective or adverb (`-able`,
    `-ful`, `-less`, `-ous`, `-ive`, `-proof`, `-ly`, `-ed`, `-ish`); plurals are reduced to the singular. If
    none is left, every word counts. A repeated noun counts once; the original counts each occurrence. Only
    the thresholds 0, 0.1 and 0.2 of the share of common nouns enter the score.

    Example:
        >>> sorted(extract_nouns("Solid Reclaimed Wood Console Tables for the Hallway, Brown"))
        ['console', 'hallway', 'table', 'wood']
    """
    words = [word for word in _TITLE_WORD.findall(title.lower()) if word not in _FUNCTION_WORDS]
    found = frozenset(
        _singular(word)
        for word in words
        if word not in _ADJECTIVES and word not in _COLOR_SET and not word.endswith(_ADJECTIVE_ENDINGS)
    )
    return found or frozenset(_singular(word) for word in words)


_COLOR_SET = frozenset(COLORS)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=65536)
def _plain(text: str) -> str:
    """Lower case ASCII letters and digits, everything else a space, as the original compares texts."""
    return " ".join(_NOT_WORDS.sub(" ", text.encode("ascii", "ignore").decode()).lower().split())


@lru_cache(maxsize=262144)
def is_same(one: str, other: str) -> bool:
    """Whether two texts match: equal, or with a token-set ratio above `MATCH`.

    Example:
        >>> is_same("machine washable", "washable machine"), is_same("red", "blue")
        (True, False)
    """
    if one == other:  # includes texts without ASCII letters, such as Chinese ones
        return True
    return round(fuzz.token_set_ratio(_plain(one), _plain(other))) > MATCH


def matches_option(wanted: str, chosen: str) -> bool:
    """Whether a chosen value matches a wanted one, after colour normalisation."""
    return is_same(normalize_color(wanted.lower()), normalize_color(chosen.lower()))


def matches_class(name: str, chosen: str, classes: Mapping[str, frozenset[str]]) -> bool:
    """Whether a chosen value is a colour of the class, as the settings define it."""
    colors = classes.get(name, frozenset())
    return chosen in colors or normalize_color(chosen) in colors


NounRule = Callable[[str], Collection[str]]
"""The nouns of a title; of a sequence, a repeated noun counts each time."""


def _type_parts(product: Product, goal: Goal, nouns: NounRule) -> tuple[float, float, bool, bool]:
    query_match = product.query == goal.query
    bought = {part.strip() for part in product.product_category.split("›")}
    wanted = {part.strip() for part in goal.product_category.split("›")}
    category_match = len(bought & wanted) >= 2
    goal_nouns = nouns(goal.title)
    title_score = len(set(nouns(product.title)) & set(goal_nouns)) / len(goal_nouns) if goal_nouns else 0.2
    r_type = 1.0 if query_match or category_match or title_score > 0.2 else 0.5
    if title_score < 0.1:
        r_type = 0.1
    if title_score == 0.0:
        r_type = 0.0
    return r_type, title_score, query_match, category_match


def _met_attributes(product: Product, goal: Goal) -> int:
    texts: tuple[str, ...] | None = None
    met = 0
    for wanted in goal.attributes:
        if any(is_same(has, wanted) for has in product.attributes):
            met += 1
            continue
        if texts is None:
            texts = (product.title.lower(), " ".join(product.bullets).lower(), product.description.lower())
        met += any(wanted in text for text in texts)
    return met


def score_purchase(
    product: Product,
    goal: Goal,
    price: float | None,
    options: Mapping[str, str] | Iterable[tuple[str, str] | str],
    classes: Mapping[str, frozenset[str]] | None = None,
    nouns: NounRule = extract_nouns,
) -> Score:
    """Return the score of a purchase.

    Args:
        product: the listing that was bought.
        goal: the goal.
        price: the price paid, in dollars; `None` (unknown) is never within a limit.
        options: the chosen options: a mapping, `(name, value)` pairs, or values.
        classes: the colours of each class.
        nouns: returns the nouns of a title.

    Example:
        >>> mug = Product("M1", "Coffee Mug", query="mugs", attributes=("dishwasher safe",))
        >>> goal = Goal("a mug", "M1", "Coffee Mug", "garden", "mugs", "", ("dishwasher safe",), (("color", "red"),))
        >>> score_purchase(mug, goal, 5.0, {"color": "red"}).reward
        1.0
        >>> score = score_purchase(mug, goal, 5.0, {"color": "blue"})
        >>> round(score.reward, 3), score.r_att, score.r_option
        (0.667, 1.0, 0.0)
    """
    pairs = options.items() if isinstance(options, Mapping) else options
    chosen = [pair if isinstance(pair, str) else pair[1] for pair in pairs]
    r_type, title_score, query_match, category_match = _type_parts(product, goal, nouns)
    met = _met_attributes(product, goal)
    taken = sum(any(matches_option(value, own) for own in chosen) for _, value in goal.options)
    asked = len(goal.options)
    if goal.color_class:
        asked += 1
        taken += any(matches_class(goal.color_class, own, classes or {}) for own in chosen)
    r_price = price is not None and price <= goal.price_upper
    total = len(goal.attributes) + asked + 1
    return Score(
        reward=r_type * (met + taken + r_price) / total,
        r_type=r_type,
        r_att=met / len(goal.attributes) if goal.attributes else 0.0,
        r_option=taken / asked if asked else None,
        r_price=r_price,
        title_score=title_score,
        query_match=query_match,
        category_match=category_match,
        w_att=len(goal.attributes) / total,
        w_option=asked / total,
        w_price=1 / total,
    )
