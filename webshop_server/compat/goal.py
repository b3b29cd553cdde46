"""The original's `engine.goal` and `engine.normalize`: goals, the score of a purchase, names of colours and sizes.

Listings and goals are dictionaries with the original's keys, as `SimServer.product_item_dict` and `goals` have them;
keys that a part does not need can be missing. The formula is that of `webshop_server.reward`, with other nouns: by
rule, or by a model of spaCy, as the original does.

The original takes nouns and names from spaCy, whose model is a download. In titles, where most words are capitalised,
it tags nearly every word as a noun or a name; hence the rule: every word of two letters or more that is neither a
function word nor one of a few words of measure. Only the thresholds 0, 0.1 and 0.2 of the share of common nouns enter
the score.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from webshop_server.catalogue import MAX_COMBINATIONS
from webshop_server.errors import ArgumentError, refuse
from webshop_server.goals import NO_LIMIT, Goal, make_goal
from webshop_server.product import Instruction, Product
from webshop_server.reward import COLORS, Score, score_purchase
from webshop_server.reward import normalize_color as normalize_color

MODEL = "en_core_web_sm"
"""The original's model."""

_TAGS = ("NOUN", "PROPN")
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’](?=[^\W\d_]))*")

_NO_NOUNS_TEXT = """
a all an and are as at be but by can do each for from full has have how if in into is it its made men's mens more most
no non not of on one onto or our out over pcs per so than that the their them these they this those to under up us
very via vs was we were what when which who will with within without women's womens x you your
"""

_NO_NOUNS = frozenset(_NO_NOUNS_TEXT.split())
Record = Mapping[str, Any]
COLOR_SET = list(COLORS)
_SHIRTS = ("xx-large", "3x-large", "4x-large", "5x-large", "x-large", "x-small", "medium", "large", "small")
SIZE_SET = [*_SHIRTS, "queen", "twin", "full", "king", "one size", "pack"]
_ANY = "(.*)"
_PAIRS = (("neck", "sleeve"), (r" women \| ", " men"), ("w x", "l"), ("w by ", "l"), ("w x", "h"))
_WIDTHS = ("wide", "x-wide", "narrow", "petite", "inch", "plus", "mm")
_LENGTHS = ("ft", "feet", "meter", "yards")

_FORMS = (
    *(f"{_ANY}{first}{_ANY}{second}" for first, second in _PAIRS),
    *(f"{_ANY}{unit}" for unit in _WIDTHS),
    f"women{_ANY}",
    f"{_ANY}x{_ANY}",
    *(f"{_ANY}{unit}" for unit in _LENGTHS),
    *(f"{_ANY}{sign}{_ANY}" for sign in (r"\*", r"\-")),
    *(rf"(\d+){unit}$" for unit in ('"', "f", "m", "cm", "g")),
)

SIZE_PATTERNS = [re.compile(form) for form in (*SIZE_SET, *_FORMS)]
"""The forms of a size; the first one that is found counts."""

_UNKNOWN = "not_matched"


@lru_cache(maxsize=65536)
def count_nouns(title: str) -> tuple[str, ...]:
    """Return the nouns of a title in lower case, each as often as it occurs.

    Example:
        >>> count_nouns("2 Prong Power Cord for JBL Bar 3.1 Bar 2.1")
        ('prong', 'power', 'cord', 'jbl', 'bar', 'bar')
    """
    words = (word.lower() for word in _WORD.findall(title))
    return tuple(word for word in words if len(word) > 1 and word not in _NO_NOUNS)


def load_tagger(model: str = MODEL) -> Callable[[str], tuple[str, ...]]:
    """Return a function like `count_nouns` that takes the nouns from a model of spaCy.

    Args:
        model: the name of an installed model.

    Raises:
        ArgumentError: spaCy is not installed, or no such model.
    """
    try:
        import spacy
    except ImportError as error:
        raise ArgumentError("`spacy` is not installed, run `pip install spacy`") from error
    try:
        language = spacy.load(model, disable=["parser", "ner", "lemmatizer"])
    except OSError as error:
        raise refuse("model", "an installed model of spaCy", model, ArgumentError) from error

    @lru_cache(maxsize=65536)
    def count(title: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in language(title) if token.pos_ in _TAGS)

    return count


def get_goals(
    all_products: Iterable[Record], product_prices: Mapping[str, float] | None, human_goals: object = True
) -> list[dict[str, Any]]:
    """The goals of listings, unshuffled.

    Args:
        all_products: listings as `load_products` returns them.
        product_prices: the price of each, in dollars; without them goals have no price limit.
        human_goals: whether people wrote the instructions.
    """
    make = get_human_goals if human_goals else get_synthetic_goals
    return make(all_products, product_prices)


def get_human_goals(all_products: Iterable[Record], product_prices: Mapping[str, float] | None) -> list[dict[str, Any]]:
    """The goals with an instruction by a person; those without attributes are skipped.

    Args:
        all_products: as in `get_goals`.
        product_prices: as in `get_goals`.
    """
    goals = []
    for product in all_products:
        told = [item for item in product.get("instructions") or () if item["instruction_attributes"]]
        for number, item in enumerate(told):
            instruction = Instruction(item["instruction"], tuple(item["instruction_attributes"]))
            goal = _make_goal(product, instruction, (), product_prices, number)
            goals.append({**goal, "goal_options": list(item["instruction_options"]), "weight": 1})
    return goals


def get_synthetic_goals(
    all_products: Iterable[Record], product_prices: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    """A goal for each combination of a listing's options, at most 10,000 a listing.

    Args:
        all_products: as in `get_goals`.
        product_prices: as in `get_goals`.
    """
    goals = []
    for product in all_products:
        text, attributes = product.get("instruction_text"), product.get("instruction_attributes")
        if text is None or not attributes:
            continue
        names = sorted(product["options"])
        combinations = itertools.product(*(product["options"][name] for name in names))
        for chosen in itertools.islice(combinations, MAX_COMBINATIONS):
            pairs = tuple(zip(names, chosen, strict=True))
            goal = _make_goal(product, Instruction(text, tuple(attributes)), pairs, product_prices)
            goals.append({**goal, "goal_options": dict(pairs)})
    counts = Counter(attribute for goal in goals for attribute in goal["attributes"])
    for goal in goals:
        goal["weight"] = sum(1 / counts[attribute] for attribute in goal["attributes"]) / len(goal["attributes"])
    return goals


def _make_goal(
    product: Record,
    instruction: Instruction,
    pairs: tuple[tuple[str, str], ...],
    prices: Mapping[str, float] | None,
    *names: int,
) -> dict[str, Any]:
    asin = product["asin"]
    listing = Product(
        asin,
        product["name"],
        prices=(NO_LIMIT if prices is None else prices[asin],),
        category=product.get("category", ""),
        query=product.get("query", ""),
        product_category=product.get("product_category", ""),
    )
    return make_goal(listing, instruction, pairs, names=(asin, *names)).to_dict()


def get_reward(
    purchased_product: Record, goal: Record, price: float, options: Mapping[str, str], **arguments: object
) -> Any:
    """The score of a purchase.

    Args:
        purchased_product: the listing that was bought.
        goal: the goal.
        price: the price paid, in dollars.
        options: the chosen options by name.
        **arguments: `verbose=True` returns the parts of the score too.

    Example:
        >>> mug = {"name": "Mug", "Title": "Mug", "query": "mugs", "product_category": "", "Attributes": ["safe"],
        ...        "BulletPoints": [], "Description": ""}
        >>> goal = {**mug, "attributes": ["safe"], "goal_options": {"color": "red"}, "price_upper": 10.0}
        >>> get_reward(mug, goal, 5.0, {"color": "red"})
        1.0
    """
    score = _score(purchased_product, goal, price, options.values())
    return (score.reward, describe_score(score)) if arguments.get("verbose") else score.reward


def get_type_reward(purchased_product: Record, goal: Record) -> dict[str, Any]:
    """The match of the product type: `r_type`, `query_match`, `category_match`, `title_score`.

    Args:
        purchased_product: the listing that was bought.
        goal: the goal.
    """
    score = _score(purchased_product, goal, 0.0, ())
    return {name: getattr(score, name) for name in ("r_type", "query_match", "category_match", "title_score")}


def get_attribute_reward(purchased_product: Record, goal: Record) -> tuple[float, int]:
    """The share of the goal's attributes that are met, and their number.

    Args:
        purchased_product: the listing that was bought.
        goal: the goal.
    """
    share = _score(purchased_product, goal, 0.0, ()).r_att
    return share, round(share * len(goal["attributes"]))


def get_option_reward(purchased_options: Iterable[str], goal_options: Any) -> tuple[float | None, int]:
    """The share of the goal's options that are met, `None` if it has none, and their number.

    Args:
        purchased_options: the chosen values.
        goal_options: the wanted values, or `(name, value)` pairs.
    """
    goal = {"goal_options": list(goal_options)}
    share = _score({}, goal, 0.0, purchased_options).r_option
    return share, round((share or 0.0) * len(goal["goal_options"]))


def describe_score(score: Score) -> dict[str, Any]:
    """The parts of a score by the original's names."""
    parts = score.to_dict()
    del parts["reward"]
    if score.r_option is None:
        del parts["r_option"], parts["w_option"]
    return parts


def _score(listing: Record, goal: Record, price: float, options: Iterable[str]) -> Score:
    wanted = goal.get("goal_options", ())
    pairs = wanted.items() if isinstance(wanted, Mapping) else wanted
    product = Product(
        "",
        listing.get("name", ""),
        listing.get("Description", ""),
        bullets=tuple(listing.get("BulletPoints", ())),
        attributes=tuple(listing.get("Attributes", ())),
        query=listing.get("query", ""),
        product_category=listing.get("product_category", ""),
    )
    asked = Goal(
        "",
        "",
        goal.get("name", ""),
        "",
        goal.get("query", ""),
        goal.get("product_category", ""),
        tuple(goal.get("attributes", ())),
        tuple(("", pair) if isinstance(pair, str) else tuple(pair) for pair in pairs),
        price_upper=goal.get("price_upper", NO_LIMIT),
    )
    return score_purchase(product, asked, price, list(options), nouns=count_nouns)


def normalize_color_size(
    product_prices: Iterable[tuple[object, str, str]],
) -> tuple[dict[str, str], dict[str, str]]:
    r"""Map the colours and sizes of many products to words and forms.

    Args:
        product_prices: keys `(asin, color, size)`, such as those of a dictionary of prices.

    Returns:
        By colour in lower case, the first of `COLOR_SET` in it; by size, the first of `SIZE_PATTERNS`, or
        `numeric_size`; `not_matched` where nothing is found.

    Example:
        >>> normalize_color_size({("B01", "navy blue", "40cm"): 10.0})
        ({'N.A.': 'not_matched', 'navy blue': 'blue'}, {'N.A.': 'not_matched', '40cm': '(\\d+)cm$'})
    """
    keys = list(product_prices)
    colors = dict.fromkeys(color.lower() for _, color, _ in keys)
    sizes = dict.fromkeys(size.lower() for _, _, size in keys)
    found = {color: next((word for word in COLOR_SET if word in color), _UNKNOWN) for color in colors}
    return {"N.A.": _UNKNOWN, **found}, {"N.A.": _UNKNOWN, **{size: _find_form(size) for size in sizes}}


def _find_form(size: str) -> str:
    form = next((pattern.pattern for pattern in SIZE_PATTERNS if pattern.search(size)), None)
    if form is not None:
        return form
    return "numeric_size" if size.replace(".", "", 1).isdigit() else _UNKNOWN
