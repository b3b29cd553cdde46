"""What stands on each kind of page: functions from data to sections.

* `start_page`, `results_page`, `item_page`, `sub_page`, `ad_page`, `confirm_page`, `done_page`

Texts and their order are the original's, so that an agent written for it finds its way.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from webshop_server.inventory import factor_of, is_target
from webshop_server.page_model import Element, PageSection
from webshop_server.product import UNKNOWN_PRICE, Product
from webshop_server.reward import Score
from webshop_server.settings import Settings
from webshop_server.urls import SUB_PAGES, Location, PageKind

PAGE_SIZE = 10
"""Listings on a page of results."""

SLOGANS = (
    "Your order is nearly there. First, a word from our sponsors!",
    "Wait! An offer that ends today",
    "You are one of our lucky visitors",
    "Members save more, join now",
    "Before you go, look at this",
)
"""What advertisements shout, by depth."""

_START = Location(PageKind.START)


def _text(text: str, name: str = "") -> Element:
    return Element("text", text, name=name)


def _button(settings: Settings, name: str, target: Location | None, kind: str = "button") -> Element:
    label = settings.label(name)
    return Element(kind, label, target, label.lower())


def _instruction(text: str) -> PageSection:
    return PageSection("instruction", (_text("Instruction:", "label"), _text(text, "instruction")))


def show_price(product: Product, settings: Settings) -> str:
    """Give a listing's price as pages show it, in the original's form.

    Example:
        >>> show_price(Product("M1", "Mug", prices=(4.5, 6.0)), Settings())
        '$4.5 to $6.0'
    """
    factor = factor_of(product, settings)
    prices = product.prices[:2] or (UNKNOWN_PRICE,)
    return " to ".join(f"${price if factor == 1.0 else round(price * factor, 2)}" for price in prices)


def start_page(instruction: str, settings: Settings) -> tuple[PageSection, ...]:
    """The page with the search bar."""
    return (
        PageSection("hero", (Element("title", "WebShop"),)),
        _instruction(instruction),
        PageSection("search", (Element("search", ""), _button(settings, "Search", None, "submit"))),
    )


def results_page(
    instruction: str,
    settings: Settings,
    location: Location,
    products: Sequence[Product],
    visited: Container[str],
) -> tuple[PageSection, ...]:
    """Ten listings of a search.

    Args:
        instruction: the task.
        settings: the labels and prices of now.
        location: query and page.
        products: everything that was found, in order.
        visited: the asins that have been looked at.
    """
    page = location.page
    tools = [_button(settings, "Back to Search", _START), _text(f"Page {page} (Total results: {len(products)})")]
    if page > 1:
        tools.append(_button(settings, "< Prev", location._replace(page=page - 1)))
    if page * PAGE_SIZE < len(products):
        tools.append(_button(settings, "Next >", location._replace(page=page + 1)))
    item = Location(PageKind.ITEM, location.keywords, page)
    cards = []
    for product in products[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]:
        asin = product.asin
        link = Element("product", asin, item._replace(asin=asin), asin.lower(), is_chosen=asin in visited)
        cards.append(
            PageSection("card", (link, _text(product.title, "name"), _text(show_price(product, settings), "price")))
        )
    if not cards:
        cards.append(PageSection("empty", (_text("No products match these words."),)))
    return _instruction(instruction), PageSection("toolbar", tuple(tools)), PageSection("cards", (), tuple(cards))


def item_page(instruction: str, settings: Settings, location: Location, product: Product) -> tuple[PageSection, ...]:
    """A listing with its options."""
    back = Location(PageKind.RESULTS, location.keywords, location.page)
    tools = (_button(settings, "Back to Search", _START), _button(settings, "< Prev", back))
    subs = tuple(
        _button(settings, name, location._replace(kind=PageKind.SUB, sub_page=name))
        for name in SUB_PAGES
        if name != "Attributes" or settings.show_attributes
    )
    buy: tuple[Element, ...] = (
        _button(settings, "Buy Now", Location(PageKind.DONE, asin=product.asin, options=location.options), "submit"),
    )
    if is_target(product, settings.sold_out):
        buy = (_text("Currently unavailable", "sold_out"),)
    taken = {element.label for element in (*tools, *subs, *buy) if element.label}
    facts = [
        Element("title", product.title),
        _text(f"Price: {show_price(product, settings)}", "price"),
        _text(f"Rating: {product.rating or 'N.A.'}", "rating"),
    ]
    if product.seller:
        facts.append(_text(f"Sold by: {product.seller}", "seller"))
    return (
        _instruction(instruction),
        PageSection("toolbar", tools),
        PageSection("options", (), tuple(_option_groups(product, location, taken))),
        PageSection("facts", tuple(facts)),
        PageSection("subs", subs),
        PageSection("buy", buy),
    )


def _option_groups(product: Product, location: Location, taken: set[str]) -> Sequence[PageSection]:
    chosen = dict(location.options)
    groups = []
    for option in product.options:
        elements = [_text(option.name, "group")]
        for value in option.values:
            label = value.lower()
            if label in taken:  # a button, or another group's value, has this label already
                label = f"{option.name}: {value}".lower()
            if label in taken:
                continue  # the same value twice in one group
            taken.add(label)
            target = location.choosing(option.name, value)
            elements.append(Element("option", value, target, label, option.name, chosen.get(option.name) == value))
        groups.append(PageSection("option", tuple(elements)))
    return groups


def sub_page(instruction: str, settings: Settings, location: Location, product: Product) -> tuple[PageSection, ...]:
    """Description, features, reviews or attributes of a listing."""
    back = location._replace(kind=PageKind.ITEM, sub_page="")
    tools = (_button(settings, "Back to Search", _START), _button(settings, "< Prev", back))
    if location.sub_page == "Description":
        body = [PageSection("paragraph", (_text(product.description or "No Description"),))]
    elif location.sub_page == "Features":
        body = [PageSection("bullet", (_text(bullet),)) for bullet in product.bullets if bullet]
        body = body or [PageSection("paragraph", (_text("No Features"),))]
    elif location.sub_page == "Reviews":
        body = [
            PageSection("review", (_text(f'"{title}"', "review_title"), _text(f"{score}", "stars"), _text(words)))
            for title, score, words in product.reviews
        ]
        body = body or [PageSection("paragraph", (_text("No Reviews"),))]
    else:
        body = [PageSection("bullet", (_text(attribute),)) for attribute in product.attributes]
        places = (product.category, product.query, product.product_category)
        body.append(PageSection("paragraph", tuple(_text(place) for place in places if place)))
    return _instruction(instruction), PageSection("toolbar", tools), PageSection("body", (), tuple(body))


def ad_page(instruction: str, settings: Settings, location: Location) -> tuple[PageSection, ...]:
    """An advertisement between `Buy Now` and the order: nothing on it tells which button leads on."""
    buttons = tuple(
        Element("submit", label, location._replace(button=label), label.lower(), "ad")
        for label in settings.shown_ad_labels
    )
    words = (
        _text(f"Advertisement {location.depth + 1}", "label"),
        Element("title", SLOGANS[location.depth % len(SLOGANS)]),
        _text("Press a button to continue.", "hint"),
    )
    return _instruction(instruction), PageSection("ad", words), PageSection("ad_buttons", buttons)


def confirm_page(
    instruction: str, settings: Settings, location: Location, product: Product, price: float
) -> tuple[PageSection, ...]:
    """The order, before it is placed."""
    item = Location(PageKind.DONE, asin=product.asin, options=location.options)
    facts = [
        Element("title", "Confirm your order"),
        _text(product.title, "name"),
        *(_text(f"{name}: {value}", "choice") for name, value in location.options),
        _text(f"Total: ${round(price, 2)}", "price"),
    ]
    return (
        _instruction(instruction),
        PageSection("toolbar", (_button(settings, "Back to Search", _START),)),
        PageSection("order", tuple(facts)),
        PageSection("buy", (_button(settings, "Place Order", item, "submit"),)),
    )


def done_page(score: Score) -> tuple[PageSection, ...]:
    """The end: the score and nothing else, above all not what should have been bought."""
    return (
        PageSection("thanks", (Element("title", "Thank you for shopping with us!"),)),
        PageSection("score", (_text("Your score (min 0.0, max 1.0)", "label"), _text(f"{score.reward}", "reward"))),
    )
