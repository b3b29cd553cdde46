"""The original's `web_agent_site.engine.goal`: the score of a purchase, for dictionaries.

* `get_reward` - the score
* `get_type_reward`, `get_attribute_reward`, `get_option_reward` - its parts

Listings and goals are dictionaries with the original's keys, as `SimServer.product_item_dict` and `goals` have them;
keys that a part does not need can be missing. The formula is that of `webshop_server.reward`, with the nouns of
`webshop_server.compat.nouns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webshop_server.compat.nouns import count_nouns
from webshop_server.goals import NO_LIMIT, Goal
from webshop_server.product import Product
from webshop_server.reward import Score, score_purchase

Record = Mapping[str, Any]


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
    """The parts of a score by the original's names.

    Args:
        score: the score.
    """
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
